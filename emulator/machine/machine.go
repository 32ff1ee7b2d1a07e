// Package machine is a server without its BMC: power, POST, boot sources and
// what is running. A Machine is a value that is stepped: Apply takes a command,
// Advance takes time, both return events, and Deadline names the next time at
// which something happens by itself. It starts no goroutine and opens no
// socket, file or clock; it knows neither Redfish nor IPMI, and it does not
// know what is on a disk: whoever looks there answers the BootTried event with
// Loaded or NotBootable.
package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// Errors that services map to their own codes.
var (
	// ErrPower means that the power state does not allow it, or that it is
	// already as wanted.
	ErrPower = errors.New("machine: not in this power state")
	// ErrUnknown means that a value is none that the machine knows.
	ErrUnknown = errors.New("machine: unknown value")
	// ErrStale answers a report about a boot that is over.
	ErrStale = errors.New("machine: that boot is over")
)

// Machine is one server. It is not safe for concurrent use.
type Machine struct {
	profile  *Profile
	identity *Identity
	st       State
	forked   bool // st.Main is this step's own, and nobody else has seen it
	fw       firmware.Firmware
}

// State is what a Machine must remember across a restart of the lab, in parts.
// What a part leads to is never changed: a step that changes a part makes a new
// one, so that a part is as it was if and only if its pointer is.
type State struct {
	*Main `json:"main"`
	Asset *Asset `json:"asset,omitempty"` // nil: nothing was set

	Firmware *firmware.State `json:"firmware,omitempty"` // nil: as it came
}

// Main is power, boot and what runs.
type Main struct {
	Phase    Phase     `json:"phase"`
	Deadline time.Time `json:"deadline,omitzero"` // of the phase; zero when nothing is awaited
	Again    bool      `json:"again,omitempty"`   // come up again after going down
	Override Override  `json:"override"`
	Boots    uint64    `json:"boots"`           // POSTs since the machine was made
	Tries    []Source  `json:"tries,omitempty"` // sources not tried yet; the first is being tried
	Setup    bool      `json:"setup,omitempty"` // this boot goes to the firmware's set-up
	OS       *OS       `json:"os,omitempty"`    // what is loading or running
}

// Asset is what people write on a machine.
type Asset struct {
	Tag       string `json:"tag,omitempty"`
	HostName  string `json:"hostName,omitempty"`
	Indicator bool   `json:"indicator,omitempty"` // the light that shows where it stands
}

// Source is something that a machine can boot from.
type Source struct {
	Kind   SourceKind `json:"kind"`
	Device string     `json:"device,omitempty"` // drive or NIC ID; "" of a CD: the BMC's media
}

// SourceKind is a boot target; the values are Redfish's BootSource (DSP2046,
// ComputerSystem.Boot.BootSourceOverrideTarget).
type SourceKind string

// The boot targets.
const (
	None      SourceKind = "None"
	Pxe       SourceKind = "Pxe"
	Cd        SourceKind = "Cd"
	Hdd       SourceKind = "Hdd"
	BiosSetup SourceKind = "BiosSetup"
)

// SourceKinds are all boot targets, in the order in which services list them.
var SourceKinds = []SourceKind{None, Pxe, Cd, Hdd, BiosSetup}

// Enabled says for how long an override holds.
type Enabled string

// The values of Override.Enabled, as Redfish spells them.
const (
	Disabled   Enabled = "Disabled"
	Once       Enabled = "Once"
	Continuous Enabled = "Continuous"
)

// Enableds are all values of Enabled.
var Enableds = []Enabled{Disabled, Once, Continuous}

// Mode is the firmware interface of a boot.
type Mode string

// The boot modes, as Redfish spells them.
const (
	UEFI   Mode = "UEFI"
	Legacy Mode = "Legacy"
)

// Modes are all boot modes.
var Modes = []Mode{UEFI, Legacy}

// Override takes precedence over the boot order.
type Override struct {
	Enabled Enabled    `json:"enabled"`
	Target  SourceKind `json:"target"`
	Mode    Mode       `json:"mode"`
}

// OS is a system that was loaded.
type OS struct {
	Source Source `json:"source"`
	Name   string `json:"name"` // for people: "agent", "disk"
	Boot   uint64 `json:"boot"` // State.Boots when it was loaded
}

// View is a Machine as it stands. It shares nothing that changes, and two views
// have the same part if nothing in it has changed between them.
type View struct {
	Profile  *Profile
	Identity *Identity
	*Main
	Power  Power   // follows from the phase
	Trying *Source // being tried now; nil when none is
	Asset  *Asset  // never nil

	Firmware firmware.View
}

// New makes a machine that is switched off, or restores one from what State
// returned. Parts that it lacks are as new.
func New(p *Profile, id Identity, st *State) (*Machine, error) {
	m := &Machine{profile: p, identity: &id}
	if st != nil {
		m.st = *st
	}
	if m.st.Main == nil {
		m.st.Main = &Main{Phase: Off, Override: Override{Enabled: Disabled, Target: None, Mode: UEFI}}
	}
	if _, ok := phases[m.st.Phase]; !ok {
		return nil, fmt.Errorf("machine: %s: stored phase %q: %w", id.Name, m.st.Phase, ErrUnknown)
	}
	if err := m.newFirmware(); err != nil {
		return nil, err
	}
	return m, nil
}

// State returns what New needs to restore the machine.
func (m *Machine) State() State {
	m.forked = false
	return m.st
}

// Restore puts a machine back to a state that it had.
func (m *Machine) Restore(st State) {
	m.st, m.forked = st, false
	m.restoreFirmware()
}

// noAsset is what is written on a machine on which nobody wrote.
var noAsset = new(Asset)

// View returns the machine as it stands.
func (m *Machine) View() View {
	st := m.State()
	v := View{Profile: m.profile, Identity: m.identity, Main: st.Main, Power: phases[st.Phase].power, Asset: st.Asset, Firmware: m.fw.View()}
	if st.Phase == Selecting && len(st.Tries) > 0 {
		v.Trying = &st.Tries[0]
	}
	if v.Asset == nil {
		v.Asset = noAsset
	}
	return v
}

// main is the part of the state that a step may write: its own copy.
func (m *Machine) main() *Main {
	if !m.forked {
		own := *m.st.Main
		own.Tries = slices.Clone(own.Tries)
		if own.OS != nil {
			own.OS = new(*own.OS)
		}
		m.st.Main, m.forked = &own, true
	}
	return m.st.Main
}

// Deadline is when the machine next changes by itself; false when it waits for
// a command.
func (m *Machine) Deadline() (time.Time, bool) {
	at, ok := m.fw.Deadline()
	if own := m.st.Deadline; !own.IsZero() && (!ok || own.Before(at)) {
		return own, true
	}
	return at, ok
}

// Advance moves the machine to now.
func (m *Machine) Advance(now time.Time) []Event {
	var evs []Event
	for {
		at, ok := m.Deadline()
		if !ok || now.Before(at) {
			return evs
		}
		if due, ok := m.fw.Deadline(); ok && due.Equal(at) { // what POST waits for comes before its end
			evs = append(evs, m.heard(at, m.fw.Advance(at))...)
			continue
		}
		evs = append(evs, m.step(at, elapsed)...)
	}
}

// Apply carries out a command at now, after advancing to it. The events are
// valid even with an error.
func (m *Machine) Apply(now time.Time, c Command) ([]Event, error) {
	evs := m.Advance(now)
	more, err := c.apply(m, now)
	return append(evs, more...), err
}

// sources lists what this boot tries, in order: the override's target first,
// then the boot order. A one-shot override is spent by this.
func (m *Machine) sources() (tries []Source, setup bool) {
	kinds := m.profile.BootOrder
	if o := m.st.Override; o.Enabled != Disabled {
		if o.Target == BiosSetup {
			setup = true
		} else if o.Target != None {
			kinds = append([]SourceKind{o.Target}, kinds...)
		}
		if o.Enabled == Once {
			own := &m.main().Override
			own.Enabled, own.Target = Disabled, None
		}
	}
	seen := map[SourceKind]bool{}
	for _, k := range kinds {
		if seen[k] {
			continue
		}
		seen[k] = true
		tries = append(tries, m.devices(k)...)
	}
	return slices.DeleteFunc(tries, func(s Source) bool { return !m.offers(s) }), setup
}

func (m *Machine) devices(k SourceKind) []Source {
	switch k {
	case Cd:
		return []Source{{Kind: Cd}}
	case Hdd:
		var out []Source
		for _, c := range m.identity.Storage {
			for _, d := range c.Drives {
				out = append(out, Source{Kind: Hdd, Device: d.ID})
			}
		}
		return out
	case Pxe:
		var out []Source
		for _, n := range m.identity.NICs {
			out = append(out, Source{Kind: Pxe, Device: n.ID})
		}
		return out
	}
	return nil
}
