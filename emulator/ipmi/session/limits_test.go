package session_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// many makes clients with ports of their own.
func many(n int) (all []*client) {
	for i := range n {
		c := newClient(3, "ADMIN", "ADMIN")
		c.from = netip.AddrPortFrom(c.from.Addr(), uint16(1000+i))
		all = append(all, c)
	}
	return all
}

func TestSessionsAreCounted(t *testing.T) {
	w := newWorld(t)
	all := many(18)
	late := all[17]
	w.open(late, 0) // while there is room
	w.identify(late)
	for _, c := range all[:16] {
		w.login(c)
	}
	w.refused(all[16], all[16].openRequest(0), 0x11, all[16].console, wire.StatusNoResources)
	w.refused(late, late.rakp3(), 0x15, late.console, wire.StatusNoResources)
	if got := w.table.Max(); got != 16 {
		t.Errorf("Most = %d, want 16", got)
	}
	w.table.Close(all[4].managed)
	w.login(all[16])
	var handles []byte
	for s := range w.table.All() {
		handles = append(handles, s.Handle)
	}
	if diff := cmp.Diff([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, handles); diff != "" {
		t.Errorf("handles (-want +got):\n%s", diff)
	}
	if s := w.table.Find(all[16].managed); s.Handle != 5 {
		t.Errorf("the new session has handle %d, want 5, which is free", s.Handle)
	}
}

func TestOneBMCHasManyClientsAtOnce(t *testing.T) {
	w := newWorldWith(t, session.Config{Open: 1000})
	all := many(255)
	for i, c := range all[:64] {
		w.open(c, 0)
		if i%2 == 0 {
			w.identify(c)
		}
	}
	for i, c := range all[:64] { // nobody has pushed out another
		if i%2 == 1 {
			w.identify(c)
		}
		w.prove(c)
	}
	for _, c := range all[64:254] {
		w.login(c)
	}
	if n, most := w.table.Len(), w.table.Max(); n != 254 || most != 63 {
		t.Errorf("%d sessions of %d, want 254, which have handles, and 63, which can be reported", n, most)
	}
	w.refused(all[254], all[254].openRequest(0), 0x11, all[254].console, wire.StatusNoResources)
}

func TestRestartedHandshakesUseOneSession(t *testing.T) {
	w := newWorldWith(t, session.Config{Open: 2})
	other, c := newClient(17, "ADMIN", "ADMIN"), newClient(17, "ADMIN", "ADMIN")
	other.from = netip.MustParseAddrPort("127.0.0.1:7")
	w.login(other) // not used either, but of another client
	for i := range 5 {
		c.tag = byte(i)
		w.login(c)
	}
	if n := w.table.Len(); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
	w.exchange(other, other.request(6, 1))
	w.exchange(c, c.request(6, 1))
	w.refused(c, c.openRequest(0), 0x11, c.console, wire.StatusNoResources) // both are used
}

func TestFloodDoesNotBlockALogin(t *testing.T) {
	w := newWorldWith(t, session.Config{Pending: 16})
	flood := many(3000)
	at := 0
	more := func(n int) {
		for range n {
			w.open(flood[at], 0)
			at++
		}
	}
	more(30)
	c := newClient(17, "ADMIN", "ADMIN")
	w.open(c, 0)
	more(15) // as many as leave one place
	w.identify(c)
	more(15)
	w.prove(c)
	more(2900)
	w.exchange(c, c.request(6, 1))
	w.identify(flood[at-16]) // 16 are being opened
	w.refused(flood[at-17], flood[at-17].rakp1(), 0x13, 0, wire.StatusInvalidSession)
}

func TestSessionsEndForIdleness(t *testing.T) {
	w := newWorld(t)
	if at, ok := w.table.Deadline(); ok {
		t.Errorf("Deadline = %s of an empty table", at)
	}
	begin := w.now
	all := many(3)
	for i, c := range all {
		w.login(c)
		if i == 0 {
			w.exchange(c, c.request(6, 1))
		}
		w.now = w.now.Add(10 * time.Second)
	}
	half := newClient(17, "ADMIN", "ADMIN")
	w.open(half, 0)                          // at 30 s
	w.exchange(all[1], all[1].request(6, 1)) // likewise
	for _, tt := range []struct {
		at   time.Duration
		ends []uint32
		next time.Duration
	}{
		{60*time.Second - 1, nil, 60 * time.Second},
		{60 * time.Second, []uint32{all[0].managed}, 80 * time.Second},
		{80 * time.Second, []uint32{all[2].managed}, 90 * time.Second},
		{90*time.Second - 1, nil, 90 * time.Second},
		{90 * time.Second, []uint32{all[1].managed}, 0},
	} {
		var ended []uint32
		for _, s := range w.table.Advance(begin.Add(tt.at)) {
			ended = append(ended, s.ID)
		}
		if diff := cmp.Diff(tt.ends, ended); diff != "" {
			t.Errorf("Advance(%s) (-want +got):\n%s", tt.at, diff)
		}
		at, ok := w.table.Deadline()
		if ok != (tt.next > 0) || ok && !at.Equal(begin.Add(tt.next)) {
			t.Errorf("Deadline after %s = %s, %t, want %s", tt.at, at.Sub(begin), ok, tt.next)
		}
	}
	w.refused(half, half.rakp1(), 0x13, 0, wire.StatusInvalidSession)
}

func TestSessionsOfAnAccountAreDropped(t *testing.T) {
	w := newWorld(t)
	admin, op, opening := newClient(17, "ADMIN", "ADMIN"), newClient(3, "op", "op"), newClient(3, "op", "op")
	opening.from, op.from = netip.MustParseAddrPort("127.0.0.1:7"), netip.MustParseAddrPort("127.0.0.1:8")
	w.login(admin)
	w.login(op)
	w.open(opening, 0)
	w.identify(opening)
	w.table.Drop(func(s *session.Session) bool { return s.User.Name == "op" })
	if w.table.Find(op.managed) != nil || w.table.Find(admin.managed) == nil {
		t.Error("Drop has not ended the sessions of op, and only those")
	}
	w.refused(opening, opening.rakp3(), 0x15, 0, wire.StatusInvalidSession)
	w.exchange(admin, admin.request(6, 1))

	w.open(op, 0)
	w.table.Reset()
	w.refused(op, op.rakp1(), 0x13, 0, wire.StatusInvalidSession)
	if w.hears(admin, admin.packet(0, admin.request(6, 1))) {
		t.Error("a session is still open after Reset")
	}
}
