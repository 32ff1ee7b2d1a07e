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

// TrapConfig says how a Trapper sends traps. Zero values mean the defaults given
// here.
type TrapConfig struct {
	Clock      *clock.Clock
	Port       uint16 // destination port; 162, that of SNMP traps
	MaxPending int    // traps that are being sent; 256. More are lost.
	Log        *slog.Logger
}

// Trap is an SNMP trap of a BMC.
type Trap struct {
	Sender       any        // comparable
	From         netip.Addr // address of the BMC
	To           netip.Addr
	Packet       []byte
	Sequence     uint16        // that an acknowledgement names
	Acknowledged bool          // delivered when acknowledged, else when sent
	Attempts     int           // how often it is sent; at most, when it is acknowledged
	Interval     time.Duration // between attempts, in client time
	Done         func(came bool)
}

// Trapper sends traps to this computer only, so that no rack disturbs who watches
// real servers. It is safe for concurrent use.
type Trapper struct {
	c TrapConfig

	mu      sync.Mutex
	pending map[trapKey]*pendingTrap
	number  uint64
	stopped bool
	running sync.WaitGroup
}

// trapKey identifies a pending trap. Traps without acknowledgement have a number of
// the Trapper, because sequence numbers repeat.
type trapKey struct {
	sender   any
	sequence uint16
	number   uint64
}

type pendingTrap struct {
	Trap
	timer *clock.Timer
}

// NewTrapper returns a Trapper.
func NewTrapper(c TrapConfig) *Trapper {
	c.Port, c.MaxPending = cmp.Or(c.Port, 162), cmp.Or(c.MaxPending, 256)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Trapper{c: c, pending: map[trapKey]*pendingTrap{}}
}

// errNotLoopback means that a trap's destination is another computer.
var errNotLoopback = errors.New("trap: must go to a loopback address")

// Send sends a trap in the background.
func (t *Trapper) Send(x Trap) {
	t.mu.Lock()
	key := trapKey{sender: x.Sender, sequence: x.Sequence}
	if !x.Acknowledged {
		t.number++
		key = trapKey{sender: x.Sender, number: t.number}
	}
	_, there := t.pending[key]
	if t.stopped || there || len(t.pending) >= t.c.MaxPending {
		t.mu.Unlock()
		x.Done(false)
		return
	}
	t.pending[key] = &pendingTrap{Trap: x}
	t.start(key)
	t.mu.Unlock()
}

// start makes an attempt in a goroutine. The caller holds t.mu.
func (t *Trapper) start(key trapKey) {
	leave := t.c.Clock.Enter()
	t.running.Go(func() {
		defer leave()
		t.attempt(key)
	})
}

// attempt sends a trap once, and ends it or sets the timer.
func (t *Trapper) attempt(key trapKey) {
	t.mu.Lock()
	x := t.pending[key]
	t.mu.Unlock()
	if x == nil { // acknowledged meanwhile
		return
	}
	err := t.write(&x.Trap)
	if err != nil {
		t.c.Log.Info("trap not sent", "to", x.To.String(), "err", err)
	}
	t.mu.Lock()
	if t.pending[key] != x || t.stopped {
		t.mu.Unlock()
		return
	}
	x.Attempts--
	if again := err == nil && (x.Attempts > 0 || x.Acknowledged); again {
		x.timer = t.c.Clock.ClientFunc(x.Interval, func() { t.timeout(key) })
		t.mu.Unlock()
		return
	}
	delete(t.pending, key)
	t.mu.Unlock()
	x.Done(err == nil)
}

// timeout is called by the timer. It sends the trap again or gives it up.
func (t *Trapper) timeout(key trapKey) {
	t.mu.Lock()
	x := t.pending[key]
	switch {
	case x == nil || t.stopped:
		t.mu.Unlock()
	case x.Attempts > 0:
		t.start(key)
		t.mu.Unlock()
	default:
		delete(t.pending, key)
		t.mu.Unlock()
		x.Done(false)
	}
}

// write sends a trap's packet from the address of its BMC.
func (t *Trapper) write(x *Trap) error {
	if !x.To.Unmap().IsLoopback() {
		return errNotLoopback
	}
	var from *net.UDPAddr
	if x.From.IsLoopback() && x.From.Is4() == x.To.Unmap().Is4() {
		from = net.UDPAddrFromAddrPort(netip.AddrPortFrom(x.From, 0))
	}
	c, err := net.DialUDP("udp", from, net.UDPAddrFromAddrPort(netip.AddrPortFrom(x.To.Unmap(), t.c.Port)))
	if err != nil {
		return fmt.Errorf("trap: %w", err)
	}
	_, err = c.Write(x.Packet)
	return errors.Join(err, c.Close())
}

// Acknowledge ends a pending trap as delivered.
func (t *Trapper) Acknowledge(sender any, sequence uint16) {
	key := trapKey{sender: sender, sequence: sequence}
	t.mu.Lock()
	x := t.pending[key]
	delete(t.pending, key)
	if x != nil && x.timer != nil {
		x.timer.Stop()
	}
	t.mu.Unlock()
	if x != nil {
		x.Done(true)
	}
}

// Stop drops pending traps, and returns when no attempt is under way.
func (t *Trapper) Stop() {
	t.mu.Lock()
	t.stopped = true
	for _, x := range t.pending {
		if x.timer != nil {
			x.timer.Stop()
		}
	}
	t.mu.Unlock()
	t.running.Wait()
}
