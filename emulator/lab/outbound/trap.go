package outbound

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// TrapConfig says how traps are sent. Zero values stand for the defaults.
type TrapConfig struct {
	Clock *clock.Clock
	Port  uint16 // that they go to; 162, that of SNMP traps
	Most  int    // traps on their way at the same time; 256. More are lost.
	Log   *slog.Logger
}

// Trap is a datagram that a BMC sends to who watches over it.
type Trap struct {
	Sender   any        // comparable
	From     netip.Addr // of the sender
	To       netip.Addr
	Packet   []byte
	Sequence uint16        // by which its coming is told
	Awaits   bool          // it has come when that is told; else when it is sent
	Times    int           // that it is sent; or at most, if it awaits an answer
	Every    time.Duration // between them
	Told     func(came bool)
}

// Trapper sends traps, to this computer only: no lab shall disturb who watches
// over real servers. It is safe for concurrent use.
type Trapper struct {
	c TrapConfig

	mu      sync.Mutex
	under   map[trapKey]*sent
	number  uint64
	stopped bool
	running sync.WaitGroup
}

// trapKey is a trap on its way. Those that await nothing have numbers of their
// own, as a sender's own come again.
type trapKey struct {
	sender   any
	sequence uint16
	number   uint64
}

type sent struct {
	Trap
	timer *clock.Timer
}

// NewTrapper makes a Trapper.
func NewTrapper(c TrapConfig) *Trapper {
	c.Port, c.Most = cmp.Or(c.Port, 162), cmp.Or(c.Most, 256)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Trapper{c: c, under: map[trapKey]*sent{}}
}

// errNotHere means that a trap is for another computer.
var errNotHere = errors.New("outbound: trap: must go to a loopback address")

// Send takes a trap. It does not wait.
func (t *Trapper) Send(x Trap) {
	t.mu.Lock()
	key := trapKey{sender: x.Sender, sequence: x.Sequence}
	if !x.Awaits {
		t.number++
		key = trapKey{sender: x.Sender, number: t.number}
	}
	_, there := t.under[key]
	if t.stopped || there || len(t.under) >= t.c.Most {
		t.mu.Unlock()
		x.Told(false)
		return
	}
	t.under[key] = &sent{Trap: x}
	t.start(key)
	t.mu.Unlock()
}

// start sends it once, in a goroutine of its own. It holds t.mu.
func (t *Trapper) start(key trapKey) {
	leave := t.c.Clock.Enter()
	t.running.Go(func() {
		defer leave()
		t.once(key)
	})
}

// once sends a trap, and sees to what follows.
func (t *Trapper) once(key trapKey) {
	t.mu.Lock()
	x := t.under[key]
	t.mu.Unlock()
	if x == nil { // it has come
		return
	}
	err := t.post(&x.Trap)
	if err != nil {
		t.c.Log.Info("trap not sent", "to", x.To.String(), "err", err)
	}
	t.mu.Lock()
	if t.under[key] != x || t.stopped {
		t.mu.Unlock()
		return
	}
	x.Times--
	if again := err == nil && (x.Times > 0 || x.Awaits); again {
		x.timer = t.c.Clock.AfterFunc(x.Every, func() { t.again(key) })
		t.mu.Unlock()
		return
	}
	delete(t.under, key)
	t.mu.Unlock()
	x.Told(err == nil)
}

// again is called by the timer: another time, or the end of waiting.
func (t *Trapper) again(key trapKey) {
	t.mu.Lock()
	x := t.under[key]
	switch {
	case x == nil || t.stopped:
		t.mu.Unlock()
	case x.Times > 0:
		t.start(key)
		t.mu.Unlock()
	default:
		delete(t.under, key)
		t.mu.Unlock()
		x.Told(false)
	}
}

// post sends a trap from the address of its sender.
func (t *Trapper) post(x *Trap) error {
	if !x.To.Unmap().IsLoopback() {
		return errNotHere
	}
	var from *net.UDPAddr
	if x.From.IsLoopback() && x.From.Is4() == x.To.Unmap().Is4() {
		from = net.UDPAddrFromAddrPort(netip.AddrPortFrom(x.From, 0))
	}
	c, err := net.DialUDP("udp", from, net.UDPAddrFromAddrPort(netip.AddrPortFrom(x.To.Unmap(), t.c.Port)))
	if err != nil {
		return fmt.Errorf("outbound: trap: %w", err)
	}
	_, err = c.Write(x.Packet)
	return errors.Join(err, c.Close())
}

// Came tells that a trap that awaits it has come.
func (t *Trapper) Came(sender any, sequence uint16) {
	key := trapKey{sender: sender, sequence: sequence}
	t.mu.Lock()
	x := t.under[key]
	delete(t.under, key)
	if x != nil && x.timer != nil {
		x.timer.Stop()
	}
	t.mu.Unlock()
	if x != nil {
		x.Told(true)
	}
}

// Stop ends the sending, and returns when none is under way. What waits is
// dropped.
func (t *Trapper) Stop() {
	t.mu.Lock()
	t.stopped = true
	for _, x := range t.under {
		if x.timer != nil {
			x.timer.Stop()
		}
	}
	t.mu.Unlock()
	t.running.Wait()
}
