package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// SystemBootOptions is what a remote console says about boots beside the Override: for
// how long that stands, and what else is asked for (IPMI v2.0 rev 1.1, table
// 28-14). A BMC that restarts has forgotten it.
type SystemBootOptions struct {
	// Ours says that the override stands for such a request. It ends when a
	// boot follows it, when Until is past, when a start comes for a cause that
	// Spares does not have, or when the override is set in another way.
	Active       bool         `json:"ours,omitempty"`
	Until        time.Time    `json:"until,omitzero"` // zero: for ever
	KeepOnCauses []ResetCause `json:"spares,omitempty"`
	// Waits says that no Until is set when a request is made.
	NoTimeout      bool    `json:"waits,omitempty"`
	DeviceInstance int     `json:"instance,omitempty"` // device of the target's kind: MaxInstance external ones from 1 on, then as many internal ones
	LoadDefaults   bool    `json:"defaults,omitempty"` // BIOS settings get their defaults before the boot
	LockButtons    Buttons `json:"locks,omitzero"`     // that are to do nothing in the boot
	PartitionScan  bool    `json:"scan,omitempty"`     // the firmware is to look for the service partition

	// SparesFilters is about starts that a filter of events brings about.
	KeepOnPEFReset bool `json:"sparesFilters,omitempty"`

	// What follows is for whoever reads it; no model does.

	InProgress        bool   `json:"inProgress,omitempty"` // somebody is at it, until a start or the end of power
	InfoAcknowledge   byte   `json:"handled,omitempty"`    // a bit for each party that has not; that of the firmware is HandledByFirmware
	PartitionSelector byte   `json:"partition,omitempty"`  // service partition
	Flags             []byte `json:"flags,omitempty"`      // of the request, as it was made
	Initiator         []byte `json:"initiator,omitempty"`  // who boots
	Mailbox           []byte `json:"mailbox,omitempty"`    // for the loader
	ParameterLocks    byte   `json:"locked,omitempty"`     // a bit for each parameter that somebody has marked invalid
}

// Bounds of a BootInfo.
const (
	MaxInstance = 15
	// AcknowledgedByFirmware is the bit of BootInfo.Handled that the firmware clears
	// when it has followed a request.
	AcknowledgedByFirmware = 1 << 0
	// requestTime is for how long a request waits for a start (§28.12).
	requestTime = time.Minute
)

var noBootInfo = new(SystemBootOptions)

func (m *Machine) bootInfo() *SystemBootOptions {
	if m.st.SystemBootOptions == nil {
		return noBootInfo
	}
	return m.st.SystemBootOptions
}

// setBootInfo changes a copy and puts it in place. What its slices hold must
// not be changed.
func (m *Machine) setBootInfo(how func(*SystemBootOptions)) {
	b := *m.bootInfo()
	how(&b)
	m.st.SystemBootOptions = &b
}

// SetSystemBootOptions sets what a remote console says, whole but for Ours and Until,
// which stay as they are. A request is an override that follows from it.
type SetSystemBootOptions struct {
	SystemBootOptions
	Request *Override // nil: that stays as it is
}

func (c SetSystemBootOptions) apply(m *Machine, now time.Time) ([]Event, error) {
	if c.DeviceInstance < 0 || c.DeviceInstance > 2*MaxInstance {
		return nil, fmt.Errorf("machine: boot device instance %d: must be 0 to %d: %w", c.DeviceInstance, 2*MaxInstance, ErrUnknown)
	}
	if c.Request != nil {
		if _, err := (SetOverride{*c.Request}).apply(m, now); err != nil {
			return nil, err
		}
	}
	is := m.bootInfo()
	b := c.SystemBootOptions
	b.Active, b.Until = is.Active, is.Until
	if c.Request != nil {
		b.Active, b.Until = c.Request.Enabled != Disabled, time.Time{}
		if b.Active {
			b.Until = now.Add(requestTime)
		}
	}
	if b.NoTimeout {
		b.Until = time.Time{}
	}
	m.st.SystemBootOptions = &b
	return nil, nil
}

// disown notes that the override was set by somebody else.
func (m *Machine) disown(was, is Override) {
	if m.st.SystemBootOptions == nil {
		return
	}
	m.setBootInfo(func(b *SystemBootOptions) {
		b.Active, b.Until, b.LoadDefaults = false, time.Time{}, false
		if was.Target != is.Target {
			b.DeviceInstance = 0
		}
	})
}

// invalidate ends a request that no boot has followed.
func (m *Machine) invalidate() {
	own := &m.main().Override
	own.Enabled, own.Target, own.BootNext = Disabled, None, ""
	m.setBootInfo(func(b *SystemBootOptions) { b.Active, b.Until = false, time.Time{} })
}

// hold has a request wait anew for a start, or no more if that has begun:
// somebody has sent a command to the power.
func (m *Machine) hold(now time.Time) {
	if m.bootInfo().Until.IsZero() {
		return
	}
	until := now.Add(requestTime)
	if m.st.RestartAfterOff || slices.Contains([]Phase{Delaying, Starting, POST}, m.st.Phase) {
		until = time.Time{}
	}
	m.setBootInfo(func(b *SystemBootOptions) { b.Until = until })
}

// heedBootInfo is what a start for a cause makes of a request.
func (m *Machine) heedBootInfo(now time.Time, cause ResetCause) []Event {
	b := m.st.SystemBootOptions
	if b == nil {
		m.lockPanel(Buttons{})
		return nil
	}
	if b.InProgress || b.PartitionScan || !b.Until.IsZero() {
		m.setBootInfo(func(b *SystemBootOptions) { b.InProgress, b.PartitionScan, b.Until = false, false, time.Time{} })
	}
	spared := cause == CauseCommand || cause == CauseUnknown || cause == causeFilter && b.KeepOnPEFReset || slices.Contains(b.KeepOnCauses, cause)
	if b.Active && !spared {
		m.invalidate()
	}
	m.lockPanel(Buttons{})
	if m.st.Override.Enabled != Disabled {
		m.lockPanel(b.LockButtons)
	}
	switch {
	case !b.Active || !spared:
	case b.LoadDefaults:
		m.setBootInfo(func(b *SystemBootOptions) { b.LoadDefaults = false })
		evs, err := m.fw.Apply(now, firmware.ResetBIOS{})
		if err != nil {
			panic(err) // it cannot be refused
		}
		return m.heard(now, evs)
	}
	return nil
}

// followed ends a request that this boot follows. One that is to hold for good
// is the firmware's own from now on.
func (m *Machine) followed(once bool) {
	if m.st.SystemBootOptions == nil {
		return
	}
	m.setBootInfo(func(b *SystemBootOptions) {
		b.Active, b.Until = false, time.Time{}
		b.InfoAcknowledge &^= AcknowledgedByFirmware
		if once {
			b.Flags, b.DeviceInstance, b.LockButtons = nil, 0, Buttons{}
		}
	})
}

// interruptBootInfo ends what somebody was about to write.
func (m *Machine) interruptBootInfo() {
	if m.bootInfo().InProgress {
		m.setBootInfo(func(b *SystemBootOptions) { b.InProgress = false })
	}
}

// BMCReset tells a machine that its BMC is down, and will come up with what
// it keeps.
type BMCReset struct{}

func (BMCReset) apply(m *Machine, _ time.Time) ([]Event, error) {
	m.notifyBMCReset()
	return nil, nil
}

// notifyBMCReset ends what the BMC was doing for the machine.
func (m *Machine) notifyBMCReset() {
	m.darken()
	if m.st.Watchdog != nil {
		m.setWatchdog(func(w *Watchdog) {
			w.stop(w.Countdown.Duration)
			w.Programmed, w.PreTimeoutFlag, w.DontLog, w.Expired = false, false, false, nil
		})
	}
	b := m.st.SystemBootOptions
	if b == nil {
		return
	}
	if b.Active && m.st.Override.Enabled == Once {
		m.invalidate()
	}
	m.st.SystemBootOptions = nil
}

// wanted is which of so many devices a request is for, counted from 0; false
// when it is for any.
func (b *SystemBootOptions) wanted(devices int) (int, bool) {
	n := b.DeviceInstance
	if n > MaxInstance {
		n -= MaxInstance
	}
	return n - 1, n > 0 && n <= devices
}
