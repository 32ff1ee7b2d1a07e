package storage

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Errors that services map to their own codes.
var (
	// ErrNotFound means that there is no such controller, drive or volume.
	ErrNotFound = errors.New("storage: there is no such thing")
	// ErrPower means that a controller cannot do that while it has no power.
	ErrPower = errors.New("storage: the power is off")
	// ErrBusy means that work is under way that does not allow it.
	ErrBusy = errors.New("storage: work is under way")
	// ErrState means that the state of the drive or volume does not allow it.
	ErrState = errors.New("storage: not in this state")
	// ErrUnsupported means that the controller or the drive cannot do that.
	ErrUnsupported = errors.New("storage: not supported")
)

// Subsystem is all storage of one server. It is stepped: commands and time go
// in, events come out. It is not safe for concurrent use.
type Subsystem struct {
	controllers []Controller
	st          *State // nil: all is as the profile has it
	on          bool
}

// New makes the storage of a server whose controllers have power or not, or
// restores it from what State returned.
func New(controllers []Controller, on bool, st *State) (*Subsystem, error) {
	s := &Subsystem{controllers: controllers, st: st, on: on}
	for i := range st.all().Bays {
		if id := st.Bays[i].ID; s.bay(id) == nil {
			return nil, fmt.Errorf("storage: stored bay %s: %w", id, ErrNotFound)
		}
	}
	for i := range st.all().Arrays {
		a := &st.Arrays[i]
		if s.controller(a.Controller) == nil || !a.Type.Known() || a.Spans < 1 || len(a.Members) != a.Drives() {
			return nil, fmt.Errorf("storage: stored volume %s of controller %s: %w", a.ID, a.Controller, ErrNotFound)
		}
	}
	return s, nil
}

// all is the state, which is never nil.
func (st *State) all() *State {
	if st == nil {
		return &State{}
	}
	return st
}

// State returns what New needs to restore the subsystem: nil when nothing
// differs from the profile.
func (s *Subsystem) State() *State { return s.st }

// Restore puts a subsystem back to a state that it had.
func (s *Subsystem) Restore(on bool, st *State) { s.on, s.st = on, st }

// controller finds a controller; nil when there is none.
func (s *Subsystem) controller(id string) *Controller {
	i := slices.IndexFunc(s.controllers, func(c Controller) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &s.controllers[i]
}

// bay finds what the profile has in a bay; nil when there is no such bay.
func (s *Subsystem) bay(id string) *Drive {
	_, d := s.find(id)
	return d
}

func (s *Subsystem) find(bay string) (*Controller, *Drive) {
	for i := range s.controllers {
		c := &s.controllers[i]
		if j := slices.IndexFunc(c.Drives, func(d Drive) bool { return d.ID == bay }); j >= 0 {
			return c, &c.Drives[j]
		}
	}
	return nil, nil
}

// Command is something that can be done to the storage of a server.
type Command interface{ apply(s *step) error }

// Apply carries out a command at now, after advancing to it. The events are
// valid even with an error.
func (s *Subsystem) Apply(now time.Time, c Command) ([]event.Event, error) {
	evs := s.Advance(now)
	d := s.fork(now)
	if err := c.apply(d); err != nil {
		return evs, err
	}
	return append(evs, d.settled()...), nil
}

// Advance moves the subsystem to now.
func (s *Subsystem) Advance(now time.Time) []event.Event {
	var evs []event.Event
	for {
		at, ok := s.Deadline()
		if !ok || now.Before(at) {
			return evs
		}
		if more, done := s.carryDue(at); done {
			evs = append(evs, more...)
			continue
		}
		d := s.fork(at)
		d.finish()
		evs = append(evs, d.settled()...)
	}
}

// Deadline is when the subsystem next changes by itself; false when it waits
// for a command.
func (s *Subsystem) Deadline() (at time.Time, ok bool) {
	if s.st == nil {
		return at, false
	}
	for i := range s.st.Ops {
		if until := s.st.Ops[i].Until; !until.IsZero() && (!ok || until.Before(at)) {
			at, ok = until, true
		}
	}
	for i := range s.st.Pending {
		if due := s.st.Pending[i].Due; !due.IsZero() && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	return at, ok
}

// Power switches the controllers on or off. Work waits while they are off; when
// they come on they look at what has become of their drives.
func (s *Subsystem) Power(now time.Time, on bool) []event.Event {
	if s.on == on {
		return nil
	}
	evs := s.Advance(now)
	s.on = on
	if s.st == nil {
		return evs
	}
	d := s.fork(now)
	if !on {
		d.putOff()
	}
	for i := range d.st.Ops {
		o := &d.st.Ops[i]
		switch {
		case on:
			d.start(o, o.Left)
		case !o.Until.IsZero():
			o.Left, o.Until = o.Until.Sub(now), time.Time{}
			if o.Task != "" {
				d.evs = append(d.evs, event.TaskPaused{At: now, Task: o.Task})
			}
		}
	}
	return append(evs, d.settled()...)
}

// step is one change of a subsystem in the making.
type step struct {
	*Subsystem
	now time.Time
	st  *State // this step's own
	evs []event.Event
}

func (s *Subsystem) fork(now time.Time) *step {
	return &step{Subsystem: s, now: now, st: s.st.clone()}
}

// settled does what follows from the change and puts it in place.
func (s *step) settled() []event.Event {
	if s.on {
		s.settle()
	}
	s.st.Bays = slices.DeleteFunc(s.st.Bays, func(b Bay) bool {
		_, d := s.find(b.ID)
		return !b.Locate && b.Unit != nil && reflect.DeepEqual(*b.Unit, Unit{Serial: d.Serial, WWN: d.WWN})
	})
	s.st.Controllers = slices.DeleteFunc(s.st.Controllers, func(c Settings) bool { return c == Settings{Controller: c.Controller} })
	s.st.trim()
	switch {
	case reflect.DeepEqual(*s.st, State{}):
		s.Subsystem.st = nil
	case s.Subsystem.st == nil || !reflect.DeepEqual(*s.st, *s.Subsystem.st):
		s.Subsystem.st = s.st
	}
	return s.evs
}

// trim makes empty lists none, as they are after a restart.
func (st *State) trim() {
	st.Bays, st.Shelf, st.Arrays = none(st.Bays), none(st.Shelf), none(st.Arrays)
	st.Ops, st.Controllers, st.Pending = none(st.Ops), none(st.Controllers), none(st.Pending)
	for _, b := range st.Bays {
		if b.Unit != nil {
			b.Unit.SMART, b.Unit.For, b.Unit.Config = none(b.Unit.SMART), none(b.Unit.For), none(b.Unit.Config)
		}
	}
}

func none[T any](all []T) []T {
	if len(all) == 0 {
		return nil
	}
	return all
}

// powered fails while the controllers have no power.
func (s *step) powered() error {
	if !s.on {
		return ErrPower
	}
	return nil
}

// own is a bay as this step may change it; nil when there is no such bay.
func (s *step) own(id string) *Bay {
	_, d := s.find(id)
	if d == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(s.st.Bays, id, func(b Bay, id string) int { return s.order(b.ID) - s.order(id) })
	if !found {
		s.st.Bays = slices.Insert(s.st.Bays, i, Bay{ID: id, Unit: &Unit{Serial: d.Serial, WWN: d.WWN}})
	}
	return &s.st.Bays[i]
}

// order is the place of a bay among all bays of the server.
func (s *Subsystem) order(bay string) int {
	n := 0
	for i := range s.controllers {
		for j := range s.controllers[i].Drives {
			if s.controllers[i].Drives[j].ID == bay {
				return n
			}
			n++
		}
	}
	return -1
}

// drive is a drive that is in its bay, as this step may change it.
func (s *step) drive(bay string) (*Unit, *Model, error) {
	b := s.own(bay)
	if b == nil || b.Unit == nil {
		return nil, nil, fmt.Errorf("%w: drive %s", ErrNotFound, bay)
	}
	return b.Unit, s.model(b), nil
}

// model is the kind of drive that is in a bay.
func (s *Subsystem) model(b *Bay) *Model {
	if b.Unit.Model != nil {
		return b.Unit.Model
	}
	return s.bay(b.ID).Model
}

// noteDrive tells something of a drive that belongs into a log.
func (s *step) noteDrive(k event.Kind, bay string) {
	c, _ := s.find(bay)
	s.note(k, event.Subject{Part: event.Drive, ID: bay, In: c.ID}, bay, c.ID)
}

// noteVolume tells something of a volume that belongs into a log.
func (s *step) noteVolume(k event.Kind, a *Array, more ...string) {
	on := event.Subject{Part: event.Volume, ID: a.ID, In: a.Controller}
	s.note(k, on, append([]string{a.ID, a.Controller}, more...)...)
}

func (s *step) note(k event.Kind, on event.Subject, args ...string) {
	s.evs = append(s.evs, event.Note{At: s.now, Kind: k, Subject: on, Args: args})
}

// done tells that a job has ended.
func (s *step) done(job, fault string) {
	if job != "" {
		s.evs = append(s.evs, event.TaskDone{At: s.now, Task: job, Fault: fault})
	}
}

// array finds a volume of a controller.
func (s *step) array(controller, id string) (*Array, error) {
	i := slices.IndexFunc(s.st.Arrays, func(a Array) bool { return a.Controller == controller && a.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: volume %s of controller %s", ErrNotFound, id, controller)
	}
	return &s.st.Arrays[i], nil
}

// made tells that a job has ended that made a volume.
func (s *step) made(job string, a *Array) {
	if job != "" {
		s.evs = append(s.evs, event.TaskDone{At: s.now, Task: job, Made: &event.Subject{Part: event.Volume, ID: a.ID, In: a.Controller}})
	}
}

// raid finds a controller that makes volumes.
func (s *step) raid(id string) (*Controller, error) {
	c := s.controller(id)
	switch {
	case c == nil:
		return nil, fmt.Errorf("%w: controller %s", ErrNotFound, id)
	case c.RAID == nil:
		return nil, fmt.Errorf("%w: controller %s has no RAID", ErrUnsupported, id)
	}
	return c, s.powered()
}
