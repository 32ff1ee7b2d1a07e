package thermal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Policy is what is done when a sensor reads too much for too long.
type Policy struct {
	Sensor string        `json:"sensor"`
	Limit  float64       `json:"limit"` // °C that it may read
	After  time.Duration `json:"after"` // of reading more
	Do     Act           `json:"do"`
}

// Act is what a policy does. Values are stored.
type Act string

// The acts.
const (
	Nothing Act = ""
	Tell    Act = "tell"
	CutOff  Act = "off" // and tell
)

// Over is a sensor that reads more than its policy lets it.
type Over struct {
	Sensor string    `json:"sensor"`
	Since  time.Time `json:"since"`
	Done   bool      `json:"done,omitempty"` // the policy has acted
}

// SetPolicy sets the policy of a temperature, whole. One that does nothing is
// kept all the same: somebody may switch it on again.
type SetPolicy struct{ Policy }

func (c SetPolicy) apply(in *Inputs, m *Model) error {
	i, err := m.place(c.Sensor)
	switch {
	case err != nil:
		return err
	case m.Sensors[i].Kind != Temperature:
		return fmt.Errorf("%w: policy of sensor %q: must be a temperature", ErrUnknown, c.Sensor)
	case !slices.Contains([]Act{Nothing, Tell, CutOff}, c.Do) || c.After < 0:
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

// Policy is that of a sensor.
func (v View) Policy(sensor string) Policy {
	for _, p := range v.state().Policies {
		if p.Sensor == sensor {
			return p
		}
	}
	return Policy{Sensor: sensor}
}

// turn is what next happens with a policy.
type turn struct {
	at   time.Time
	p    Policy
	over *Over // as it will be; nil: the sensor reads less again
}

// turn is the first that comes; false when there is none.
func (v View) turn() (next turn, ok bool) {
	for _, p := range v.state().Policies {
		i, known := v.Model.places[p.Sensor]
		if !known || p.Do == Nothing || !v.reads(&v.Model.Sensors[i]) {
			continue
		}
		if t, has := v.turnOf(i, p); has && (!ok || t.at.Before(next.at)) {
			next, ok = t, true
		}
	}
	return next, ok
}

// turnOf is what next happens with one policy. A reading that falls already
// when the policy is set counts as one that has fallen.
func (v View) turnOf(i int, p Policy) (turn, bool) {
	st := v.state()
	line := p.Limit + v.Model.Sensors[i].Step/2 // from which on more is shown
	end, is := v.goal(i), v.raw(i, st.At)
	at := slices.IndexFunc(st.Over, func(o Over) bool { return o.Sensor == p.Sensor })
	if at < 0 {
		if end < line {
			return turn{}, false
		}
		since := v.reached(i, is >= line, line)
		return turn{since, p, &Over{Sensor: p.Sensor, Since: since}}, true
	}
	o := st.Over[at]
	var out turn
	falls := end < line
	if falls {
		out = turn{at: v.reached(i, is < line, line), p: p}
	}
	if due := o.Since.Add(p.After); !o.Done && (!falls || due.Before(out.at)) {
		if due.Before(st.At) {
			due = st.At // the policy was set when it was late already
		}
		o.Done = true
		return turn{due, p, &o}, true
	}
	return out, falls
}

// policed puts a turn in place.
func (t *Thermal) policed(n turn) []event.Event {
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

// overStill are the sensors that go on reading too much when the inputs become
// others: those that have a policy as before, and read.
func (v View) overStill(was *State) []Over {
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
