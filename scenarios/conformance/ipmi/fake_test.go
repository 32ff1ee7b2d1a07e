package ipmi

import (
	"bytes"
	"crypto/aes"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
)

// quirk is one thing that a fake does wrong.
type quirk string

// fake is a BMC that is small and, but for its quirk, right. It speaks with the
// codecs of the client: whether those are right the emulator tells, which has
// its own.
type fake struct {
	mu       sync.Mutex
	quirk    quirk
	socket   *net.UDPConn
	guid     [16]byte
	kg       []byte
	suites   []byte
	accounts []fakeAccount
	next     uint32
	half     []*fakeSession
	open     map[uint32]*fakeSession
	answered map[string][]byte // answers of the handshake, by what was asked
	reserved byte
	console  *fakeConsole // nil: the BMC has none
	behind   bool         // answers of who is behind it come in that of Send Message
	lose     int          // answers in sessions that are lost
	numbers  [][2]uint32  // session and message sequence numbers of what came in sessions
}

type fakeAccount struct {
	Account
	limit Privilege
}

// fakeSession is a session as the BMC has it.
type fakeSession struct {
	Session   // its ID is the console's, its console the BMC's
	id        uint32
	ours      [16]byte
	theirs    [16]byte
	who       fakeAccount
	role      byte
	whom      []byte
	level     Privilege
	challenge [16]byte
	last      []byte // request
	said      []byte // its answer
	begun     bool
}

var (
	fakeAdmin    = Account{"ADMIN", "secret"}
	fakeOperator = Account{"op", "op-secret"}
	fakeUser     = Account{"usr", "usr-secret"}
)

// newFake serves a fake until the test ends.
func newFake(t *testing.T, change func(*fake)) (*fake, Target) {
	t.Helper()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{
		socket: socket, guid: [16]byte{1, 2, 3, 4}, suites: []byte{3, 17},
		accounts: []fakeAccount{{fakeAdmin, Administrator}, {fakeOperator, Operator}, {fakeUser, User}},
		open:     map[uint32]*fakeSession{}, answered: map[string][]byte{},
	}
	if change != nil {
		change(f)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.serve()
	}()
	t.Cleanup(func() {
		_ = socket.Close()
		<-done
	})
	return f, Target{
		Address: socket.LocalAddr().String(), Admin: fakeAdmin, Operator: fakeOperator, User: fakeUser, KG: f.kg,
		Timeout: 1e8, Tries: 3,
	}
}

func (f *fake) serve() {
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := f.socket.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		f.mu.Lock()
		answers := f.receive(bytes.Clone(buf[:n]), from.String())
		f.mu.Unlock()
		for _, b := range answers {
			_, _ = f.socket.WriteToUDPAddrPort(b, from)
		}
	}
}

// receive gives the answers to a datagram.
func (f *fake) receive(b []byte, from string) [][]byte {
	if len(b) >= 12 && [4]byte(b) == [4]byte(rmcp(classASF)) && b[8] == 0x80 {
		pong := append(rmcp(classASF), 0, 0, 0x11, 0xBE, 0x40, b[9], 0, 16, 0, 0, 0x11, 0xBE, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0)
		if f.quirk == "pong of another version" {
			pong[20] = 0x82
		}
		return [][]byte{pong}
	}
	if len(b) > 4 && b[3] == classIPMI && b[2] != 0xFF {
		if f.quirk == "acknowledges" {
			out := [][]byte{{6, 0, b[2], classACK | classIPMI}}
			b[2] = 0xFF
			return append(out, f.receive(b, from)...)
		}
		b[2] = 0xFF
	}
	p, err := parsePacket(b)
	if err != nil {
		if f.quirk == "answers garbage" {
			return [][]byte{b}
		}
		return nil
	}
	var out []byte
	switch {
	case p.Session == 0 && p.V15:
		out = f.outside(p)
	case p.V15:
		out = f.inside15(b, p)
	case p.Payload >= PayloadOpenRequest:
		out = f.handshake(b, p, from)
	case p.Session == 0:
		out = f.outside(p)
	default:
		return f.inside(b, p)
	}
	if out == nil {
		return nil
	}
	return [][]byte{out}
}

// outside answers a message that belongs to no session.
func (f *fake) outside(p packet) []byte {
	if p.Authenticated || p.Encrypted || p.V15 && p.Auth != AuthNone {
		return nil
	}
	m, err := parseMessage(p.body)
	if err != nil {
		return nil
	}
	var data []byte
	known := m.NetFn == App && slices.Contains([]byte{0x37, 0x38, 0x39, 0x54}, m.Command)
	switch {
	case known || f.quirk == "open to all":
		data = f.command(nil, p, m)
	default:
		data = []byte{byte(NoPrivilege)}
	}
	if f.quirk == "no suites in RMCP+ framing" && m.Command == 0x54 && !p.V15 {
		data = []byte{0, 1}
	}
	body, _ := f.answer(m, data).AppendBinary(nil)
	out, _ := packet{Header: Header{V15: p.V15}, body: body}.AppendBinary(nil)
	return out
}

func (f *fake) answer(m message, data []byte) message {
	a := message{
		To: m.From, ToLUN: m.FromLUN, NetFn: m.NetFn | 1, From: m.To, FromLUN: m.ToLUN,
		Sequence: m.Sequence, Command: m.Command, Data: data,
	}
	if f.quirk == "forgets LUNs" {
		a.ToLUN = 0
	}
	return a
}

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
	if said, ok := f.answered[key]; ok && f.quirk != "forgets what it answered" {
		return said
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

// limit is the highest level of a session.
func (f *fake) limit(s *fakeSession) Privilege {
	if f.quirk == "no limits" {
		return Administrator
	}
	least := min(s.who.limit, s.Limit)
	if role := Privilege(s.role & 0x0F); role != 0 {
		least = min(least, role)
	}
	return least
}

// inside answers a packet of a session.
func (f *fake) inside(b []byte, p packet) [][]byte {
	s := f.open[p.Session]
	if s == nil && f.quirk == "any session ID" {
		for _, s = range f.open {
			p.Session = s.id
			binary.LittleEndian.PutUint32(b[6:], s.id)
		}
		if s != nil {
			// It checks the code over what it believes.
			p.Session = s.id
			s.received = window{}
			b, _ = s.sign(packet{Header: p.Header, body: p.body})
		}
	}
	if s == nil {
		return nil
	}
	body, ok := f.unseal(s, b, p)
	if !ok {
		return nil
	}
	if p.Payload == PayloadSOL {
		return f.serial(s, body)
	}
	m, err := parseMessage(body)
	if err != nil && f.quirk == "no checksums" && len(body) > 6 {
		body[2], body[len(body)-1] = checksum(body[:2]), checksum(body[3:len(body)-1])
		m, err = parseMessage(body)
	}
	if err != nil {
		return nil
	}
	data := s.said
	if !bytes.Equal(s.last, body) || f.quirk == "carries out again" {
		data = f.command(s, p, m)
		s.last, s.said = body, data
	}
	f.numbers = append(f.numbers, [2]uint32{p.Sequence, uint32(m.Sequence)})
	if m.NetFn == App && m.Command == 0x34 && len(m.Data) > 1 {
		return f.bridge(s, m)
	}
	said, _ := f.answer(m, data).AppendBinary(nil)
	out, _ := s.seal(PayloadIPMI, said)
	if f.lose > 0 {
		f.lose--
		return nil
	}
	return [][]byte{out}
}

// unseal is what a BMC does with a packet before it looks into it.
func (f *fake) unseal(s *fakeSession, b []byte, p packet) ([]byte, bool) {
	top := s.received
	switch f.quirk {
	case "no window":
		s.received = window{}
	case "only forward":
		if p.Sequence <= top.top {
			return nil, false
		}
	case "dies of far packets":
		if top.top != 0 && p.Sequence-top.top > windowAhead && top.top-p.Sequence > windowBehind {
			delete(f.open, s.id)
			return nil, false
		}
	case "moves the window first":
		defer func(w window) {
			w.take(p.Sequence)
			s.received = w
		}(top)
	case "begins with 1":
		if !s.begun && p.Sequence != 1 {
			return nil, false
		}
	case "takes unsigned packets":
		if !p.Authenticated {
			body := p.body
			if p.Encrypted {
				body, _ = s.decrypt(body)
			}
			return body, s.received.take(p.Sequence)
		}
	case "no pads":
		if s.block != nil && len(p.body) >= 2*aes.BlockSize && s.verify(b, p) == nil {
			lax := bytes.Clone(p.body)
			body, err := s.decrypt(lax)
			if err != nil {
				body = f.guess(s, lax)
			}
			return body, s.received.take(p.Sequence)
		}
	}
	_, body, err := s.open(b)
	s.begun = s.begun || err == nil
	return body, err == nil
}

// guess finds the message in a plain text whatever its pad is.
func (f *fake) guess(s *fakeSession, body []byte) []byte {
	plain := decryptRaw(s, body)
	for n := 7; n <= len(plain); n++ {
		if _, err := parseMessage(plain[:n]); err == nil {
			return plain[:n]
		}
	}
	return nil
}

// inside15 answers a packet of a v1.5 session.
func (f *fake) inside15(b []byte, p packet) []byte {
	s := f.open[p.Session]
	if s == nil || !s.v15 {
		return nil
	}
	var body []byte
	var err error
	if p.Sequence == 0 { // Activate Session, until the first other packet
		if s.begun && f.quirk != "activates for ever" || s.Limit != 0 && f.quirk == "activates once" || s.sums15 != nil && !hmac.Equal(p.code, s.sums15(p.Session, 0, p.body)) {
			return nil
		}
		body = p.body
	} else {
		if f.quirk == "no window" {
			s.received.seen = 0
		}
		if f.quirk == "no AuthCodes of v1.5" && p.code != nil {
			copy(b[13:], s.sums15(p.Session, p.Sequence, p.body))
		}
		if body, err = s.open15(b); err != nil {
			return nil
		}
		s.begun = true
	}
	m, err := parseMessage(body)
	if err != nil {
		return nil
	}
	data := f.command(s, p, m)
	said, _ := f.answer(m, data).AppendBinary(nil)
	out, _ := s.seal15(said)
	return out
}
