package thermal

import (
	"fmt"
	"reflect"
	"slices"
)

// Setting holds what was changed about a sensor's monitoring.
type Setting struct {
	Sensor string  `json:"sensor"`
	Limits *Limits `json:"limits,omitempty"` // nil: the model's
	Off    bool    `json:"off,omitempty"`    // scanning is disabled
	Silent bool    `json:"silent,omitempty"` // events are disabled
	// Reached and Left are the levels whose assertion and deassertion events
	// are disabled, from low to high.
	Reached []Level `json:"reached,omitempty"`
	Left    []Level `json:"left,omitempty"`
}

// plain reports whether a setting changes nothing.
func (s *Setting) plain() bool {
	return s.Limits == nil && !s.Off && !s.Silent && len(s.Reached) == 0 && len(s.Left) == 0
}

// mutes reports whether the event of a change of level is disabled.
func (s *Setting) mutes(from, to Level) bool {
	if to.Bad() > from.Bad() {
		return s.Silent || slices.Contains(s.Reached, to)
	}
	return s.Silent || slices.Contains(s.Left, from)
}

// Adjust replaces a sensor's setting. Thresholds need not increase, because
// clients set them one by one. A less severe one beyond a more severe one has
// no effect of its own.
type Adjust struct{ Setting }

func (c Adjust) apply(in *Inputs, m *Model) error {
	i, err := m.place(c.Sensor)
	if err != nil {
		return err
	}
	setting, s := c.Setting, &m.Sensors[i]
	if setting.Limits != nil {
		if err := s.takes(setting.Limits); err != nil {
			return err
		}
		if reflect.DeepEqual(*setting.Limits, s.Limits) {
			setting.Limits = nil
		}
	}
	for _, levels := range []*[]Level{&setting.Reached, &setting.Left} {
		if *levels, err = s.watches(*levels); err != nil {
			return err
		}
	}
	in.Settings = slices.DeleteFunc(slices.Clone(in.Settings), func(o Setting) bool { return o.Sensor == c.Sensor })
	if !setting.plain() {
		in.Settings = append(in.Settings, setting)
		slices.SortFunc(in.Settings, func(a, b Setting) int { return m.places[a.Sensor] - m.places[b.Sensor] })
	}
	if len(in.Settings) == 0 {
		in.Settings = nil
	}
	return nil
}

// takes checks thresholds against those that the sensor has: they can be moved,
// but not added.
func (s *Sensor) takes(l *Limits) error {
	for _, level := range allLevels {
		if (s.Limits.at(level) == nil) != (l.at(level) == nil) {
			return fmt.Errorf("%w: threshold %q of sensor %s: must be there if it is in the model, and only then", ErrUnknown, level, s.ID)
		}
	}
	if l.Hysteresis < 0 || l.LowHysteresis != nil && *l.LowHysteresis < 0 {
		return fmt.Errorf("%w: hysteresis of sensor %s: must not be negative", ErrUnknown, s.ID)
	}
	return nil
}

// watches sorts levels of a sensor.
func (s *Sensor) watches(levels []Level) ([]Level, error) {
	var out []Level
	for _, l := range allLevels {
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

// Setting returns a sensor's setting.
func (v View) Setting(id string) Setting {
	for _, s := range v.state().Settings {
		if s.Sensor == id {
			return s
		}
	}
	return Setting{Sensor: id}
}

// Thresholds returns a sensor's present thresholds, which must not be changed.
func (v View) Thresholds(id string) *Limits {
	s := v.Model.Sensor(id)
	if s == nil {
		return new(Limits)
	}
	return v.limits(s)
}

// limits returns a sensor's present thresholds.
func (v View) limits(s *Sensor) *Limits {
	for i := range v.state().Settings {
		if setting := &v.st.Settings[i]; setting.Sensor == s.ID && setting.Limits != nil {
			return setting.Limits
		}
	}
	return &s.Limits
}

// Rearm re-arms a sensor: a level that is not normal is reported again.
type Rearm struct{ Sensor string }

func (c Rearm) apply(_ *Inputs, m *Model) error {
	_, err := m.place(c.Sensor)
	return err
}

// unmarked returns a state without a sensor's mark.
func (st State) unmarked(sensor string) *State {
	st.Marks = slices.DeleteFunc(slices.Clone(st.Marks), func(m Mark) bool { return m.Sensor == sensor })
	if len(st.Marks) == 0 {
		st.Marks = nil
	}
	return &st
}

// known returns the settings whose sensors the model has: another release's
// model may differ.
func (m *Model) known(all []Setting) []Setting {
	var out []Setting
	for _, setting := range all {
		s := m.Sensor(setting.Sensor)
		if s == nil {
			continue
		}
		if setting.Limits != nil && s.takes(setting.Limits) != nil {
			setting.Limits = nil
		}
		var bad [2]error
		setting.Reached, bad[0] = s.watches(setting.Reached)
		setting.Left, bad[1] = s.watches(setting.Left)
		if !setting.plain() && bad == [2]error{} {
			out = append(out, setting)
		}
	}
	return out
}
