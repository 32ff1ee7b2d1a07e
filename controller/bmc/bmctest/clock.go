package bmctest

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is a clock on which every wait is over at once: a timer fires when it
// is made and takes the clock to its time. It suits a driver that waits for a
// BMC which takes no time of its own. The zero Clock starts at the zero time.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

var _ clock.Clock = (*Clock)(nil)

// Now is the time that the waits so far add up to.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since is the time since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Sleep takes the clock d further.
func (c *Clock) Sleep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(max(d, 0))
}

// After is NewTimer without a way to stop it.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Tick is After: it ticks once.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.After(d) }

// NewTimer makes a timer that has fired.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	t := &timer{clock: c, fired: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

type timer struct {
	clock *Clock
	fired chan time.Time
}

func (t *timer) C() <-chan time.Time { return t.fired }

func (t *timer) Stop() bool { return false }

func (t *timer) Reset(d time.Duration) bool {
	t.clock.Sleep(d)
	select {
	case <-t.fired:
	default:
	}
	t.fired <- t.clock.Now()
	return false
}
