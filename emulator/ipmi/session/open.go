package session

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// half is a session that is being opened. It is known by the BMC's session ID
// and the client's address: clients share the IDs that they choose.
type half struct {
	id, console uint32
	from        netip.AddrPort
	used        time.Time
	suite       Suite
	asked       wire.Privilege // in Open Session
	limit       wire.Privilege // that Open Session has told
	s           *Session       // whose it will be; nil before a user is found

	// IPMI 2.0
	open, first, third step
	client, own        [16]byte // random numbers of RAKP 1 and 2
	tail               []byte   // role, length and name, which codes end with (§13.31)
	last               []byte   // likewise, of the code of RAKP 3

	// IPMI 1.5
	challenge [16]byte
	inbound   uint32 // the first sequence number of the client
}

// step is a message of the handshake and its answer: who repeats the message
// gets the same answer (§13.17, §13.20).
type step struct{ asked, answer []byte }

// heard says whether the message was answered before.
func (s *step) heard(b []byte) bool { return s.asked != nil && bytes.Equal(s.asked, b) }

// halfAt is what an address is opening under a session ID.
func (t *Table) halfAt(id uint32, from netip.AddrPort) *half {
	for _, h := range t.half {
		if h.id == id && h.from == from {
			return h
		}
	}
	return nil
}

// begin notes a session that is being opened. When there are too many, the one
// that was not used for the longest gives way (§6.12a).
func (t *Table) begin(now time.Time, h *half) {
	if len(t.half) >= t.c.Half {
		t.half = slices.Delete(t.half, 0, len(t.half)-t.c.Half+1)
	}
	h.used = now
	t.half = append(t.half, h)
}

// touch notes that one goes on.
func (t *Table) touch(now time.Time, h *half) {
	h.used = now
	if i := slices.Index(t.half, h); i >= 0 {
		t.half = append(slices.Delete(t.half, i, i+1), h)
	}
}

// finish takes one out that is done.
func (t *Table) finish(h *half) {
	if i := slices.Index(t.half, h); i >= 0 {
		t.half = slices.Delete(t.half, i, i+1)
	}
	t.shrink()
}

// reply appends the datagram of a handshake's message.
func reply(out []byte, p wire.PayloadType, body []byte) []byte {
	out = wire.AppendIPMI(out)
	return append(wire.Packet{Type: p}.AppendHeader(out, len(body)), body...)
}

// openSession answers an Open Session Request (§13.17, §13.18).
func (t *Table) openSession(now time.Time, from netip.AddrPort, body, out []byte, r Realm) []byte {
	for _, h := range t.half {
		if h.from == from && h.open.heard(body) {
			t.touch(now, h)
			return reply(out, wire.PayloadOpenResponse, h.open.answer)
		}
	}
	head, err := wire.ParseHead(body)
	if err != nil {
		return nil // nobody can be answered
	}
	a := wire.OpenResponse{Tag: head.Tag, Console: head.Session}
	var h *half
	q, err := wire.ParseOpenRequest(body)
	if err != nil {
		a.Status = wire.StatusIllegalParameter
	} else {
		h, a.Status = t.choose(from, q, r)
	}
	if a.Status == wire.StatusOK {
		a.Privilege, a.BMC, a.Suite = h.limit, h.id, wire.Suites[h.suite.ID]
		if faultsOf(r).Padded {
			a.Privilege = h.asked
		}
	}
	answer, err := a.AppendBinary(nil)
	if err != nil {
		return nil
	}
	if h != nil {
		h.from, h.console = from, q.Console
		h.open = step{slices.Clone(body), answer}
		t.begin(now, h)
	}
	return reply(out, wire.PayloadOpenResponse, answer)
}

// choose finds the suite for a request: the first that fits among those with
// the highest limit, or whose limit is high enough.
func (t *Table) choose(from netip.AddrPort, q wire.OpenRequest, r Realm) (*half, wire.Status) {
	if q.Privilege > wire.OEMPrivilege {
		return nil, wire.StatusInvalidRole
	}
	if s := proposed(q.Proposals); s != wire.StatusOK {
		return nil, s
	}
	var best Suite
	for _, s := range r.Suites() {
		algorithms, ok := wire.Suites[s.ID]
		if ok && fits(q.Proposals, algorithms) && s.Limit > best.Limit && s.Limit >= q.Privilege {
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
	id, ok := t.fresh()
	if !ok {
		return nil, wire.StatusNoResources
	}
	return &half{id: id, suite: best, asked: q.Privilege, limit: limit}, wire.StatusOK
}

// kinds are the algorithms that a client has to propose: the status when it
// proposes none, the status when we know none of them, and those that we know.
var kinds = [...]struct {
	none, unknown wire.Status
	known         byte // the highest
}{
	wire.KindAuthentication:  {wire.StatusNoAuthentication, wire.StatusInvalidAuthentication, byte(wire.RAKPHMACSHA256)},
	wire.KindIntegrity:       {wire.StatusNoIntegrity, wire.StatusInvalidIntegrity, byte(wire.HMACSHA256x128)},
	wire.KindConfidentiality: {wire.StatusIllegalParameter, wire.StatusInvalidConfidentiality, byte(wire.AESCBC128)},
}

// proposed says what is wrong with proposals in themselves. Algorithms that the
// standard has and the BMC does not take are not wrong: there is no suite, then.
func proposed(all []wire.Proposal) wire.Status {
	var some, known [len(kinds)]bool
	for _, p := range all {
		if int(p.Kind) >= len(kinds) {
			return wire.StatusInvalidPayload
		}
		some[p.Kind] = true
		known[p.Kind] = known[p.Kind] || p.Any || p.Algorithm <= kinds[p.Kind].known
	}
	for k, row := range kinds {
		if !some[k] {
			return row.none
		}
		if !known[k] {
			return row.unknown
		}
	}
	return wire.StatusOK
}

// fits says whether a suite's algorithms are among those proposed.
func fits(all []wire.Proposal, s wire.Suite) bool {
	of := [len(kinds)]byte{byte(s.Authentication), byte(s.Integrity), byte(s.Confidentiality)}
	var ok [len(kinds)]bool
	for _, p := range all {
		ok[p.Kind] = ok[p.Kind] || p.Any || p.Algorithm == of[p.Kind]
	}
	return ok == [len(kinds)]bool{true, true, true}
}
