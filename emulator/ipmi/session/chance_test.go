package session_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// network brings packets as networks and attackers do: late, twice, changed,
// cut, made up, and of other sessions. What it gives the table is a copy.
type network struct {
	*world
	r     *rand.Rand
	past  [][]byte // all that was ever sent
	heard map[string]int
	legal map[string]bool
}

func (n *network) from() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + n.r.IntN(2))}), uint16(40000+n.r.IntN(3)))
}

// mangled is a packet of the past, changed.
func (n *network) mangled() []byte {
	if len(n.past) == 0 || n.r.IntN(8) == 0 {
		b := make([]byte, n.r.IntN(80))
		for i := range b {
			b[i] = byte(n.r.Uint32())
		}
		if len(b) > 5 && n.r.IntN(2) == 0 {
			copy(b, []byte{6, 0, 0xff, 7, 6})
		}
		return b
	}
	b := bytes.Clone(n.past[n.r.IntN(len(n.past))])
	switch n.r.IntN(5) {
	case 0: // as it was
	case 1:
		b = b[:n.r.IntN(len(b)+1)]
	case 2:
		b = append(b, byte(n.r.Uint32()))
	default:
		for range 1 + n.r.IntN(3) {
			if len(b) > 0 {
				b[n.r.IntN(len(b))] ^= 1 << n.r.IntN(8)
			}
		}
	}
	return b
}

func (n *network) noise(of int) {
	for range n.r.IntN(of) {
		n.give(n.from(), n.mangled())
	}
}

func (n *network) give(from netip.AddrPort, packet []byte) session.Received {
	got := n.table.Receive(n.now, from, bytes.Clone(packet), nil, n.auth)
	if got.Session != nil {
		n.heard[string(got.Body)]++
	}
	return got
}

// TestRandomPacketsOpenNoSession lets clients log in and send requests while the
// network adds random, changed and repeated packets. Only their sessions open;
// each of their messages is executed once, and no other message is.
func TestRandomPacketsOpenNoSession(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newWorldWith(t, session.Config{Rand: seeded(seed + 1)})
			w.auth.types = wire.AuthTypes(0).With(wire.AuthMD5)
			w.auth.suites = []session.Suite{{ID: 17, Limit: 4}, {ID: 3, Limit: 4}, {ID: 12, Limit: 4}}
			n := &network{world: w, r: rand.New(rand.NewPCG(seed, 1)), heard: map[string]int{}, legal: map[string]bool{}}
			step := func(c *client, packet []byte, payload byte) []byte {
				n.past = append(n.past, packet)
				n.noise(20)
				got := n.give(c.from, packet)
				return body(t, got.Reply, payload)
			}
			for who := range 3 {
				c := newClient([]byte{17, 3, 12}[who], "ADMIN", "ADMIN")
				c.from = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(40000+who))
				c.rm[0] = byte(who)
				in := false
				for try := 0; !in; try++ {
					if try == 30 {
						t.Fatalf("client %d cannot log in", who)
					}
					// A changed copy of the client's messages can spoil a handshake
					// (§13.22): the client starts it again with another message tag.
					c.tag = byte(try)
					in = n.login(c, step)
				}
				if got := w.table.Len(); got != who+1 {
					t.Fatalf("%d sessions are open, want %d", got, who+1)
				}
				for i := range 20 {
					q := message(0, byte(i), 2, byte(who), byte(i))
					n.legal[string(q)] = true
					p := c.packet(0, q)
					n.past = append(n.past, p)
					n.noise(10)
					n.give(c.from, p)
					n.noise(10)
					w.now = w.now.Add(time.Second / 10)
				}
			}
			for m, times := range n.heard {
				if times != 1 || !n.legal[m] {
					t.Errorf("message % x was heard %d times", m, times)
				}
			}
			for m := range n.legal {
				if n.heard[m] == 0 {
					t.Errorf("message % x was never heard", m)
				}
			}
			if got := w.table.Len(); got != 3 {
				t.Errorf("%d sessions are open, want 3", got)
			}
			for _, a := range w.auth.admitted {
				if a != "ADMIN true" && a != "ADMIN false" {
					t.Errorf("Admit(%s)", a)
				}
			}
		})
	}
}

// login is one try; false when it was refused.
func (n *network) login(c *client, step func(*client, []byte, byte) []byte) bool {
	a := step(c, c.openRequest(4), 0x11)
	c.managed = idOf(a)
	if a = step(c, c.rakp1(), 0x13); a[1] != 0 {
		return false
	}
	copy(c.rc[:], a[8:24])
	copy(c.guid[:], a[24:40])
	a = step(c, c.rakp3(), 0x15)
	c.derive()
	return a[1] == 0 && bytes.Equal(a[8:], c.icv())
}

func idOf(open []byte) uint32 {
	return uint32(open[8]) | uint32(open[9])<<8 | uint32(open[10])<<16 | uint32(open[11])<<24
}

// FuzzReceive passes any datagram to a table with open sessions: it does not
// panic, opens and closes no session, and accepts no message of a session.
func FuzzReceive(f *testing.F) {
	w, c := newWorld(f), newClient(17, "ADMIN", "ADMIN")
	w.auth.types = wire.AuthTypes(0).With(wire.AuthMD5)
	w.login(c)
	c.seq = 100
	for _, p := range [][]byte{c.openRequest(4), c.rakp1(), c.rakp3(), c.packet(0, message(6, 1, 1)), {6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 1, 0, 0}, setup(0, message(6, 1, 0x38, 0x8e, 4))} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w, c := newWorld(t), newClient(17, "ADMIN", "ADMIN")
		w.auth.types = wire.AuthTypes(0).With(wire.AuthMD5)
		w.login(c)
		w.exchange(c, c.request(6, 1))
		v := newOld(2, "ADMIN", "ADMIN")
		w.begin(v)
		w.activate(v, v.packet(0, v.activation(4)))
		got := w.send(c, b)
		if got.Session != nil {
			t.Errorf("Receive(% x) = %+v: nobody who has the keys has sent it", b, got)
		}
		if n := len(got.Reply); n > 16+40+32 {
			t.Errorf("Receive(% x): reply of %d bytes", b, n)
		}
		if w.table.Len() != 2 {
			t.Errorf("Receive(% x): %d sessions, want 2", b, w.table.Len())
		}
		w.exchange(c, c.request(6, 1))
	})
}
