// Package firmware is what in a server is set up and updated: the settings of
// the BIOS with the registry that governs them, values that wait to be
// applied, and the components that run firmware, with updates on their way
// into them. A Firmware is a value that is stepped, like the machine it is a
// part of: Apply takes a command, Advance takes time, Boot and Cut tell it what
// the host does, and it names its next deadline. It knows neither the protocols
// that show it nor where images are kept: of an image it sees what ParseImage
// says. What settings mean to the rest of the server it leaves to that: a
// registry names effects, and the machine acts on them.
package firmware

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Model is the firmware of a server model: what two servers of it share. It is
// never changed.
type Model struct {
	Read       func() *Registry // of the settings of its BIOS; nil: it has none that anybody could see
	Components []Component
}

var noSettings = new(Registry)

// Registry is the registry of the settings; an empty one when there are none.
func (m *Model) Registry() *Registry {
	if m.Read == nil {
		return noSettings
	}
	return m.Read()
}

// State is what a Firmware must remember across a restart of the lab. It is
// never changed: a step makes a new one.
type State struct {
	Values    Settings   `json:"values,omitempty"`    // that are not the defaults
	Pending   *Pending   `json:"pending,omitempty"`   // nil: nothing waits
	Applied   *Applied   `json:"applied,omitempty"`   // nil: nothing was ever
	Finishing *Finishing `json:"finishing,omitempty"` // nil: no job ends later than its settings were applied
	Passwords []Secret   `json:"passwords,omitempty"` // that are set
	Slots     []Slots    `json:"slots,omitempty"`     // of components that were updated
	Updates   []Update   `json:"updates,omitempty"`   // under way, oldest first
	Breaks    []Break    `json:"breaks,omitempty"`    // that shall happen
}

// Firmware is the firmware of one server. It is not safe for concurrent use.
type Firmware struct {
	model *Model
	st    *State // nil: as it came
	on    bool   // the host has power
}

// Command is something that can be done to firmware.
type Command interface {
	apply(f *Firmware, now time.Time) ([]event.Event, error)
}

// ResetWanted asks for a reset of the host: a maintenance window has begun.
type ResetWanted struct{ At time.Time }

// Time implements event.Event.
func (e ResetWanted) Time() time.Time { return e.At }

// View is a Firmware as it stands. It shares nothing that changes; two views
// show the same if they are ==.
type View struct {
	Model *Model
	st    *State
}

// Equal tells whether two models are the same, even if one was read again.
func (m *Model) Equal(o *Model) bool {
	return m == o || m != nil && o != nil && reflect.DeepEqual(m.Components, o.Components) && reflect.DeepEqual(m.Registry(), o.Registry())
}

// Equal tells whether two views show the same, even if one was restored.
func (v View) Equal(o View) bool { return v.Model.Equal(o.Model) && reflect.DeepEqual(v.st, o.st) }

var system = event.Subject{Part: event.System}

// New makes firmware as it came, or restores it from what State returned. What
// the model knows no longer is forgotten.
func New(m *Model, st *State) (*Firmware, error) {
	f := &Firmware{model: m}
	if st == nil {
		return f, nil
	}
	own := *st
	own.Values = slices.DeleteFunc(slices.Clone(own.Values), func(s Setting) bool { return f.model.Registry().Attribute(s.Name) == nil })
	own.Slots = slices.DeleteFunc(slices.Clone(own.Slots), func(s Slots) bool { return f.model.component(s.ID) == nil })
	own.Passwords = slices.DeleteFunc(slices.Clone(own.Passwords), func(s Secret) bool { return f.model.Registry().Attribute(s.Name) == nil })
	for _, u := range own.Updates {
		if _, known := moves[move{u.Phase, cancelled}]; !known && lasts[u.Phase] == nil {
			return nil, fmt.Errorf("firmware: stored update %s: phase %q: %w", u.ID, u.Phase, ErrUnknown)
		}
		for _, id := range u.Targets {
			if f.model.component(id) == nil {
				return nil, fmt.Errorf("firmware: stored update %s: component %q: %w", u.ID, id, ErrUnknown)
			}
		}
	}
	if own.Pending != nil {
		p := *own.Pending
		p.Settings = slices.DeleteFunc(slices.Clone(p.Settings), func(s Setting) bool { return f.model.Registry().Attribute(s.Name) == nil })
		own.Pending = &p
	}
	f.st = &own
	return f, nil
}

// State returns what New needs to restore the firmware; nil while it is as it
// came.
func (f *Firmware) State() *State { return f.st }

// Restore puts it back to a state that it had.
func (f *Firmware) Restore(st *State) { f.st = st }

// View returns the firmware as it stands.
func (f *Firmware) View() View { return View{Model: f.model, st: f.st} }

// edit is a copy of the state that a step may write and keep.
func (f *Firmware) edit() *State {
	if f.st == nil {
		return new(State)
	}
	return new(*f.st)
}

// keep makes st the state; nil when nothing in it differs from how it came.
func (f *Firmware) keep(st *State) {
	f.st = st
	if st.Values == nil && st.Pending == nil && st.Applied == nil && st.Finishing == nil && st.Passwords == nil &&
		st.Slots == nil && st.Updates == nil && st.Breaks == nil {
		f.st = nil
	}
}

// Deadline is when the firmware next changes by itself; false when it waits
// for a command or the host.
func (f *Firmware) Deadline() (time.Time, bool) {
	at, _ := f.next()
	return at, !at.IsZero()
}

// The places of what is no update.
const (
	ofSettings = -1
	ofFinish   = -2
)

// next is the next deadline, and the place of the update that has it.
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

// Apply carries out a command at now, after advancing to it. The events are
// valid even with an error, which has changed nothing.
func (f *Firmware) Apply(now time.Time, c Command) ([]event.Event, error) {
	evs := f.Advance(now)
	more, err := c.apply(f, now)
	return append(evs, more...), err
}

// Power tells whether the host has power, where that did not change: a
// Firmware that was restored does not know.
func (f *Firmware) Power(on bool) { f.on = on }

// Boot tells that the host was reset, and its POST begins. It applies what
// waited for that, and returns for how long POST has to wait for components
// that are written during it.
func (f *Firmware) Boot(now time.Time) (evs []event.Event, hold time.Duration) {
	f.on = true
	evs, hold = f.settings(now)
	for _, u := range f.updates() {
		switch {
		case u.Phase == Applying && u.InPOST: // the reset came in between
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

// Cut tells that the host lost its power; all is set when the BMC and what
// lives on standby power lost theirs too. What was being written is broken.
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

// Unplug tells that a component was taken away. What was being written to it is
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

// value is the value that an attribute has; that of a fact or a password is
// nothing.
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

// Facts tells what a machine knows of itself and the registry refers to; false
// for what it does not know.
type Facts func(fact string) (Value, bool)

// Settings are the values of all attributes, in the order of the registry.
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

// Rules are what holds for the attributes with the values that they will have.
func (v View) Rules() Rules {
	f := Firmware{model: v.Model, st: v.st}
	p := f.pending()
	return v.Model.Registry().rules(over(f.base(p.Defaults), p.Settings))
}

// Pending is what waits to be applied; nil when nothing does.
func (v View) Pending() *Pending {
	if v.st == nil {
		return nil
	}
	return v.st.Pending
}

// Applied is what was applied last; nil when nothing was.
func (v View) Applied() *Applied {
	if v.st == nil {
		return nil
	}
	return v.st.Applied
}

// Finishing is what has been applied and whose jobs have not ended; nil when
// there is nothing.
func (v View) Finishing() *Finishing {
	if v.st == nil {
		return nil
	}
	return v.st.Finishing
}

// Works tells whether a job waits for settings to be applied, or is of an
// update that is under way.
func (v View) Works(job string) bool {
	if p := v.Pending(); p != nil && slices.Contains(p.Tasks, job) {
		return true
	}
	if e := v.Finishing(); e != nil && slices.Contains(e.Tasks, job) {
		return true
	}
	return slices.ContainsFunc(v.Updates(), func(u Update) bool { return u.Task == job })
}

// Updates are the updates under way, oldest first.
func (v View) Updates() []Update {
	if v.st == nil {
		return nil
	}
	return v.st.Updates
}
