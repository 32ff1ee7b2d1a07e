package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// SystemBootOptions are IPMI's system boot options besides the Override: how
// long a request is valid, and what else it asks for (IPMI v2.0 rev 1.1, table
// 28-14). A restart of the BMC clears them.
type SystemBootOptions struct {
	// Active means that the override stems from such a request. The request
	// ends when a boot has used it, at Until, at a start whose cause is not in
	// KeepOnCauses, or when the override is set in another way.
	Active       bool         `json:"ours,omitempty"`
	Until        time.Time    `json:"until,omitzero"` // client time; zero: no time limit
	KeepOnCauses []ResetCause `json:"spares,omitempty"`
	// NoTimeout means that a request gets no Until.
	NoTimeout      bool    `json:"waits,omitempty"`
	DeviceInstance int     `json:"instance,omitempty"` // device instance: 1 to MaxInstance external devices of the target's kind, then as many internal ones
	LoadDefaults   bool    `json:"defaults,omitempty"` // load BIOS defaults before the boot ("CMOS clear")
	LockButtons    Buttons `json:"locks,omitzero"`     // buttons to disable during the boot
	PartitionScan  bool    `json:"scan,omitempty"`     // ask the firmware to look for the service partition

	// KeepOnPEFReset keeps a request over a start by a platform event filter.
	KeepOnPEFReset bool `json:"sparesFilters,omitempty"`

	// The fields below are only stored for clients.

	InProgress        bool   `json:"inProgress,omitempty"` // set in progress, until a start or a loss of power
	InfoAcknowledge   byte   `json:"handled,omitempty"`    // boot info acknowledge: a bit for each party that has not handled the boot; the firmware's is AcknowledgedByFirmware
	PartitionSelector byte   `json:"partition,omitempty"`  // service partition selector
	Flags             []byte `json:"flags,omitempty"`      // boot flags as requested
	Initiator         []byte `json:"initiator,omitempty"`  // boot initiator info
	Mailbox           []byte `json:"mailbox,omitempty"`    // boot initiator mailbox
	ParameterLocks    byte   `json:"locked,omitempty"`     // a bit for each parameter that is marked invalid
}

// Limits of SystemBootOptions.
const (
	MaxInstance = 15
	// AcknowledgedByFirmware is the bit of InfoAcknowledge that the firmware
	// clears when it has handled a request.
	AcknowledgedByFirmware = 1 << 0
	// bootOptionsTimeout is how long a request waits for the client's next command,
	// which starts the machine (§28.12), in client time.
	bootOptionsTimeout = time.Minute
)

var defaultBootOptions = new(SystemBootOptions)

func (m *Machine) systemBootOptions() *SystemBootOptions {
	if m.st.SystemBootOptions == nil {
		return defaultBootOptions
	}
	return m.st.SystemBootOptions
}

// updateBootOptions changes a copy of the options and stores it. The content of
// its slices must not be changed.
func (m *Machine) updateBootOptions(how func(*SystemBootOptions)) {
	b := *m.systemBootOptions()
	how(&b)
	m.st.SystemBootOptions = &b
}

// SetSystemBootOptions replaces the boot options, except for Active and Until,
// which follow from Request.
type SetSystemBootOptions struct {
	SystemBootOptions
	Request *Override // nil: the current request stays
}

func (c SetSystemBootOptions) apply(m *Machine, now time.Time) ([]Event, error) {
	if c.DeviceInstance < 0 || c.DeviceInstance > 2*MaxInstance {
		return nil, fmt.Errorf("boot device instance %d: must be 0 to %d: %w", c.DeviceInstance, 2*MaxInstance, ErrUnknown)
	}
	if c.Request != nil {
		if _, err := (SetOverride{*c.Request}).apply(m, now); err != nil {
			return nil, err
		}
	}
	is := m.systemBootOptions()
	b := c.SystemBootOptions
	b.Active, b.Until = is.Active, is.Until
	if c.Request != nil {
		b.Active, b.Until = c.Request.Enabled != Disabled, time.Time{}
		if b.Active {
			b.Until = m.clientTime(now).Add(bootOptionsTimeout)
		}
	}
	if b.NoTimeout {
		b.Until = time.Time{}
	}
	m.st.SystemBootOptions = &b
	return nil, nil
}

// endBootOptionsRequest ends a request after the override was set in another
// way.
func (m *Machine) endBootOptionsRequest(was, is Override) {
	if m.st.SystemBootOptions == nil {
		return
	}
	m.updateBootOptions(func(b *SystemBootOptions) {
		b.Active, b.Until, b.LoadDefaults = false, time.Time{}, false
		if was.Target != is.Target {
			b.DeviceInstance = 0
		}
	})
}

// invalidateBootOptions ends a request that no boot has used.
func (m *Machine) invalidateBootOptions() {
	override := &m.main().Override
	override.Enabled, override.Target, override.BootNext = Disabled, None, ""
	m.updateBootOptions(func(b *SystemBootOptions) { b.Active, b.Until = false, time.Time{} })
}

// extendBootOptions restarts a request's timeout because a power command was
// sent, or stops it once the start has begun.
func (m *Machine) extendBootOptions(now time.Time) {
	if m.systemBootOptions().Until.IsZero() {
		return
	}
	until := m.clientTime(now).Add(bootOptionsTimeout)
	if m.st.RestartAfterOff || slices.Contains([]Phase{Delaying, Starting, POST}, m.st.Phase) {
		until = time.Time{}
	}
	m.updateBootOptions(func(b *SystemBootOptions) { b.Until = until })
}

// applyResetToBootOptions ends or keeps a request at a start with a cause.
func (m *Machine) applyResetToBootOptions(now time.Time, cause ResetCause) []Event {
	b := m.st.SystemBootOptions
	if b == nil {
		m.disableButtonsForBoot(Buttons{})
		return nil
	}
	if b.InProgress || b.PartitionScan || !b.Until.IsZero() {
		m.updateBootOptions(func(b *SystemBootOptions) { b.InProgress, b.PartitionScan, b.Until = false, false, time.Time{} })
	}
	spared := cause == CauseCommand || cause == CauseUnknown || cause == causePEF && b.KeepOnPEFReset || slices.Contains(b.KeepOnCauses, cause)
	if b.Active && !spared {
		m.invalidateBootOptions()
	}
	m.disableButtonsForBoot(Buttons{})
	if m.st.Override.Enabled != Disabled {
		m.disableButtonsForBoot(b.LockButtons)
	}
	switch {
	case !b.Active || !spared:
	case b.LoadDefaults:
		m.updateBootOptions(func(b *SystemBootOptions) { b.LoadDefaults = false })
		evs, err := m.fw.Apply(now, firmware.ResetBIOS{})
		if err != nil {
			panic(err) // it cannot be refused
		}
		return m.firmwareEvents(now, evs)
	}
	return nil
}

// consumeBootOptions ends a request that this boot uses. A persistent one
// becomes the firmware's own setting.
func (m *Machine) consumeBootOptions(once bool) {
	if m.st.SystemBootOptions == nil {
		return
	}
	m.updateBootOptions(func(b *SystemBootOptions) {
		b.Active, b.Until = false, time.Time{}
		b.InfoAcknowledge &^= AcknowledgedByFirmware
		if once {
			b.Flags, b.DeviceInstance, b.LockButtons = nil, 0, Buttons{}
		}
	})
}

// clearBootOptionsInProgress ends a set in progress.
func (m *Machine) clearBootOptionsInProgress() {
	if m.systemBootOptions().InProgress {
		m.updateBootOptions(func(b *SystemBootOptions) { b.InProgress = false })
	}
}

// BMCReset tells a machine that its BMC restarts and will come up with its
// stored settings.
type BMCReset struct{}

func (BMCReset) apply(m *Machine, _ time.Time) ([]Event, error) {
	m.notifyBMCReset()
	return nil, nil
}

// notifyBMCReset ends what the BMC was doing for the machine.
func (m *Machine) notifyBMCReset() {
	m.endIdentify()
	if m.st.Watchdog != nil {
		m.updateWatchdog(func(w *Watchdog) {
			w.pause(w.Countdown.Duration)
			w.Programmed, w.PreTimeoutFlag, w.DontLog, w.Expired = false, false, false, nil
		})
	}
	b := m.st.SystemBootOptions
	if b == nil {
		return
	}
	if b.Active && m.st.Override.Enabled == Once {
		m.invalidateBootOptions()
	}
	m.st.SystemBootOptions = nil
}

// deviceIndex returns which of that many devices a request is for, counted from
// 0; false when any will do.
func (b *SystemBootOptions) deviceIndex(devices int) (int, bool) {
	n := b.DeviceInstance
	if n > MaxInstance {
		n -= MaxInstance
	}
	return n - 1, n > 0 && n <= devices
}
