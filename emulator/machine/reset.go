package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

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
	Suspend          ResetKind = "Suspend"
	Pause            ResetKind = "Pause"
	Resume           ResetKind = "Resume"
)

// resets says what each kind does: the trigger, and whether the machine comes
// up again. The one that applies is the first whose trigger the phase
// allows.
var resets = map[ResetKind][]struct {
	on    trigger
	again bool
}{
	ResetOn:          {{delay, false}, {pressOn, false}},
	ForceOn:          {{pressOn, false}},
	ForceOff:         {{cut, false}},
	GracefulShutdown: {{askOff, false}},
	GracefulRestart:  {{askOff, true}},
	ForceRestart:     {{restart, false}},
	PowerCycle:       {{cut, true}},
	PushPowerButton:  {{pressOn, false}, {askOff, false}},
	Nmi:              {{panicked, false}},
	Suspend:          {{askOff, false}},
	Pause:            {{stand, false}},
	Resume:           {{goOn, false}},
}

// ResetKinds are all resets, in the order in which services list them.
var ResetKinds = []ResetKind{
	ResetOn, ForceOff, ForceOn, GracefulShutdown, GracefulRestart, ForceRestart, PowerCycle, PushPowerButton, Nmi,
	Suspend, Pause, Resume,
}

// needsOS are the resets that a running system carries out: without one nobody
// hears the button and nothing happens, which is no error.
var needsOS = []ResetKind{GracefulShutdown, GracefulRestart, PushPowerButton, Nmi}

// byForce is what becomes of a graceful reset that no system heard, where the
// model does not leave it at that.
var byForce = map[ResetKind]ResetKind{GracefulShutdown: ForceOff, GracefulRestart: ForceRestart}

// PendingReset is a graceful reset that waits to be heard.
type PendingReset struct {
	Kind  ResetKind `json:"kind"`
	Until time.Time `json:"until"`
}

// ResetCause is why a machine was last started; the values are Redfish's
// (DSP2046, ComputerSystem.LastResetCause).
type ResetCause string

// The causes.
const (
	CauseButton   ResetCause = "PowerButtonPress"
	CauseCommand  ResetCause = "ManagementCommand"
	CauseRestore  ResetCause = "PowerRestorePolicy"
	CauseWatchdog ResetCause = "WatchdogExpiration"
	CauseSystem   ResetCause = "OSSoftRestart"
	CauseCrash    ResetCause = "SystemCrash"
	CauseHeat     ResetCause = "ThermalEvent"
	CauseUnknown  ResetCause = "Unknown"
)

// causeFilter is why a machine starts that a filter of events has started. It
// is a command by the management, too, and shown as such; LastReset.Filter tells
// it.
const causeFilter ResetCause = "filter"

// PEFAction is what a filter of events has done to a machine. Values are stored.
type PEFAction string

// The acts.
const (
	PEFReset      PEFAction = "reset"
	PEFPowerCycle PEFAction = "cycle"
)

// LastReset is when a machine was last started or restarted, and why.
type LastReset struct {
	At    time.Time  `json:"at"`
	Cause ResetCause `json:"cause"`
	// Restore is the policy that started it, of CauseRestore.
	Restore RestorePolicy `json:"restore,omitempty"`
	PEF     PEFAction     `json:"filter,omitempty"` // "": it was none that started it
}

// started is why the machine starts.
func (own *Main) started(now time.Time) *LastReset {
	r := &LastReset{At: now, Cause: own.cause()}
	switch r.Cause {
	case CauseRestore:
		r.Restore = own.RestoreCause
	case causeFilter:
		r.Cause, r.PEF = CauseCommand, PEFReset
		if own.RestartAfterOff {
			r.PEF = PEFPowerCycle
		}
	}
	return r
}

// cause is why the machine starts now.
func (own *Main) cause() ResetCause {
	if own.Cause == "" {
		return CauseUnknown
	}
	return own.Cause
}

// Reset changes power. A reset that the power state does not allow, or that
// finds it as wanted already, answers ErrPower.
type Reset struct {
	Kind       ResetKind
	ByPEF      bool // it is a filter of events that does it
	HangInPOST bool // the firmware does not get over it: it hangs in POST until the power is cut
}

func (c Reset) apply(m *Machine, now time.Time) ([]Event, error) {
	cause := CauseCommand
	switch {
	case c.ByPEF:
		cause = causeFilter
	case c.Kind == PushPowerButton:
		cause = CauseButton
	}
	evs, err := m.reset(now, c.Kind, cause)
	if err == nil && c.HangInPOST && m.st.Phase == POST {
		m.main().Deadline = time.Time{}
	}
	return evs, err
}

func (m *Machine) reset(now time.Time, kind ResetKind, cause ResetCause) ([]Event, error) {
	evs, err := m.carryOut(now, kind, cause)
	if err == nil && cause == CauseCommand {
		m.hold(now)
	}
	return evs, err
}

func (m *Machine) carryOut(now time.Time, kind ResetKind, cause ResetCause) ([]Event, error) {
	ways, ok := resets[kind]
	if !ok {
		return nil, fmt.Errorf("machine: reset %q: %w", kind, ErrUnknown)
	}
	on := phases[m.st.Phase].power == PowerOn
	if kind == Nmi && on {
		evs := []Event{note(now, event.NMISent)}
		if m.can(panicked) && m.profile.OS.PanicOnNMI {
			m.main().Cause = CauseCrash
			m.panics(now, "NMI: Not continuing")
			evs = append(evs, m.step(now, panicked)...)
		}
		return evs, nil
	}
	if kind == PushPowerButton && on && m.panel().DisabledButtons().PowerOff {
		return nil, nil
	}
	deaf := m.st.OS != nil && m.st.OS.IgnoresPowerButton
	for _, w := range ways {
		if !m.can(w.on) || w.on == delay && m.onDelay() == 0 || w.on == askOff && deaf {
			continue
		}
		own := m.main()
		own.RestartAfterOff, own.Cause = w.again, cause
		if kind == Suspend {
			own.SuspendedImage = &own.OS.Source
		}
		return m.step(now, w.on), nil
	}
	if !on || !slices.Contains(needsOS, kind) {
		return nil, fmt.Errorf("%w: reset %s while %s", ErrPower, kind, phases[m.st.Phase].power)
	}
	if patience := m.profile.Timings.Graceful.Duration; patience > 0 && byForce[kind] != "" {
		m.main().PendingReset = &PendingReset{Kind: kind, Until: now.Add(patience)}
	}
	return nil, nil
}

// unheard ends the wait for a graceful reset: by force where the model does so,
// else with nothing.
func (m *Machine) unheard(at time.Time) []Event {
	kind := m.st.PendingReset.Kind
	m.main().PendingReset = nil
	evs := []Event{note(at, event.ResetIgnored, string(kind))}
	if !slices.Contains(m.profile.OS.ForcedAfterTimeout, kind) {
		return evs
	}
	more, err := m.reset(at, byForce[kind], CauseCommand)
	if err != nil { // an Asked stands only while the power is on
		return evs
	}
	return append(evs, more...)
}

// dumpTime is how long a crashed system takes until it restarts.
func (m *Machine) dumpTime() time.Duration {
	if !m.profile.OS.RestartOnCrash {
		return never
	}
	return m.profile.Timings.Dump.Duration
}
