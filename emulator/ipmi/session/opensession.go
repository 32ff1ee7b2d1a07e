package session

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// pendingSession is a session during its handshake. It is found by the BMC's
// session ID and the client's address, since clients reuse the IDs that they
// choose.
type pendingSession struct {
	id, console        uint32
	from               netip.AddrPort
	lastUsed           time.Time
	suite              Suite
	requestedPrivilege wire.Privilege // requested in Open Session
	limit              wire.Privilege // maximum that Open Session has answered
	session            *Session       // the session that it will become; nil until the user is found

	// IPMI 2.0
	open, first, third exchange
	client, local      [16]byte // random numbers of RAKP 1 and 2
	nameTail           []byte   // role, name length and name, which the codes cover last (§13.31)
	rakp3Tail          []byte   // the same for the code of RAKP 3

	// IPMI 1.5
	challenge [16]byte
	inbound   uint32 // the client's initial inbound sequence number
}

// exchange is a handshake message and its response: a repeated message gets the
// same response (§13.17, §13.20).
type exchange struct{ request, response []byte }

// repeats reports whether the message is the one answered before.
func (s *exchange) repeats(b []byte) bool { return s.request != nil && bytes.Equal(s.request, b) }

// pendingAt returns an address's pending session by session ID; nil when there
// is none.
func (t *Table) pendingAt(id uint32, from netip.AddrPort) *pendingSession {
	for _, h := range t.pending {
		if h.id == id && h.from == from {
			return h
		}
	}
	return nil
}

// begin adds a pending session. When the table is full, the least recently used
// pending session is dropped (§6.12a).
func (t *Table) begin(now time.Time, h *pendingSession) {
	if len(t.pending) >= t.c.Pending {
		t.pending = slices.Delete(t.pending, 0, len(t.pending)-t.c.Pending+1)
	}
	h.lastUsed = now
	t.pending = append(t.pending, h)
}

// touch marks a pending session as the most recently used.
func (t *Table) touch(now time.Time, h *pendingSession) {
	h.lastUsed = now
	if i := slices.Index(t.pending, h); i >= 0 {
		t.pending = append(slices.Delete(t.pending, i, i+1), h)
	}
}

// finish removes a pending session.
func (t *Table) finish(h *pendingSession) {
	if i := slices.Index(t.pending, h); i >= 0 {
		t.pending = slices.Delete(t.pending, i, i+1)
	}
	t.shrink()
}

// reply appends the datagram of a handshake message.
func reply(out []byte, p wire.PayloadType, body []byte) []byte {
	out = wire.AppendIPMI(out)
	return append(wire.Packet{Type: p}.AppendHeader(out, len(body)), body...)
}

// openSession answers an Open Session Request (§13.17, §13.18).
func (t *Table) openSession(now time.Time, from netip.AddrPort, body, out []byte, r Authenticator) []byte {
	for _, h := range t.pending {
		if h.from == from && h.open.repeats(body) {
			t.touch(now, h)
			return reply(out, wire.PayloadOpenResponse, h.open.response)
		}
	}
	head, err := wire.ParseHead(body)
	if err != nil {
		return nil // too short to be answered
	}
	a := wire.OpenResponse{Tag: head.Tag, Console: head.Session}
	var h *pendingSession
	q, err := wire.ParseOpenRequest(body)
	if err != nil {
		a.Status = wire.StatusIllegalParameter
	} else {
		h, a.Status = t.chooseSuite(from, q, r)
	}
	if a.Status == wire.StatusOK {
		a.Privilege, a.BMC, a.Suite = h.limit, h.id, wire.Suites[h.suite.ID]
		if faults(r).PaddedNames {
			a.Privilege = h.requestedPrivilege
		}
	}
	answer, err := a.AppendBinary(nil)
	if err != nil {
		return nil
	}
	if h != nil {
		h.from, h.console = from, q.Console
		h.open = exchange{slices.Clone(body), answer}
		t.begin(now, h)
	}
	return reply(out, wire.PayloadOpenResponse, answer)
}

// chooseSuite returns a pending session with the cipher suite for a request:
// the first matching one whose privilege limit suffices, or the one with the
// highest limit.
func (t *Table) chooseSuite(from netip.AddrPort, q wire.OpenRequest, r Authenticator) (*pendingSession, wire.Status) {
	if q.Privilege > wire.OEMPrivilege {
		return nil, wire.StatusInvalidRole
	}
	if s := checkProposals(q.Proposals); s != wire.StatusOK {
		return nil, s
	}
	var best Suite
	for _, s := range r.Suites() {
		algorithms, ok := wire.Suites[s.ID]
		if ok && proposes(q.Proposals, algorithms) && s.Limit > best.Limit && s.Limit >= q.Privilege {
			best = s
			if q.Privilege != 0 {
				break
			}
		}
	}
	if best.Limit == 0 {
		return nil, wire.StatusNoSuite
	}
	limit := q.Privilege
	if limit == 0 {
		limit = wire.Administrator
	}
	if limit = min(limit, best.Limit, r.Limit()); limit == 0 {
		return nil, wire.StatusInvalidRole
	}
	if t.fullFor(from, q.Console) {
		return nil, wire.StatusNoResources
	}
	id, ok := t.newID()
	if !ok {
		return nil, wire.StatusNoResources
	}
	return &pendingSession{id: id, suite: best, requestedPrivilege: q.Privilege, limit: limit}, wire.StatusOK
}

// proposalKinds are the algorithms that a client must propose: the status when
// it proposes none, the status for unknown ones, and which are known.
var proposalKinds = [...]struct {
	none, unknown wire.Status
	known         byte // highest number
}{
	wire.KindAuthentication:  {wire.StatusNoAuthentication, wire.StatusInvalidAuthentication, byte(wire.RAKPHMACSHA256)},
	wire.KindIntegrity:       {wire.StatusNoIntegrity, wire.StatusInvalidIntegrity, byte(wire.HMACSHA256x128)},
	wire.KindConfidentiality: {wire.StatusIllegalParameter, wire.StatusInvalidConfidentiality, byte(wire.AESCBC128)},
}

// checkProposals returns the status of malformed proposals. Algorithms that the
// standard defines but the BMC does not support are not malformed: no suite
// matches them.
func checkProposals(all []wire.Proposal) wire.Status {
	var some, known [len(proposalKinds)]bool
	for _, p := range all {
		if int(p.Kind) >= len(proposalKinds) {
			return wire.StatusInvalidPayload
		}
		some[p.Kind] = true
		known[p.Kind] = known[p.Kind] || p.Any || p.Algorithm <= proposalKinds[p.Kind].known
	}
	for k, row := range proposalKinds {
		if !some[k] {
			return row.none
		}
		if !known[k] {
			return row.unknown
		}
	}
	return wire.StatusOK
}

// proposes reports whether all of a suite's algorithms are proposed.
func proposes(all []wire.Proposal, s wire.Suite) bool {
	of := [len(proposalKinds)]byte{byte(s.Authentication), byte(s.Integrity), byte(s.Confidentiality)}
	var ok [len(proposalKinds)]bool
	for _, p := range all {
		ok[p.Kind] = ok[p.Kind] || p.Any || p.Algorithm == of[p.Kind]
	}
	return ok == [len(proposalKinds)]bool{true, true, true}
}
