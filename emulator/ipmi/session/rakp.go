package session

import (
	"bytes"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// rakp1 answers RAKP Message 1 (§13.20, §13.21).
func (t *Table) rakp1(now time.Time, from netip.AddrPort, body, out []byte, r Authenticator) []byte {
	m, err := wire.ParseRAKP1(body)
	head, short := wire.ParseHead(body)
	if short != nil {
		return nil // too short to be answered
	}
	h := t.pendingAt(head.Session, from)
	if h == nil {
		return t.repeatResponse(head, from, out, wire.PayloadRAKP2, func(h *pendingSession) *exchange { return &h.first }, body)
	}
	t.touch(now, h)
	if h.first.repeats(body) {
		return reply(out, wire.PayloadRAKP2, h.first.response)
	}
	h.first, h.third, h.session = exchange{}, exchange{}, nil
	a := wire.RAKP2{Tag: head.Tag, Console: h.console}
	switch {
	case errors.Is(err, wire.ErrName):
		a.Status = wire.StatusInvalidNameLength
	case err != nil:
		a.Status = wire.StatusIllegalParameter
	default:
		a.Status = t.findUser(h, m, r)
	}
	if a.Status == wire.StatusOK {
		a.Random, a.GUID = h.local, r.GUID()
		if alg := h.algorithm(); alg.hash != nil {
			a.Code = sum(alg.newHMAC(h.password(r)), nil, le32(h.console), le32(h.id), h.client[:], h.local[:], a.GUID[:], h.nameTail)
		}
		if faults(r).RAKP2ExtraByte {
			a.Code = append(a.Code, 0)
		}
	}
	answer, err := a.AppendBinary(nil)
	if err != nil {
		return nil
	}
	h.first = exchange{slices.Clone(body), answer}
	return reply(out, wire.PayloadRAKP2, answer)
}

// repeatResponse answers a message for a session ID that is not pending at the
// address. The response to RAKP 3 may have been lost after the session was
// opened, so it is repeated until the client uses the session.
func (t *Table) repeatResponse(m wire.RequestHead, from netip.AddrPort, out []byte, p wire.PayloadType, which func(*pendingSession) *exchange, body []byte) []byte {
	s := t.Find(m.Session)
	switch {
	case s == nil:
		answer, err := wire.RAKP2{Tag: m.Tag, Status: wire.StatusInvalidSession}.AppendBinary(nil)
		if err != nil {
			return nil
		}
		return reply(out, p, answer)
	case s.opening != nil && s.opening.from == from:
		if st := which(s.opening); st.repeats(body) {
			return reply(out, p, st.response)
		}
	}
	return nil // a late copy, or an unknown client
}

// findUser looks up the user of RAKP 1 and determines the session's limits.
func (t *Table) findUser(h *pendingSession, m wire.RAKP1, r Authenticator) wire.Status {
	asked := m.Privilege()
	if asked < wire.Callback || asked > wire.OEMPrivilege {
		return wire.StatusInvalidRole
	}
	faults := faults(r)
	if faults.PaddedNames {
		m.Name = bytes.TrimRight(m.Name, "\x00")
	}
	u, ok := r.User(string(m.Name), asked, m.ByName())
	if !ok {
		return wire.StatusUnauthorizedName
	}
	limit := min(asked, u.Limit, r.Limit(), h.suite.Limit, h.limit)
	if limit < wire.Callback {
		return wire.StatusUnauthorizedRole
	}
	if _, err := io.ReadFull(t.c.Rand, h.local[:]); err != nil {
		return wire.StatusNoResources
	}
	h.client = m.Random
	role := m.Role
	if faults.OpenSessionRole {
		role = role&^0x0f | byte(h.requestedPrivilege)
	}
	h.nameTail = append([]byte{role, byte(len(m.Name))}, m.Name...)
	h.rakp3Tail = h.nameTail
	if faults.PaddedNames {
		h.rakp3Tail[0] &= 0x0f
		h.nameTail = append(append([]byte{role, wire.MaxName}, m.Name...), make([]byte, wire.MaxName-len(m.Name))...)
	}
	h.session = &Session{ID: h.id, Console: h.console, User: u, Limit: limit, From: h.from, Suite: h.suite.ID}
	return wire.StatusOK
}

// password returns the password that the codes are made with.
func (h *pendingSession) password(r Authenticator) string {
	p := h.session.User.Password
	if faults(r).PaddedNames && wire.Suites[h.suite.ID].Authentication == wire.RAKPHMACMD5 {
		p = p[:min(len(p), passwordV15)]
	}
	return p
}

func (h *pendingSession) algorithm() rakp { return algorithms[wire.Suites[h.suite.ID].Authentication] }

func le32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

// rakp3 answers RAKP Message 3 (§13.22, §13.23).
func (t *Table) rakp3(now time.Time, from netip.AddrPort, body, out []byte, r Authenticator) []byte {
	m, err := wire.ParseRAKP3(body)
	if err != nil {
		return nil // too short to be answered
	}
	h := t.pendingAt(m.Session, from)
	if h == nil {
		head := wire.RequestHead{Tag: m.Tag, Session: m.Session}
		return t.repeatResponse(head, from, out, wire.PayloadRAKP4, func(h *pendingSession) *exchange { return &h.third }, body)
	}
	t.touch(now, h)
	if h.third.repeats(body) {
		return reply(out, wire.PayloadRAKP4, h.third.response)
	}
	a := wire.RAKP4{Tag: m.Tag, Console: h.console}
	switch s := h.session; {
	case m.Status != wire.StatusOK: // the client has aborted the handshake: no response (§13.22)
		if s != nil && m.Status == wire.StatusInvalidCode {
			r.Admit(s.User, false, from)
		}
		h.first, h.session = exchange{}, nil
		return nil
	case s == nil:
		a.Status = wire.StatusInactiveSession
	default:
		a.Status, a.Code = t.verifyRAKP3(now, h, m.Code, r)
	}
	answer, err := a.AppendBinary(nil)
	if err != nil {
		return nil
	}
	h.third = exchange{slices.Clone(body), answer}
	if a.Status != wire.StatusOK {
		h.first, h.session = exchange{}, nil // the client may retry from RAKP 1
	}
	return reply(out, wire.PayloadRAKP4, answer)
}

// verifyRAKP3 checks that the client knows the password, opens the session and
// returns the code of RAKP 4.
func (t *Table) verifyRAKP3(now time.Time, h *pendingSession, code []byte, r Authenticator) (wire.Status, []byte) {
	s, alg := h.session, h.algorithm()
	var want []byte
	if alg.hash != nil {
		want = sum(alg.newHMAC(h.password(r)), nil, h.local[:], le32(h.console), h.rakp3Tail)
	}
	if subtle.ConstantTimeCompare(code, want) != 1 {
		r.Admit(s.User, false, h.from)
		return wire.StatusInvalidCode, nil
	}
	if t.fullFor(h.from, h.console) {
		return wire.StatusNoResources, nil
	}
	if !r.Admit(s.User, true, h.from) {
		return wire.StatusInvalidCode, nil
	}
	var icv []byte
	if alg.hash == nil && faults(r).RAKP4Code {
		icv = h.local[:]
	}
	if alg.hash != nil {
		guid := r.GUID()
		key := string(r.KG())
		if strings.Trim(key, "\x00") == "" { // "one-key" logins (§13.33)
			key = h.password(r)
		}
		sik := sum(alg.newHMAC(key), nil, h.client[:], h.local[:], h.nameTail)
		icv = sum(hmac.New(alg.hash, sik), nil, h.client[:], le32(h.id), guid[:])[:alg.icv]
		if err := s.keys.derive(wire.Suites[s.Suite], sik, s.User.Password, h.local[:]); err != nil {
			return wire.StatusNoResources, nil
		}
	}
	if faults(r).PaddedNames && wire.Suites[s.Suite].Integrity == wire.IntegrityNone {
		icv = nil
	}
	s.solProtection = s.protection()
	t.finish(h)
	t.end(func(o *Session) bool { return o.abandoned(h.from, h.console) })
	t.admit(now, s)
	s.opening = h
	return wire.StatusOK, icv
}
