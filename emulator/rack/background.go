package rack

import (
	"context"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// background is work that follows a step, at once or after some time, and must not
// wait inside the step. The clock waits for work that is under way.
type background struct {
	clock *clock.Clock

	mu      sync.Mutex
	ended   bool
	timers  map[*clock.Timer]bool
	running sync.WaitGroup
}

// after calls do in a goroutine after some of the lab's time.
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
			delete(e.timers, t) // t is set: after holds e.mu until it is
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

// stop drops the work that has not begun, and returns when no work is under way.
func (e *background) stop() {
	e.mu.Lock()
	e.ended = true
	for t := range e.timers {
		t.Stop()
	}
	e.mu.Unlock()
	e.running.Wait()
}
