package world

import (
	"time"

	k8sclock "k8s.io/utils/clock"

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
