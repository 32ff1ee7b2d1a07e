package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// BootInfo is what a remote console says about boots beside the Override: for
// how long that stands, and what else is asked for (IPMI v2.0 rev 1.1, table
// 28-14). A BMC that restarts has forgotten it.
type BootInfo struct {
	// Ours says that the override stands for such a request. It ends when a
	// boot follows it, when Until is past, when a start comes for a cause that
	// Spares does not have, or when the override is set in another way.
	Ours   bool         `json:"ours,omitempty"`
	Until  time.Time    `json:"until,omitzero"` // zero: for ever
	Spares []ResetCause `json:"spares,omitempty"`
	// Waits says that no Until is set when a request is made.
	Waits    bool    `json:"waits,omitempty"`
	Instance int     `json:"instance,omitempty"` // device of the target's kind: MaxInstance external ones from 1 on, then as many internal ones
	Defaults bool    `json:"defaults,omitempty"` // BIOS settings get their defaults before the boot
	Locks    Buttons `json:"locks,omitzero"`     // that are to do nothing in the boot
	Scan     bool    `json:"scan,omitempty"`     // the firmware is to look for the service partition

	// SparesFilters is about starts that a filter of events brings about.
	SparesFilters bool `json:"sparesFilters,omitempty"`

	// What follows is for whoever reads it; no model does.

	InProgress bool   `json:"inProgress,omitempty"` // somebody is at it, until a start or the end of power
	Handled    byte   `json:"handled,omitempty"`    // a bit for each party that has not; that of the firmware is HandledByFirmware
	Partition  byte   `json:"partition,omitempty"`  // service partition
	Flags      []byte `json:"flags,omitempty"`      // of the request, as it was made
	Initiator  []byte `json:"initiator,omitempty"`  // who boots
	Mailbox    []byte `json:"mailbox,omitempty"`    // for the loader
	Locked     byte   `json:"locked,omitempty"`     // a bit for each parameter that somebody has marked invalid
}

// Bounds of a BootInfo.
const (
	MaxInstance = 15
	// HandledByFirmware is the bit of BootInfo.Handled that the firmware clears
	// when it has followed a request.
	HandledByFirmware = 1 << 0
	// requestTime is for how long a request waits for a start (§28.12).
	requestTime = time.Minute
)

var noBootInfo = new(BootInfo)

func (m *Machine) bootInfo() *BootInfo {
	if m.st.BootInfo == nil {
		return noBootInfo
	}
	return m.st.BootInfo
}

// setBootInfo changes a copy and puts it in place. What its slices hold must
// not be changed.
func (m *Machine) setBootInfo(how func(*BootInfo)) {
	b := *m.bootInfo()
	how(&b)
	m.st.BootInfo = &b
}

// SetBootInfo sets what a remote console says, whole but for Ours and Until,
// which stay as they are. A request is an override that follows from it.
type SetBootInfo struct {
	BootInfo
	Request *Override // nil: that stays as it is
}

func (c SetBootInfo) apply(m *Machine, now time.Time) ([]Event, error) {
	if c.Instance < 0 || c.Instance > 2*MaxInstance {
		return nil, fmt.Errorf("machine: boot device instance %d: must be 0 to %d: %w", c.Instance, 2*MaxInstance, ErrUnknown)
	}
	if c.Request != nil {
		if _, err := (SetOverride{*c.Request}).apply(m, now); err != nil {
			return nil, err
		}
	}
	is := m.bootInfo()
	b := c.BootInfo
	b.Ours, b.Until = is.Ours, is.Until
	if c.Request != nil {
		b.Ours, b.Until = c.Request.Enabled != Disabled, time.Time{}
		if b.Ours {
			b.Until = now.Add(requestTime)
		}
	}
	if b.Waits {
		b.Until = time.Time{}
	}
	m.st.BootInfo = &b
	return nil, nil
}

// disown notes that the override was set by somebody else.
func (m *Machine) disown(was, is Override) {
	if m.st.BootInfo == nil {
		return
	}
	m.setBootInfo(func(b *BootInfo) {
		b.Ours, b.Until, b.Defaults = false, time.Time{}, false
		if was.Target != is.Target {
			b.Instance = 0
		}
	})
}

// invalidate ends a request that no boot has followed.
func (m *Machine) invalidate() {
	own := &m.main().Override
	own.Enabled, own.Target, own.Next = Disabled, None, ""
	m.setBootInfo(func(b *BootInfo) { b.Ours, b.Until = false, time.Time{} })
}

// hold has a request wait anew for a start, or no more if that has begun:
// somebody has sent a command to the power.
func (m *Machine) hold(now time.Time) {
	if m.bootInfo().Until.IsZero() {
		return
	}
	until := now.Add(requestTime)
	if m.st.Again || slices.Contains([]Phase{Delaying, Starting, POST}, m.st.Phase) {
		until = time.Time{}
	}
	m.setBootInfo(func(b *BootInfo) { b.Until = until })
}

// heedBootInfo is what a start for a cause makes of a request.
func (m *Machine) heedBootInfo(now time.Time, cause ResetCause) []Event {
	b := m.st.BootInfo
	if b == nil {
		m.lockPanel(Buttons{})
		return nil
	}
	if b.InProgress || b.Scan || !b.Until.IsZero() {
		m.setBootInfo(func(b *BootInfo) { b.InProgress, b.Scan, b.Until = false, false, time.Time{} })
	}
	spared := cause == CauseCommand || cause == CauseUnknown || cause == causeFilter && b.SparesFilters || slices.Contains(b.Spares, cause)
	if b.Ours && !spared {
		m.invalidate()
	}
	m.lockPanel(Buttons{})
	if m.st.Override.Enabled != Disabled {
		m.lockPanel(b.Locks)
	}
	switch {
	case !b.Ours || !spared:
	case b.Defaults:
		m.setBootInfo(func(b *BootInfo) { b.Defaults = false })
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
	if m.st.BootInfo == nil {
		return
	}
	m.setBootInfo(func(b *BootInfo) {
		b.Ours, b.Until = false, time.Time{}
		b.Handled &^= HandledByFirmware
		if once {
			b.Flags, b.Instance, b.Locks = nil, 0, Buttons{}
		}
	})
}

// interruptBootInfo ends what somebody was about to write.
func (m *Machine) interruptBootInfo() {
	if m.bootInfo().InProgress {
		m.setBootInfo(func(b *BootInfo) { b.InProgress = false })
	}
}

// BMCRestarts tells a machine that its BMC is down, and will come up with what
// it keeps.
type BMCRestarts struct{}

func (BMCRestarts) apply(m *Machine, _ time.Time) ([]Event, error) {
	m.loseBMC()
	return nil, nil
}

// loseBMC ends what the BMC was doing for the machine.
func (m *Machine) loseBMC() {
	m.darken()
	if m.st.Watchdog != nil {
		m.setWatchdog(func(w *Watchdog) {
			w.stop(w.For.Duration)
			w.Set, w.Flag, w.Silent, w.Expired = false, false, false, nil
		})
	}
	b := m.st.BootInfo
	if b == nil {
		return
	}
	if b.Ours && m.st.Override.Enabled == Once {
		m.invalidate()
	}
	m.st.BootInfo = nil
}

// wanted is which of so many devices a request is for, counted from 0; false
// when it is for any.
func (b *BootInfo) wanted(devices int) (int, bool) {
	n := b.Instance
	if n > MaxInstance {
		n -= MaxInstance
	}
	return n - 1, n > 0 && n <= devices
}
