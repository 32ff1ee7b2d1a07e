package session

import (
	"net/netip"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Received is the result of a datagram.
type Received struct {
	// Reply is a datagram to send: a pong, or a handshake response.
	Reply []byte
	// Session is the packet's session; nil outside of a session. A session with
	// Privilege 0 is not open yet: Activate Session is the only message in it.
	Session *Session
	Payload wire.PayloadType // payload type of Body
	// Body is an authenticated and decrypted IPMI message or SOL payload. It is
	// a part of the packet. Nil: nothing is to be done.
	Body []byte
	// Frame is how the response is to be wrapped.
	Frame Frame
}

// Frame is how a message is wrapped. The zero value is an IPMI 1.5 packet
// outside of a session.
type Frame struct {
	s          *Session
	rmcpPlus   bool // RMCP+
	protection protection
	faults     Faults // the BMC's faults in IPMI 1.5
}

// SOLFrame returns the frame of a SOL packet that the BMC sends unasked.
func SOLFrame(s *Session) Frame { return Frame{s: s, rmcpPlus: !s.V15, protection: s.solProtection} }

// ProtectSOL sets how SOL packets are protected, as Activate Payload agreed
// (§24.1), as far as the suite supports it.
func (s *Session) ProtectSOL(signed, sealed bool) {
	g := s.protection()
	s.solProtection = protection{authenticated: g.authenticated && (signed || sealed), encrypted: g.encrypted && sealed}
}

// protection returns what the suite supports, which IPMI messages must have.
func (s *Session) protection() protection {
	return protection{authenticated: s.keys.size > 0, encrypted: s.keys.block != nil}
}

// Encrypted reports whether the session's packets are encrypted.
func (s *Session) Encrypted() bool { return s.keys.block != nil }

// Authenticated reports whether the session's packets have an AuthCode.
func (s *Session) Authenticated() bool { return s.keys.size > 0 }

// rmcpSize is the size of the RMCP header, which AuthCodes do not cover.
const rmcpSize = 4

// Receive handles one datagram, which it overwrites. Responses are appended to
// out. Invalid, repeated and out-of-window packets are dropped silently.
func (t *Table) Receive(now time.Time, from netip.AddrPort, packet, out []byte, r Authenticator) Received {
	h, data, err := wire.ParseRMCP(packet)
	switch {
	case err != nil || h.ACK: // an acknowledgement carries no message (§13.2.2)
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
		return Received{Body: p.Body, Frame: Frame{rmcpPlus: true}}
	case wire.PayloadOpenRequest:
		return Received{Reply: t.openSession(now, from, p.Body, out, r)}
	case wire.PayloadRAKP1:
		return Received{Reply: t.rakp1(now, from, p.Body, out, r)}
	case wire.PayloadRAKP3:
		return Received{Reply: t.rakp3(now, from, p.Body, out, r)}
	}
	return Received{}
}

// pong answers an ASF Presence Ping. A BMC with DCMI says so (DCMI v1.5,
// §6.4.8).
func pong(data, out []byte) []byte {
	q, err := wire.ParsePing(data)
	if err != nil || q.Tag == 0xff { // tag FFh asks for no response (§13.2.3)
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

// receive handles a packet of an IPMI 2.0 session.
func (t *Table) receive(now time.Time, from netip.AddrPort, data []byte, p wire.Packet) Received {
	s := t.Find(p.Session)
	if s == nil || s.V15 {
		return Received{}
	}
	var g protection
	switch p.Type {
	case wire.PayloadIPMI:
		g = s.protection()
	case wire.PayloadSOL:
		g = s.solProtection
	default:
		return Received{}
	}
	if p.Authenticated != g.authenticated || p.Encrypted != g.encrypted {
		return Received{}
	}
	w := &s.window[index(g.authenticated)]
	if !w.accepts(p.Sequence, ahead, behind) {
		return Received{}
	}
	if g.authenticated {
		tr, err := wire.ParseTrailer(p.Trailer, s.keys.size)
		if err != nil || !s.keys.verifyAuthCode(data[:len(data)-s.keys.size], tr.Code) {
			return Received{}
		}
	}
	w.accept(p.Sequence)
	body := p.Body
	if g.encrypted {
		var ok bool
		if body, ok = s.keys.decrypt(body); !ok {
			return Received{}
		}
	}
	s.recordPacket(now, from)
	return Received{Session: s, Payload: p.Type, Body: body, Frame: Frame{s: s, rmcpPlus: true, protection: g}}
}

// recordPacket records a valid packet.
func (s *Session) recordPacket(now time.Time, from netip.AddrPort) {
	s.LastUsed, s.From, s.opening = now, from, nil
}

func index(signed bool) int {
	if signed {
		return 1
	}
	return 0
}

// nextSequence returns the next outbound sequence number; it is never 0 (table
// 13-8, note 8).
func (s *Session) nextSequence(signed bool) uint32 {
	n := &s.sequences[index(signed)]
	*n++
	if *n == 0 {
		*n = 1
	}
	return *n
}

// Wrap wraps a message and appends the datagram to out. The session may have
// ended in the meantime.
func (t *Table) Wrap(out []byte, f Frame, p wire.PayloadType, body []byte) []byte {
	from := len(out) + rmcpSize
	out = wire.AppendIPMI(out)
	if !f.rmcpPlus {
		return f.wrapV15(out, body)
	}
	h := wire.Packet{Type: p, Encrypted: f.protection.encrypted, Authenticated: f.protection.authenticated}
	if f.s == nil {
		return append(h.AppendHeader(out, len(body)), body...)
	}
	s := f.s
	h.Session, h.Sequence = s.Console, s.nextSequence(f.protection.authenticated)
	if f.protection.encrypted {
		out = h.AppendHeader(out, encryptedSize(len(body)))
		out = s.keys.encrypt(out, uint64(h.Sequence)<<1|uint64(index(f.protection.authenticated)), body)
	} else {
		out = append(h.AppendHeader(out, len(body)), body...)
	}
	if f.protection.authenticated {
		out = wire.AppendPadding(out, from)
		out = append(out, s.keys.authCode(out[from:])...)
	}
	return out
}
