// Package broker lets one operation at a time change the operating system of a host, and
// reboots the host between operations. The agents of all families that run on the host
// share one Broker: the highest priority goes first, and a blocked operation can name its blocker.
//
// The package knows the families' names and priorities, and not their operations. It serves
// one process: agents in several processes of a host need another lock.
package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Family is the family that an operation belongs to.
type Family string

// The families, by falling priority.
const (
	Elemental     Family = "elemental"     // reset of the host
	MachineConfig Family = "machineconfig" // update by the machine-config daemon
	LCM           Family = "lcm"           // state items
)

var priorities = []Family{Elemental, MachineConfig, LCM}

// priority returns how many families go before f; those that are unknown go last.
func (f Family) priority() int {
	if i := slices.Index(priorities, f); i >= 0 {
		return i
	}
	return len(priorities)
}

// Operation is one agent's change of a host.
type Operation struct {
	Family Family
	Name   string // for people: "item host-os-test-sysctl-1.0.0-reconfigure"
}

// String returns the operation as a message names it.
func (o Operation) String() string {
	if o.Family == "" {
		return o.Name
	}
	return fmt.Sprintf("%s: %s", o.Family, o.Name)
}

// BlockedError is the error for an operation that cannot begin yet.
type BlockedError struct{ By Operation }

// Error implements error.
func (e *BlockedError) Error() string { return "blocked by " + e.By.String() }

// Broker is the lock and the queue of reboots of one boot of a host. It is safe for concurrent
// use. An agent must end its operation in a deferred call, so that it frees the lock when it
// crashes or is stopped.
type Broker struct {
	reboot func(context.Context) error
	report func(error)

	mu      sync.Mutex
	running *Operation
	waiting []*waiter
	reboots []Operation // queued, by their arrival
	down    *Operation  // by which the host goes down: nothing begins any more
}

type waiter struct {
	Operation
	turn chan struct{} // closed when it is running
}

// New returns a broker. reboot asks the host to reboot, and returns before that has
// happened; report gets its errors when nobody waits for them.
func New(reboot func(context.Context) error, report func(error)) *Broker {
	return &Broker{reboot: reboot, report: report}
}

// Try begins an operation, or returns a BlockedError. end ends it; it may be called more
// than once.
func (b *Broker) Try(o Operation) (end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if by, blocked := b.blocker(o); blocked {
		return nil, &BlockedError{by}
	}
	b.running = &o
	return b.ender(), nil
}

// Begin waits for an operation's turn and begins it: after waiting operations of higher
// priority, and after earlier ones of the same. It returns ctx's error when ctx ends first.
func (b *Broker) Begin(ctx context.Context, o Operation) (end func(), err error) {
	b.mu.Lock()
	if _, blocked := b.blocker(o); !blocked {
		defer b.mu.Unlock()
		b.running = &o
		return b.ender(), nil
	}
	w := &waiter{o, make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	select {
	case <-w.turn:
		return b.ender(), nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	if i := slices.Index(b.waiting, w); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.mu.Unlock()
		return nil, ctx.Err()
	}
	b.mu.Unlock()
	b.ender()() // its turn has come meanwhile
	return nil, ctx.Err()
}

// blocker returns the operation that blocks another one now.
func (b *Broker) blocker(o Operation) (Operation, bool) {
	if b.running != nil {
		return *b.running, true
	}
	if b.down != nil {
		return *b.down, true
	}
	for _, w := range b.waiting {
		if w.Family.priority() <= o.Family.priority() {
			return w.Operation, true
		}
	}
	for _, r := range b.reboots {
		if r.Family.priority() <= o.Family.priority() {
			return r, true
		}
	}
	return Operation{}, false
}

// ender returns a function that ends the running operation.
func (b *Broker) ender() func() {
	return sync.OnceFunc(func() {
		b.mu.Lock()
		b.running = nil
		reboot := b.next()
		b.mu.Unlock()
		if reboot {
			if err := b.perform(context.Background()); err != nil {
				b.report(err)
			}
		}
	})
}

// next gives the turn to the first waiting operation. It returns true when a reboot is first:
// a reboot precedes operations of the same priority.
func (b *Broker) next() (reboot bool) {
	if b.running != nil || b.down != nil {
		return false
	}
	first := -1
	for i, w := range b.waiting {
		if first < 0 || w.Family.priority() < b.waiting[first].Family.priority() {
			first = i
		}
	}
	for _, r := range b.reboots {
		if first < 0 || r.Family.priority() <= b.waiting[first].Family.priority() {
			b.down = &r
			return true
		}
	}
	if first >= 0 {
		w := b.waiting[first]
		b.waiting = slices.Delete(b.waiting, first, first+1)
		b.running = &w.Operation
		close(w.turn)
	}
	return false
}

// Reboot reboots the host after the running operation, and those of a higher priority that
// wait. It returns once the host has been asked, and a BlockedError at once when the reboot
// has to wait: it is queued then, and need not be requested again. The requests that are
// queued until the host goes down are one reboot.
func (b *Broker) Reboot(ctx context.Context, o Operation) error {
	b.mu.Lock()
	if !slices.Contains(b.reboots, o) {
		b.reboots = append(b.reboots, o)
	}
	reboot := b.next()
	waits := !reboot && b.down == nil && b.running != nil
	var by Operation
	if waits {
		by = *b.running
	}
	b.mu.Unlock()
	switch {
	case reboot:
		return b.perform(ctx)
	case waits:
		return &BlockedError{by}
	}
	return nil
}

// perform asks the host to reboot. After a failure operations go on.
func (b *Broker) perform(ctx context.Context) error {
	err := b.reboot(ctx)
	if err == nil {
		return nil
	}
	b.mu.Lock()
	b.down, b.reboots = nil, nil
	b.next()
	b.mu.Unlock()
	return fmt.Errorf("broker: reboot: %w", err)
}

// Close ends the broker of a host that goes down for another reason: no operation begins,
// and the reboots that are queued are dropped. One that is running may end.
func (b *Broker) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down, b.reboots = &Operation{Name: "shutdown of the host"}, nil
}
