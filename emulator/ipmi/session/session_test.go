package session_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

var everySuite = []byte{0, 1, 2, 3, 6, 7, 8, 11, 12, 15, 16, 17}

// exchange sends a request in the session and has it answered with its bytes in
// reverse.
func (w *world) exchange(c *client, q []byte) []byte {
	w.Helper()
	got := w.send(c, c.packet(0, q))
	if got.Session == nil || got.Session.ID != c.managed || got.Payload != wire.PayloadIPMI || !bytes.Equal(got.Body, q) {
		w.Fatalf("Receive = %+v, want the body % x in session %08x", got, q, c.managed)
	}
	return w.table.Wrap(nil, got.Frame, wire.PayloadIPMI, reversed(q))
}

func reversed(b []byte) []byte {
	b = bytes.Clone(b)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return b
}

func TestEverySuiteCarriesMessages(t *testing.T) {
	for _, suite := range everySuite {
		t.Run(fmt.Sprint(suite), func(t *testing.T) {
			w := newWorld(t)
			c := newClient(suite, "ADMIN", "ADMIN")
			s := w.login(c)
			if s.Suite != suite || s.User.ID != 2 || s.Privilege != wire.User || s.Limit != wire.Administrator || s.Handle != 1 {
				t.Errorf("session %+v, want suite %d, user 2, privilege USER up to ADMINISTRATOR, handle 1", s, suite)
			}
			for n := range 40 { // bodies of all lengths to a block and on
				q := c.request(0x06, 0x01, bytes.Repeat([]byte{byte(n)}, n)...)
				_, seq, got := c.parse(t, w.exchange(c, q))
				if want := uint32(n + 1); seq != want || !bytes.Equal(got, reversed(q)) {
					t.Fatalf("answer %d: number %d, body % x; want %d, % x", n, seq, got, want, reversed(q))
				}
			}
		})
	}
}

func TestKGChangesTheSessionKeys(t *testing.T) {
	w := newWorld(t)
	w.auth.kg = append([]byte("bmc key"), make([]byte, 13)...)
	c := newClient(17, "ADMIN", "ADMIN")
	c.kg = "bmc key"
	w.login(c)
	c.parse(t, w.exchange(c, c.request(6, 1)))
}

func TestZeroKGMeansNone(t *testing.T) {
	w := newWorld(t)
	w.auth.kg = make([]byte, 20)
	w.login(newClient(3, "ADMIN", "ADMIN"))
}

var _ session.Authenticator = (*fakeAuthenticator)(nil)
