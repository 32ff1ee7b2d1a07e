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
	// ErrNotFound means that a controller, drive or volume does not exist.
	ErrNotFound = errors.New("storage: there is no such thing")
	// ErrPower means that the controller has no power.
	ErrPower = errors.New("storage: the power is off")
	// ErrBusy means that work in progress does not allow it.
	ErrBusy = errors.New("storage: work is under way")
	// ErrState means that the state of the drive or volume does not allow it.
	ErrState = errors.New("storage: not in this state")
	// ErrUnsupported means that the controller or the drive does not support
	// it.
	ErrUnsupported = errors.New("storage: not supported")
)

// Subsystem is the storage of one server. It is stepped: commands and time go
// in, events come out. It is not safe for concurrent use.
type Subsystem struct {
	controllers []Controller
	st          *State // nil: as in the profile
	on          bool
}

// New creates a server's storage, or restores it from what State returned; on
// says whether the controllers have power.
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

// all returns the state, never nil.
func (st *State) all() *State {
	if st == nil {
		return &State{}
	}
	return st
}

// State returns what New needs to restore the subsystem; nil when nothing
// differs from the profile.
func (s *Subsystem) State() *State { return s.st }

// Restore sets a subsystem back to an earlier state.
func (s *Subsystem) Restore(on bool, st *State) { s.on, s.st = on, st }

// controller returns a controller by ID; nil when there is none.
func (s *Subsystem) controller(id string) *Controller {
	i := slices.IndexFunc(s.controllers, func(c Controller) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &s.controllers[i]
}

// bay returns the profile's drive of a bay; nil when there is no such bay.
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

// Command is a change that can be applied to a server's storage.
type Command interface{ apply(s *step) error }

// Apply advances to now and applies a command. The events are valid even with
// an error.
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

// Deadline returns when the subsystem next changes without a command; false
// when it does not.
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

// Power switches the controllers on or off. Work stops while they are off; when
// they come on, they examine their drives.
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

// step is a change of a subsystem in progress.
type step struct {
	*Subsystem
	now time.Time
	st  *State // this step's copy
	evs []event.Event
}

func (s *Subsystem) fork(now time.Time) *step {
	return &step{Subsystem: s, now: now, st: s.st.clone()}
}

// settled applies the consequences of the change and stores it.
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

// trim makes empty lists nil, as they are after a restart.
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

// powered returns an error while the controllers have no power.
func (s *step) powered() error {
	if !s.on {
		return ErrPower
	}
	return nil
}

// mutableBay returns a mutableBay for this step to change; nil when there is no such mutableBay.
func (s *step) mutableBay(id string) *Bay {
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

// order returns a bay's index among all bays of the server.
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

// drive returns the drive in a bay for this step to change.
func (s *step) drive(bay string) (*Unit, *Model, error) {
	b := s.mutableBay(bay)
	if b == nil || b.Unit == nil {
		return nil, nil, fmt.Errorf("%w: drive %s", ErrNotFound, bay)
	}
	return b.Unit, s.model(b), nil
}

// model returns the model of the drive in a bay.
func (s *Subsystem) model(b *Bay) *Model {
	if b.Unit.Model != nil {
		return b.Unit.Model
	}
	return s.bay(b.ID).Model
}

// noteDrive logs an event of a drive.
func (s *step) noteDrive(k event.Kind, bay string) {
	c, _ := s.find(bay)
	s.note(k, event.Subject{Part: event.Drive, ID: bay, In: c.ID}, bay, c.ID)
}

// noteVolume logs an event of a volume.
func (s *step) noteVolume(k event.Kind, a *Array, more ...string) {
	on := event.Subject{Part: event.Volume, ID: a.ID, In: a.Controller}
	s.note(k, on, append([]string{a.ID, a.Controller}, more...)...)
}

func (s *step) note(k event.Kind, on event.Subject, args ...string) {
	s.evs = append(s.evs, event.Note{At: s.now, Kind: k, Subject: on, Args: args})
}

// done reports that a task has ended.
func (s *step) done(task, fault string) {
	if task != "" {
		s.evs = append(s.evs, event.TaskDone{At: s.now, Task: task, Fault: fault})
	}
}

// array returns a volume of a controller.
func (s *step) array(controller, id string) (*Array, error) {
	i := slices.IndexFunc(s.st.Arrays, func(a Array) bool { return a.Controller == controller && a.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: volume %s of controller %s", ErrNotFound, id, controller)
	}
	return &s.st.Arrays[i], nil
}

// made reports that a task that created a volume has ended.
func (s *step) made(task string, a *Array) {
	if task != "" {
		s.evs = append(s.evs, event.TaskDone{At: s.now, Task: task, Made: &event.Subject{Part: event.Volume, ID: a.ID, In: a.Controller}})
	}
}

// raid returns a controller with RAID.
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
