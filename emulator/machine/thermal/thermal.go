// Package thermal models a server's power consumption, temperatures, fans and
// power supplies, and its sensors' readings. Every reading is a pure function
// of the state, the time and a seed: temperatures approach their targets with a
// first-order lag, so that the time of a threshold crossing can be computed.
// The package does not know why a server is busy, nor what a protocol calls a
// sensor.
package thermal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// ErrUnknown means that a part or a value does not exist.
var ErrUnknown = errors.New("thermal: unknown")

// Mode is a server's power mode. Values are stored.
type Mode string

// The modes.
const (
	Dark    Mode = "dark" // no AC power
	Standby Mode = ""     // off, only the BMC has power
	On      Mode = "on"
)

// Inputs determine the readings.
type Inputs struct {
	Mode     Mode      `json:"mode,omitempty"`
	Work     Work      `json:"work,omitempty"`
	Load     *float64  `json:"load,omitempty"`     // utilization, 0 to 1; nil: follows Work
	Ambient  *float64  `json:"ambient,omitempty"`  // °C; nil: the model's
	Limit    float64   `json:"limit,omitempty"`    // input power limit in W; 0: none
	Fans     []string  `json:"fans,omitempty"`     // stopped fans, sorted
	Supplies []Trouble `json:"supplies,omitempty"` // faulty power supplies, by ID
	Forced   []Forced  `json:"forced,omitempty"`   // overridden readings, by sensor
	Settings []Setting `json:"settings,omitempty"` // by sensor
	Policies []Policy  `json:"policies,omitempty"` // by sensor
}

// Trouble is a power supply's fault.
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
	NoInput Fault = "no input" // no input voltage
	Absent  Fault = "absent"   // removed
)

// Forced overrides a sensor's reading.
type Forced struct {
	Sensor  string  `json:"sensor"`
	Reading float64 `json:"reading"`
}

// State is the stored state. It is immutable: a step that changes anything
// makes a new one. Nil is a server that was never on.
type State struct {
	Inputs
	At     time.Time `json:"at"`               // when the inputs last changed
	Values []float64 `json:"values,omitempty"` // readings of lagging sensors at At, in the order of the model's sensors
	Joules float64   `json:"joules,omitempty"` // input energy until At
	Drawn  []Drawn   `json:"drawn,omitempty"`  // input power before At, within Window; oldest first
	Since  time.Time `json:"since"`            // when Joules was 0
	Marks  []Mark    `json:"marks,omitempty"`  // sensors that are not normal, by ID
	Over   []Over    `json:"over,omitempty"`   // sensors over a policy's limit
}

// Mark is a sensor's level.
type Mark struct {
	Sensor string `json:"sensor"`
	Level  Level  `json:"level"`
}

// Thermal is one server's thermal model. It is not safe for concurrent use.
type Thermal struct {
	model *Model
	seed  uint64
	st    *State

	// The next change of a mark or a policy, computed for the state in due.
	due    *State
	at     time.Time
	which  int // sensor; -1: none
	next   Level
	policy *transition // next change of a policy, if it comes first; nil: the mark
}

// New creates a server's thermal model, or restores it from what State
// returned. The seed determines the variation of this server's parts.
func New(m *Model, seed uint64, st *State) Thermal {
	t := Thermal{model: m, seed: seed, which: -1}
	if st != nil {
		known := *st
		if len(known.Values) != m.lagging { // stored with another release's model: start at the goals
			known.Values = nil
		}
		known.Marks = slices.DeleteFunc(slices.Clone(known.Marks), func(k Mark) bool {
			s := m.Sensor(k.Sensor)
			return s == nil || s.Limits.at(k.Level) == nil
		})
		if len(known.Marks) == 0 {
			known.Marks = nil
		}
		known.Settings = m.known(known.Settings)
		known.Policies = slices.DeleteFunc(slices.Clone(known.Policies), func(p Policy) bool { return m.Sensor(p.Sensor) == nil })
		t.st = &known
	}
	return t
}

// State returns what New needs; nil for a server that was never on.
func (t *Thermal) State() *State { return t.st }

// Restore sets it back to an earlier state.
func (t *Thermal) Restore(st *State) { t.st = st }

// View returns a snapshot.
func (t *Thermal) View() View { return View{Model: t.model, st: t.st, seed: t.seed} }

// View gives a server's temperatures and power at any time after its state's.
// It is immutable, and two views are == exactly when nothing changed between
// them.
type View struct {
	Model *Model
	st    *State
	seed  uint64
}

// Equal reports whether two models are equal, even when parsed separately.
func (m Model) Equal(o Model) bool { return reflect.DeepEqual(m, o) }

// Equal reports whether two views are equal, even when one was restored.
func (v View) Equal(o View) bool {
	return v.seed == o.seed && (v.Model == o.Model || reflect.DeepEqual(v.Model, o.Model)) && reflect.DeepEqual(v.st, o.st)
}

var asMade = new(State)

// state returns the state, never nil.
func (v View) state() *State {
	if v.st == nil {
		return asMade
	}
	return v.st
}

// Command is a change that can be applied.
type Command interface {
	apply(in *Inputs, m *Model) error
}

// Apply advances to now and applies a command. The events are valid even with
// an error, which has changed nothing.
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
	evs = append(evs, t.immediateEvents(now, v)...)
	return append(evs, t.Advance(now)...), nil
}

// change replaces the inputs. Lagging readings continue from their present
// values.
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
		if s := t.model.Sensor(m.Sensor); s != nil && next.reads(s) { // a sensor without reading has no level
			st.Marks = append(st.Marks, m)
		}
	}
	st.Over = next.stillOver(was)
	t.st = st
}

// Deadline returns when a level next changes or a policy acts; false when
// neither will happen.
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
		t.policy = nil
		if n, ok := v.nextTransition(); ok && (t.which < 0 || n.at.Before(t.at)) {
			t.at, t.policy = n.at, &n
		}
	}
	return t.at, t.which >= 0 || t.policy != nil
}

// Advance moves it to now.
func (t *Thermal) Advance(now time.Time) []event.Event {
	var evs []event.Event
	for {
		at, ok := t.Deadline()
		if !ok || now.Before(at) {
			return evs
		}
		if t.policy != nil {
			evs = append(evs, t.applyTransition(*t.policy)...)
			continue
		}
		evs = append(evs, t.mark(at, t.which, t.next)...)
	}
}

// mark changes a sensor's level.
func (t *Thermal) mark(at time.Time, which int, to Level) []event.Event {
	s := &t.model.Sensors[which]
	v := t.View()
	from := v.Level(s.ID)
	t.st = t.st.unmarked(s.ID)
	if to != Normal {
		t.st.Marks = append(t.st.Marks, Mark{s.ID, to})
		slices.SortFunc(t.st.Marks, func(a, b Mark) int { return t.model.places[a.Sensor] - t.model.places[b.Sensor] })
	}
	evs, setting := t.crossed(at, s, from, to, v), v.Setting(s.ID)
	if !setting.mutes(from, to) {
		return evs
	}
	return slices.DeleteFunc(evs, func(ev event.Event) bool {
		n, ok := ev.(event.Note)
		return ok && n.Subject.ID == s.ID
	})
}

// place returns a sensor's index in the model, or an error.
func (m *Model) place(id string) (int, error) {
	i, ok := m.places[id]
	if !ok {
		return 0, fmt.Errorf("%w: sensor %q", ErrUnknown, id)
	}
	return i, nil
}

// Sensor returns the sensor with an ID, or nil.
func (m *Model) Sensor(id string) *Sensor {
	i, ok := m.places[id]
	if !ok {
		return nil
	}
	return &m.Sensors[i]
}
