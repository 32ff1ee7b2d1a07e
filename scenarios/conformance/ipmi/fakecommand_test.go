package ipmi

import (
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"strings"
)

// decryptRaw decrypts and looks at no pad.
func decryptRaw(s *fakeSession, body []byte) []byte {
	size := s.block.BlockSize()
	plain := make([]byte, len(body)-size)
	cipher.NewCBCDecrypter(s.block, body[:size]).CryptBlocks(plain, body[size:])
	return plain
}

// command gives code and data of an answer. s is nil outside of a session.
func (f *fake) command(s *fakeSession, p packet, m message) []byte {
	type key struct {
		fn  NetFn
		cmd byte
	}
	at := key{m.NetFn, m.Command}
	sizes := map[key]int{ // bytes of request data
		{App, 0x01}: 0, {App, 0x37}: 0, {App, 0x44}: 2, {App, 0x54}: 3, {App, 0x38}: 2, {App, 0x3B}: 1,
		{Chassis, 0x01}: 0, {Chassis, 0x02}: 1, {Storage, 0x42}: 0,
	}
	if n, ok := sizes[at]; ok && n != len(m.Data) && f.quirk != "any length" {
		return []byte{byte(WrongLength)}
	}
	levels := map[key]Privilege{{App, 0x44}: Operator, {Chassis, 0x02}: Operator}
	if s != nil && levels[at] > s.level && f.quirk != "no privileges" {
		return []byte{byte(NoPrivilege)}
	}
	switch at {
	case key{App, 0x01}:
		return append([]byte{0}, bytes.Repeat([]byte{0x20}, 15)...)
	case key{App, 0x37}:
		g := f.guid
		if f.quirk == "another GUID" {
			g[0]++
		}
		return append([]byte{0}, g[:]...)
	case key{App, 0x38}:
		return f.capabilities(m.Data)
	case key{App, 0x39}:
		return f.challenge15(m.Data)
	case key{App, 0x3A}:
		return f.activate15(s, m.Data)
	case key{App, 0x3B}:
		return f.setLevel(s, Privilege(m.Data[0]))
	case key{App, 0x3C}:
		return f.closeSession(s, m.Data)
	case key{App, 0x3D}:
		return f.sessionInfo(s, m.Data)
	case key{App, 0x48}, key{App, 0x49}:
		return f.payload(s, m.Command == 0x48)
	case key{App, 0x44}:
		return []byte{0, 15, 3, 1, 0x14}
	case key{App, 0x54}:
		return f.cipherSuites(m.Data)
	case key{Chassis, 0x01}:
		if f.quirk == "status of 10 bytes" {
			return make([]byte, 11)
		}
		return []byte{0, 0x20, 0, 0x40}
	case key{Chassis, 0x02}:
		return []byte{byte(InvalidField)}
	case key{Storage, 0x42}:
		f.reserved++
		return []byte{0, f.reserved, 0}
	}
	return []byte{byte(InvalidCommand)}
}

func (f *fake) capabilities(data []byte) []byte {
	channel, level := data[0]&0x0F, data[1]
	if channel == 0x0C || level == 0 || level > 5 {
		return []byte{byte(InvalidField)}
	}
	out := []byte{0, 1, 1 << AuthMD5, 0x04, 0, 0, 0, 0, 0}
	if f.quirk == "no password needed" {
		out[2] |= 1 << AuthNone
	}
	if data[0]&0x80 != 0 || f.quirk == "always extended" {
		out[2] |= 0x80
		out[4] = 0x03
		if f.kg != nil {
			out[3] |= 0x20
		}
	}
	return out
}

func (f *fake) cipherSuites(data []byte) []byte {
	var records []byte
	for _, s := range Suites {
		if bytes.IndexByte(f.suites, s.ID) >= 0 {
			records = append(records, 0xC0, s.ID, s.Auth, 0x40|s.Integrity, 0x80|s.Crypt)
		}
	}
	begin := min(int(data[2]&0x3F)*16, len(records))
	return append([]byte{0, 1}, records[begin:min(begin+16, len(records))]...)
}

func (f *fake) setLevel(s *fakeSession, p Privilege) []byte {
	switch {
	case f.quirk == "begins at the top" && p == 0:
		return []byte{0, byte(Administrator)}
	case p == 0:
	case p == Callback || p > 5:
		return []byte{byte(InvalidField)}
	case p > f.limit(s):
		return []byte{byte(LevelExceeds)}
	default:
		s.level = p
	}
	return []byte{0, byte(s.level)}
}

func (f *fake) closeSession(s *fakeSession, data []byte) []byte {
	other, ok := f.open[binary.LittleEndian.Uint32(data)]
	if !ok {
		return []byte{byte(InvalidSession)}
	}
	switch f.quirk {
	case "never closes":
	case "never makes room":
		f.next += 0x101 // somebody else is faster
		f.open[f.next] = &fakeSession{}
		fallthrough
	default:
		delete(f.open, other.id)
	}
	return []byte{0}
}

func (f *fake) sessionInfo(s *fakeSession, data []byte) []byte {
	const slots = 15
	if index := data[0]; index > 0 && index < 0xFE {
		return []byte{0, 0, slots, byte(len(f.open))}
	}
	out := append([]byte{0, 1, slots, byte(len(f.open)), 2, byte(s.level), 0x11}, make([]byte, 12)...)
	if f.quirk == "another handle" && data[0] == 0xFF {
		out[1]++
	}
	return out
}

func (f *fake) challenge15(data []byte) []byte {
	name := strings.TrimRight(string(data[1:]), "\x00")
	who, ok := f.find(name, 0x10)
	t := AuthType(data[0])
	if !ok || t != AuthMD5 && (t != AuthNone || f.quirk != "no password needed") && f.quirk != "unoffered types" {
		return []byte{byte(InvalidField)}
	}
	sums, err := newAuthCode(t, who.Password)
	if err != nil {
		return []byte{byte(InvalidField)}
	}
	f.next += 0x101
	s := &fakeSession{Session: Session{ID: f.next, conn: &Conn{}, v15: true, auth: t, sums15: sums}, id: f.next, who: who, level: User}
	s.challenge[0] = 0x77
	f.open[s.id] = s
	return append(append([]byte{0}, le32(s.id)...), s.challenge[:]...)
}

func (f *fake) activate15(s *fakeSession, data []byte) []byte {
	if [16]byte(data[2:18]) != s.challenge || Privilege(data[1]) > s.who.limit {
		return []byte{byte(InvalidField)}
	}
	s.Limit = Privilege(data[1])
	s.sequence = binary.LittleEndian.Uint32(data[18:]) - 1 // the answer has this number
	s.received = window{top: 0x1000, seen: 1}
	out := append([]byte{0, byte(s.auth)}, le32(s.id)...)
	return append(append(out, le32(0x1001)...), data[1])
}
