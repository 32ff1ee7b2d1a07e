package thermal

import (
	"math"
	"slices"
	"time"
)

// Level is a reading's position relative to the thresholds. Values are stored.
type Level string

// The levels.
const (
	LowCritical Level = "low critical"
	LowCaution  Level = "low caution"
	Normal      Level = ""
	Caution     Level = "caution"
	Critical    Level = "critical"
	Fatal       Level = "fatal"
)

// allLevels lists all levels from low to high.
var allLevels = []Level{LowCritical, LowCaution, Normal, Caution, Critical, Fatal}

func rank(l Level) int { return slices.Index(allLevels, l) }

var normal = rank(Normal)

// Bad returns the distance of a level from normal, 0 to 3.
func (l Level) Bad() int {
	d := rank(l) - normal
	return max(d, -d)
}

// Low reports whether a level is below normal.
func (l Level) Low() bool { return rank(l) < normal }

// at returns the threshold of a level; nil when there is none.
func (l *Limits) at(level Level) *float64 {
	switch level {
	case LowCritical:
		return l.LowCritical
	case LowCaution:
		return l.LowCaution
	case Caution:
		return l.Caution
	case Critical:
		return l.Critical
	case Fatal:
		return l.Fatal
	}
	return nil
}

// reached returns the reading at which a level begins: its threshold, or that
// of a worse level in the same direction if it is nearer.
func (l *Limits) reached(level Level) float64 {
	r := rank(level)
	out := *l.at(level)
	for ; r >= 0 && r < len(allLevels); r += sign(r - normal) {
		if at := l.at(allLevels[r]); at != nil && (*at < out) == (r > normal) {
			out = *at
		}
	}
	return out
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// slack returns the hysteresis on one side.
func (l *Limits) slack(s *Sensor, low bool) float64 {
	if low && l.LowHysteresis != nil {
		return max(s.Step, *l.LowHysteresis)
	}
	return max(s.Step, l.Hysteresis)
}

// beyond returns the next level in a direction and the raw reading at which it
// begins; false when there is none. A reading that is displayed as the
// threshold has reached it.
func (v View) beyond(s *Sensor, from Level, up bool) (to Level, at float64, ok bool) {
	l := v.limits(s)
	step := -1
	if up {
		step = 1
	}
	for r := rank(from) + step; r >= 0 && r < len(allLevels); r += step {
		to := allLevels[r]
		if to != Normal && l.at(to) == nil {
			continue
		}
		worse := (r > normal) == up && r != normal
		var reading float64
		switch {
		case worse && up:
			reading = l.reached(to) - s.Step/2
		case worse:
			reading = l.reached(to) + s.Step/2
		case up: // out of the low levels
			reading = l.reached(from) + l.slack(s, true) - s.Step/2
		default:
			reading = l.reached(from) - l.slack(s, false) + s.Step/2
		}
		return to, reading, true
	}
	return "", 0, false
}

// Level returns a sensor's present level.
func (v View) Level(id string) Level {
	for _, m := range v.state().Marks {
		if m.Sensor == id {
			return m.Level
		}
	}
	return Normal
}

// goal returns a sensor's final reading, which a sensor without lag has at
// once.
func (v View) goal(i int) float64 {
	for _, f := range v.state().Forced {
		if f.Sensor == v.Model.Sensors[i].ID {
			return f.Reading
		}
	}
	return v.target(i)
}

// crossing returns when a sensor's level next changes, and to what; false when
// it will not. A lagging reading approaches its goal monotonically, so it
// crosses exactly what lies in between.
func (v View) crossing(i int) (at time.Time, to Level, ok bool) {
	s := &v.Model.Sensors[i]
	if s.Limits == (Limits{}) || !v.reads(s) {
		return time.Time{}, "", false
	}
	is, end := v.Level(s.ID), v.goal(i)
	if to, line, ok := v.beyond(s, is, true); ok && end >= line {
		return v.reached(i, v.raw(i, v.state().At) >= line, line), to, true
	}
	if to, line, ok := v.beyond(s, is, false); ok && end <= line {
		return v.reached(i, v.raw(i, v.state().At) <= line, line), to, true
	}
	return time.Time{}, "", false
}

// reached returns when a sensor's reading reaches a line on its way, unless it
// already has.
func (v View) reached(i int, already bool, line float64) time.Time {
	s, st := &v.Model.Sensors[i], v.state()
	if already {
		return st.At
	}
	from, end := v.raw(i, st.At), v.goal(i)
	left := (line - end) / (from - end) // fraction of the distance to the goal that remains at the line
	if left < almost {
		left = almost
	}
	// Rounded up, so that the reading has certainly crossed the line.
	return st.At.Add(time.Duration(-s.lag*math.Log(left)*float64(time.Second)) + time.Microsecond)
}

// almost is the distance at which a lagging reading counts as having reached
// its goal.
const almost = 1e-9
