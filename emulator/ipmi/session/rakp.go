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
func (t *Table) rakp1(now time.Time, from netip.AddrPort, body, out []byte, r Realm) []byte {
	m, err := wire.ParseRAKP1(body)
	head, short := wire.ParseHead(body)
	if short != nil {
		return nil // nobody can be answered
	}
	h := t.halfAt(head.Session, from)
	if h == nil {
		return t.late(head, from, out, wire.PayloadRAKP2, func(h *half) *step { return &h.first }, body)
	}
	t.touch(now, h)
	if h.first.heard(body) {
		return reply(out, wire.PayloadRAKP2, h.first.answer)
	}
	h.first, h.third, h.s = step{}, step{}, nil
	a := wire.RAKP2{Tag: head.Tag, Console: h.console}
	switch {
	case errors.Is(err, wire.ErrName):
		a.Status = wire.StatusInvalidNameLength
	case err != nil:
		a.Status = wire.StatusIllegalParameter
	default:
		a.Status = t.identify(h, m, r)
	}
	if a.Status == wire.StatusOK {
		a.Random, a.GUID = h.own, r.GUID()
		if alg := h.algorithm(); alg.hash != nil {
			a.Code = sum(alg.keyed(h.password(r)), nil, le32(h.console), le32(h.id), h.client[:], h.own[:], a.GUID[:], h.tail)
		}
		if faultsOf(r).Long {
			a.Code = append(a.Code, 0)
		}
	}
	answer, err := a.AppendBinary(nil)
	if err != nil {
		return nil
	}
	h.first = step{slices.Clone(body), answer}
	return reply(out, wire.PayloadRAKP2, answer)
}

// late answers a message for a session ID that the address is not opening. The
// answer to RAKP 3 may have been lost, and the session be open: who asks again
// is answered again, until it uses the session.
func (t *Table) late(m wire.Headed, from netip.AddrPort, out []byte, p wire.PayloadType, which func(*half) *step, body []byte) []byte {
	s := t.Find(m.Session)
	switch {
	case s == nil:
		answer, err := wire.RAKP2{Tag: m.Tag, Status: wire.StatusInvalidSession}.AppendBinary(nil)
		if err != nil {
			return nil
		}
		return reply(out, p, answer)
	case s.opening != nil && s.opening.from == from:
		if st := which(s.opening); st.heard(body) {
			return reply(out, p, st.answer)
		}
	}
	return nil // an old copy, or nobody who is known
}

// identify finds the user of RAKP 1, and what the session can be.
func (t *Table) identify(h *half, m wire.RAKP1, r Realm) wire.Status {
	asked := m.Privilege()
	if asked < wire.Callback || asked > wire.OEMPrivilege {
		return wire.StatusInvalidRole
	}
	faults := faultsOf(r)
	if faults.Padded {
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
	if _, err := io.ReadFull(t.c.Rand, h.own[:]); err != nil {
		return wire.StatusNoResources
	}
	h.client = m.Random
	role := m.Role
	if faults.OpenRole {
		role = role&^0x0f | byte(h.asked)
	}
	h.tail = append([]byte{role, byte(len(m.Name))}, m.Name...)
	h.last = h.tail
	if faults.Padded {
		h.last[0] &= 0x0f
		h.tail = append(append([]byte{role, wire.MaxName}, m.Name...), make([]byte, wire.MaxName-len(m.Name))...)
	}
	h.s = &Session{ID: h.id, Console: h.console, User: u, Limit: limit, From: h.from, Suite: h.suite.ID}
	return wire.StatusOK
}

// password is that which codes are made with.
func (h *half) password(r Realm) string {
	p := h.s.User.Password
	if faultsOf(r).Padded && wire.Suites[h.suite.ID].Authentication == wire.RAKPHMACMD5 {
		p = p[:min(len(p), passwordV15)]
	}
	return p
}

func (h *half) algorithm() rakp { return algorithms[wire.Suites[h.suite.ID].Authentication] }

func le32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

// rakp3 answers RAKP Message 3 (§13.22, §13.23).
func (t *Table) rakp3(now time.Time, from netip.AddrPort, body, out []byte, r Realm) []byte {
	m, err := wire.ParseRAKP3(body)
	if err != nil {
		return nil // nobody can be answered
	}
	h := t.halfAt(m.Session, from)
	if h == nil {
		head := wire.Headed{Tag: m.Tag, Session: m.Session}
		return t.late(head, from, out, wire.PayloadRAKP4, func(h *half) *step { return &h.third }, body)
	}
	t.touch(now, h)
	if h.third.heard(body) {
		return reply(out, wire.PayloadRAKP4, h.third.answer)
	}
	a := wire.RAKP4{Tag: m.Tag, Console: h.console}
	switch s := h.s; {
	case m.Status != wire.StatusOK: // the client has given up: no answer (§13.22)
		if s != nil && m.Status == wire.StatusInvalidCode {
			r.Admit(s.User, false, from)
		}
		h.first, h.s = step{}, nil
		return nil
	case s == nil:
		a.Status = wire.StatusInactiveSession
	default:
		a.Status, a.Code = t.prove(now, h, m.Code, r)
	}
	answer, err := a.AppendBinary(nil)
	if err != nil {
		return nil
	}
	h.third = step{slices.Clone(body), answer}
	if a.Status != wire.StatusOK {
		h.first, h.s = step{}, nil // it begins again with RAKP 1
	}
	return reply(out, wire.PayloadRAKP4, answer)
}

// prove opens a session whose client knows the password, and returns the code
// of RAKP 4.
func (t *Table) prove(now time.Time, h *half, code []byte, r Realm) (wire.Status, []byte) {
	s, alg := h.s, h.algorithm()
	var want []byte
	if alg.hash != nil {
		want = sum(alg.keyed(h.password(r)), nil, h.own[:], le32(h.console), h.last)
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
	if alg.hash == nil && faultsOf(r).Code {
		icv = h.own[:]
	}
	if alg.hash != nil {
		guid := r.GUID()
		key := string(r.KG())
		if strings.Trim(key, "\x00") == "" { // "one-key" logins (§13.33)
			key = h.password(r)
		}
		sik := sum(alg.keyed(key), nil, h.client[:], h.own[:], h.tail)
		icv = sum(hmac.New(alg.hash, sik), nil, h.client[:], le32(h.id), guid[:])[:alg.icv]
		if err := s.keys.derive(wire.Suites[s.Suite], sik, s.User.Password, h.own[:]); err != nil {
			return wire.StatusNoResources, nil
		}
	}
	if faultsOf(r).Padded && wire.Suites[s.Suite].Integrity == wire.IntegrityNone {
		icv = nil
	}
	s.sol = s.guard()
	t.finish(h)
	t.end(func(o *Session) bool { return o.abandoned(h.from, h.console) })
	t.admit(now, s)
	s.opening = h
	return wire.StatusOK, icv
}
