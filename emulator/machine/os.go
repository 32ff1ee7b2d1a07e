package machine

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// OS is a system that was loaded.
type OS struct {
	Source             Source `json:"source"`
	Name               string `json:"name"`           // for people: "agent", "disk"
	Boot               uint64 `json:"boot"`           // State.Boots when it was loaded
	IgnoresPowerButton bool   `json:"deaf,omitempty"` // does not listen to the power button
	Busy               bool   `json:"busy,omitempty"` // is at work as long as it runs
	// Logins are the accounts that somebody gave it.
	Logins []Login `json:"logins,omitempty"`
}

// Loaded answers a BootTried event: the source held a system, which starts.
type Loaded struct {
	Boot   uint64 // of the event
	Source Source
	Name   string // of the system, for people
	Busy   bool   // it is at work as long as it runs
}

func (c Loaded) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := m.trying(c.Boot, c.Source); err != nil {
		return nil, err
	}
	m.main().OS = &OS{Source: c.Source, Name: c.Name, Boot: c.Boot, Busy: c.Busy}
	m.main().PendingSources = nil
	m.loads()
	return m.step(now, loaded), nil
}

// NotBootable answers a BootTried event: the next source is tried.
type NotBootable struct {
	Boot   uint64
	Source Source
	Why    string // for the console: "no medium"; "" is what is usual for such a source
}

func (c NotBootable) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := m.trying(c.Boot, c.Source); err != nil {
		return nil, err
	}
	m.main().PendingSources = m.st.PendingSources[1:]
	m.gaveUp(c.Source, c.Why)
	return m.step(now, nextTry), nil
}

func (m *Machine) trying(boot uint64, s Source) error {
	if m.st.Phase != Selecting || m.st.Boots != boot || len(m.st.PendingSources) == 0 || m.st.PendingSources[0] != s {
		return fmt.Errorf("%w: boot %d from %s %s", ErrStale, boot, s.Kind, s.Device)
	}
	return nil
}

// Exit is the running system's own doing: it switches the machine off, or
// restarts it.
type Exit struct {
	Boot    uint64
	Restart bool
}

func (c Exit) apply(m *Machine, now time.Time) ([]Event, error) {
	if m.st.OS == nil || m.st.OS.Boot != c.Boot {
		return nil, fmt.Errorf("%w: boot %d", ErrStale, c.Boot)
	}
	on := selfOff
	if c.Restart {
		on = selfBoot
	}
	if !m.can(on) {
		return nil, fmt.Errorf("%w: exit while %s", ErrPower, m.st.Phase)
	}
	m.main().Cause = CauseSystem
	return m.step(now, on), nil
}

// IgnorePowerButton says whether the running system listens to the power button, and with
// it to all that asks it to shut down.
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
type Crash struct{}

func (Crash) apply(m *Machine, now time.Time) ([]Event, error) {
	if !m.can(panicked) {
		return nil, fmt.Errorf("%w: crash while %s", ErrPower, m.st.Phase)
	}
	m.main().Cause = CauseCrash
	m.panics(now, "Fatal exception")
	return append([]Event{note(now, event.SystemCrashed)}, m.step(now, panicked)...), nil
}
