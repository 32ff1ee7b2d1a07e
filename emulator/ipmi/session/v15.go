package session

import (
	"bytes"
	"crypto/md5"
	"crypto/subtle"
	"encoding/binary"
	"io"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Completion codes of Get Session Challenge and Activate Session (§22.16,
// §22.17).
const (
	invalidUserName       = 0x81
	nullUserDisabled      = 0x82
	noSessionSlot         = 0x81
	sequenceOutOfRange    = 0x84
	invalidSession        = 0x85
	privilegeExceeded     = 0x86
	badLength             = 0xc7
	badField              = 0xcc
	insufficientPrivilege = 0xd4
)

// passwordV15 is the longest password of IPMI 1.5 in bytes: users with a longer
// one can only use IPMI 2.0 (§22.30).
const passwordV15 = 16

// ActivateResponse is the response data of Activate Session.
type ActivateResponse struct {
	Auth     byte // authentication type of the following packets
	ID       uint32
	Sequence uint32 // sequence number of the client's next packet
	Limit    wire.Privilege
}

// Challenge handles Get Session Challenge (§22.16), which begins an IPMI 1.5
// session. name has 16 bytes. A code other than 0 is the completion code.
func (t *Table) Challenge(now time.Time, from netip.AddrPort, auth byte, name []byte, r Authenticator) (id uint32, challenge [16]byte, code byte) {
	a := wire.AuthType(auth)
	if !r.AuthTypes(0).Has(a) {
		return 0, challenge, badField
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	u, ok := r.User(string(name), 0, true)
	switch {
	case !ok && len(name) == 0:
		return 0, challenge, nullUserDisabled
	case !ok || u.LongPassword || len(u.Password) > passwordV15:
		return 0, challenge, invalidUserName
	}
	h := &pendingSession{from: from}
	var inbound [4]byte
	if h.id, ok = t.newID(); !ok {
		return 0, challenge, noSessionSlot
	}
	for _, b := range [][]byte{h.challenge[:], inbound[:]} {
		if _, err := io.ReadFull(t.c.Rand, b); err != nil {
			return 0, challenge, noSessionSlot
		}
	}
	h.inbound = max(binary.LittleEndian.Uint32(inbound[:]), 1)
	h.console = h.id
	h.session = &Session{ID: h.id, Console: h.id, User: u, From: from, V15: true, Auth: a, opening: h}
	h.session.keys.deriveV15(a, u.Password)
	t.begin(now, h)
	return h.id, h.challenge, 0
}

// deriveV15 makes the keys of an authentication type (table 22-23).
func (k *keys) deriveV15(a wire.AuthType, password string) {
	if a == wire.AuthNone {
		return
	}
	k.size = wire.CodeSizeV15
	k.affixed = make([]byte, passwordV15)
	copy(k.affixed, password)
	switch a {
	case wire.AuthMD5:
		k.mac = md5.New()
	case wire.AuthMD2:
		k.mac = newMD2()
	default:
		k.v15Password = true
	}
}

// authCodeV15 returns the AuthCode of a packet. It is valid until the next
// call.
func (k *keys) authCodeV15(session, sequence uint32, body []byte) []byte {
	if k.v15Password {
		return k.affixed
	}
	var n [8]byte
	binary.LittleEndian.PutUint32(n[:4], session)
	binary.LittleEndian.PutUint32(n[4:], sequence)
	copy(k.iv[:], n[:])
	k.mac.Reset()
	k.mac.Write(k.affixed)
	k.mac.Write(k.iv[:4])
	k.mac.Write(body)
	k.mac.Write(k.iv[4:8])
	k.mac.Write(k.affixed)
	return k.mac.Sum(k.code[:0])
}

// receiveV15 handles a packet with the IPMI 1.5 session header.
func (t *Table) receiveV15(now time.Time, from netip.AddrPort, data []byte, r Authenticator) Received {
	p, err := wire.ParsePacketV15(data)
	if err != nil {
		return Received{}
	}
	if p.Session == 0 {
		if p.Auth != wire.AuthNone {
			return Received{} // §22.12
		}
		return Received{Body: p.Body}
	}
	s := t.Find(p.Session)
	var h *pendingSession
	if s == nil {
		if h = t.pendingAt(p.Session, from); h == nil || h.session == nil {
			return Received{}
		}
		s = h.session
	}
	if !s.V15 || p.Auth != s.Auth {
		return Received{}
	}
	got := Received{Session: s, Body: p.Body, Frame: Frame{s: s, faults: faults(r)}}
	if p.Sequence == 0 {
		// Before the first packet with a sequence number, Activate Session is
		// the only message accepted, as often as it comes (§22.17).
		if s.opening == nil || !isActivateSession(p.Body) {
			return Received{}
		}
		if !s.authentic(p) {
			if h != nil && !h.third.repeats(p.Body) {
				h.third = exchange{request: slices.Clone(p.Body)}
				r.Admit(s.User, false, from)
			}
			return Received{}
		}
		return got
	}
	if h != nil || !s.window[1].accepts(p.Sequence, windowV15, windowV15) || !s.authentic(p) {
		return Received{}
	}
	s.window[1].accept(p.Sequence)
	s.recordPacket(now, from)
	return got
}

// authentic verifies the AuthCode of a packet.
func (s *Session) authentic(p wire.PacketV15) bool {
	if s.Auth == wire.AuthNone {
		return true
	}
	return subtle.ConstantTimeCompare(s.keys.authCodeV15(p.Session, p.Sequence, p.Body), p.Code) == 1
}

// isActivateSession reports whether a message is an Activate Session request.
func isActivateSession(body []byte) bool {
	const cmd = 0x3a
	q, err := wire.ParseRequest(body)
	return err == nil && q.NetFn == wire.App && q.Cmd == cmd
}

// Activate handles Activate Session (§22.17): it opens a session that a
// challenge has begun, or sets the outbound sequence number of an open one. A
// code other than 0 is the completion code.
func (t *Table) Activate(now time.Time, from netip.AddrPort, s *Session, data []byte, r Authenticator) (ActivateResponse, byte) {
	q, err := wire.ParseActivation(data)
	switch {
	case err != nil:
		return ActivateResponse{}, badLength
	case s == nil || !s.V15:
		return ActivateResponse{}, invalidSession
	case q.Auth != s.Auth || q.Privilege < wire.Callback || q.Privilege > wire.OEMPrivilege:
		return ActivateResponse{}, badField
	case q.Outbound == 0:
		return ActivateResponse{}, sequenceOutOfRange
	}
	if s.Privilege == 0 {
		if code := t.activate(now, from, s, q, r); code != 0 {
			return ActivateResponse{}, code
		}
	} else if q.Privilege > s.Limit {
		return ActivateResponse{}, privilegeExceeded
	}
	s.sequences[1] = q.Outbound - 1
	return ActivateResponse{Auth: byte(s.Auth), ID: s.ID, Sequence: s.window[1].high + 1, Limit: s.Limit}, 0
}

// activate opens a session.
func (t *Table) activate(now time.Time, from netip.AddrPort, s *Session, q wire.Activation, r Authenticator) byte {
	h := s.opening
	switch {
	case h == nil || t.pendingAt(s.ID, from) != h:
		return invalidSession
	case subtle.ConstantTimeCompare(q.Challenge[:], h.challenge[:]) != 1, !r.AuthTypes(q.Privilege).Has(s.Auth):
		return badField
	case q.Privilege > min(s.User.Limit, r.Limit()):
		return privilegeExceeded
	case t.full():
		return noSessionSlot
	case !r.Admit(s.User, true, from):
		return insufficientPrivilege
	}
	s.Limit = q.Privilege
	s.window[1] = newWindow(h.inbound)
	t.finish(h)
	t.admit(now, s)
	return 0
}

// wrapV15 appends an IPMI 1.5 packet, header and body.
func (f Frame) wrapV15(out, body []byte) []byte {
	p := wire.PacketV15{Body: body}
	if s := f.s; s != nil {
		p.Auth, p.Session, p.Sequence = s.Auth, s.ID, s.nextSequence(true)
		if f.faults.ZeroSessionID {
			p.Session = 0
		}
		if f.faults.SwappedSequence {
			p.Sequence = bits.ReverseBytes32(p.Sequence)
		}
		if p.Auth != wire.AuthNone {
			p.Code = s.keys.authCodeV15(p.Session, p.Sequence, body)
			if f.faults.WrongCode {
				p.Code = slices.Clone(p.Code)
				p.Code[0] ^= 0xff
			}
		}
	}
	sealed, err := p.AppendBinary(out)
	if err != nil {
		return nil // the response is too long for IPMI 1.5
	}
	return sealed
}
