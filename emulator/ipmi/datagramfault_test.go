package ipmi

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
)

// line is a Socket at whose other end is a test.
type line struct {
	in   chan []byte // ASF presence pings; those with odd tags are for the second BMC
	mu   sync.Mutex
	sent [][]byte
}

func (l *line) Receive(b []byte) (int, netip.AddrPort, netip.AddrPort, error) {
	p, ok := <-l.in
	if !ok {
		return 0, netip.AddrPort{}, netip.AddrPort{}, net.ErrClosed
	}
	at := netip.AddrFrom4([4]byte{127, 64, 0, 1 + p[9]%2})
	return copy(b, p), netip.MustParseAddrPort("127.0.0.1:40000"), netip.AddrPortFrom(at, 623), nil
}

func (l *line) Send(b []byte, _, _ netip.AddrPort) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, append([]byte(nil), b...))
	return nil
}

// pair is a rack of two BMCs.
type pair [2]Host

func (p pair) IPMIAt(at netip.AddrPort) (Host, bool) { return p[at.Addr().As4()[3]-1], true }

// Delayed datagrams are handled while others arrive. Each ping gets its pong,
// which has the ping's message tag (§13.2.4).
func TestDelayedPingsGetPongsWithTheirTags(t *testing.T) {
	const pings = 200
	prompt, slow := newHost(t), newHost(t)
	c := clock.NewVirtual(time.Unix(1_800_000_000, 0))
	s, err := New(Config{Rack: pair{prompt, slow}, Clock: c, DatagramFault: func(h Host, way string) fault.Decision {
		if way == fault.In && h == Host(slow) {
			return fault.Decision{Wire: fault.Late, Delay: time.Millisecond}
		}
		return fault.Decision{}
	}})
	must(t, err)
	l := &line{in: make(chan []byte)}
	var all sync.WaitGroup
	all.Go(func() { must(t, s.Serve(l)) })
	for tag := range pings {
		l.in <- []byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, byte(tag), 0, 0}
		all.Go(func() { c.Advance(time.Millisecond) })
	}
	close(l.in)
	all.Wait()
	c.Advance(time.Second)
	must(t, c.Settle(t.Context()))
	seen := map[byte]bool{}
	for _, b := range l.sent {
		if len(b) != 28 || b[8] != 0x40 {
			t.Fatalf("[% x] is not a presence pong", b)
		}
		seen[b[9]] = true
	}
	if len(seen) != pings {
		t.Errorf("%d of %d pings got their pongs", len(seen), pings)
	}
}
