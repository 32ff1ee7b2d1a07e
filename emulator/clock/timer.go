package clock

import (
	"context"
	"time"
)

// Timer is like time.Timer, in lab time.
type Timer struct {
	clock *Clock
	w     *wait
}

// NewTimer returns a timer that fires once after d of lab time.
func (c *Clock) NewTimer(d time.Duration) *Timer {
	t := &Timer{clock: c, w: &wait{c: make(chan time.Time, 1), index: -1}}
	c.set(t.w, d)
	return t
}

// AfterFunc calls f in its own goroutine after d of lab time. While f runs it
// is work in flight: a Jumping clock does not jump, so f must not wait for lab
// time.
func (c *Clock) AfterFunc(d time.Duration, f func()) *Timer {
	t := &Timer{clock: c, w: &wait{f: f, index: -1}}
	c.set(t.w, d)
	return t
}

// LazyFunc is AfterFunc for housekeeping: it does not make a Jumping clock
// jump.
func (c *Clock) LazyFunc(d time.Duration, f func()) *Timer {
	t := &Timer{clock: c, w: &wait{f: f, lazy: true, index: -1}}
	c.set(t.w, d)
	return t
}

// C delivers the tick.
func (t *Timer) C() <-chan time.Time { return t.w.c }

// Stop prevents the timer from firing; false when it has fired or was stopped.
func (t *Timer) Stop() bool { return t.clock.stop(t.w) }

// Reset makes the timer fire after d from now; it reports whether it was
// waiting. An unread tick is dropped, as time.Timer does since Go 1.23.
func (t *Timer) Reset(d time.Duration) bool { return t.clock.set(t.w, d) }

// Stand says that the timer stands for n timers, of which it is the first; the
// clock knows none of the others.
func (t *Timer) Stand(n int) { t.clock.stand(t.w, n) }

// Ticker is like time.Ticker, in lab time. It does not make a Jumping clock
// jump.
type Ticker struct {
	clock *Clock
	w     *wait
}

// NewTicker returns a ticker of period d.
func (c *Clock) NewTicker(d time.Duration) *Ticker { return c.newTicker(d, false) }

func (c *Clock) newTicker(d time.Duration, client bool) *Ticker {
	if d <= 0 {
		panic("clock: ticker without a period")
	}
	t := &Ticker{clock: c, w: &wait{c: make(chan time.Time, 1), every: d, lazy: true, client: client, index: -1}}
	c.set(t.w, d)
	return t
}

// C delivers the ticks; unread ones are dropped.
func (t *Ticker) C() <-chan time.Time { return t.w.c }

// Stop ends the ticker.
func (t *Ticker) Stop() { t.clock.stop(t.w) }

// Sleep returns after d of lab time, or with the context's error.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C():
		return nil
	}
}
