package view

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
)

// rackState holds the tiles of all servers. A host's views are immutable and replaced when
// they change, so comparing their addresses finds the hosts that have changed.
type rackState struct {
	rack  *rack.Rack
	clock clock.PassiveClock // real time

	mu      sync.Mutex
	hosts   []*rack.Host
	shown   []shown
	objects map[string]Object // by host
	history map[string][]Step // steps of the objects, by host, oldest first
	rules   uint64            // checksum of the fault rules
	version uint64            // version of the last change of a tile
	looks   uint64            // number of the last look that found a changed host
	heard   func(host string) // called when an object has changed; may be nil
	rest    time.Time         // until then the tiles are not looked at again
}

// shown is a tile and the state that it was made from.
type shown struct {
	machine *machine.View
	bmc     *bmc.View
	record  *dialect.Record
	reach   rack.Reach
	stale   bool // the host's object or the fault rules have changed
	tile    Tile
	version uint64
	looked  uint64 // number of the look that found it changed
}

func newRackState(r *rack.Rack, c clock.PassiveClock) *rackState {
	s := &rackState{rack: r, clock: c, hosts: r.Hosts(), objects: map[string]Object{}, history: map[string][]Step{}}
	s.shown = make([]shown, len(s.hosts))
	return s
}

// Step is a state that a host's object has had.
type Step struct {
	Time  time.Time `json:"time"` // the lab's, when it was seen
	State string    `json:"state"`
	Error string    `json:"error,omitempty"`
}

// maxSteps is how many states of a host are remembered.
const maxSteps = 50

// addStep adds the state of an object to those that it has had, unless it is the last of them.
func addStep(steps []Step, o Object, at time.Time) []Step {
	if n := len(steps); n > 0 && steps[n-1].State == o.State && steps[n-1].Error == o.Error {
		return steps
	}
	steps = append(steps, Step{Time: at, State: o.State, Error: o.Error})
	return steps[max(0, len(steps)-maxSteps):]
}

// setObject sets the object of a host.
func (s *rackState) setObject(o Object) {
	h, ok := s.rack.Host(o.Host)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history[o.Host] = addStep(s.history[o.Host], o, s.rack.Clock().Now().UTC())
	s.objects[o.Host] = o
	s.shown[h.Index()].stale = true
	if s.heard != nil {
		s.heard(o.Host)
	}
}

// follow has f called when the object of a host has changed; nil ends it. f must not wait.
func (s *rackState) follow(f func(host string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = f
}

// touched returns the hosts that have changed in any way since a look.
func (s *rackState) touched(since uint64) ([]*rack.Host, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	var out []*rack.Host
	for i := range s.shown {
		if s.shown[i].looked > since {
			out = append(out, s.hosts[i])
		}
	}
	return out, s.looks
}

// changes returns the tiles that have changed since a version, and the version that they
// are of.
func (s *rackState) changes(since uint64) ([]Tile, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	if since == s.version {
		return nil, since
	}
	var out []Tile
	for i := range s.shown {
		if x := &s.shown[i]; x.version > since {
			out = append(out, x.tile)
		}
	}
	return out, s.version
}

// share is the part of a core that looking for changes may take, as its inverse: a look that
// took 5 ms is followed by a rest of 100 ms, however many pages are open.
const share = 20

// refresh makes the tiles of hosts that have changed. The caller holds s.mu.
func (s *rackState) refresh() {
	began := s.clock.Now()
	if began.Before(s.rest) {
		return
	}
	defer func() { s.rest = s.clock.Now().Add(share * s.clock.Since(began)) }()
	rules := s.rack.Faults()
	sum := fnv.New64a()
	for _, r := range rules {
		_, _ = fmt.Fprintln(sum, r.ID, r.BMC, r.Phase)
	}
	all := s.rules != sum.Sum64()
	s.rules = sum.Sum64()
	found := false
	for i, h := range s.hosts {
		x := &s.shown[i]
		is := shown{machine: h.Machine(), bmc: h.BMC(), record: h.Dialect(), reach: h.Reach(), version: x.version, looked: x.looked, tile: x.tile}
		if *x == is && !all { // with x.stale they differ
			continue
		}
		if is.tile = tile(h, rules, s.objects[h.Name()]); is.tile != x.tile {
			s.version++
			is.version = s.version
		}
		is.looked = s.looks + 1
		found = true
		*x = is
	}
	if found {
		s.looks++
	}
}
