package clock

import "time"

// ClientNow returns client time. It never goes backwards.
func (c *Clock) ClientNow() time.Time {
	if c.clientFollowsLab() {
		return c.Now().Add(-time.Duration(c.lag.Load()))
	}
	return c.realClientNow()
}

// clientNow is ClientNow with c.mu held.
func (c *Clock) clientNow() time.Time {
	if c.clientFollowsLab() {
		return c.now().Add(-time.Duration(c.lag.Load()))
	}
	return c.realClientNow()
}

// clientFollowsLab reports whether client time runs with lab time, which is then
// not faster than real time by itself.
func (c *Clock) clientFollowsLab() bool {
	return c.mode == virtual || c.mode == scaled && c.factor <= 1
}

// realClientNow returns client time that runs with real time. It reads no field that
// c.mu guards.
func (c *Clock) realClientNow() time.Time {
	return c.origin.Add(time.Since(c.started) + time.Duration(c.clientAdded.Load()-c.lag.Load()))
}

// ClientLag returns how far client time is behind lab time.
func (c *Clock) ClientLag() time.Duration {
	if c.clientFollowsLab() {
		return time.Duration(c.lag.Load())
	}
	client := c.ClientNow() // before lab time, so that the lag is not negative
	return c.Now().Sub(client)
}

// SetClientLag sets client time to d behind lab time, where it was when a lab was
// last open. Nothing may wait for client time yet.
func (c *Clock) SetClientLag(d time.Duration) {
	is := c.ClientLag()
	c.lag.Add(int64(max(d, 0) - is))
}

// ClientFunc calls f in its own goroutine after d of client time. It does not
// make a Jumping clock jump.
func (c *Clock) ClientFunc(d time.Duration, f func()) *Timer {
	t := &Timer{clock: c, w: &wait{f: f, lazy: true, client: !c.clientFollowsLab(), index: -1}}
	c.set(t.w, d)
	return t
}

// NewClientTicker returns a ticker of period d of client time.
func (c *Clock) NewClientTicker(d time.Duration) *Ticker {
	return c.newTicker(d, !c.clientFollowsLab())
}

// ClientWait returns how long a client waits, by its own clock, until d of lab
// time has passed. It is 0 where nobody can know: lab time jumps, or stands until
// somebody advances it.
func (c *Clock) ClientWait(d time.Duration) time.Duration {
	if c.mode != scaled {
		return 0
	}
	return time.Duration(float64(max(d, 0)) / c.factor)
}

// Real returns real time, for records that show it beside lab time. It is false on
// a Virtual clock, whose time has nothing to do with real time.
func (c *Clock) Real() (time.Time, bool) {
	if c.mode == virtual {
		return time.Time{}, false
	}
	return time.Now(), true
}

// nowOf returns the present by the time that w waits for. The caller holds c.mu.
func (c *Clock) nowOf(w *wait) time.Time {
	if w.client {
		return c.realClientNow()
	}
	return c.now()
}
