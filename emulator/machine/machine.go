// Package machine models a server without its BMC: power, POST, boot sources
// and the running operating system. A Machine is stepped: Apply takes a
// command, Advance takes time, both return events, and Deadline returns the
// time of the next change. It starts no goroutine and opens no socket, file or
// clock. It knows neither Redfish nor IPMI, nor what a disk holds: the caller
// looks and answers the BootAttempted event with Loaded or NotBootable.
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
	// ErrPower means that the power state does not allow the command, or is
	// already the requested one.
	ErrPower = errors.New("not in this power state")
	// ErrUnknown means that a value is not one of those allowed.
	ErrUnknown = errors.New("unknown value")
	// ErrConflict means that values contradict each other or the current
	// settings.
	ErrConflict = errors.New("settings contradict each other")
	// ErrStale answers a report about a boot that has ended.
	ErrStale = errors.New("that boot is over")
)

// Machine is one server. It is not safe for concurrent use.
type Machine struct {
	profile          *Profile
	identity         *Identity // with the FRU overrides applied
	factoryIdentity  *Identity
	appliedOverrides *FRUOverrides // that identity was made of
	st               State
	client           time.Time // client time; zero: it is lab time
	mainOwned        bool      // st.Main is a copy made in this step, which nobody else has seen
	fw               firmware.Firmware
	disks            storage.Subsystem
	heat             thermal.Thermal
	bootOptions      *BootOptionCache // boot options of the last View
}

// State is the state of a Machine that outlives a restart of the rack, in parts. A part
// is immutable: a step that changes a part replaces it, so that equal pointers
// mean equal content.
type State struct {
	*Main             `json:"main"`
	Asset             *Asset             `json:"asset,omitempty"`      // nil: never set
	FRUOverrides      *FRUOverrides      `json:"labels,omitempty"`     // nil: factory values
	Boot              *BootSettings      `json:"boot,omitempty"`       // nil: the model's
	Policy            *PowerPolicy       `json:"policy,omitempty"`     // nil: the model's
	Cabling           *Cabling           `json:"cabling,omitempty"`    // nil: every port has a link
	Firmware          *firmware.State    `json:"firmware,omitempty"`   // nil: factory state
	Storage           *storage.State     `json:"storage,omitempty"`    // nil: factory state
	Thermal           *thermal.State     `json:"thermal,omitempty"`    // nil: factory state
	Telemetry         *Telemetry         `json:"telemetry,omitempty"`  // nil: the model's
	Watchdog          *Watchdog          `json:"watchdog,omitempty"`   // nil: disabled
	SecureBoot        *SecureBoot        `json:"secureBoot,omitempty"` // nil: factory state
	Console           *console.Console   `json:"console,omitempty"`    // nil: never printed
	SystemBootOptions *SystemBootOptions `json:"bootInfo,omitempty"`   // nil: never set
	FrontPanel        *FrontPanel        `json:"panel,omitempty"`      // nil: every button works
	PhysicalSecurity  *PhysicalSecurity  `json:"lid,omitempty"`        // nil: never opened
}

// Main is the state of power, boot and operating system.
type Main struct {
	Phase           Phase         `json:"phase"`
	Since           time.Time     `json:"since,omitzero"`    // when the phase began; zero for a machine that was never on
	Deadline        time.Time     `json:"deadline,omitzero"` // end of the phase; zero when it lasts until a command
	Progress        Progress      `json:"progress,omitempty"`
	ProgressAt      time.Time     `json:"progressAt,omitzero"`
	RestartAfterOff bool          `json:"again,omitempty"` // start again after going off
	PendingReset    *PendingReset `json:"asked,omitempty"`
	WasOn           bool          `json:"wasOn,omitempty"`    // when AC power was lost
	ACCut           bool          `json:"noMains,omitempty"`  // AC power is cut
	PowerLoss       PowerLoss     `json:"lost,omitempty"`     // why power was lost; "": by a command or by the system
	PoweredFor      Duration      `json:"onFor,omitzero"`     // total time on, until the machine last went off
	OnSince         time.Time     `json:"onSince,omitzero"`   // zero: it is off
	Cause           ResetCause    `json:"cause,omitempty"`    // cause of the next start
	RestoreCause    RestorePolicy `json:"restores,omitempty"` // policy that starts the machine, with CauseRestore
	Reset           *LastReset    `json:"reset,omitempty"`    // nil: never started
	Override        Override      `json:"override"`
	Boots           uint64        `json:"boots"`             // POSTs since the machine was created
	Retries         int           `json:"retries,omitempty"` // consecutive repetitions of boots without bootable source
	BootTime        Duration      `json:"bootTime,omitzero"` // duration of the last boot, from reset to running system
	PendingSources  []Source      `json:"tries,omitempty"`   // sources not tried yet; the first is being tried
	FirmwareApp     SourceKind    `json:"app,omitempty"`     // program of the firmware that this boot runs
	SuspendedImage  *Source       `json:"image,omitempty"`   // source that holds a suspended system
	OS              *OS           `json:"os,omitempty"`      // loading or running
}

// View is a snapshot of a Machine. It is immutable, and two views share a part
// exactly when the part did not change between them.
type View struct {
	Profile  *Profile
	Identity *Identity
	*Main
	Power             Power         // follows from the phase
	CurrentSource     *Source       // source being tried; nil when none is
	AC                bool          // AC power is present; without it the BMC is off too
	FRUOverrides      *FRUOverrides // nil: factory values
	Asset             *Asset        // never nil, like the fields below
	Boot              *BootSettings
	Policy            *PowerPolicy
	Cabling           *Cabling
	Firmware          firmware.View
	Storage           storage.View
	Thermal           thermal.View
	Watchdog          *Watchdog
	Telemetry         *Telemetry
	SecureBoot        *SecureBoot
	BootOptionCache   *BootOptionCache // used by BootOptions; may be nil
	Console           *console.Console // nil: never printed
	SystemBootOptions *SystemBootOptions
	FrontPanel        *FrontPanel
	PhysicalSecurity  *PhysicalSecurity
}

// New creates a machine that is off, or restores one from what State returned.
// Missing parts are factory state.
func New(p *Profile, id Identity, st *State) (*Machine, error) {
	m := &Machine{profile: p, identity: &id, factoryIdentity: &id}
	if st != nil {
		m.st = *st
	}
	if m.st.Main == nil {
		m.st.Main = &Main{Phase: Off, Progress: NoProgress, Override: Override{Enabled: Disabled, Target: None, Mode: UEFI}}
	}
	if _, ok := phases[m.st.Phase]; !ok {
		return nil, fmt.Errorf("%s: stored phase %q: %w", id.Name, m.st.Phase, ErrUnknown)
	}
	if err := m.newFirmware(); err != nil {
		return nil, err
	}
	if err := m.newStorage(); err != nil {
		return nil, err
	}
	m.newThermal()
	m.applyFRUOverrides()
	return m, nil
}

// State returns what New needs to restore the machine.
func (m *Machine) State() State {
	m.mainOwned = false
	return m.st
}

// Restore sets a machine back to an earlier state.
func (m *Machine) Restore(st State) {
	m.st, m.mainOwned = st, false
	m.restoreFirmware()
	m.restoreStorage()
	m.heat.Restore(st.Thermal)
	m.applyFRUOverrides()
}

// View returns a snapshot of the machine.
func (m *Machine) View() View {
	st := m.State()
	v := View{
		Profile: m.profile, Identity: m.identity, Main: st.Main, Power: phases[st.Phase].power, AC: st.Phase != Unplugged,
		Asset: m.asset(), FRUOverrides: m.st.FRUOverrides, Boot: m.bootSettings(), Policy: m.policy(), Cabling: m.cabling(), Firmware: m.fw.View(), Storage: m.disks.View(),
		Thermal: m.heat.View(), Watchdog: m.watchdog(), Telemetry: m.telemetry(), SecureBoot: m.secureBoot(), BootOptionCache: m.bootOptionCache(),
		Console: st.Console, SystemBootOptions: m.systemBootOptions(), FrontPanel: m.frontPanel(), PhysicalSecurity: m.physicalSecurity(),
	}
	if st.Phase == Selecting && len(st.PendingSources) > 0 {
		v.CurrentSource = &st.PendingSources[0]
	}
	return v
}

// main returns the copy of Main that this step may change.
func (m *Machine) main() *Main {
	if !m.mainOwned {
		main := *m.st.Main
		main.PendingSources = slices.Clone(main.PendingSources)
		if main.OS != nil {
			main.OS = new(*main.OS)
		}
		m.st.Main, m.mainOwned = &main, true
	}
	return m.st.Main
}

// Apply advances the machine to now and applies a command. The events are valid
// even with an error.
func (m *Machine) Apply(now time.Time, c Command) ([]Event, error) {
	evs := m.Advance(now)
	more, err := c.apply(m, now)
	return append(evs, more...), err
}
