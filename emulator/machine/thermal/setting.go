package thermal

import (
	"fmt"
	"reflect"
	"slices"
)

// Setting is what somebody has changed of how a sensor is watched.
type Setting struct {
	Sensor string  `json:"sensor"`
	Limits *Limits `json:"limits,omitempty"` // nil: as the model has them
	Off    bool    `json:"off,omitempty"`    // it is not read
	Silent bool    `json:"silent,omitempty"` // nothing of it is told
	// Reached and Left are the levels of which it is not told that they are
	// reached, and left for a less bad one; from low to high.
	Reached []Level `json:"reached,omitempty"`
	Left    []Level `json:"left,omitempty"`
}

// plain says whether a setting changes nothing.
func (s *Setting) plain() bool {
	return s.Limits == nil && !s.Off && !s.Silent && len(s.Reached) == 0 && len(s.Left) == 0
}

// mutes says whether a change of level is not told.
func (s *Setting) mutes(from, to Level) bool {
	if to.Bad() > from.Bad() {
		return s.Silent || slices.Contains(s.Reached, to)
	}
	return s.Silent || slices.Contains(s.Left, from)
}

// Adjust sets how a sensor is watched, whole. Thresholds need not grow from low
// to high: who sets them does so one after another. A less bad one that lies
// beyond a worse one counts as far as the worse one does.
type Adjust struct{ Setting }

func (c Adjust) apply(in *Inputs, m *Model) error {
	i, err := m.place(c.Sensor)
	if err != nil {
		return err
	}
	own, s := c.Setting, &m.Sensors[i]
	if own.Limits != nil {
		if err := s.takes(own.Limits); err != nil {
			return err
		}
		if reflect.DeepEqual(*own.Limits, s.Limits) {
			own.Limits = nil
		}
	}
	for _, levels := range []*[]Level{&own.Reached, &own.Left} {
		if *levels, err = s.watches(*levels); err != nil {
			return err
		}
	}
	in.Settings = slices.DeleteFunc(slices.Clone(in.Settings), func(o Setting) bool { return o.Sensor == c.Sensor })
	if !own.plain() {
		in.Settings = append(in.Settings, own)
		slices.SortFunc(in.Settings, func(a, b Setting) int { return m.places[a.Sensor] - m.places[b.Sensor] })
	}
	if len(in.Settings) == 0 {
		in.Settings = nil
	}
	return nil
}

// takes says whether a sensor can have thresholds: those that it has can be
// elsewhere, but there can be no others.
func (s *Sensor) takes(l *Limits) error {
	for _, level := range ladder {
		if (s.Limits.at(level) == nil) != (l.at(level) == nil) {
			return fmt.Errorf("%w: threshold %q of sensor %s: must be there if it is in the model, and only then", ErrUnknown, level, s.ID)
		}
	}
	if l.Hysteresis < 0 || l.LowHysteresis != nil && *l.LowHysteresis < 0 {
		return fmt.Errorf("%w: hysteresis of sensor %s: must not be negative", ErrUnknown, s.ID)
	}
	return nil
}

// watches puts levels of a sensor in order.
func (s *Sensor) watches(levels []Level) ([]Level, error) {
	var out []Level
	for _, l := range ladder {
		if slices.Contains(levels, l) && s.Limits.at(l) != nil {
			out = append(out, l)
		}
	}
	for _, l := range levels {
		if !slices.Contains(out, l) {
			return nil, fmt.Errorf("%w: level %q of sensor %s: must be one that it has a threshold for", ErrUnknown, l, s.ID)
		}
	}
	return out, nil
}

// Setting is how a sensor is watched.
func (v View) Setting(id string) Setting {
	for _, s := range v.state().Settings {
		if s.Sensor == id {
			return s
		}
	}
	return Setting{Sensor: id}
}

// Thresholds are those of a sensor as they are now. They are not to be changed.
func (v View) Thresholds(id string) *Limits {
	s := v.Model.Sensor(id)
	if s == nil {
		return new(Limits)
	}
	return v.limits(s)
}

// limits are the thresholds of a sensor.
func (v View) limits(s *Sensor) *Limits {
	for i := range v.state().Settings {
		if own := &v.st.Settings[i]; own.Sensor == s.ID && own.Limits != nil {
			return own.Limits
		}
	}
	return &s.Limits
}

// Rearm judges a sensor anew: what is beyond a threshold is told once more.
type Rearm struct{ Sensor string }

func (c Rearm) apply(_ *Inputs, m *Model) error {
	_, err := m.place(c.Sensor)
	return err
}

// unmarked is a state without the mark of a sensor.
func (st State) unmarked(sensor string) *State {
	st.Marks = slices.DeleteFunc(slices.Clone(st.Marks), func(m Mark) bool { return m.Sensor == sensor })
	if len(st.Marks) == 0 {
		st.Marks = nil
	}
	return &st
}

// known are the settings that fit the model: another release's may have others.
func (m *Model) known(all []Setting) []Setting {
	var out []Setting
	for _, own := range all {
		s := m.Sensor(own.Sensor)
		if s == nil {
			continue
		}
		if own.Limits != nil && s.takes(own.Limits) != nil {
			own.Limits = nil
		}
		var bad [2]error
		own.Reached, bad[0] = s.watches(own.Reached)
		own.Left, bad[1] = s.watches(own.Left)
		if !own.plain() && bad == [2]error{} {
			out = append(out, own)
		}
	}
	return out
}
