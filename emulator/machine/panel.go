package machine

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// FrontPanel says which buttons at the front of a machine do nothing (IPMI v2.0
// rev 1.1, §28.6).
type FrontPanel struct {
	PowerOff  bool `json:"powerOff,omitempty"` // the power button still switches on
	Reset     bool `json:"reset,omitempty"`
	Interrupt bool `json:"interrupt,omitempty"`
	// Boot are those beside until the next start, as a request for this boot
	// has wanted it.
	ThisBoot Buttons `json:"boot,omitzero"`
}

// Buttons are those that can stop a machine.
type Buttons struct {
	PowerOff bool `json:"powerOff,omitempty"`
	Reset    bool `json:"reset,omitempty"`
}

// DisabledButtons are the buttons that do nothing, whatever the reason.
func (p *FrontPanel) DisabledButtons() Buttons {
	return Buttons{PowerOff: p.PowerOff || p.ThisBoot.PowerOff, Reset: p.Reset || p.ThisBoot.Reset}
}

var openPanel = new(FrontPanel)

func (m *Machine) panel() *FrontPanel {
	if m.st.FrontPanel == nil {
		return openPanel
	}
	return m.st.FrontPanel
}

// SetFrontPanel sets which buttons do nothing, whole but for those of this boot.
type SetFrontPanel struct{ FrontPanel }

func (c SetFrontPanel) apply(m *Machine, _ time.Time) ([]Event, error) {
	c.ThisBoot = m.panel().ThisBoot
	m.setPanel(c.FrontPanel)
	return nil, nil
}

func (m *Machine) setPanel(p FrontPanel) {
	if *m.panel() != p {
		m.st.FrontPanel = &p
	}
}

// lockPanel begins a boot in which those buttons do nothing.
func (m *Machine) lockPanel(boot Buttons) {
	p := *m.panel()
	p.ThisBoot = boot
	m.setPanel(p)
}

// PhysicalSecurity is the cover of a machine, and what a sensor has seen of it.
type PhysicalSecurity struct {
	CoverOpen bool `json:"open,omitempty"`
	Intrusion bool `json:"seen,omitempty"`      // it was opened, and nobody has seen to it
	AutoRearm bool `json:"automatic,omitempty"` // closing it is enough
}

var shutLid = new(PhysicalSecurity)

func (m *Machine) lid() *PhysicalSecurity {
	if m.st.PhysicalSecurity == nil {
		return shutLid
	}
	return m.st.PhysicalSecurity
}

// setLid puts the lid in place, and tells what the sensor says if that differs.
func (m *Machine) setLid(now time.Time, l PhysicalSecurity) []Event {
	was := *m.lid()
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

// OpenCover opens the cover, or closes it.
type OpenCover struct{ Open bool }

func (c OpenCover) apply(m *Machine, now time.Time) ([]Event, error) {
	l := *m.lid()
	l.CoverOpen = c.Open
	l.Intrusion = c.Open || l.Intrusion && !l.AutoRearm
	return m.setLid(now, l), nil
}

// SetIntrusionSensor says whether closing the cover is enough, and with Seen false that
// somebody has seen to it.
type SetIntrusionSensor struct{ AutoRearm, Intrusion bool }

func (c SetIntrusionSensor) apply(m *Machine, now time.Time) ([]Event, error) {
	l := *m.lid()
	if l.CoverOpen && !c.Intrusion || c.Intrusion && !l.Intrusion {
		return nil, fmt.Errorf("%w: the cover is open: %t", ErrConflict, l.CoverOpen)
	}
	l.AutoRearm, l.Intrusion = c.AutoRearm, c.Intrusion
	if l.AutoRearm {
		l.Intrusion = l.CoverOpen
	}
	return m.setLid(now, l), nil
}
