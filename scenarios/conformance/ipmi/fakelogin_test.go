package ipmi

import (
	"crypto/aes"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"slices"
)

// find finds an account as RAKP 1 asks for it.
func (f *fake) find(name string, role byte) (fakeAccount, bool) {
	for _, a := range f.accounts {
		if a.Name == name && (role&0x10 != 0 || a.limit == Privilege(role&0x0F)) {
			return a, true
		}
	}
	return fakeAccount{}, false
}

func (f *fake) halfOpen(id uint32) *fakeSession {
	for _, s := range f.half {
		if s.id == id {
			return s
		}
	}
	return nil
}

// handshake answers the messages that open a session, each once.
func (f *fake) handshake(b []byte, p packet, from string) []byte {
	key := from + string(b)
	if response, ok := f.answered[key]; ok && f.quirk != "forgets what it answered" {
		return response
	}
	if len(p.body) < 8 || len(p.trailer) > 0 {
		return nil
	}
	body := f.step(p)
	if body == nil {
		return nil
	}
	if body[1] != 0 && f.quirk == "long refusals" {
		body = append(body, make([]byte, 28)...)
	}
	out, _ := packet{Header: Header{Payload: p.Payload + 1}, body: body}.AppendBinary(nil)
	f.answered[key] = out
	return out
}

func (f *fake) step(p packet) []byte {
	tag := p.body[0]
	refuse := func(console uint32, s Status) []byte { return append([]byte{tag, byte(s), 0, 0}, le32(console)...) }
	id := binary.LittleEndian.Uint32(p.body[4:])
	s := f.halfOpen(id)
	switch p.Payload {
	case PayloadOpenRequest:
		return f.openSession(p.body, refuse)
	case PayloadRAKP1:
		switch {
		case s == nil:
			if f.quirk == "console of nobody" {
				return refuse(7, InvalidSessionID)
			}
			return refuse(0, InvalidSessionID)
		case len(p.body) < 28 || len(p.body) != 28+int(p.body[27]):
			return nil
		case p.body[27] > 16:
			return refuse(s.ID, InvalidNameSize)
		}
		who, ok := f.find(string(p.body[28:]), p.body[24])
		if f.quirk == "looks up names only" {
			who, ok = f.find(string(p.body[28:]), 0x10)
		}
		if !ok {
			return refuse(s.ID, UnknownName)
		}
		s.who, s.role = who, p.body[24]
		s.whom = append([]byte{p.body[24]}, p.body[27:]...)
		copy(s.theirs[:], p.body[8:])
		_, _ = rand.Read(s.ours[:])
		body := append([]byte{tag, 0, 0, 0}, le32(s.ID)...)
		body = append(body, s.ours[:]...)
		body = append(body, f.guid[:]...)
		return append(body, rakps[s.Suite.Auth].sum(padded(who.Password, 20),
			le32(s.ID), le32(s.id), s.theirs[:], s.ours[:], f.guid[:], s.whom)...)
	case PayloadRAKP3:
		if s == nil || s.whom == nil {
			return refuse(0, InvalidSessionID)
		}
		return f.prove(s, p.body, refuse)
	}
	return nil
}

func (f *fake) openSession(body []byte, refuse func(uint32, Status) []byte) []byte {
	if len(body) != 32 {
		return nil
	}
	console := binary.LittleEndian.Uint32(body[4:])
	for i, at := range []int{12, 20, 28} {
		if body[at] > 4 {
			return refuse(console, []Status{InvalidAuth, InvalidIntegrity, InvalidCrypt}[i])
		}
	}
	var chosen *Suite
	for _, s := range Suites {
		taken := slices.Contains(f.suites, s.ID) || f.quirk == "takes every suite"
		if taken && s.Auth == body[12] && s.Integrity == body[20] && s.Crypt == body[28] {
			chosen = &s
		}
	}
	level := Privilege(body[1])
	switch {
	case chosen == nil:
		return refuse(console, NoSuite)
	case level > 5 && f.quirk != "any level":
		return refuse(console, InvalidRole)
	case level == 0:
		level = Administrator
	}
	if f.quirk == "grants nothing" {
		level = 0
	}
	most := 15
	if f.quirk == "three sessions" {
		most = 3
	}
	if len(f.open) >= most {
		return refuse(console, NoResources)
	}
	const slots = 16
	if len(f.half) == slots {
		if f.quirk == "half-open for ever" {
			return refuse(console, NoResources)
		}
		f.half = f.half[1:]
	}
	f.next += 0x101
	s := &fakeSession{Session: Session{ID: console, Suite: *chosen, conn: &Conn{}}, id: f.next, level: User}
	s.console = s.id
	if f.quirk == "knows sessions by the console's ID" {
		f.half = slices.DeleteFunc(f.half, func(o *fakeSession) bool { return o.ID == console })
	}
	s.Limit = level
	f.half = append(f.half, s)
	out := append([]byte{body[0], 0, byte(level), 0}, le32(console)...)
	out = append(out, le32(s.id)...)
	return append(out, body[8:]...)
}

func (f *fake) prove(s *fakeSession, body []byte, refuse func(uint32, Status) []byte) []byte {
	auth := rakps[s.Suite.Auth]
	want := auth.sum(padded(s.who.Password, 20), s.ours[:], le32(s.ID), s.whom)
	if !hmac.Equal(want, body[8:]) && f.quirk != "takes every proof" {
		f.half = slices.DeleteFunc(f.half, func(o *fakeSession) bool { return o == s })
		return refuse(s.ID, InvalidICV)
	}
	key := padded(s.who.Password, 20)
	if f.kg != nil && f.quirk != "forgets K_g" {
		key = padded(string(f.kg), 20)
	}
	sik := auth.sum(key, s.theirs[:], s.ours[:], s.whom)
	s.sums = newIntegrity(s.Suite.Integrity, auth.sum(sik, constant(1)), padded(s.who.Password, 20))
	if s.Suite.Crypt == cryptAES {
		s.block, _ = aes.NewCipher(auth.sum(sik, constant(2))[:16])
	}
	f.half = slices.DeleteFunc(f.half, func(o *fakeSession) bool { return o == s })
	f.open[s.id] = s
	proof := auth.sum(sik, s.theirs[:], le32(s.id), f.guid[:])
	if auth.hash != nil {
		proof = proof[:auth.icv]
	}
	return append(append([]byte{body[0], 0, 0, 0}, le32(s.ID)...), proof...)
}
