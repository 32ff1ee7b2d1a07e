package ipmi

import (
	"bytes"
	"crypto/aes"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
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
	response  []byte // its answer
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
		Timeout: 500 * time.Millisecond, Tries: 3,
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
	data := s.response
	if !bytes.Equal(s.last, body) || f.quirk == "carries out again" {
		data = f.command(s, p, m)
		s.last, s.response = body, data
	}
	f.numbers = append(f.numbers, [2]uint32{p.Sequence, uint32(m.Sequence)})
	if m.NetFn == App && m.Command == 0x34 && len(m.Data) > 1 {
		return f.bridge(s, m)
	}
	response, _ := f.answer(m, data).AppendBinary(nil)
	out, _ := s.encode(PayloadIPMI, response)
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
	response, _ := f.answer(m, data).AppendBinary(nil)
	out, _ := s.seal15(response)
	return out
}
