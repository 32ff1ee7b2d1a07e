package rack

import (
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// maxUndelivered is how many events of a host may wait before the host refuses
// further commands. A machine makes a handful of events between two commands.
const maxUndelivered = 256

// eventDelivery calls Config.Events. A host has a goroutine here while events of it
// wait, and none when idle. The clock waits for events: time must not pass before
// everybody knows of them.
type eventDelivery struct {
	clock  *clock.Clock
	handle func(h *Host, ev machine.Event) // Config.Events; nil for none

	mu      sync.Mutex
	serving bool
	queues  map[*Host][]machine.Event
	running sync.WaitGroup
}

// push adds events of a host. Calls come in the order of the events.
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

// full reports whether too many events of a host wait.
func (d *eventDelivery) full(h *Host) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queues[h]) >= maxUndelivered
}

// start begins the delivery, with the events that were pushed before.
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

// stop ends the delivery after the calls that are under way. Events that wait are
// dropped: a restart makes those that matter again.
func (d *eventDelivery) stop() {
	d.mu.Lock()
	d.serving = false
	d.mu.Unlock()
	d.running.Wait()
}

// run delivers the events of one host until none waits. The caller holds d.mu.
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
