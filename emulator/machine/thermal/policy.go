package thermal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Policy is a thermal limit: what happens when a temperature exceeds it for
// some time.
type Policy struct {
	Sensor string        `json:"sensor"`
	Limit  float64       `json:"limit"` // in °C
	After  time.Duration `json:"after"` // time over the limit before Do
	Do     Act           `json:"do"`
}

// Act is the action of a policy. Values are stored.
type Act string

// The acts.
const (
	Nothing Act = ""
	Log     Act = "tell"
	CutOff  Act = "off" // power off, and log
)

// Over is a sensor over its policy's limit.
type Over struct {
	Sensor string    `json:"sensor"`
	Since  time.Time `json:"since"`
	Done   bool      `json:"done,omitempty"` // the policy's action was taken
}

// SetPolicy replaces a temperature sensor's policy. A policy without action is
// stored too, so that it can be activated again.
type SetPolicy struct{ Policy }

func (c SetPolicy) apply(in *Inputs, m *Model) error {
	i, err := m.place(c.Sensor)
	switch {
	case err != nil:
		return err
	case m.Sensors[i].Kind != Temperature:
		return fmt.Errorf("%w: policy of sensor %q: must be a temperature", ErrUnknown, c.Sensor)
	case !slices.Contains([]Act{Nothing, Log, CutOff}, c.Do) || c.After < 0:
		return fmt.Errorf("%w: policy %+v", ErrUnknown, c.Policy)
	}
	in.Policies = slices.DeleteFunc(slices.Clone(in.Policies), func(p Policy) bool { return p.Sensor == c.Sensor })
	if c.Policy != (Policy{Sensor: c.Sensor}) {
		in.Policies = append(in.Policies, c.Policy)
		slices.SortFunc(in.Policies, func(a, b Policy) int { return cmp.Compare(m.places[a.Sensor], m.places[b.Sensor]) })
	}
	if len(in.Policies) == 0 {
		in.Policies = nil
	}
	return nil
}

// Policy returns a sensor's policy.
func (v View) Policy(sensor string) Policy {
	for _, p := range v.state().Policies {
		if p.Sensor == sensor {
			return p
		}
	}
	return Policy{Sensor: sensor}
}

// transition is the next change of a policy's state.
type transition struct {
	at   time.Time
	p    Policy
	over *Over // its state afterwards; nil: below the limit again
}

// nextTransition returns the next change of any policy; false when there is none.
func (v View) nextTransition() (next transition, ok bool) {
	for _, p := range v.state().Policies {
		i, known := v.Model.places[p.Sensor]
		if !known || p.Do == Nothing || !v.reads(&v.Model.Sensors[i]) {
			continue
		}
		if t, has := v.transitionOf(i, p); has && (!ok || t.at.Before(next.at)) {
			next, ok = t, true
		}
	}
	return next, ok
}

// transitionOf returns the next change of one policy. A reading that is already
// falling when the policy is set counts as below the limit.
func (v View) transitionOf(i int, p Policy) (transition, bool) {
	st := v.state()
	line := p.Limit + v.Model.Sensors[i].Step/2 // from here on, the displayed reading exceeds the limit
	end, is := v.goal(i), v.raw(i, st.At)
	at := slices.IndexFunc(st.Over, func(o Over) bool { return o.Sensor == p.Sensor })
	if at < 0 {
		if end < line {
			return transition{}, false
		}
		since := v.reached(i, is >= line, line)
		return transition{since, p, &Over{Sensor: p.Sensor, Since: since}}, true
	}
	o := st.Over[at]
	var out transition
	falls := end < line
	if falls {
		out = transition{at: v.reached(i, is < line, line), p: p}
	}
	if due := o.Since.Add(p.After); !o.Done && (!falls || due.Before(out.at)) {
		if due.Before(st.At) {
			due = st.At // the time had already passed when the policy was set
		}
		o.Done = true
		return transition{due, p, &o}, true
	}
	return out, falls
}

// applyTransition applies a transition of a policy.
func (t *Thermal) applyTransition(n transition) []event.Event {
	st := *t.st
	st.Over = slices.DeleteFunc(slices.Clone(st.Over), func(o Over) bool { return o.Sensor == n.p.Sensor })
	if n.over != nil {
		st.Over = append(st.Over, *n.over)
	}
	if len(st.Over) == 0 {
		st.Over = nil
	}
	t.st = &st
	if n.over == nil || !n.over.Done {
		return nil
	}
	s := t.model.Sensor(n.p.Sensor)
	evs := []event.Event{event.Note{
		At: n.at, Kind: event.SensorTooHigh, Subject: event.Subject{Part: event.Sensor, ID: s.ID},
		Args: []string{s.Name, s.Text(t.View().raw(t.model.places[s.ID], n.at)), Units[s.Kind], s.Text(n.p.Limit)},
	}}
	if n.p.Do == CutOff {
		evs = append(evs, Overheated{At: n.at})
	}
	return evs
}

// stillOver returns the sensors that remain over their limits after a change of
// inputs: those with the same policy and a reading.
func (v View) stillOver(was *State) []Over {
	var out []Over
	for _, o := range was.Over {
		s := v.Model.Sensor(o.Sensor)
		before := View{v.Model, was, v.seed}.Policy(o.Sensor)
		if is := v.Policy(o.Sensor); s != nil && v.reads(s) && is == before && is.Do != Nothing {
			out = append(out, o)
		}
	}
	return out
}
