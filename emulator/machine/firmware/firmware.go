// Package firmware models a server's firmware: BIOS settings with their
// attribute registry, pending settings, and components with their updates. A
// Firmware is stepped, like the machine that it belongs to: Apply takes a
// command, Advance takes time, Boot and Cut report what the host does, and
// Deadline returns the next change. It does not know protocols, nor where
// images are stored: ParseImage returns all that it needs of an image. The
// machine implements what settings mean to the server: a registry names
// effects, and the machine acts on them.
package firmware

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Model is the firmware of a server model, shared by its servers. It is
// immutable.
type Model struct {
	Read       func() *Registry // the BIOS attribute registry; nil: none
	Components []Component
}

var noSettings = new(Registry)

// Registry returns the attribute registry; an empty one when there is none.
func (m *Model) Registry() *Registry {
	if m.Read == nil {
		return noSettings
	}
	return m.Read()
}

// State is the state of a Firmware that outlives a restart of the rack. It is immutable.
type State struct {
	Values    Settings   `json:"values,omitempty"`    // that differ from the defaults
	Pending   *Pending   `json:"pending,omitempty"`   // nil: nothing is pending
	Applied   *Applied   `json:"applied,omitempty"`   // nil: nothing was applied yet
	Finishing *Finishing `json:"finishing,omitempty"` // nil: no task outlasts the application of its settings
	Passwords []Secret   `json:"passwords,omitempty"` // that are set
	Slots     []Slots    `json:"slots,omitempty"`     // slots of components that were updated
	Updates   []Update   `json:"updates,omitempty"`   // in progress, oldest first
	Breaks    []Break    `json:"breaks,omitempty"`    // failures to come
}

// Firmware is the firmware of one server. It is not safe for concurrent use.
type Firmware struct {
	model *Model
	st    *State // nil: factory state
	on    bool   // the host has power
}

// Command is a change that can be applied to firmware.
type Command interface {
	apply(f *Firmware, now time.Time) ([]event.Event, error)
}

// ResetWanted asks for a reset of the host because a maintenance window has
// begun.
type ResetWanted struct{ At time.Time }

// Time implements event.Event.
func (e ResetWanted) Time() time.Time { return e.At }

// View is a snapshot of a Firmware. It is immutable; two views are == when they
// show the same.
type View struct {
	Model *Model
	st    *State
}

// Equal reports whether two models are equal, even when parsed separately.
func (m *Model) Equal(o *Model) bool {
	return m == o || m != nil && o != nil && reflect.DeepEqual(m.Components, o.Components) && reflect.DeepEqual(m.Registry(), o.Registry())
}

// Equal reports whether two views are equal, even when one was restored.
func (v View) Equal(o View) bool { return v.Model.Equal(o.Model) && reflect.DeepEqual(v.st, o.st) }

var system = event.Subject{Part: event.System}

// New creates firmware in factory state, or restores it from what State
// returned. What the model no longer has is dropped.
func New(m *Model, st *State) (*Firmware, error) {
	f := &Firmware{model: m}
	if st == nil {
		return f, nil
	}
	known := *st
	known.Values = slices.DeleteFunc(slices.Clone(known.Values), func(s Setting) bool { return f.model.Registry().Attribute(s.Name) == nil })
	known.Slots = slices.DeleteFunc(slices.Clone(known.Slots), func(s Slots) bool { return f.model.component(s.ID) == nil })
	known.Passwords = slices.DeleteFunc(slices.Clone(known.Passwords), func(s Secret) bool { return f.model.Registry().Attribute(s.Name) == nil })
	for _, u := range known.Updates {
		if _, known := moves[move{u.Phase, cancelled}]; !known && lasts[u.Phase] == nil {
			return nil, fmt.Errorf("firmware: stored update %s: phase %q: %w", u.ID, u.Phase, ErrUnknown)
		}
		for _, id := range u.Targets {
			if f.model.component(id) == nil {
				return nil, fmt.Errorf("firmware: stored update %s: component %q: %w", u.ID, id, ErrUnknown)
			}
		}
	}
	if known.Pending != nil {
		p := *known.Pending
		p.Settings = slices.DeleteFunc(slices.Clone(p.Settings), func(s Setting) bool { return f.model.Registry().Attribute(s.Name) == nil })
		known.Pending = &p
	}
	f.st = &known
	return f, nil
}

// State returns what New needs to restore the firmware; nil in factory state.
func (f *Firmware) State() *State { return f.st }

// Restore sets it back to an earlier state.
func (f *Firmware) Restore(st *State) { f.st = st }

// View returns a snapshot of the firmware.
func (f *Firmware) View() View { return View{Model: f.model, st: f.st} }

// edit returns a copy of the state that a step may change and keep.
func (f *Firmware) edit() *State {
	if f.st == nil {
		return new(State)
	}
	return new(*f.st)
}

// keep stores st; nil when it equals the factory state.
func (f *Firmware) keep(st *State) {
	f.st = st
	if st.Values == nil && st.Pending == nil && st.Applied == nil && st.Finishing == nil && st.Passwords == nil &&
		st.Slots == nil && st.Updates == nil && st.Breaks == nil {
		f.st = nil
	}
}

// Deadline returns when the firmware next changes without a command; false when
// it does not.
func (f *Firmware) Deadline() (time.Time, bool) {
	at, _ := f.next()
	return at, !at.IsZero()
}

// Values of next's update for deadlines that are not an update's.
const (
	ofSettings = -1
	ofFinish   = -2
)

// next returns the next deadline, and the index of its update.
func (f *Firmware) next() (at time.Time, update int) {
	if f.st == nil {
		return time.Time{}, ofSettings
	}
	at, update = f.st.Pending.due(), ofSettings
	if e := f.st.Finishing; e != nil && (at.IsZero() || e.At.Before(at)) {
		at, update = e.At, ofFinish
	}
	for i, u := range f.st.Updates {
		if !u.Deadline.IsZero() && (at.IsZero() || u.Deadline.Before(at)) {
			at, update = u.Deadline, i
		}
	}
	return at, update
}

// Advance moves the firmware to now.
func (f *Firmware) Advance(now time.Time) []event.Event {
	var evs []event.Event
	for {
		at, i := f.next()
		switch {
		case at.IsZero() || now.Before(at):
			return evs
		case i == ofFinish:
			evs = append(evs, f.finish(at)...)
		case i == ofSettings:
			evs = append(evs, f.window(at)...)
		default:
			evs = append(evs, f.due(at, f.st.Updates[i])...)
		}
	}
}

// Apply advances to now and applies a command. The events are valid even with
// an error, which has changed nothing.
func (f *Firmware) Apply(now time.Time, c Command) ([]event.Event, error) {
	evs := f.Advance(now)
	more, err := c.apply(f, now)
	return append(evs, more...), err
}

// Power sets whether the host has power without a transition: restored firmware
// does not know.
func (f *Firmware) Power(on bool) { f.on = on }

// Boot reports that the host was reset and POST begins. It applies what waited
// for that, and returns how long POST waits for components that are written
// during it.
func (f *Firmware) Boot(now time.Time) (evs []event.Event, hold time.Duration) {
	f.on = true
	evs, hold = f.settings(now)
	for _, u := range f.updates() {
		switch {
		case u.Phase == Applying && u.InPOST: // reset during the writing
			evs = append(evs, f.fail(now, u, cutOff)...)
		case u.Phase == Awaiting:
			evs = append(evs, f.step(now, u, hostReset, "")...)
		case u.Phase == Waiting && (u.When.Apply != InMaintenanceWindowOnReset || u.When.within(now)):
			u.InPOST = true
			evs = append(evs, f.step(now, u, hostReset, "")...)
			u.Phase = Applying
			hold = max(hold, f.rest(u))
		}
	}
	return evs, hold
}

// Cut reports that the host has lost power; all means standby power too. A
// component that is being written is broken.
func (f *Firmware) Cut(now time.Time, all bool) []event.Event {
	f.on = false
	var evs []event.Event
	for _, u := range f.updates() {
		if u.Phase != Applying {
			continue
		}
		if c := f.now(u); all || u.InPOST || c.HostPower {
			evs = append(evs, f.fail(now, u, cutOff)...)
		}
	}
	return evs
}

// Unplug reports that a component was removed. If it was being written, it is
// broken.
func (f *Firmware) Unplug(now time.Time, component string) []event.Event {
	var evs []event.Event
	for _, u := range f.updates() {
		if c := f.now(u); u.Phase == Applying && c.ID == component {
			evs = append(evs, f.fail(now, u, cutOff)...)
		}
	}
	return evs
}

func (f *Firmware) note(at time.Time, k event.Kind, s event.Subject, args ...string) []event.Event {
	return []event.Event{event.Note{At: at, Kind: k, Subject: s, Args: args}}
}

// value returns an attribute's value; zero for facts and passwords.
func (v View) value(name string) Value {
	a := v.Model.Registry().Attribute(name)
	if a == nil {
		return Value{}
	}
	if v.st != nil {
		if got, ok := v.st.Values.Lookup(name); ok {
			return got
		}
	}
	return a.Default
}

// Facts returns facts of a machine that the registry refers to; false for
// unknown ones.
type Facts func(fact string) (Value, bool)

// Settings returns the values of all attributes in the order of the registry.
func (v View) Settings(facts Facts) []Setting {
	out := make([]Setting, 0, len(v.Model.Registry().Attributes))
	for i := range v.Model.Registry().Attributes {
		a := &v.Model.Registry().Attributes[i]
		s := Setting{Name: a.Name, Value: v.value(a.Name)}
		if a.Fact != "" {
			if v, ok := facts(a.Fact); ok {
				s.Value = v
			}
		}
		out = append(out, s)
	}
	return out
}

// Rules returns the rules for the values after pending settings are applied.
func (v View) Rules() Rules {
	f := Firmware{model: v.Model, st: v.st}
	p := f.pending()
	return v.Model.Registry().rules(over(f.base(p.Defaults), p.Settings))
}

// Pending returns the pending settings; nil: none.
func (v View) Pending() *Pending {
	if v.st == nil {
		return nil
	}
	return v.st.Pending
}

// Applied returns the settings that were applied last; nil: none.
func (v View) Applied() *Applied {
	if v.st == nil {
		return nil
	}
	return v.st.Applied
}

// Finishing returns the applied settings whose tasks have not ended; nil: none.
func (v View) Finishing() *Finishing {
	if v.st == nil {
		return nil
	}
	return v.st.Finishing
}

// Works reports whether a task waits for settings to be applied, or belongs to
// an update in progress.
func (v View) Works(task string) bool {
	if p := v.Pending(); p != nil && slices.Contains(p.Tasks, task) {
		return true
	}
	if e := v.Finishing(); e != nil && slices.Contains(e.Tasks, task) {
		return true
	}
	return slices.ContainsFunc(v.Updates(), func(u Update) bool { return u.Task == task })
}

// Updates returns the updates in progress, oldest first.
func (v View) Updates() []Update {
	if v.st == nil {
		return nil
	}
	return v.st.Updates
}
