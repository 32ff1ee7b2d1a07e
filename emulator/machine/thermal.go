package machine

import (
	"encoding/binary"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// Thermal is a command to the machine's thermal model, fans and power supplies.
type Thermal struct{ thermal.Command }

func (c Thermal) apply(m *Machine, now time.Time) ([]Event, error) {
	evs, err := m.heat.Apply(now, c.Command)
	return m.thermalEvents(now, evs), err
}

// newThermal creates or restores the thermal model.
func (m *Machine) newThermal() {
	seed := binary.BigEndian.Uint64(deriveBytes(m.identity.Root, "thermal", 0))
	m.heat = thermal.New(&m.profile.Thermal, seed, m.st.Thermal)
	m.st.Thermal = m.heat.State()
}

// phaseWork maps the phases with power to the machine's load.
var phaseWork = map[Phase]thermal.Work{
	Starting: thermal.Starting, POST: thermal.Testing, Selecting: thermal.Waiting, InSetup: thermal.Waiting, Halted: thermal.Waiting,
	Loading: thermal.Loading, Running: thermal.Idling, Paused: thermal.Idling, Crashed: thermal.Waiting, Stopping: thermal.Loading,
	Cutting: thermal.Waiting,
}

// updateLoad sets the thermal load that follows from the phase.
func (m *Machine) updateLoad(now time.Time) []Event {
	d := thermal.Drive{Mode: thermal.On, Work: phaseWork[m.st.Phase]}
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
		panic(err) // these commands are valid
	}
	return m.thermalEvents(now, evs)
}

// thermalEvents handles events of the thermal model and the power supplies: an
// overheated machine powers off, and one without working power supply loses
// power.
func (m *Machine) thermalEvents(now time.Time, evs []event.Event) []Event {
	changed := m.st.Thermal != m.heat.State()
	m.st.Thermal = m.heat.State()
	var out []Event
	if changed {
		out = append(out, m.makeChangeReports(now)...)
	}
	for _, ev := range evs {
		switch ev := ev.(type) {
		case thermal.Overheated:
			if !m.can(powerCut) {
				continue
			}
			main := m.main()
			main.RestartAfterOff, main.Cause = false, CauseHeat
			out = append(out, note(ev.At, event.Overheated))
			out = append(out, m.step(ev.At, powerCut)...)
			m.main().PowerLoss = LostHeat
		case thermal.Fed:
			switch {
			case !ev.On && m.can(acLost):
				out = append(out, m.losePower(now)...)
			case ev.On && m.can(acRestored) && !m.st.ACCut:
				out = append(out, m.restorePower(now)...)
			}
		default:
			out = append(out, ev)
		}
	}
	return out
}
