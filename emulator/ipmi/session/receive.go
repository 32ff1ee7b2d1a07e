package session

import (
	"net/netip"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Received is what a datagram was.
type Received struct {
	// Reply is to be sent as it is: a pong, or a step of the handshake.
	Reply []byte
	// Session is whose packet it is; nil outside of any. One whose Privilege is
	// 0 is not open: Activate Session is all that it can bring.
	Session *Session
	Payload wire.PayloadType // of Body
	// Body is an IPMI message or a payload of serial over LAN, whose code was
	// right, decrypted. It is a part of the packet. Nil: there is nothing to do.
	Body []byte
	// Frame is how an answer is wrapped.
	Frame Frame
}

// Frame is how a message is wrapped. The zero value is IPMI 1.5 outside of a
// session.
type Frame struct {
	s      *Session
	plus   bool // RMCP+
	guard  guard
	faults Faults // of IPMI 1.5
}

// SOLFrame is for serial over LAN that nobody has asked for.
func SOLFrame(s *Session) Frame { return Frame{s: s, plus: !s.V15, guard: s.sol} }

// ProtectSOL says how serial over LAN is protected, as Activate Payload has
// agreed on (§24.1). What the suite cannot do is not done.
func (s *Session) ProtectSOL(signed, sealed bool) {
	g := s.guard()
	s.sol = guard{signed: g.signed && (signed || sealed), sealed: g.sealed && sealed}
}

// guard is what the suite can do, and what IPMI messages must have.
func (s *Session) guard() guard { return guard{signed: s.keys.size > 0, sealed: s.keys.block != nil} }

// Sealed says whether packets of the session are encrypted.
func (s *Session) Sealed() bool { return s.keys.block != nil }

// Signed says whether packets of the session have codes.
func (s *Session) Signed() bool { return s.keys.size > 0 }

// rmcpSize is the size of the RMCP header, which codes do not cover.
const rmcpSize = 4

// Receive takes one datagram, which is overwritten. Replies are appended to
// out. What is wrong, repeated or out of reach is dropped without a word.
func (t *Table) Receive(now time.Time, from netip.AddrPort, packet, out []byte, r Realm) Received {
	h, data, err := wire.ParseRMCP(packet)
	switch {
	case err != nil || h.ACK: // acknowledgements are no messages (§13.2.2)
		return Received{}
	case h.Class == wire.ClassASF:
		return Received{Reply: pong(data, out)}
	case h.Class != wire.ClassIPMI:
		return Received{}
	}
	format, ok := wire.FormatOf(data)
	if !ok {
		return Received{}
	}
	if format != wire.AuthRMCPPlus {
		return t.receiveV15(now, from, data, r)
	}
	p, err := wire.ParsePacket(data)
	if err != nil {
		return Received{}
	}
	if p.Session != 0 {
		return t.receive(now, from, data, p)
	}
	if p.Encrypted || p.Authenticated {
		return Received{} // table 13-8, note 8
	}
	switch p.Type {
	case wire.PayloadIPMI:
		return Received{Body: p.Body, Frame: Frame{plus: true}}
	case wire.PayloadOpenRequest:
		return Received{Reply: t.openSession(now, from, p.Body, out, r)}
	case wire.PayloadRAKP1:
		return Received{Reply: t.rakp1(now, from, p.Body, out, r)}
	case wire.PayloadRAKP3:
		return Received{Reply: t.rakp3(now, from, p.Body, out, r)}
	}
	return Received{}
}

// pong answers a ping. BMCs that speak DCMI say so (DCMI v1.5, §6.4.8).
func pong(data, out []byte) []byte {
	q, err := wire.ParsePing(data)
	if err != nil || q.Tag == 0xff { // FFh is no question (§13.2.3)
		return nil
	}
	out, err = wire.RMCP{Sequence: 0xff, Class: wire.ClassASF}.AppendBinary(out)
	if err != nil {
		return nil
	}
	out, err = wire.Pong{Tag: q.Tag, Enterprise: wire.IANADCMI, Entities: wire.PongIPMI}.AppendBinary(out)
	if err != nil {
		return nil
	}
	return out
}

// receive takes a packet of a session of IPMI 2.0.
func (t *Table) receive(now time.Time, from netip.AddrPort, data []byte, p wire.Packet) Received {
	s := t.Find(p.Session)
	if s == nil || s.V15 {
		return Received{}
	}
	var g guard
	switch p.Type {
	case wire.PayloadIPMI:
		g = s.guard()
	case wire.PayloadSOL:
		g = s.sol
	default:
		return Received{}
	}
	if p.Authenticated != g.signed || p.Encrypted != g.sealed {
		return Received{}
	}
	w := &s.window[index(g.signed)]
	if !w.takes(p.Sequence, ahead, behind) {
		return Received{}
	}
	if g.signed {
		tr, err := wire.ParseTrailer(p.Trailer, s.keys.size)
		if err != nil || !s.keys.signed(data[:len(data)-s.keys.size], tr.Code) {
			return Received{}
		}
	}
	w.accept(p.Sequence)
	body := p.Body
	if g.sealed {
		var ok bool
		if body, ok = s.keys.unseal(body); !ok {
			return Received{}
		}
	}
	s.heard(now, from)
	return Received{Session: s, Payload: p.Type, Body: body, Frame: Frame{s: s, plus: true, guard: g}}
}

// heard notes a valid packet.
func (s *Session) heard(now time.Time, from netip.AddrPort) {
	s.Used, s.From, s.opening = now, from, nil
}

func index(signed bool) int {
	if signed {
		return 1
	}
	return 0
}

// number is the next sequence number to send; never 0 (table 13-8, note 8).
func (s *Session) number(signed bool) uint32 {
	n := &s.sent[index(signed)]
	*n++
	if *n == 0 {
		*n = 1
	}
	return *n
}

// Seal wraps a message and appends the datagram to out. The session may have
// ended meanwhile.
func (t *Table) Seal(now time.Time, out []byte, f Frame, p wire.PayloadType, body []byte) []byte {
	from := len(out) + rmcpSize
	out = wire.AppendIPMI(out)
	if !f.plus {
		return f.sealV15(out, body)
	}
	h := wire.Packet{Type: p, Encrypted: f.guard.sealed, Authenticated: f.guard.signed}
	if f.s == nil {
		return append(h.AppendHeader(out, len(body)), body...)
	}
	s := f.s
	h.Session, h.Sequence = s.Console, s.number(f.guard.signed)
	if f.guard.sealed {
		out = h.AppendHeader(out, sealedSize(len(body)))
		out = s.keys.seal(out, uint64(h.Sequence)<<1|uint64(index(f.guard.signed)), body)
	} else {
		out = append(h.AppendHeader(out, len(body)), body...)
	}
	if f.guard.signed {
		out = wire.AppendPadding(out, from)
		out = append(out, s.keys.sign(out[from:])...)
	}
	return out
}
