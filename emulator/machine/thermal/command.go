package thermal

import (
	"cmp"
	"fmt"
	"slices"
)

// Drive sets the server's power mode and its work.
type Drive struct {
	Mode Mode
	Work Work
}

func (c Drive) apply(in *Inputs, _ *Model) error {
	in.Mode, in.Work = c.Mode, c.Work
	if c.Mode != On {
		in.Work = ""
	}
	return nil
}

// SetLoad sets the utilization while the server is on, 0 to 1; nil lets it
// follow the work.
type SetLoad struct{ Load *float64 }

func (c SetLoad) apply(in *Inputs, _ *Model) error {
	if c.Load != nil && (*c.Load < 0 || *c.Load > 1) {
		return fmt.Errorf("%w load %v: must be 0 to 1", ErrUnknown, *c.Load)
	}
	in.Load = c.Load
	return nil
}

// SetAmbient sets the ambient temperature; nil restores the model's.
type SetAmbient struct{ Celsius *float64 }

func (c SetAmbient) apply(in *Inputs, _ *Model) error {
	if c.Celsius != nil && (*c.Celsius < -60 || *c.Celsius > 120) {
		return fmt.Errorf("%w ambient %v °C: must be -60 to 120", ErrUnknown, *c.Celsius)
	}
	in.Ambient = c.Celsius
	return nil
}

// FailFan stops a fan or starts it again.
type FailFan struct {
	ID     string
	Failed bool
}

func (c FailFan) apply(in *Inputs, m *Model) error {
	if !slices.ContainsFunc(m.Sensors, func(s Sensor) bool { return s.Kind == Speed && s.ID == c.ID }) {
		return fmt.Errorf("%w: fan %q", ErrUnknown, c.ID)
	}
	in.Fans = slices.DeleteFunc(slices.Clone(in.Fans), func(id string) bool { return id == c.ID })
	if c.Failed {
		in.Fans = append(in.Fans, c.ID)
		slices.Sort(in.Fans)
	}
	if len(in.Fans) == 0 {
		in.Fans = nil
	}
	return nil
}

// SetSupply sets or clears a power supply's fault.
type SetSupply struct {
	ID    string
	Fault Fault
}

func (c SetSupply) apply(in *Inputs, m *Model) error {
	known := false
	for n := range m.Supplies.Count {
		known = known || SupplyID(n) == c.ID
	}
	switch {
	case !known:
		return fmt.Errorf("%w: power supply %q", ErrUnknown, c.ID)
	case c.Fault != NoFault && c.Fault != Failed && c.Fault != NoInput && c.Fault != Absent:
		return fmt.Errorf("%w: fault %q of a power supply", ErrUnknown, c.Fault)
	}
	in.Supplies = slices.DeleteFunc(slices.Clone(in.Supplies), func(t Trouble) bool { return t.ID == c.ID })
	if c.Fault != NoFault {
		in.Supplies = append(in.Supplies, Trouble(c))
		slices.SortFunc(in.Supplies, func(a, b Trouble) int { return cmp.Compare(a.ID, b.ID) })
	}
	if len(in.Supplies) == 0 {
		in.Supplies = nil
	}
	return nil
}

// Force overrides a sensor's reading; nil ends that.
type Force struct {
	Sensor  string
	Reading *float64
}

func (c Force) apply(in *Inputs, m *Model) error {
	if _, err := m.place(c.Sensor); err != nil {
		return err
	}
	in.Forced = slices.DeleteFunc(slices.Clone(in.Forced), func(f Forced) bool { return f.Sensor == c.Sensor })
	if c.Reading != nil {
		in.Forced = append(in.Forced, Forced{c.Sensor, *c.Reading})
		slices.SortFunc(in.Forced, func(a, b Forced) int { return m.places[a.Sensor] - m.places[b.Sensor] })
	}
	if len(in.Forced) == 0 {
		in.Forced = nil
	}
	return nil
}

// SetLimit limits the input power in W; 0 removes the limit. The limit works by
// throttling, which cannot go below idle power.
type SetLimit struct{ Watts float64 }

func (c SetLimit) apply(in *Inputs, m *Model) error {
	if least, most := m.Limits(); c.Watts != 0 && (c.Watts < least || c.Watts > most) {
		return fmt.Errorf("%w limit %v W: must be %v to %v", ErrUnknown, c.Watts, least, most)
	}
	in.Limit = c.Watts
	return nil
}

// Limits returns the lowest and the highest input power limit in W.
func (m *Model) Limits() (least, most float64) {
	e := View{Model: m}.efficiency()
	round := func(w float64) float64 { return float64(int(w/e/10+1) * 10) }
	return round(m.Watts.Idle * 1.1), round(m.Watts.Full * 1.1)
}
