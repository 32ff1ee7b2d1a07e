package bmctest

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is a clock without waiting: a new timer fires at once and advances the
// clock to its time. It suits a driver that waits for a BMC without delays. The
// zero Clock starts at the zero time.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

var _ clock.Clock = (*Clock)(nil)

// Now returns the sum of all waits, as a time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since returns the time since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Sleep advances the clock by d.
func (c *Clock) Sleep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(max(d, 0))
}

// After returns the channel of a new timer.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Tick returns a channel that ticks once.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.After(d) }

// NewTimer returns a timer that has fired.
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
