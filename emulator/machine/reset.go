package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// ResetKind is a reset; the values are Redfish's ResetType (DSP2046,
// Resource.ResetType).
type ResetKind string

// The resets.
const (
	ResetOn          ResetKind = "On"               // power on
	ForceOn          ResetKind = "ForceOn"          // power on at once
	ForceOff         ResetKind = "ForceOff"         // power off at once
	GracefulShutdown ResetKind = "GracefulShutdown" // ask the operating system to shut down, then power off
	GracefulRestart  ResetKind = "GracefulRestart"  // ask the operating system to shut down, then restart
	ForceRestart     ResetKind = "ForceRestart"     // restart at once, without power off
	PowerCycle       ResetKind = "PowerCycle"       // power off and on at once
	PushPowerButton  ResetKind = "PushPowerButton"  // press of the power button
	Nmi              ResetKind = "Nmi"              // non-maskable interrupt
	Suspend          ResetKind = "Suspend"          // suspend to disk
	Pause            ResetKind = "Pause"            // stop execution
	Resume           ResetKind = "Resume"           // resume from Pause or Suspend
)

// resets holds, for each kind, the triggers and whether the machine restarts
// afterwards. The first trigger that the phase allows applies.
var resets = map[ResetKind][]struct {
	on    trigger
	again bool
}{
	ResetOn:          {{powerOnDelayed, false}, {powerOn, false}},
	ForceOn:          {{powerOn, false}},
	ForceOff:         {{powerCut, false}},
	GracefulShutdown: {{shutdownRequested, false}},
	GracefulRestart:  {{shutdownRequested, true}},
	ForceRestart:     {{restart, false}},
	PowerCycle:       {{powerCut, true}},
	PushPowerButton:  {{powerOn, false}, {shutdownRequested, false}},
	Nmi:              {{osCrash, false}},
	Suspend:          {{shutdownRequested, false}},
	Pause:            {{suspend, false}},
	Resume:           {{resume, false}},
}

// ResetKinds lists all resets in the order in which services list them.
var ResetKinds = []ResetKind{
	ResetOn, ForceOff, ForceOn, GracefulShutdown, GracefulRestart, ForceRestart, PowerCycle, PushPowerButton, Nmi,
	Suspend, Pause, Resume,
}

// osResets are the resets that need a running operating system: without one
// nothing happens, which is no error.
var osResets = []ResetKind{GracefulShutdown, GracefulRestart, PushPowerButton, Nmi}

// forcedReset is the reset that follows an ignored graceful one, where the
// model does that.
var forcedReset = map[ResetKind]ResetKind{GracefulShutdown: ForceOff, GracefulRestart: ForceRestart}

// PendingReset is a graceful reset that waits for the operating system.
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

// causePEF is a start by a platform event filter. It is shown as a management
// command; LastReset.PEF tells the difference.
const causePEF ResetCause = "filter"

// PEFAction is what a platform event filter has done to a machine. Values are
// stored.
type PEFAction string

// The actions.
const (
	PEFReset      PEFAction = "reset"
	PEFPowerCycle PEFAction = "cycle"
)

// LastReset is when and why a machine was last started.
type LastReset struct {
	At    time.Time  `json:"at"`
	Cause ResetCause `json:"cause"`
	// Restore is the policy that started it, with CauseRestore.
	Restore RestorePolicy `json:"restore,omitempty"`
	PEF     PEFAction     `json:"filter,omitempty"` // "": it was not started by PEF
}

// lastReset returns the LastReset of the start that begins.
func (s *Main) lastReset(now time.Time) *LastReset {
	r := &LastReset{At: now, Cause: s.resetCause()}
	switch r.Cause {
	case CauseRestore:
		r.Restore = s.RestoreCause
	case causePEF:
		r.Cause, r.PEF = CauseCommand, PEFReset
		if s.RestartAfterOff {
			r.PEF = PEFPowerCycle
		}
	}
	return r
}

// resetCause returns the cause of the start that begins.
func (s *Main) resetCause() ResetCause {
	if s.Cause == "" {
		return CauseUnknown
	}
	return s.Cause
}

// Reset changes the power state. It answers ErrPower when the power state does
// not allow the reset, or is already the requested one.
type Reset struct {
	Kind       ResetKind
	ByPEF      bool // done by a platform event filter
	HangInPOST bool // the firmware then hangs in POST until the power is cut
}

func (c Reset) apply(m *Machine, now time.Time) ([]Event, error) {
	cause := CauseCommand
	switch {
	case c.ByPEF:
		cause = causePEF
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
	evs, err := m.applyReset(now, kind, cause)
	if err == nil && cause == CauseCommand {
		m.extendBootOptions(now)
	}
	return evs, err
}

func (m *Machine) applyReset(now time.Time, kind ResetKind, cause ResetCause) ([]Event, error) {
	ways, ok := resets[kind]
	if !ok {
		return nil, fmt.Errorf("reset %q: %w", kind, ErrUnknown)
	}
	on := phases[m.st.Phase].power == PowerOn
	if kind == Nmi && on {
		evs := []Event{note(now, event.NMISent)}
		if m.can(osCrash) && m.profile.OS.PanicOnNMI {
			m.main().Cause = CauseCrash
			m.printPanic(now, "NMI: Not continuing")
			evs = append(evs, m.step(now, osCrash)...)
		}
		return evs, nil
	}
	if kind == PushPowerButton && on && m.frontPanel().DisabledButtons().PowerOff {
		return nil, nil
	}
	deaf := m.st.OS != nil && m.st.OS.IgnoresPowerButton
	for _, w := range ways {
		if !m.can(w.on) || w.on == powerOnDelayed && m.onDelay() == 0 || w.on == shutdownRequested && deaf {
			continue
		}
		main := m.main()
		main.RestartAfterOff, main.Cause = w.again, cause
		if kind == Suspend {
			main.SuspendedImage = &main.OS.Source
		}
		return m.step(now, w.on), nil
	}
	if m.st.Phase == Unplugged {
		return nil, fmt.Errorf("%w: reset %s without AC power", ErrPower, kind)
	}
	if !on || !slices.Contains(osResets, kind) {
		return nil, fmt.Errorf("%w: reset %s while %s", ErrPower, kind, phases[m.st.Phase].power)
	}
	if patience := m.profile.Timings.Graceful.Duration; patience > 0 && forcedReset[kind] != "" {
		m.main().PendingReset = &PendingReset{Kind: kind, Until: now.Add(patience)}
	}
	return nil, nil
}

// pendingResetExpired ends the wait for a graceful reset: with a forced one
// where the model does that, else without effect.
func (m *Machine) pendingResetExpired(at time.Time) []Event {
	kind := m.st.PendingReset.Kind
	m.main().PendingReset = nil
	evs := []Event{note(at, event.ResetIgnored, string(kind))}
	if !slices.Contains(m.profile.OS.ForcedAfterTimeout, kind) {
		return evs
	}
	more, err := m.reset(at, forcedReset[kind], CauseCommand)
	if err != nil { // a PendingReset exists only while the power is on
		return evs
	}
	return append(evs, more...)
}

// dumpTime returns how long a crashed system takes until it restarts.
func (m *Machine) dumpTime() time.Duration {
	if !m.profile.OS.RestartOnCrash {
		return never
	}
	return m.profile.Timings.Dump.Duration
}
