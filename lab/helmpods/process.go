package helmpods

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Process is the process of the lab's controllers, in which the controller helm works: the pods of
// the chart are ready while it runs. The zero Process is ready for use, and its state is unknown
// until Set. It is safe for concurrent use.
type Process struct {
	mu       sync.Mutex
	known    bool
	runs     bool
	watchers map[chan event.GenericEvent]struct{}
}

// Set says whether the process runs. It does not wait for the pods.
func (p *Process) Set(runs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known && p.runs == runs {
		return
	}
	p.known, p.runs = true, runs
	for w := range p.watchers { // in any order: each is of another API
		select {
		case w <- event.GenericEvent{}:
		default: // it has an event yet to come, and will read the present state
		}
	}
}

func (p *Process) state() (runs, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs, p.known
}

// watch returns a channel that gets an event after each change.
func (p *Process) watch() (changes chan event.GenericEvent, end func()) {
	changes = make(chan event.GenericEvent, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers == nil {
		p.watchers = map[chan event.GenericEvent]struct{}{}
	}
	p.watchers[changes] = struct{}{}
	return changes, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, changes)
	}
}
