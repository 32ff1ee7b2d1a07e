package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// States of a unit (systemctl(1), "is-active").
const (
	stateActive       = "active"
	stateActivating   = "activating"
	stateDeactivating = "deactivating"
	stateFailed       = "failed"
	stateInactive     = "inactive"
)

// units are the units of a boot that were started.
type units struct {
	mu      sync.Mutex
	closed  bool
	booting bool          // Boot has not ended
	changed chan struct{} // closed when a unit starts or ends; nil: nobody waits
	all     map[string]*started
	starts  map[string][]instant   // of each unit, the last ones
	recent  map[string][]time.Time // of each service, when it was started last, by the clock of this machine
	told    map[string]bool        // units whose problems the console has shown
}

// instant is when a unit was started, by the system's clock and by that of this machine.
type instant struct{ system, machine time.Time }

// started is a unit that was started. What is not said to be constant is guarded by units.mu.
type started struct {
	unit   unit          // constant
	begun  chan struct{} // closed when its start has ended
	done   chan struct{} // closed when the unit has ended
	*works               // nil: a unit without work, such as a target
	idle   bool          // constant: it ends as soon as it is to stop, without waiting for its work

	once     sync.Once
	err      error // why the start has failed; set before begun is closed
	state    string
	sub      string
	result   string
	exit     exit
	main     *process
	restarts int
	since    time.Time // of its state
	active   time.Time // when it became active last
	requires []string  // names of the units without which it stops
	paths    map[string]string
	began    time.Time // when it was started
	over     bool      // it has ended

	elapses, triggered time.Time // of a timer: when it elapses next, and when it has last
}

// works has the contexts and the output of a unit that does something while it is active.
type works struct {
	ctx    context.Context // it ends when the system loses its power
	cancel context.CancelCauseFunc
	quit   context.Context // it ends when the unit is to stop, too
	stop   context.CancelFunc
	log    lastLine // what its processes have written
}

func newStarted(u unit, state, sub string) *started {
	x := &started{unit: u, state: state, sub: sub, result: "success", begun: make(chan struct{}), done: make(chan struct{}), works: &works{}}
	x.ctx, x.cancel = context.WithCancelCause(context.Background())
	x.quit, x.stop = context.WithCancel(x.ctx)
	return x
}

// newIdle returns a unit that has started and does nothing: a server at rest has twenty targets. Of
// their keys it keeps those that count while they are active.
func newIdle(u unit) *started {
	slim := unit{name: u.name, names: u.names}
	for _, key := range []string{"Unit.Requires", "Unit.Requisite", "Unit.BindsTo", "Unit.PartOf", "Unit.Conflicts", "Unit.OnSuccess", "Unit.OnFailure"} {
		if v := u.keys[key]; len(v) > 0 {
			if slim.keys == nil {
				slim.keys = map[string][]string{}
			}
			slim.keys[key] = v
		}
	}
	return &started{unit: slim, state: stateActive, sub: stateActive, result: "success", begun: closedChannel, done: make(chan struct{}), idle: true}
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// halt tells a unit to stop. cause is nil in order, and else why its work ends at once.
func (s *System) halt(x *started, cause error) {
	if x.works != nil {
		if cause != nil {
			x.cancel(cause)
		}
		x.stop()
	}
	if !x.idle {
		return
	}
	s.units.mu.Lock()
	was := x.over
	x.over = true
	s.units.mu.Unlock()
	if !was {
		s.finish(x, result{}, false)
		close(x.done)
	}
}

// start says how the start of the unit has ended, once.
func (x *started) start(err error) {
	x.once.Do(func() {
		x.err = err
		close(x.begun)
	})
}

// state returns the state of a unit; "": it was not started.
func (u *units) state(name string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.all[name]; x != nil {
		return x.state
	}
	return ""
}

func (u *units) find(name string) *started {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all[name]
}

func running(state string) bool { return state == stateActive || state == stateActivating }

// begin adds a unit that is started; ok is false if it runs already. It is an error to start a unit
// more often than its limit in an interval of both clocks (systemd.unit(5),
// "StartLimitIntervalSec="): one that restarts itself would do so without an end, while a clock at
// max speed waits for it.
func (s *System) begin(x *started) (ok bool, err error) {
	name, now := x.unit.name, s.now()
	burst, limit := 0, time.Duration(0)
	if x.works != nil {
		burst, limit = x.unit.startLimit()
	}
	u := &s.units
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false, ErrClosed
	}
	for old := u.all[name]; old != nil && old.state == stateDeactivating; old = u.all[name] { // its last run comes to its end
		u.mu.Unlock()
		<-old.done
		u.mu.Lock()
	}
	old := u.all[name]
	if old != nil && running(old.state) {
		return false, nil
	}
	if u.all == nil {
		u.all, u.starts = map[string]*started{}, map[string][]instant{}
	}
	if u.forgetEnded(); len(u.all) >= maxUnits {
		return false, fmt.Errorf("%s: more than %d units run", name, maxUnits)
	}
	x.since, x.began = now, now
	starts := u.starts[name]
	if n := len(starts); burst > 0 && n >= burst {
		if first := starts[n-burst]; now.Sub(first.system) < limit && time.Since(first.machine) < limit {
			x.state, x.sub, x.result, x.over = stateFailed, stateFailed, "start-limit-hit", true
			if x.works != nil {
				x.cancel(nil)
			}
			close(x.done)
			u.all[name] = x
			return false, fmt.Errorf("%s: start request repeated too quickly: it was started %d times in %v", name, burst, limit)
		}
	}
	if burst > 0 {
		u.starts[name] = append(starts, instant{now, time.Now()})[max(0, len(starts)+1-min(burst, maxStarts)):]
	}
	if x.state == stateActive {
		x.active = now
	}
	u.all[name] = x
	u.tell()
	return true, nil
}

// maxUnits is how many units may run, and how many that have ended are remembered.
const maxUnits = 4096

// forgetEnded forgets the units that have ended, when there are too many: a template has instances
// without an end. The caller holds u.mu.
func (u *units) forgetEnded() {
	if len(u.all) < maxUnits {
		return
	}
	for name, x := range u.all {
		if x.over {
			delete(u.all, name)
			delete(u.starts, name)
			delete(u.recent, name)
		}
	}
}

// maxStarts is how many starts of a unit are remembered.
const maxStarts = 1000

// set sets a state of a unit that runs.
func (s *System) set(x *started, state, sub string) {
	u, now := &s.units, s.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if x.over {
		return
	}
	if x.state != state {
		x.since = now
	}
	x.state, x.sub = state, sub
	if state == stateActive && x.since.Equal(now) {
		x.active = now
	}
}

func (u *units) setMain(x *started, p *process) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x.main = p
}

func (u *units) restarted(x *started) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x.restarts++
}

// finish sets the state of a unit that has ended.
func (s *System) finish(x *started, r result, failed bool) {
	u, now := &s.units, s.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	x.since, x.over = now, true
	u.tell()
	x.state, x.sub, x.exit = stateInactive, "dead", r.exit
	if r.kind != "" && r.kind != "canceled" {
		x.result = r.kind
	}
	if failed {
		x.state, x.sub = stateFailed, stateFailed
	}
}

// forget forgets that a unit has failed, and how often it was started.
func (u *units) forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.all[name]; x != nil && x.state == stateFailed {
		delete(u.all, name)
	}
	delete(u.starts, name)
}

// shutdownTimeout is how long, in real time, an orderly shutdown waits for processes.
const shutdownTimeout = 10 * time.Second

// stopAll ends all units. At an orderly shutdown, cause is nil: the processes of services get time
// to end. Else nothing is waited for.
func (s *System) stopAll(cause error) {
	u := &s.units
	u.mu.Lock()
	all := u.all
	u.all, u.starts = nil, nil
	if cause != nil {
		u.closed = true
	}
	var wait []chan struct{}
	for _, x := range all {
		if cause == nil && (x.main.number() != 0 || len(x.unit.lines("ExecStop")) > 0) {
			wait = append(wait, x.done)
		}
	}
	u.mu.Unlock()
	for _, x := range all {
		s.halt(x, cause)
	}
	t := time.NewTimer(shutdownTimeout)
	defer t.Stop()
	for _, done := range wait {
		select {
		case <-done:
		case <-t.C:
			return
		}
	}
}

// dependents returns the names of the units that stop with one (systemd.unit(5), "Requires=",
// "PartOf="), those that depend on them first.
func (u *units) dependents(stopped unit) (out []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := map[string]bool{stopped.name: true}
	var visit func(names []string)
	visit = func(names []string) {
		var found []*started
		for _, x := range u.all {
			needs := slices.Concat(x.unit.words("Unit.Requires", "Unit.BindsTo", "Unit.PartOf", "Unit.Requisite"), x.requires)
			if running(x.state) && !seen[x.unit.name] && slices.ContainsFunc(names, func(n string) bool { return slices.Contains(needs, n) }) {
				found = append(found, x)
				seen[x.unit.name] = true
			}
		}
		slices.SortFunc(found, func(a, b *started) int { return strings.Compare(a.unit.name, b.unit.name) })
		for _, x := range found {
			visit(x.unit.names)
			out = append(out, x.unit.name)
		}
	}
	visit(stopped.names)
	return out
}

// bound returns the names of the units that run with one alone (systemd.unit(5), "BindsTo=").
func (u *units) bound(ended unit) (out []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, x := range u.all {
		bound := x.unit.words("Unit.BindsTo")
		if running(x.state) && slices.ContainsFunc(ended.names, func(n string) bool { return slices.Contains(bound, n) }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// conflicting returns the names of the units that run and must not run with one.
func (u *units) conflicting(with unit) (out []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	mine := with.words("Unit.Conflicts")
	for name, x := range u.all {
		theirs := x.unit.words("Unit.Conflicts")
		if running(x.state) && name != with.name && (slices.ContainsFunc(x.unit.names, func(n string) bool { return slices.Contains(mine, n) }) ||
			slices.ContainsFunc(with.names, func(n string) bool { return slices.Contains(theirs, n) })) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// stopUnit stops a unit, and before it those that depend on it.
func (s *System) stopUnit(name string) error {
	_, err := s.stopWith(name)
	return err
}

// stopWith returns the names of the units that were stopped with a unit.
func (s *System) stopWith(name string) (others []string, err error) {
	u, err := s.readUnit(name)
	if err != nil {
		x := s.units.find(name) // its file may be gone
		if x == nil || !errors.As(err, new(*noUnitError)) {
			return nil, err
		}
		u, err = x.unit, nil
	}
	others = s.units.dependents(u)
	for _, n := range append(slices.Clone(others), u.name) {
		if x := s.units.find(n); x != nil && s.units.state(n) != stateFailed {
			s.halt(x, nil)
			<-x.done
		}
	}
	return others, err
}

// restartUnit stops a unit and starts it with those that were stopped with it.
func (s *System) restartUnit(name string) error {
	if _, err := s.readUnit(name); err != nil {
		return err
	}
	others, err := s.stopWith(name)
	if err != nil {
		return err
	}
	return s.startUnits(true, append(others, name)...)
}

// reloadUnit runs the commands of ExecReload= of a unit (systemd.service(5)). One that does not
// run has nothing to reload.
func (s *System) reloadUnit(name string) error {
	u, err := s.readUnit(name)
	if err != nil {
		return err
	}
	x := s.units.find(u.name)
	if x == nil || s.units.state(u.name) != stateActive {
		return nil
	}
	if len(u.lines("ExecReload")) == 0 {
		return fmt.Errorf("%s has no ExecReload=: restart it", name)
	}
	v := &service{s: s, u: u, x: x}
	if err := v.prepare(); err != nil {
		return err
	}
	s.units.mu.Lock()
	v.main = x.main
	s.units.mu.Unlock()
	if r := v.commands(x.quit, "ExecReload", startLimit, nil); r.kind != "" {
		return fmt.Errorf("%s: ExecReload=: %w", name, r.err)
	}
	return nil
}
