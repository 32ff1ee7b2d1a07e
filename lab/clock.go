package lab

import (
	"context"
	"sync"
	"time"

	k8sclock "k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
)

// labClock is the lab's clock as k8s.io/utils/clock has it.
type labClock struct{ c *clock.Clock }

var _ k8sclock.WithTicker = labClock{}

func (l labClock) Now() time.Time                            { return l.c.Now() }
func (l labClock) Since(t time.Time) time.Duration           { return l.c.Since(t) }
func (l labClock) After(d time.Duration) <-chan time.Time    { return l.c.NewTimer(d).C() }
func (l labClock) NewTimer(d time.Duration) k8sclock.Timer   { return l.c.NewTimer(d) }
func (l labClock) NewTicker(d time.Duration) k8sclock.Ticker { return l.c.NewTicker(d) }
func (l labClock) Sleep(d time.Duration)                     { <-l.c.NewTimer(d).C() }
func (l labClock) Tick(d time.Duration) <-chan time.Time     { return l.c.NewTicker(d).C() }

// clientClock is the lab's client time as controllers have it.
type clientClock struct{ c *clock.Clock }

func (l clientClock) Now() time.Time                  { return l.c.ClientNow() }
func (l clientClock) Since(t time.Time) time.Duration { return l.Now().Sub(t) }
func (l clientClock) AfterFunc(d time.Duration, f func()) k8sclock.Timer {
	return l.c.ClientFunc(d, f)
}

// agentClock is the lab's clock for agents in the systems of servers: what they wait for
// takes the slower of lab time and real time, so that an item that fails is not executed
// as often as lab time flies.
type agentClock struct{ labClock }

// NewTimer returns a timer of client time.
func (a agentClock) NewTimer(d time.Duration) k8sclock.Timer {
	fired := make(chan time.Time, 1)
	return agentTimer{a.c.ClientFunc(d, func() {
		select {
		case fired <- a.Now():
		default: // nobody has read the last one
		}
	}), fired}
}

type agentTimer struct {
	*clock.Timer
	fired <-chan time.Time
}

// C implements k8sclock.Timer.
func (t agentTimer) C() <-chan time.Time { return t.fired }

// driverClock is the lab's clock for the drivers of BMCs. A driver waits within a
// reconcile, which counts as work in flight. While it waits, the reconcile must not
// count, or a lab whose time jumps when no work is in flight would wait for it.
type driverClock struct{ labClock }

// wrap returns a driver that waits on this clock.
func (d driverClock) wrap(open bmc.Open) bmc.Open {
	return func(ctx context.Context, c bmc.Config) (bmc.Client, error) {
		c.Clock = d
		return open(ctx, c)
	}
}

// After returns the channel of a timer that cannot be stopped.
func (d driverClock) After(t time.Duration) <-chan time.Time { return d.NewTimer(t).C() }

// Sleep waits.
func (d driverClock) Sleep(t time.Duration) { <-d.After(t) }

// NewTimer returns a timer. The reconcile is not in flight until it fires or is
// stopped.
func (d driverClock) NewTimer(t time.Duration) k8sclock.Timer {
	w := &driverTimer{clock: d.c, fired: make(chan time.Time, 1)}
	w.resumeWork = sync.OnceFunc(d.c.Begin)
	w.timer = d.c.AfterFunc(t, func() {
		w.resumeWork()
		w.fired <- d.c.Now()
	})
	d.c.End()
	return w
}

type driverTimer struct {
	clock      *clock.Clock
	timer      *clock.Timer
	fired      chan time.Time
	resumeWork func() // to work
}

func (w *driverTimer) C() <-chan time.Time { return w.fired }

func (w *driverTimer) Stop() bool {
	defer w.resumeWork()
	return w.timer.Stop()
}

// Reset panics: drivers create a new timer.
func (w *driverTimer) Reset(time.Duration) bool { panic("lab: a driver's timer is used once") }
