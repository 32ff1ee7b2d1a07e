package world

import (
	"context"
	"sync"
	"time"

	k8sclock "k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
)

// labClock lets controllers and agents wait on the lab's time.
type labClock struct{ c *clock.Clock }

var _ k8sclock.WithTicker = labClock{}

func (l labClock) Now() time.Time                            { return l.c.Now() }
func (l labClock) Since(t time.Time) time.Duration           { return l.c.Since(t) }
func (l labClock) After(d time.Duration) <-chan time.Time    { return l.c.NewTimer(d).C() }
func (l labClock) NewTimer(d time.Duration) k8sclock.Timer   { return l.c.NewTimer(d) }
func (l labClock) NewTicker(d time.Duration) k8sclock.Ticker { return l.c.NewTicker(d) }
func (l labClock) Sleep(d time.Duration)                     { <-l.c.NewTimer(d).C() }
func (l labClock) Tick(d time.Duration) <-chan time.Time     { return l.c.NewTicker(d).C() }

// driverClock lets the drivers of BMCs wait on the lab's time. They do so within
// a controller's pass, which is work in flight: while it waits for a BMC it is
// not, or a lab at the speed at which there is work would wait with it.
type driverClock struct{ labClock }

// wrap makes a driver wait wrap it.
func (d driverClock) wrap(open bmc.Open) bmc.Open {
	return func(ctx context.Context, c bmc.Config) (bmc.Client, error) {
		c.Clock = d
		return open(ctx, c)
	}
}

// After is NewTimer without a way to stop it.
func (d driverClock) After(t time.Duration) <-chan time.Time { return d.NewTimer(t).C() }

// Sleep waits.
func (d driverClock) Sleep(t time.Duration) { <-d.After(t) }

// NewTimer makes a timer for which a pass waits until it fires or is stopped.
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

// Reset is for who waits again; drivers make a new timer for that.
func (w *driverTimer) Reset(time.Duration) bool { panic("world: a driver's timer is used once") }
