package lab

import (
	"context"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// background are what is to be done after a step, or some time later: by who may
// not wait in the step itself. What is in work holds the clock.
type background struct {
	clock *clock.Clock

	mu      sync.Mutex
	ended   bool
	timers  map[*clock.Timer]bool
	running sync.WaitGroup
}

// after has something done after some time.
func (e *background) after(after time.Duration, do func(context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ended:
	case after <= 0:
		leave := e.clock.Enter()
		e.running.Go(func() {
			defer leave()
			do(context.Background())
		})
	default:
		if e.timers == nil {
			e.timers = map[*clock.Timer]bool{}
		}
		var t *clock.Timer
		t = e.clock.AfterFunc(after, func() {
			e.mu.Lock()
			delete(e.timers, t) // t is set: later holds e.mu until it is
			ended := e.ended
			if !ended {
				e.running.Add(1)
			}
			e.mu.Unlock()
			if !ended {
				defer e.running.Done()
				do(context.Background())
			}
		})
		e.timers[t] = true
	}
}

// stop drops what waits, and returns when nothing is in work.
func (e *background) stop() {
	e.mu.Lock()
	e.ended = true
	for t := range e.timers {
		t.Stop()
	}
	e.mu.Unlock()
	e.running.Wait()
}
