package lab

import (
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// maxUndelivered is how many events of a host may wait; beyond that the host
// takes no further command. Between two commands a machine makes a handful.
const maxUndelivered = 256

// eventDelivery tells events. A host has a goroutine here while some of its events
// wait, and nothing at rest. Waiting events hold the clock: time shall not race
// ahead of who must still hear of it.
type eventDelivery struct {
	clock  *clock.Clock
	handle func(h *Host, ev machine.Event) // nil: nobody listens

	mu      sync.Mutex
	serving bool
	queues  map[*Host][]machine.Event
	running sync.WaitGroup
}

// push adds events of a host. It is called in the order of the events.
func (d *eventDelivery) push(h *Host, evs []machine.Event) {
	if d.handle == nil || len(evs) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, runs := d.queues[h]
	d.queues[h] = append(d.queues[h], evs...)
	if !runs && d.serving {
		d.run(h)
	}
}

// full says whether too many events of a host wait.
func (d *eventDelivery) full(h *Host) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queues[h]) >= maxUndelivered
}

// start begins to tell; what was pushed before comes first.
func (d *eventDelivery) start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serving = true
	var waiting []*Host
	for h := range d.queues {
		waiting = append(waiting, h)
	}
	slices.SortFunc(waiting, func(a, b *Host) int { return a.index - b.index })
	for _, h := range waiting {
		d.run(h)
	}
}

// stop ends the telling after the calls that are under way. What still waits is
// dropped: a restart makes such events anew.
func (d *eventDelivery) stop() {
	d.mu.Lock()
	d.serving = false
	d.mu.Unlock()
	d.running.Wait()
}

// run tells the events of one host until none waits. It holds d.mu.
func (d *eventDelivery) run(h *Host) {
	leave := d.clock.Enter()
	d.running.Go(func() {
		defer leave()
		for {
			ev, ok := d.next(h)
			if !ok {
				return
			}
			d.handle(h, ev)
		}
	})
}

func (d *eventDelivery) next(h *Host) (machine.Event, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[h]
	if len(q) == 0 || !d.serving {
		delete(d.queues, h)
		return nil, false
	}
	d.queues[h] = q[1:]
	return q[0], true
}
