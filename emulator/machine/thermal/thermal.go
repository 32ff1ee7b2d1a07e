// Package thermal owns what a server draws, how hot it gets, how its fans and
// power supplies keep up with that, and what its sensors read of it. Every
// reading is a pure function of the state, the time and a seed: what has a
// target goes there as a first-order lag does, so that when a threshold will be
// crossed can be computed. It refuses to know why a server is busy, and what a
// protocol calls a sensor.
package thermal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// ErrUnknown means that there is no such part, or no such value.
var ErrUnknown = errors.New("thermal: unknown")

// Mode is how far a server has power. Values are stored.
type Mode string

// The modes.
const (
	Dark    Mode = "dark" // no mains
	Standby Mode = ""     // off, the BMC alone
	On      Mode = "on"
)

// Inputs are what the readings follow from.
type Inputs struct {
	Mode     Mode      `json:"mode,omitempty"`
	Work     Work      `json:"work,omitempty"`
	Load     *float64  `json:"load,omitempty"`     // how much of what it can, 0 to 1; nil: as the work takes
	Ambient  *float64  `json:"ambient,omitempty"`  // °C; nil: as the model says
	Limit    float64   `json:"limit,omitempty"`    // that the power drawn from the mains is kept to, in W; 0: none
	Fans     []string  `json:"fans,omitempty"`     // that do not turn, sorted
	Supplies []Trouble `json:"supplies,omitempty"` // that do not work, by ID
	Forced   []Forced  `json:"forced,omitempty"`   // readings that somebody made up, by sensor
	Settings []Setting `json:"settings,omitempty"` // of how sensors are watched, by sensor
	Policies []Policy  `json:"policies,omitempty"` // of temperatures, by sensor
}

// Trouble is what is wrong with a power supply.
type Trouble struct {
	ID    string `json:"id"`
	Fault Fault  `json:"fault"`
}

// Fault is why a power supply does not work. Values are stored.
type Fault string

// The faults.
const (
	NoFault Fault = ""
	Failed  Fault = "failed"
	NoInput Fault = "no input" // nothing comes out of its cable
	Absent  Fault = "absent"   // it was taken out
)

// Forced is a reading that takes the place of the real one.
type Forced struct {
	Sensor  string  `json:"sensor"`
	Reading float64 `json:"reading"`
}

// State is what must be remembered. It is never changed: a step that changes
// anything makes a new one. Nil is a server that has been off for ever.
type State struct {
	Inputs
	At     time.Time `json:"at"`               // since when the inputs are these
	Values []float64 `json:"values,omitempty"` // of what lags, then; in the order of the model's sensors
	Joules float64   `json:"joules,omitempty"` // drawn until then
	Drawn  []Drawn   `json:"drawn,omitempty"`  // before that, within Window; oldest first
	Since  time.Time `json:"since"`            // when Joules were none
	Marks  []Mark    `json:"marks,omitempty"`  // sensors that are not normal, by ID
	Over   []Over    `json:"over,omitempty"`   // sensors that read more than a policy lets them
}

// Mark is how bad the reading of a sensor is.
type Mark struct {
	Sensor string `json:"sensor"`
	Level  Level  `json:"level"`
}

// Thermal is one server's. It is a value to be put into the server, and not
// safe for concurrent use.
type Thermal struct {
	model *Model
	seed  uint64
	st    *State

	// When the next mark changes or a policy turns, computed for the state due.
	due   *State
	at    time.Time
	which int // sensor; -1: none
	next  Level
	turns *turn // that comes first; nil: the mark
}

// New makes what a server has of it, or restores it from what State returned.
// The seed is what this server's parts differ from another's by.
func New(m *Model, seed uint64, st *State) Thermal {
	t := Thermal{model: m, seed: seed, which: -1}
	if st != nil {
		own := *st
		if len(own.Values) != m.lagging { // of another release's model: they are where they go
			own.Values = nil
		}
		own.Marks = slices.DeleteFunc(slices.Clone(own.Marks), func(k Mark) bool {
			s := m.Sensor(k.Sensor)
			return s == nil || s.Limits.at(k.Level) == nil
		})
		if len(own.Marks) == 0 {
			own.Marks = nil
		}
		own.Settings = m.known(own.Settings)
		own.Policies = slices.DeleteFunc(slices.Clone(own.Policies), func(p Policy) bool { return m.Sensor(p.Sensor) == nil })
		t.st = &own
	}
	return t
}

// State returns what New needs; nil for one that has been off for ever.
func (t *Thermal) State() *State { return t.st }

// Restore puts it back to a state that it had.
func (t *Thermal) Restore(st *State) { t.st = st }

// View returns it as it stands.
func (t *Thermal) View() View { return View{Model: t.model, st: t.st, seed: t.seed} }

// View is a server's heat and power at any time from its state's on. It is
// immutable, and two of them are the same if nothing has changed between them.
type View struct {
	Model *Model
	st    *State
	seed  uint64
}

// Equal tells whether two models are the same, even if one was read again.
func (m Model) Equal(o Model) bool { return reflect.DeepEqual(m, o) }

// Equal tells whether two views show the same, even if one was restored.
func (v View) Equal(o View) bool {
	return v.seed == o.seed && (v.Model == o.Model || reflect.DeepEqual(v.Model, o.Model)) && reflect.DeepEqual(v.st, o.st)
}

var asMade = new(State)

// state is the state, which is never nil.
func (v View) state() *State {
	if v.st == nil {
		return asMade
	}
	return v.st
}

// Command is something that can be done to it.
type Command interface {
	apply(in *Inputs, m *Model) error
}

// Apply carries out a command at now, after advancing to it. The events are
// valid even with an error, which has changed nothing.
func (t *Thermal) Apply(now time.Time, c Command) ([]event.Event, error) {
	evs := t.Advance(now)
	v := t.View()
	in := v.state().Inputs
	if err := c.apply(&in, t.model); err != nil {
		return evs, err
	}
	again, rearm := c.(Rearm)
	if rearm && v.Level(again.Sensor) == Normal || !rearm && reflect.DeepEqual(in, v.state().Inputs) {
		return evs, nil
	}
	t.change(now, in)
	if rearm {
		t.st = t.st.unmarked(again.Sensor)
	}
	evs = append(evs, t.told(now, v)...)
	return append(evs, t.Advance(now)...), nil
}

// change puts other inputs in place. What lags goes on from where it is.
func (t *Thermal) change(now time.Time, in Inputs) {
	v := t.View()
	was := v.state()
	st := &State{Inputs: in, At: now, Joules: v.joules(now), Drawn: v.drawnBefore(now), Since: was.Since}
	if st.Since.IsZero() {
		st.Since = now
	}
	for i := range t.model.Sensors {
		if s := &t.model.Sensors[i]; s.slot >= 0 {
			st.Values = append(st.Values, v.follow(i, now))
		}
	}
	next := View{t.model, st, t.seed}
	for _, m := range was.Marks {
		if s := t.model.Sensor(m.Sensor); s != nil && next.reads(s) { // one that reads nothing is not judged
			st.Marks = append(st.Marks, m)
		}
	}
	st.Over = next.overStill(was)
	t.st = st
}

// Deadline is when a threshold is next crossed or a policy acts; false when
// neither will be.
func (t *Thermal) Deadline() (time.Time, bool) {
	if t.st == nil {
		return time.Time{}, false
	}
	if t.due != t.st {
		t.due, t.at, t.which, t.next = t.st, time.Time{}, -1, Normal
		v := t.View()
		for i := range t.model.Sensors {
			if at, to, ok := v.crossing(i); ok && (t.which < 0 || at.Before(t.at)) {
				t.at, t.which, t.next = at, i, to
			}
		}
		t.turns = nil
		if n, ok := v.turn(); ok && (t.which < 0 || n.at.Before(t.at)) {
			t.at, t.turns = n.at, &n
		}
	}
	return t.at, t.which >= 0 || t.turns != nil
}

// Advance moves it to now.
func (t *Thermal) Advance(now time.Time) []event.Event {
	var evs []event.Event
	for {
		at, ok := t.Deadline()
		if !ok || now.Before(at) {
			return evs
		}
		if t.turns != nil {
			evs = append(evs, t.policed(*t.turns)...)
			continue
		}
		evs = append(evs, t.mark(at, t.which, t.next)...)
	}
}

// mark changes how bad a sensor is.
func (t *Thermal) mark(at time.Time, which int, to Level) []event.Event {
	s := &t.model.Sensors[which]
	v := t.View()
	from := v.Level(s.ID)
	t.st = t.st.unmarked(s.ID)
	if to != Normal {
		t.st.Marks = append(t.st.Marks, Mark{s.ID, to})
		slices.SortFunc(t.st.Marks, func(a, b Mark) int { return t.model.places[a.Sensor] - t.model.places[b.Sensor] })
	}
	evs, own := t.crossed(at, s, from, to, v), v.Setting(s.ID)
	if !own.mutes(from, to) {
		return evs
	}
	return slices.DeleteFunc(evs, func(ev event.Event) bool {
		n, ok := ev.(event.Note)
		return ok && n.Subject.ID == s.ID
	})
}

// place is where a sensor is in the model; an error when there is none.
func (m *Model) place(id string) (int, error) {
	i, ok := m.places[id]
	if !ok {
		return 0, fmt.Errorf("%w: sensor %q", ErrUnknown, id)
	}
	return i, nil
}

// Sensor is the sensor with an ID, or nil.
func (m *Model) Sensor(id string) *Sensor {
	i, ok := m.places[id]
	if !ok {
		return nil
	}
	return &m.Sensors[i]
}
