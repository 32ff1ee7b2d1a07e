package machine

import (
	"encoding/binary"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// Thermal is a command to what makes a machine warm, cools it and feeds it.
type Thermal struct{ thermal.Command }

func (c Thermal) apply(m *Machine, now time.Time) ([]Event, error) {
	evs, err := m.heat.Apply(now, c.Command)
	return m.heated(now, evs), err
}

// newThermal makes or restores it.
func (m *Machine) newThermal() {
	seed := binary.BigEndian.Uint64(drawn(m.identity.Root, "thermal", 0))
	m.heat = thermal.New(&m.profile.Thermal, seed, m.st.Thermal)
	m.st.Thermal = m.heat.State()
}

// works are what a machine is busy with in the phases in which it has power.
var works = map[Phase]thermal.Work{
	Starting: thermal.Starting, POST: thermal.Testing, Selecting: thermal.Waiting, InSetup: thermal.Waiting, Halted: thermal.Waiting,
	Loading: thermal.Loading, Running: thermal.Idling, Paused: thermal.Idling, Crashed: thermal.Waiting, Stopping: thermal.Loading,
	Cutting: thermal.Waiting,
}

// drive makes the load what the phase makes of it.
func (m *Machine) drive(now time.Time) []Event {
	d := thermal.Drive{Mode: thermal.On, Work: works[m.st.Phase]}
	switch {
	case m.st.Phase == Unplugged:
		d.Mode = thermal.Dark
	case d.Work == "":
		d.Mode = thermal.Standby
	case m.st.Phase == Running && m.st.OS.Busy:
		d.Work = thermal.Working
	}
	evs, err := m.heat.Apply(now, d)
	if err != nil {
		panic(err) // these are ours
	}
	return m.heated(now, evs)
}

// heated is what follows from events of the heat and the supplies: a machine
// that is too hot switches itself off, and one without a power supply is without
// mains.
func (m *Machine) heated(now time.Time, evs []event.Event) []Event {
	changed := m.st.Thermal != m.heat.State()
	m.st.Thermal = m.heat.State()
	var out []Event
	if changed {
		out = append(out, m.reportChange(now)...)
	}
	for _, ev := range evs {
		switch ev := ev.(type) {
		case thermal.Overheated:
			if !m.can(cut) {
				continue
			}
			own := m.main()
			own.RestartAfterOff, own.Cause = false, CauseHeat
			out = append(out, note(ev.At, event.Overheated))
			out = append(out, m.step(ev.At, cut)...)
			m.main().PowerLoss = LostHeat
		case thermal.Fed:
			switch {
			case !ev.On && m.can(mainsGone):
				out = append(out, m.loseMains(now)...)
			case ev.On && m.can(mainsBack) && !m.st.ACCut:
				out = append(out, m.regainMains(now)...)
			}
		default:
			out = append(out, ev)
		}
	}
	return out
}
