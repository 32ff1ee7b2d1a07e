package machine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// OS is an operating system that was loaded.
type OS struct {
	Source             Source `json:"source"`
	Name               string `json:"name"`           // for display: "agent", "disk"
	Boot               uint64 `json:"boot"`           // Main.Boots when it was loaded
	IgnoresPowerButton bool   `json:"deaf,omitempty"` // ignores the power button
	Busy               bool   `json:"busy,omitempty"` // under load while it runs
	// Logins are the accounts that AddLogin has created.
	Logins []Login `json:"logins,omitempty"`
}

// Loaded answers BootAttempted: the source holds a system, which starts.
type Loaded struct {
	Boot   uint64 // number of the boot, as the event has it
	Source Source
	Name   string // for display
	Busy   bool   // under load while it runs
}

func (c Loaded) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := m.trying(c.Boot, c.Source); err != nil {
		return nil, err
	}
	m.main().OS = &OS{Source: c.Source, Name: c.Name, Boot: c.Boot, Busy: c.Busy}
	m.main().PendingSources = nil
	m.printLoading()
	return m.step(now, loaded), nil
}

// NotBootable answers BootAttempted: the next source is tried.
type NotBootable struct {
	Boot   uint64
	Source Source
	Why    string // printed on the console: "no medium"; "": the default reason for that kind of source
}

func (c NotBootable) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := m.trying(c.Boot, c.Source); err != nil {
		return nil, err
	}
	m.main().PendingSources = m.st.PendingSources[1:]
	m.printBootFailure(c.Source, c.Why)
	return m.step(now, nextTry), nil
}

func (m *Machine) trying(boot uint64, s Source) error {
	if m.st.Phase != Selecting || m.st.Boots != boot || len(m.st.PendingSources) == 0 || m.st.PendingSources[0] != s {
		return fmt.Errorf("%w: boot %d from %s %s", ErrStale, boot, s.Kind, s.Device)
	}
	return nil
}

// Exit is done by the running system: it powers the machine off or restarts it.
type Exit struct {
	Boot    uint64
	Restart bool
}

func (c Exit) apply(m *Machine, now time.Time) ([]Event, error) {
	if m.st.OS == nil || m.st.OS.Boot != c.Boot {
		return nil, fmt.Errorf("%w: boot %d", ErrStale, c.Boot)
	}
	on := osPowerOff
	if c.Restart {
		on = osRestart
	}
	if !m.can(on) {
		return nil, fmt.Errorf("%w: exit while %s", ErrPower, m.st.Phase)
	}
	m.main().Cause = CauseSystem
	return m.step(now, on), nil
}

// IgnorePowerButton makes the running system ignore the power button, and with
// it every graceful shutdown, or listen to it again.
type IgnorePowerButton struct {
	Boot   uint64
	Ignore bool
}

func (c IgnorePowerButton) apply(m *Machine, _ time.Time) ([]Event, error) {
	if m.st.OS == nil || m.st.OS.Boot != c.Boot {
		return nil, fmt.Errorf("%w: boot %d", ErrStale, c.Boot)
	}
	os := *m.st.OS
	os.IgnoresPowerButton = c.Ignore
	m.main().OS = &os
	return nil, nil
}

// Crash makes the running system panic.
type Crash struct {
	Reason string // shown on the screen; "" is a fatal exception
}

func (c Crash) apply(m *Machine, now time.Time) ([]Event, error) {
	if !m.can(osCrash) {
		return nil, fmt.Errorf("%w: crash while %s", ErrPower, m.st.Phase)
	}
	m.main().Cause = CauseCrash
	m.printPanic(now, cmp.Or(c.Reason, "Fatal exception"))
	return append([]Event{note(now, event.SystemCrashed)}, m.step(now, osCrash)...), nil
}
