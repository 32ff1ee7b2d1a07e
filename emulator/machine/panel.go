package machine

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Panel says which buttons at the front of a machine do nothing (IPMI v2.0
// rev 1.1, §28.6).
type Panel struct {
	PowerOff  bool `json:"powerOff,omitempty"` // the power button still switches on
	Reset     bool `json:"reset,omitempty"`
	Interrupt bool `json:"interrupt,omitempty"`
	// Boot are those beside until the next start, as a request for this boot
	// has wanted it.
	Boot Buttons `json:"boot,omitzero"`
}

// Buttons are those that can stop a machine.
type Buttons struct {
	PowerOff bool `json:"powerOff,omitempty"`
	Reset    bool `json:"reset,omitempty"`
}

// Dead are the buttons that do nothing, whatever the reason.
func (p *Panel) Dead() Buttons {
	return Buttons{PowerOff: p.PowerOff || p.Boot.PowerOff, Reset: p.Reset || p.Boot.Reset}
}

var openPanel = new(Panel)

func (m *Machine) panel() *Panel {
	if m.st.Panel == nil {
		return openPanel
	}
	return m.st.Panel
}

// SetPanel sets which buttons do nothing, whole but for those of this boot.
type SetPanel struct{ Panel }

func (c SetPanel) apply(m *Machine, _ time.Time) ([]Event, error) {
	c.Boot = m.panel().Boot
	m.setPanel(c.Panel)
	return nil, nil
}

func (m *Machine) setPanel(p Panel) {
	if *m.panel() != p {
		m.st.Panel = &p
	}
}

// lockPanel begins a boot in which those buttons do nothing.
func (m *Machine) lockPanel(boot Buttons) {
	p := *m.panel()
	p.Boot = boot
	m.setPanel(p)
}

// Lid is the cover of a machine, and what a sensor has seen of it.
type Lid struct {
	Open      bool `json:"open,omitempty"`
	Seen      bool `json:"seen,omitempty"`      // it was opened, and nobody has seen to it
	Automatic bool `json:"automatic,omitempty"` // closing it is enough
}

var shutLid = new(Lid)

func (m *Machine) lid() *Lid {
	if m.st.Lid == nil {
		return shutLid
	}
	return m.st.Lid
}

// setLid puts the lid in place, and tells what the sensor says if that differs.
func (m *Machine) setLid(now time.Time, l Lid) []Event {
	was := *m.lid()
	if was == l {
		return nil
	}
	m.st.Lid = &l
	if was.Seen == l.Seen {
		return nil
	}
	kind := event.LidClosed
	if l.Seen {
		kind = event.LidOpened
	}
	return []Event{event.Note{At: now, Kind: kind, Subject: event.Subject{Part: event.Chassis}}}
}

// OpenLid opens the cover, or closes it.
type OpenLid struct{ Open bool }

func (c OpenLid) apply(m *Machine, now time.Time) ([]Event, error) {
	l := *m.lid()
	l.Open = c.Open
	l.Seen = c.Open || l.Seen && !l.Automatic
	return m.setLid(now, l), nil
}

// SetLid says whether closing the cover is enough, and with Seen false that
// somebody has seen to it.
type SetLid struct{ Automatic, Seen bool }

func (c SetLid) apply(m *Machine, now time.Time) ([]Event, error) {
	l := *m.lid()
	if l.Open && !c.Seen || c.Seen && !l.Seen {
		return nil, fmt.Errorf("%w: the cover is open: %t", ErrConflict, l.Open)
	}
	l.Automatic, l.Seen = c.Automatic, c.Seen
	if l.Automatic {
		l.Seen = l.Open
	}
	return m.setLid(now, l), nil
}
