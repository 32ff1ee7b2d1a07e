package thermal

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Load returns the present utilization, 0 to 1, and what it would be without
// throttling.
func (v View) Load() (is, wanted float64) {
	in, m := &v.state().Inputs, v.Model
	if in.Mode != On {
		return 0, 0
	}
	wanted = float64(m.Work[in.Work]) / 100
	if in.Load != nil {
		wanted = *in.Load
	}
	room := m.Watts.Full - m.Watts.Idle
	if room <= 0 {
		return wanted, wanted
	}
	may := m.Supplies.Watts * float64(len(v.feeding()))
	if m.Supplies.Count == 0 {
		may = math.Inf(1)
	}
	if in.Limit > 0 {
		may = min(may, in.Limit*v.efficiency())
	}
	return min(wanted, max(0, (may/v.vary(-1, 0.015)-m.Watts.Idle)/room)), wanted
}

// efficiency returns the power supplies' output power per input power.
func (v View) efficiency() float64 {
	if e := v.Model.Supplies.Efficiency; e > 0 {
		return e / 100
	}
	return 1
}

// feeding returns the indexes of the power supplies that deliver power.
func (v View) feeding() []int {
	if v.state().Mode == Dark {
		return nil
	}
	return v.working()
}

// SupplyFault returns the fault of the n-th power supply.
func (v View) SupplyFault(n int) Fault {
	for _, t := range v.state().Supplies {
		if t.ID == SupplyID(n) {
			return t.Fault
		}
	}
	return NoFault
}

// draw returns the power supplies' output power in W.
func (v View) draw() float64 {
	w := v.Model.Watts
	switch v.state().Mode {
	case Dark:
		return 0
	case Standby:
		return w.Standby * v.vary(-1, 0.015)
	}
	load, _ := v.Load()
	return (w.Idle + (w.Full-w.Idle)*load) * v.vary(-1, 0.015)
}

// Watts returns the input power in W.
func (v View) Watts() float64 {
	if v.Model.Supplies.Count > 0 && len(v.feeding()) == 0 {
		return 0
	}
	return v.draw() / v.efficiency()
}

// joules returns the input energy until now.
func (v View) joules(now time.Time) float64 {
	st := v.state()
	if st.At.IsZero() {
		return 0
	}
	return st.Joules + v.Watts()*max(0, now.Sub(st.At).Seconds())
}

// Limit returns the input power limit in W; 0: none.
func (v View) Limit() float64 { return v.state().Limit }

// Energy returns the input energy since Since, in J.
func (v View) Energy(now time.Time) float64 { return v.joules(now) }

// Since returns when energy counting began; zero: not yet.
func (v View) Since() time.Time { return v.state().Since }

// Ambient returns the ambient temperature in °C.
func (v View) Ambient() float64 {
	if a := v.state().Ambient; a != nil {
		return *a
	}
	return v.Model.Ambient
}

// rise returns a zone's temperature above ambient with sufficient airflow.
func (v View) rise(zone int) float64 {
	if v.state().Mode != On {
		return 0
	}
	z := v.Model.Zones[zone]
	load, _ := v.Load()
	return z.Rise[0] + (z.Rise[1]-z.Rise[0])*load
}

// turning returns the number of fans that turn.
func (v View) turning() int { return v.Model.Fans.Count - len(v.state().Fans) }

// wanted returns the duty cycle that all fans together would need.
func (v View) wanted() float64 {
	f := v.Model.Fans
	least := f.Least / 100
	if v.state().Mode != On || f.Count == 0 {
		return 0
	}
	hot := v.Ambient() + v.rise(v.Model.follows)
	part := 0.0
	if f.Curve[1] > f.Curve[0] {
		part = min(1, max(0, (hot-f.Curve[0])/(f.Curve[1]-f.Curve[0])))
	}
	return least + (1-least)*part
}

// duty returns the duty cycle of the fans that turn: they make up for failed
// ones as far as they can.
func (v View) duty() float64 {
	if v.turning() <= 0 {
		return 0
	}
	return min(1, v.wanted()*float64(v.Model.Fans.Count)/float64(v.turning()))
}

// leastAir is the share of the airflow that remains without fans.
const leastAir = 0.2

// air returns the airflow relative to the wanted one.
func (v View) air() float64 {
	w := v.wanted()
	if w <= 0 {
		return 1
	}
	moved := v.duty() * float64(v.turning()) / float64(v.Model.Fans.Count)
	return max(leastAir, min(1, moved/w))
}

// target returns a sensor's final reading if nothing changes.
func (v View) target(i int) float64 {
	s, in, m := &v.Model.Sensors[i], v.state(), v.Model
	load, _ := v.Load()
	switch s.Kind {
	case Temperature:
		return v.Ambient() + v.rise(s.zone)/v.air() + v.off(i, s.share)
	case Speed:
		if slices.Contains(in.Fans, s.ID) {
			return 0
		}
		return v.duty() * m.Fans.RPM * v.vary(i, s.share)
	case Voltage:
		if s.Part != Supply {
			r := m.Rails[s.rail]
			return r.Volts * (1 - r.Droop/100*load) * v.vary(i, s.share)
		}
		if f := v.SupplyFault(s.N); f == NoInput || f == Absent || in.Mode == Dark {
			return 0
		}
		return m.Supplies.Volts * v.vary(i, s.share)
	case Power:
		return v.watts(s, load)
	}
	return 0
}

// watts returns the reading of a power sensor.
func (v View) watts(s *Sensor, load float64) float64 {
	m := v.Model
	switch s.Part {
	case Supply:
		works := v.feeding()
		if !slices.Contains(works, s.N) {
			return 0
		}
		out := v.draw() / float64(len(works))
		if s.Measure == Output {
			return out
		}
		return out / v.efficiency()
	case Chassis:
		return v.Watts()
	}
	// The share of a part is the same at idle and at full load.
	part := m.Watts.Memory
	if s.Part == Processor {
		part = m.Watts.Processors / float64(max(1, m.count(Processor, Power)))
	}
	idle := 0.0
	if m.Watts.Full > 0 {
		idle = m.Watts.Idle / m.Watts.Full
	}
	return part * (idle + (1-idle)*load) * v.vary(-1, 0.015)
}

// count returns the number of sensors of a part and kind.
func (m *Model) count(p Part, k Kind) int {
	n := 0
	for i := range m.Sensors {
		if m.Sensors[i].Part == p && m.Sensors[i].Kind == k {
			n++
		}
	}
	return n
}

// follow returns a sensor's exact reading at a time, without Force.
func (v View) follow(i int, now time.Time) float64 {
	s, to := &v.Model.Sensors[i], v.target(i)
	st := v.state()
	if s.slot < 0 || st.Values == nil || s.lag <= 0 {
		return to
	}
	gone := max(0, now.Sub(st.At).Seconds())
	return to + (st.Values[s.slot]-to)*math.Exp(-gone/s.lag)
}

// raw returns a sensor's reading at a time before rounding.
func (v View) raw(i int, now time.Time) float64 {
	s := &v.Model.Sensors[i]
	for _, f := range v.state().Forced {
		if f.Sensor == s.ID {
			return f.Reading
		}
	}
	if s.Kind == Energy {
		return v.joules(now) / 3.6e6
	}
	return v.follow(i, now)
}

// off returns the deviation of this server's part from the mean, within ±far.
func (v View) off(i int, far float64) float64 {
	if far == 0 {
		return 0
	}
	r := rand.New(rand.NewPCG(v.seed, uint64(i+2)))
	return far * (2*r.Float64() - 1)
}

// vary returns the same deviation as a factor.
func (v View) vary(i int, far float64) float64 { return 1 + v.off(i, far) }

// reads reports whether a sensor has a reading in the present mode.
func (v View) reads(s *Sensor) bool {
	st := v.state()
	switch {
	case st.Mode == Dark:
		return false
	case s.Part == Supply && v.SupplyFault(s.N) == Absent, v.Setting(s.ID).Off:
		return false
	}
	return s.Standby || st.Mode == On
}

// Reading returns a sensor's reading; false when it has none now.
func (v View) Reading(id string, now time.Time) (float64, bool) {
	i, ok := v.Model.places[id]
	if !ok {
		return 0, false
	}
	s := &v.Model.Sensors[i]
	if !v.reads(s) {
		return 0, false
	}
	return s.rounded(v.raw(i, now)), true
}

// rounded returns a reading rounded to the sensor's step.
func (s *Sensor) rounded(x float64) float64 {
	// Multiply by the inverse where that is an integer: 0.01 has no exact
	// representation.
	if inverse := math.Round(1 / s.Step); s.Step < 1 && inverse > 0 {
		return math.Round(x*inverse) / inverse
	}
	return math.Round(x/s.Step) * s.Step
}
