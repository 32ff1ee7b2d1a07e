package machine

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// FrontPanel says which front panel buttons are disabled (IPMI v2.0 rev 1.1,
// §28.6).
type FrontPanel struct {
	PowerOff  bool `json:"powerOff,omitempty"` // the power button still switches on
	Reset     bool `json:"reset,omitempty"`
	Interrupt bool `json:"interrupt,omitempty"`
	// ThisBoot are buttons that a boot request disables until the next start.
	ThisBoot Buttons `json:"boot,omitzero"`
}

// Buttons are the buttons that can stop a machine.
type Buttons struct {
	PowerOff bool `json:"powerOff,omitempty"`
	Reset    bool `json:"reset,omitempty"`
}

// DisabledButtons returns the buttons that are disabled for any reason.
func (p *FrontPanel) DisabledButtons() Buttons {
	return Buttons{PowerOff: p.PowerOff || p.ThisBoot.PowerOff, Reset: p.Reset || p.ThisBoot.Reset}
}

var enabledPanel = new(FrontPanel)

func (m *Machine) frontPanel() *FrontPanel {
	if m.st.FrontPanel == nil {
		return enabledPanel
	}
	return m.st.FrontPanel
}

// SetFrontPanel replaces the disabled buttons, except for ThisBoot.
type SetFrontPanel struct{ FrontPanel }

func (c SetFrontPanel) apply(m *Machine, _ time.Time) ([]Event, error) {
	c.ThisBoot = m.frontPanel().ThisBoot
	m.updateFrontPanel(c.FrontPanel)
	return nil, nil
}

func (m *Machine) updateFrontPanel(p FrontPanel) {
	if *m.frontPanel() != p {
		m.st.FrontPanel = &p
	}
}

// disableButtonsForBoot disables buttons for a boot that begins.
func (m *Machine) disableButtonsForBoot(boot Buttons) {
	p := *m.frontPanel()
	p.ThisBoot = boot
	m.updateFrontPanel(p)
}

// PhysicalSecurity is the state of a machine's cover and of its intrusion
// sensor (DSP2046, Chassis.PhysicalSecurity).
type PhysicalSecurity struct {
	CoverOpen bool `json:"open,omitempty"`
	Intrusion bool `json:"seen,omitempty"`      // the cover was opened, and the sensor was not re-armed
	AutoRearm bool `json:"automatic,omitempty"` // closing the cover re-arms the sensor
}

var closedCover = new(PhysicalSecurity)

func (m *Machine) physicalSecurity() *PhysicalSecurity {
	if m.st.PhysicalSecurity == nil {
		return closedCover
	}
	return m.st.PhysicalSecurity
}

// updatePhysicalSecurity stores the state and logs a change of the sensor.
func (m *Machine) updatePhysicalSecurity(now time.Time, l PhysicalSecurity) []Event {
	was := *m.physicalSecurity()
	if was == l {
		return nil
	}
	m.st.PhysicalSecurity = &l
	if was.Intrusion == l.Intrusion {
		return nil
	}
	kind := event.CoverClosed
	if l.Intrusion {
		kind = event.CoverOpened
	}
	return []Event{event.Note{At: now, Kind: kind, Subject: event.Subject{Part: event.Chassis}}}
}

// OpenCover opens or closes the cover.
type OpenCover struct{ Open bool }

func (c OpenCover) apply(m *Machine, now time.Time) ([]Event, error) {
	l := *m.physicalSecurity()
	l.CoverOpen = c.Open
	l.Intrusion = c.Open || l.Intrusion && !l.AutoRearm
	return m.updatePhysicalSecurity(now, l), nil
}

// SetIntrusionSensor sets whether closing the cover re-arms the sensor;
// Intrusion false re-arms it now.
type SetIntrusionSensor struct{ AutoRearm, Intrusion bool }

func (c SetIntrusionSensor) apply(m *Machine, now time.Time) ([]Event, error) {
	l := *m.physicalSecurity()
	if l.CoverOpen && !c.Intrusion || c.Intrusion && !l.Intrusion {
		return nil, fmt.Errorf("%w: the cover is open: %t", ErrConflict, l.CoverOpen)
	}
	l.AutoRearm, l.Intrusion = c.AutoRearm, c.Intrusion
	if l.AutoRearm {
		l.Intrusion = l.CoverOpen
	}
	return m.updatePhysicalSecurity(now, l), nil
}
