package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Command is something that can be done to a machine.
type Command interface {
	apply(m *Machine, now time.Time) ([]Event, error)
}

// ResetKind is a way to change power; the values are Redfish's ResetType
// (DSP2046, Resource.ResetType).
type ResetKind string

// The resets.
const (
	ResetOn          ResetKind = "On"
	ForceOn          ResetKind = "ForceOn"
	ForceOff         ResetKind = "ForceOff"
	GracefulShutdown ResetKind = "GracefulShutdown"
	GracefulRestart  ResetKind = "GracefulRestart"
	ForceRestart     ResetKind = "ForceRestart"
	PowerCycle       ResetKind = "PowerCycle"
	PushPowerButton  ResetKind = "PushPowerButton"
	Nmi              ResetKind = "Nmi"
)

// resets says what each kind does: the trigger, and whether the machine comes
// up again. The one that applies is the first whose trigger the phase allows.
var resets = map[ResetKind][]struct {
	on    trigger
	again bool
}{
	ResetOn:          {{pressOn, false}},
	ForceOn:          {{pressOn, false}},
	ForceOff:         {{cut, false}},
	GracefulShutdown: {{askOff, false}},
	GracefulRestart:  {{askOff, true}},
	ForceRestart:     {{restart, false}},
	PowerCycle:       {{cut, true}},
	PushPowerButton:  {{pressOn, false}, {askOff, false}},
	Nmi:              {},
}

// ResetKinds are all resets, in the order in which services list them.
var ResetKinds = []ResetKind{ResetOn, ForceOff, ForceOn, GracefulShutdown, GracefulRestart, ForceRestart, PowerCycle, PushPowerButton, Nmi}

// needsOS are the resets that a running system carries out: without one nobody
// hears the button and nothing happens, which is no error.
var needsOS = []ResetKind{GracefulShutdown, GracefulRestart, PushPowerButton, Nmi}

// Reset changes power. A reset that the power state does not allow, or that
// finds it as wanted already, answers ErrPower.
type Reset struct{ Kind ResetKind }

func (c Reset) apply(m *Machine, now time.Time) ([]Event, error) {
	ways, ok := resets[c.Kind]
	if !ok {
		return nil, fmt.Errorf("machine: reset %q: %w", c.Kind, ErrUnknown)
	}
	for _, w := range ways {
		if !m.can(w.on) {
			continue
		}
		m.main().Again = w.again
		return m.step(now, w.on), nil
	}
	if phases[m.st.Phase].power == PowerOn && slices.Contains(needsOS, c.Kind) {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: reset %s while %s", ErrPower, c.Kind, phases[m.st.Phase].power)
}

// SetOverride sets the boot override, whole.
type SetOverride struct{ Override }

func (c SetOverride) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch o := c.Override; {
	case !slices.Contains(Enableds, o.Enabled):
		return nil, fmt.Errorf("machine: override enabled %q: %w", o.Enabled, ErrUnknown)
	case !slices.Contains(SourceKinds, o.Target):
		return nil, fmt.Errorf("machine: override target %q: %w", o.Target, ErrUnknown)
	case !slices.Contains(Modes, o.Mode):
		return nil, fmt.Errorf("machine: override mode %q: %w", o.Mode, ErrUnknown)
	}
	m.main().Override = c.Override
	return nil, nil
}

// Loaded answers a BootTried event: the source held a system, which starts.
type Loaded struct {
	Boot   uint64 // of the event
	Source Source
	Name   string // of the system, for people
}

func (c Loaded) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := m.trying(c.Boot, c.Source); err != nil {
		return nil, err
	}
	m.main().OS = &OS{Source: c.Source, Name: c.Name, Boot: c.Boot}
	m.main().Tries = nil
	return m.step(now, loaded), nil
}

// NotBootable answers a BootTried event: the next source is tried.
type NotBootable struct {
	Boot   uint64
	Source Source
}

func (c NotBootable) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := m.trying(c.Boot, c.Source); err != nil {
		return nil, err
	}
	m.main().Tries = m.st.Tries[1:]
	return m.step(now, nextTry), nil
}

func (m *Machine) trying(boot uint64, s Source) error {
	if m.st.Phase != Selecting || m.st.Boots != boot || len(m.st.Tries) == 0 || m.st.Tries[0] != s {
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
	return m.step(now, on), nil
}

// SetAsset sets what people write on a machine, whole.
type SetAsset struct{ Asset }

func (c SetAsset) apply(m *Machine, _ time.Time) ([]Event, error) {
	if old := m.st.Asset; old == nil || *old != c.Asset {
		m.st.Asset = &c.Asset
	}
	return nil, nil
}

// Event is something that happened to a machine.
type Event = event.Event

// PowerChanged tells the power state that a machine has come to.
type PowerChanged struct {
	At    time.Time
	Power Power
}

// BootTried asks what is on a boot source; Loaded or NotBootable answers it.
type BootTried struct {
	At     time.Time
	Source Source
	Boot   uint64
}

// Started tells that a system runs.
type Started struct {
	At time.Time
	OS OS
}

// Stopped tells that a system that was loading or running is gone.
type Stopped struct {
	At time.Time
	OS OS
}

// Time implements Event.
func (e PowerChanged) Time() time.Time { return e.At }

// Time implements Event.
func (e BootTried) Time() time.Time { return e.At }

// Time implements Event.
func (e Started) Time() time.Time { return e.At }

// Time implements Event.
func (e Stopped) Time() time.Time { return e.At }
