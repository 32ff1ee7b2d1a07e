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

	"github.com/metalab-dev/metalab/emulator/machine/console"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// Errors that services map to their own codes.
var (
	// ErrPower means that the power state does not allow it, or that it is
	// already as wanted.
	ErrPower = errors.New("machine: not in this power state")
	// ErrUnknown means that a value is none that the machine knows.
	ErrUnknown = errors.New("machine: unknown value")
	// ErrConflict means that values contradict each other, or what is set.
	ErrConflict = errors.New("machine: settings contradict each other")
	// ErrStale answers a report about a boot that is over.
	ErrStale = errors.New("machine: that boot is over")
)

// Machine is one server. It is not safe for concurrent use.
type Machine struct {
	profile  *Profile
	identity *Identity // with its labels as they are
	made     *Identity
	labelled *FRUOverrides // that identity was made of
	st       State
	forked   bool // st.Main is this step's own, and nobody else has seen it
	fw       firmware.Firmware
	disks    storage.Subsystem
	heat     thermal.Thermal
	kept     *BootOptionCache // of the last View
}

// State is what a Machine must remember across a restart of the lab, in parts.
// What a part leads to is never changed: a step that changes a part makes a new
// one, so that a part is as it was if and only if its pointer is.
type State struct {
	*Main             `json:"main"`
	Asset             *Asset             `json:"asset,omitempty"`      // nil: nothing was set
	FRUOverrides      *FRUOverrides      `json:"labels,omitempty"`     // nil: as it was made
	Boot              *BootSettings      `json:"boot,omitempty"`       // nil: as the model has it
	Policy            *PowerPolicy       `json:"policy,omitempty"`     // nil: as the model has it
	Cabling           *Cabling           `json:"cabling,omitempty"`    // nil: every port has a link
	Firmware          *firmware.State    `json:"firmware,omitempty"`   // nil: as it came
	Storage           *storage.State     `json:"storage,omitempty"`    // nil: as it came
	Thermal           *thermal.State     `json:"thermal,omitempty"`    // nil: as it came
	Telemetry         *Telemetry         `json:"telemetry,omitempty"`  // nil: as the model has it
	Watchdog          *Watchdog          `json:"watchdog,omitempty"`   // nil: disabled
	SecureBoot        *SecureBoot        `json:"secureBoot,omitempty"` // nil: as it came
	Console           *console.Console   `json:"console,omitempty"`    // nil: nothing was ever shown
	SystemBootOptions *SystemBootOptions `json:"bootInfo,omitempty"`   // nil: nothing was ever asked for
	FrontPanel        *FrontPanel        `json:"panel,omitempty"`      // nil: every button works
	PhysicalSecurity  *PhysicalSecurity  `json:"lid,omitempty"`        // nil: it was never opened
}

// Main is power, boot and what runs.
type Main struct {
	Phase           Phase         `json:"phase"`
	Since           time.Time     `json:"since,omitzero"`    // when the phase began; zero for one that was never on
	Deadline        time.Time     `json:"deadline,omitzero"` // of the phase; zero when nothing is awaited
	Progress        Progress      `json:"progress,omitempty"`
	ProgressAt      time.Time     `json:"progressAt,omitzero"`
	RestartAfterOff bool          `json:"again,omitempty"` // come up again after going down
	PendingReset    *PendingReset `json:"asked,omitempty"`
	WasOn           bool          `json:"wasOn,omitempty"`    // when the mains went
	ACCut           bool          `json:"noMains,omitempty"`  // somebody has cut them
	PowerLoss       PowerLoss     `json:"lost,omitempty"`     // what last took the power; "": a command, or a system
	PoweredFor      Duration      `json:"onFor,omitzero"`     // that it was on, until it last went off
	OnSince         time.Time     `json:"onSince,omitzero"`   // zero: it is off
	Cause           ResetCause    `json:"cause,omitempty"`    // of the start that is to come
	RestoreCause    RestorePolicy `json:"restores,omitempty"` // that brings it up, of CauseRestore
	Reset           *LastReset    `json:"reset,omitempty"`    // nil: it was never started
	Override        Override      `json:"override"`
	Boots           uint64        `json:"boots"`             // POSTs since the machine was made
	Retries         int           `json:"retries,omitempty"` // boots that found nothing, in a row, and were tried again
	BootTime        Duration      `json:"bootTime,omitzero"` // of the last boot, from the reset to a running system
	PendingSources  []Source      `json:"tries,omitempty"`   // sources not tried yet; the first is being tried
	FirmwareApp     SourceKind    `json:"app,omitempty"`     // the firmware's program that this boot goes to
	SuspendedImage  *Source       `json:"image,omitempty"`   // that a suspended system is on
	OS              *OS           `json:"os,omitempty"`      // what is loading or running
}

// View is a Machine as it stands. It shares nothing that changes, and two views
// have the same part if nothing in it has changed between them.
type View struct {
	Profile  *Profile
	Identity *Identity
	*Main
	Power             Power         // follows from the phase
	CurrentSource     *Source       // being tried now; nil when none is
	AC                bool          // there are mains; without them the BMC is off, too
	FRUOverrides      *FRUOverrides // nil: as it was made
	Asset             *Asset        // never nil, like all that follows
	Boot              *BootSettings
	Policy            *PowerPolicy
	Cabling           *Cabling
	Firmware          firmware.View
	Storage           storage.View
	Thermal           thermal.View
	Watchdog          *Watchdog
	Telemetry         *Telemetry
	SecureBoot        *SecureBoot
	BootOptionCache   *BootOptionCache // of Options; nil works, too
	Console           *console.Console // nil: nothing was ever shown
	SystemBootOptions *SystemBootOptions
	FrontPanel        *FrontPanel
	PhysicalSecurity  *PhysicalSecurity
}

// New makes a machine that is switched off, or restores one from what State
// returned. Parts that it lacks are as new.
func New(p *Profile, id Identity, st *State) (*Machine, error) {
	m := &Machine{profile: p, identity: &id, made: &id}
	if st != nil {
		m.st = *st
	}
	if m.st.Main == nil {
		m.st.Main = &Main{Phase: Off, Progress: NoProgress, Override: Override{Enabled: Disabled, Target: None, Mode: UEFI}}
	}
	if _, ok := phases[m.st.Phase]; !ok {
		return nil, fmt.Errorf("machine: %s: stored phase %q: %w", id.Name, m.st.Phase, ErrUnknown)
	}
	if err := m.newFirmware(); err != nil {
		return nil, err
	}
	if err := m.newStorage(); err != nil {
		return nil, err
	}
	m.newThermal()
	m.relabel()
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
	m.restoreStorage()
	m.heat.Restore(st.Thermal)
	m.relabel()
}

// View returns the machine as it stands.
func (m *Machine) View() View {
	st := m.State()
	v := View{
		Profile: m.profile, Identity: m.identity, Main: st.Main, Power: phases[st.Phase].power, AC: st.Phase != Unplugged,
		Asset: m.asset(), FRUOverrides: m.st.FRUOverrides, Boot: m.boot(), Policy: m.policy(), Cabling: m.cabling(), Firmware: m.fw.View(), Storage: m.disks.View(),
		Thermal: m.heat.View(), Watchdog: m.watchdog(), Telemetry: m.telemetry(), SecureBoot: m.secure(), BootOptionCache: m.bootable(),
		Console: st.Console, SystemBootOptions: m.bootInfo(), FrontPanel: m.panel(), PhysicalSecurity: m.lid(),
	}
	if st.Phase == Selecting && len(st.PendingSources) > 0 {
		v.CurrentSource = &st.PendingSources[0]
	}
	return v
}

// main is the part of the state that a step may write: its own copy.
func (m *Machine) main() *Main {
	if !m.forked {
		own := *m.st.Main
		own.PendingSources = slices.Clone(own.PendingSources)
		if own.OS != nil {
			own.OS = new(*own.OS)
		}
		m.st.Main, m.forked = &own, true
	}
	return m.st.Main
}

// Apply carries out a command at now, after advancing to it. The events are
// valid even with an error.
func (m *Machine) Apply(now time.Time, c Command) ([]Event, error) {
	evs := m.Advance(now)
	more, err := c.apply(m, now)
	return append(evs, more...), err
}
