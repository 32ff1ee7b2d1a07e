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
	invalidName     = 0x81
	nullDisabled    = 0x82
	noSlot          = 0x81
	wrongSequence   = 0x84
	invalidSession  = 0x85
	privilegeTooBig = 0x86
	badLength       = 0xc7
	badField        = 0xcc
	refused         = 0xd4
)

// passwordV15 is the longest password of IPMI 1.5: users with a longer one can
// use IPMI 2.0 only (§22.30).
const passwordV15 = 16

// Activated is what Activate Session answers.
type Activated struct {
	Auth     byte // of the packets that follow
	ID       uint32
	Sequence uint32 // of the client's next packet
	Limit    wire.Privilege
}

// Challenge is Get Session Challenge (§22.16): it begins a session of IPMI 1.5.
// name is of 16 bytes. A code that is not 0 is that of the answer.
func (t *Table) Challenge(now time.Time, from netip.AddrPort, auth byte, name []byte, r Realm) (id uint32, challenge [16]byte, code byte) {
	a := wire.AuthType(auth)
	if !r.AuthTypes(0).Has(a) {
		return 0, challenge, badField
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	u, ok := r.User(string(name), 0, true)
	switch {
	case !ok && len(name) == 0:
		return 0, challenge, nullDisabled
	case !ok || u.Long || len(u.Password) > passwordV15:
		return 0, challenge, invalidName
	}
	h := &half{from: from}
	var inbound [4]byte
	if h.id, ok = t.fresh(); !ok {
		return 0, challenge, noSlot
	}
	for _, b := range [][]byte{h.challenge[:], inbound[:]} {
		if _, err := io.ReadFull(t.c.Rand, b); err != nil {
			return 0, challenge, noSlot
		}
	}
	h.inbound = max(binary.LittleEndian.Uint32(inbound[:]), 1)
	h.console = h.id
	h.s = &Session{ID: h.id, Console: h.id, User: u, From: from, V15: true, Auth: a, opening: h}
	h.s.keys.deriveV15(a, u.Password)
	t.begin(now, h)
	return h.id, h.challenge, 0
}

// deriveV15 makes the keys of an authentication type (table 22-23).
func (k *keys) deriveV15(a wire.AuthType, password string) {
	if a == wire.AuthNone {
		return
	}
	k.size = wire.CodeSizeV15
	k.around = make([]byte, passwordV15)
	copy(k.around, password)
	switch a {
	case wire.AuthMD5:
		k.mac = md5.New()
	case wire.AuthMD2:
		k.mac = newMD2()
	default:
		k.plain = true
	}
}

// signV15 is the code of a packet. It is good until the next call.
func (k *keys) signV15(session, sequence uint32, body []byte) []byte {
	if k.plain {
		return k.around
	}
	var n [8]byte
	binary.LittleEndian.PutUint32(n[:4], session)
	binary.LittleEndian.PutUint32(n[4:], sequence)
	copy(k.iv[:], n[:])
	k.mac.Reset()
	k.mac.Write(k.around)
	k.mac.Write(k.iv[:4])
	k.mac.Write(body)
	k.mac.Write(k.iv[4:8])
	k.mac.Write(k.around)
	return k.mac.Sum(k.code[:0])
}

// receiveV15 takes a packet with the header of IPMI 1.5.
func (t *Table) receiveV15(now time.Time, from netip.AddrPort, data []byte, r Realm) Received {
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
	var h *half
	if s == nil {
		if h = t.halfAt(p.Session, from); h == nil || h.s == nil {
			return Received{}
		}
		s = h.s
	}
	if !s.V15 || p.Auth != s.Auth {
		return Received{}
	}
	got := Received{Session: s, Body: p.Body, Frame: Frame{s: s, faults: faultsOf(r)}}
	if p.Sequence == 0 {
		// Before the first packet with a number, Activate Session is all that is
		// heard, and as often as it comes (§22.17).
		if s.opening == nil || !activates(p.Body) {
			return Received{}
		}
		if !s.authentic(p) {
			if h != nil && !h.third.heard(p.Body) {
				h.third = step{asked: slices.Clone(p.Body)}
				r.Admit(s.User, false, from)
			}
			return Received{}
		}
		return got
	}
	if h != nil || !s.window[1].takes(p.Sequence, reachV15, reachV15) || !s.authentic(p) {
		return Received{}
	}
	s.window[1].accept(p.Sequence)
	s.heard(now, from)
	return got
}

// authentic says whether the code of a packet is right.
func (s *Session) authentic(p wire.PacketV15) bool {
	if s.Auth == wire.AuthNone {
		return true
	}
	return subtle.ConstantTimeCompare(s.keys.signV15(p.Session, p.Sequence, p.Body), p.Code) == 1
}

// activates says whether a message is Activate Session.
func activates(body []byte) bool {
	const cmd = 0x3a
	q, err := wire.ParseRequest(body)
	return err == nil && q.NetFn == wire.App && q.Cmd == cmd
}

// Activate is Activate Session (§22.17): it opens a session that a challenge
// has begun, or, in an open one, sets the sequence number of what the BMC
// sends. data is that of the request. A code that is not 0 is that of the
// answer.
func (t *Table) Activate(now time.Time, from netip.AddrPort, s *Session, data []byte, r Realm) (Activated, byte) {
	q, err := wire.ParseActivation(data)
	switch {
	case err != nil:
		return Activated{}, badLength
	case s == nil || !s.V15:
		return Activated{}, invalidSession
	case q.Auth != s.Auth || q.Privilege < wire.Callback || q.Privilege > wire.OEMPrivilege:
		return Activated{}, badField
	case q.Outbound == 0:
		return Activated{}, wrongSequence
	}
	if s.Privilege == 0 {
		if code := t.activate(now, from, s, q, r); code != 0 {
			return Activated{}, code
		}
	} else if q.Privilege > s.Limit {
		return Activated{}, privilegeTooBig
	}
	s.sent[1] = q.Outbound - 1
	return Activated{Auth: byte(s.Auth), ID: s.ID, Sequence: s.window[1].high + 1, Limit: s.Limit}, 0
}

// activate opens a session.
func (t *Table) activate(now time.Time, from netip.AddrPort, s *Session, q wire.Activation, r Realm) byte {
	h := s.opening
	switch {
	case h == nil || t.halfAt(s.ID, from) != h:
		return invalidSession
	case subtle.ConstantTimeCompare(q.Challenge[:], h.challenge[:]) != 1, !r.AuthTypes(q.Privilege).Has(s.Auth):
		return badField
	case q.Privilege > min(s.User.Limit, r.Limit()):
		return privilegeTooBig
	case t.full():
		return noSlot
	case !r.Admit(s.User, true, from):
		return refused
	}
	s.Limit = q.Privilege
	s.window[1] = windowFrom(h.inbound)
	t.finish(h)
	t.admit(now, s)
	return 0
}

// sealV15 appends the packet of IPMI 1.5, header and body.
func (f Frame) sealV15(out, body []byte) []byte {
	p := wire.PacketV15{Body: body}
	if s := f.s; s != nil {
		p.Auth, p.Session, p.Sequence = s.Auth, s.ID, s.number(true)
		if f.faults.NoID {
			p.Session = 0
		}
		if f.faults.Swapped {
			p.Sequence = bits.ReverseBytes32(p.Sequence)
		}
		if p.Auth != wire.AuthNone {
			p.Code = s.keys.signV15(p.Session, p.Sequence, body)
			if f.faults.Wrong {
				p.Code = slices.Clone(p.Code)
				p.Code[0] ^= 0xff
			}
		}
	}
	sealed, err := p.AppendBinary(out)
	if err != nil {
		return nil // an answer that IPMI 1.5 has no room for
	}
	return sealed
}
