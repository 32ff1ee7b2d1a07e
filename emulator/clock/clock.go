// Package clock provides lab time, and is the only reader of real time under
// emulator/. A Clock has one of four modes: Wall follows real time; Scaled runs
// a factor faster; Jumping jumps to the next timer whenever no work is in
// flight; Virtual stands still until it is advanced.
//
// Beside lab time, a Clock has client time, for the time-outs between a BMC and
// its clients, such as that of a session: a client that pauses for a second has
// no other clock than its own. Client time runs with the slower of lab time and
// real time. Advance and Walk move client time as far as lab time. So it is lab
// time on a Virtual clock and at a factor of at most 1, and otherwise real time
// from the lab's beginning on, plus what Advance has added. It never jumps by
// itself: the hosts of a rack do not end each other's sessions.
//
// Timers make a Jumping clock jump, tickers and LazyFunc do not: they are for
// housekeeping (a power poll every minute, a password that expires), for which
// an idle lab must not race through time. They fire when the clock passes them
// for another reason, or in real time. ClientFunc and client tickers wait for
// client time and never make the clock jump.
//
// Each jump costs a little real time, in which the clock makes sure that
// nothing is in flight (Quiet), and more of it on a machine that is so busy that
// the clock wakes late: starvation is no silence (Longest). A few timers are jumped to one by one. A
// thousand hosts wait for ten thousand different instants: one by one, the
// processor would be idle most of the time. With many timers, a jump therefore
// goes a little beyond the first timer, and those that are due by then fire
// together, in order: the more timers, the later one may fire, but never by
// more than Slack. Operating systems do the same (timer slack, coalescing). A
// caller with a heap of its own behind one timer says how many timers it stands
// for (Timer.Stand).
//
// The package knows nothing of machines. Its methods have the signatures of
// k8s.io/utils/clock, so that an adapter is a few lines, but it does not import
// it.
package clock

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is a source of time. It is safe for concurrent use. Timers of a Scaled,
// Wall or Jumping clock fire only while Run runs.
type Clock struct {
	mu      sync.Mutex
	mode    mode
	factor  float64    // speed of a Scaled clock; 1 for Wall and Jumping
	origin  time.Time  // lab time at started
	started time.Time  // real time, with its monotonic reading
	base    time.Time  // lab time at anchor, without added
	anchor  time.Time  // real time, with its monotonic reading
	timers  Due[*wait] // they make a Jumping clock jump
	crowd   int        // number of timers, with those that Stand added
	lazy    Due[*wait] // these do not
	clients Due[*wait] // these wait for client time, where that is not lab time
	seq     uint64
	active  time.Time       // real time of the last activity
	silence silence         // since then
	settled []chan struct{} // closed when busy drops to 0
	wake    chan struct{}   // wakes Run after a change; holds one

	// busy is the number of units of work in flight. It changes with mu held,
	// except on a Scaled clock, which does not wait for work: every request
	// would contend for mu.
	busy     atomic.Int64
	settling atomic.Bool // Settle is waiting

	// The sums of Advance's steps in lab time and in client time, in nanoseconds. A
	// Virtual clock moves its base instead.
	added, clientAdded atomic.Int64
	lag                atomic.Int64 // by how much SetClientLag has set back client time, in nanoseconds
}

type mode string

const (
	scaled  mode = "scaled"
	jumping mode = "jumping"
	virtual mode = "virtual"
)

// Slack is how late, in lab time, a timer may fire to fire together with
// others: little compared with the seconds that servers and agents take.
const Slack = 250 * time.Millisecond

const (
	few       = 64                     // timers that are always jumped to one by one: a rack of two dozen hosts has as many
	slackEach = 250 * time.Microsecond // slack for each further timer, up to Slack
)

// Fastest bounds a Jumping clock's speed relative to real time: an hour takes
// at least a tenth of a second. Without a bound, whatever fails and retries
// with backoff would retry without pause as long as the lab is up.
const Fastest = 36_000

// Wall returns real time. It is for data that leaves the lab for programs
// without another clock, such as the validity of a certificate.
func Wall() time.Time { return time.Now() }

// NewWall returns a clock that follows real time.
func NewWall() *Clock { return newClock(scaled, time.Now(), 1) }

// NewScaled returns a clock that starts at origin and runs factor times as fast
// as real time.
func NewScaled(origin time.Time, factor float64) *Clock { return newClock(scaled, origin, factor) }

// NewJumping returns a clock that starts at origin and jumps to the next timer
// whenever nothing is in flight.
func NewJumping(origin time.Time) *Clock { return newClock(jumping, origin, 1) }

// NewVirtual returns a clock that stands at origin until Advance.
func NewVirtual(origin time.Time) *Clock { return newClock(virtual, origin, 0) }

func newClock(m mode, origin time.Time, factor float64) *Clock {
	if m == scaled && !(factor > 0) {
		panic(fmt.Sprintf("clock: factor %v: must be positive", factor))
	}
	now := time.Now()
	origin = origin.Round(0) // without the monotonic reading, which lab time must not have
	return &Clock{mode: m, factor: factor, origin: origin, started: now, base: origin, anchor: now, wake: make(chan struct{}, 1)}
}

// Now returns lab time.
func (c *Clock) Now() time.Time {
	if c.mode == scaled { // its base and anchor never change
		return c.now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.mode == virtual {
		return c.base
	}
	return c.base.Add(time.Duration(float64(time.Since(c.anchor))*c.factor) + time.Duration(c.added.Load()))
}

// Since returns the lab time elapsed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Enter marks a piece of work as in flight until leave is called: a Jumping
// clock does not jump, and Settle waits. Further calls of leave have no effect.
func (c *Clock) Enter() (leave func()) {
	c.Begin()
	return (&inFlight{clock: c}).end
}

// inFlight is work in flight.
type inFlight struct {
	clock *Clock
	ended atomic.Bool
}

func (v *inFlight) end() {
	if !v.ended.Swap(true) {
		v.clock.End()
	}
}

// Begin is Enter for callers that call End exactly once.
func (c *Clock) Begin() {
	if c.mode == scaled {
		c.busy.Add(1)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter()
}

// enter is Begin with c.mu held.
func (c *Clock) enter() {
	c.busy.Add(1)
	c.stir()
}

// stir records activity, which only a Jumping clock uses.
func (c *Clock) stir() {
	if c.mode == jumping {
		c.active = time.Now()
	}
}

// End ends the work that Begin began.
func (c *Clock) End() {
	if c.mode == scaled && (c.busy.Add(-1) > 0 || !c.settling.Load()) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode == scaled || c.busy.Add(-1) == 0 {
		for _, ch := range c.settled {
			close(ch)
		}
		c.settled = nil
		c.settling.Store(false)
	}
	c.stir()
	if c.mode == jumping {
		c.poke()
	}
}

// Busy reports whether work is in flight.
func (c *Clock) Busy() bool { return c.busy.Load() > 0 }

// Settle returns when nothing is in flight, or with the context's error. On a
// Virtual clock it waits for what Advance has triggered.
func (c *Clock) Settle(ctx context.Context) error {
	c.mu.Lock()
	c.settling.Store(true) // before busy is read, so that End sees it
	if c.busy.Load() == 0 {
		c.settling.Store(len(c.settled) > 0)
		c.mu.Unlock()
		return nil
	}
	ch := make(chan struct{})
	c.settled = append(c.settled, ch)
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-ch:
		return nil
	}
}

// Advance moves lab time and client time forward by d; a negative d does
// nothing. A Virtual clock fires due timers, in order and each at its time,
// before Advance returns; the others leave that to Run.
func (c *Clock) Advance(d time.Duration) { c.advance(d, d) }

// advance is Advance with a distance for each of the two times. On a Virtual
// clock the first counts for both.
func (c *Clock) advance(lab, client time.Duration) {
	lab, client = max(lab, 0), max(client, 0)
	c.mu.Lock()
	if c.mode != virtual {
		c.added.Add(int64(lab))
		c.clientAdded.Add(int64(client))
		c.mu.Unlock()
		c.poke()
		return
	}
	end := c.base.Add(lab)
	for w := c.first(); w != nil && !w.at.After(end); w = c.first() {
		c.base = w.at
		c.fire(w)
	}
	c.base = end
	c.mu.Unlock()
}

// Walk moves the clock forward by d. It stops at each time at which something is
// due until nothing that it triggered is in flight. It returns when nothing is in
// flight, or with the context's error. Where a Jumping clock has gone a part of
// the way by itself, client time goes all of it nevertheless.
func (c *Clock) Walk(ctx context.Context, d time.Duration) error {
	end, client := c.Now().Add(d), c.ClientNow().Add(d)
	for {
		if err := c.Settle(ctx); err != nil {
			return err
		}
		next, ok, fired := c.due()
		if fired {
			continue
		}
		if !ok || next.After(end) {
			break
		}
		c.Advance(next.Sub(c.Now()))
	}
	c.advance(end.Sub(c.Now()), client.Sub(c.ClientNow()))
	return c.Settle(ctx)
}

// due returns when the next waiter is due, as First does, and reports whether work is in flight at
// that moment: Run may have fired what was due since the last Settle, and what it fired may move the
// clock.
func (c *Clock) due() (next time.Time, ok, inFlight bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.first(); w != nil {
		next, ok = w.at, true
	}
	return next, ok, c.busy.Load() > 0
}

// Next returns when the next timer is due; false when there is none. Tickers
// and LazyFunc do not count.
func (c *Clock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.timers[0].at, true
}

// First returns when anything is due in lab time, including tickers and
// LazyFunc; false when nothing is.
func (c *Clock) First() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.first()
	if w == nil {
		return time.Time{}, false
	}
	return w.at, true
}

// first returns the wait that is due first; nil when there is none.
func (c *Clock) first() *wait {
	switch {
	case len(c.lazy) == 0 && len(c.timers) == 0:
		return nil
	case len(c.lazy) == 0 || len(c.timers) > 0 && c.timers[0].Before(c.lazy[0]):
		return c.timers[0]
	}
	return c.lazy[0]
}

// slack returns how far a jump goes beyond the first timer.
func (c *Clock) slack() time.Duration {
	return min(time.Duration(max(c.crowd-few, 0))*slackEach, Slack)
}

func (c *Clock) heap(w *wait) *Due[*wait] {
	switch {
	case w.client:
		return &c.clients
	case w.lazy:
		return &c.lazy
	}
	return &c.timers
}

// Run fires timers until ctx ends. A Virtual clock needs no Run: its Run only
// waits.
func (c *Clock) Run(ctx context.Context) error {
	wall := time.NewTimer(0)
	defer wall.Stop()
	for {
		sleep := c.round()
		if sleep >= 0 {
			wall.Reset(sleep)
		} else {
			wall.Stop()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.wake:
		case <-wall.C:
		}
	}
}

// round fires what is due, jumps if it may, and returns the real time until
// there is something to do; negative: until the clock is woken.
func (c *Clock) round() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode == virtual {
		return -1
	}
	now := c.now()
	for w := c.first(); w != nil && !w.at.After(now); w = c.first() {
		c.fire(w)
		c.active = time.Now()
	}
	client := c.clientNow()
	for len(c.clients) > 0 && !c.clients[0].at.After(client) {
		c.fire(c.clients[0])
		c.active = time.Now()
	}
	sleep := c.untilNext(now, client)
	if c.mode != jumping || c.busy.Load() > 0 || len(c.timers) == 0 {
		return sleep
	}
	earliest := c.active.Add(c.timers[0].at.Sub(now) / Fastest)
	if left := c.silence.left(c.active, earliest, time.Now()); left > 0 {
		return min(left, sleep)
	}
	c.base, c.anchor = c.timers[0].at.Add(c.slack()-time.Duration(c.added.Load())), time.Now()
	return 0
}

// untilNext returns the real time until something is due if the clock does not
// jump; negative: nothing will be.
func (c *Clock) untilNext(now, client time.Time) time.Duration {
	sleep := time.Duration(-1)
	if w := c.first(); w != nil {
		sleep = max(0, time.Duration(float64(w.at.Sub(now))/c.factor))
	}
	if len(c.clients) > 0 { // client time that is not lab time runs with real time
		if left := max(0, c.clients[0].at.Sub(client)); sleep < 0 || left < sleep {
			sleep = left
		}
	}
	return sleep
}

func (c *Clock) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// wait is one timer or ticker.
type wait struct {
	at     time.Time
	seq    uint64        // order of creation, which breaks ties
	every  time.Duration // period of a ticker
	lazy   bool          // does not make a Jumping clock jump
	client bool          // at is client time, which is not lab time
	others int           // further timers that it stands for
	c      chan time.Time
	f      func()
	index  int // in its heap; -1 when it is in none
}

// Before implements Dated.
func (w *wait) Before(o *wait) bool {
	if !w.at.Equal(o.at) {
		return w.at.Before(o.at)
	}
	return w.seq < o.seq
}

// Place implements Dated.
func (w *wait) Place() *int { return &w.index }

// fire removes a wait from its heap and sends its tick. A function counts as
// work in flight from here until it returns, so that no jump and no Settle can
// come in between.
func (c *Clock) fire(w *wait) {
	c.remove(w)
	if w.every > 0 {
		w.at = w.at.Add(w.every)
		if now := c.nowOf(w); w.at.Before(now) { // missed ticks are dropped
			w.at = now.Add(w.every)
		}
		c.add(w)
	}
	if w.f != nil {
		c.enter()
		go func() {
			defer c.End()
			w.f()
		}()
		return
	}
	select {
	case w.c <- c.now():
	default:
	}
}

// set makes w wait for d from now; it reports whether it was waiting.
func (c *Clock) set(w *wait, d time.Duration) bool {
	c.mu.Lock()
	was := c.remove(w)
	select {
	case <-w.c: // nil, and never ready, for a function
	default:
	}
	c.seq++
	w.seq, w.at = c.seq, c.nowOf(w).Add(max(d, 0))
	c.active = time.Now()
	c.add(w)
	if c.mode == virtual && d <= 0 {
		c.fire(w)
	}
	c.mu.Unlock()
	c.poke()
	return was
}

func (c *Clock) stop(w *wait) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remove(w)
}

func (c *Clock) remove(w *wait) bool {
	if w.index < 0 {
		return false
	}
	heap.Remove(c.heap(w), w.index)
	c.count(w, -w.others-1)
	return true
}

func (c *Clock) add(w *wait) {
	heap.Push(c.heap(w), w)
	c.count(w, w.others+1)
}

// count maintains the number of timers, without those that are lazy.
func (c *Clock) count(w *wait, n int) {
	if !w.lazy {
		c.crowd += n
	}
}

// stand makes w stand for n timers.
func (c *Clock) stand(w *wait, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	others := max(n-1, 0)
	if w.index >= 0 {
		c.count(w, others-w.others)
	}
	w.others = others
}
