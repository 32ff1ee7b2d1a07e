package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// TimeoutAction is what a watchdog does when it expires; the values are
// Redfish's (DSP2046, ComputerSystem.HostWatchdogTimer.TimeoutAction).
type TimeoutAction string

// The actions.
const (
	NoAction         TimeoutAction = "None"
	WatchdogReset    TimeoutAction = "ResetSystem"
	WatchdogCycle    TimeoutAction = "PowerCycle"
	WatchdogPowerOff TimeoutAction = "PowerDown"
)

// TimeoutActions lists all actions; timeoutResets maps them to resets.
var (
	TimeoutActions = []TimeoutAction{NoAction, WatchdogReset, WatchdogCycle, WatchdogPowerOff}
	timeoutResets  = map[TimeoutAction]ResetKind{WatchdogReset: ForceRestart, WatchdogCycle: PowerCycle, WatchdogPowerOff: ForceOff}
)

// WarningAction is the pre-timeout interrupt of a watchdog; the values are
// Redfish's.
type WarningAction string

// The warnings.
const (
	NoWarning         WarningAction = "None"
	WarnByInterrupt   WarningAction = "DiagnosticInterrupt"
	WarnBySMI         WarningAction = "SMI" // which the firmware ignores
	WarnByMessageOnly WarningAction = "MessagingInterrupt"
)

// WarningActions lists all warning actions.
var WarningActions = []WarningAction{NoWarning, WarnByInterrupt, WarnBySMI, WarnByMessageOnly}

// WatchdogUse is who a watchdog supervises. Values are stored, and appear in
// log entries.
type WatchdogUse string

// The uses (IPMI v2.0 rev 1.1, §27.2).
const (
	WatchdogFRB2   WatchdogUse = "BIOS FRB2"
	WatchdogPOST   WatchdogUse = "BIOS/POST"
	WatchdogOSLoad WatchdogUse = "OS load"
	WatchdogSMSOS  WatchdogUse = "SMS/OS"
	WatchdogOEM    WatchdogUse = "OEM"
)

// WatchdogUses lists all uses.
var WatchdogUses = []WatchdogUse{WatchdogFRB2, WatchdogPOST, WatchdogOSLoad, WatchdogSMSOS, WatchdogOEM}

const (
	// defaultPreTimeout is the default interval between warning and expiry.
	defaultPreTimeout = 10 * time.Second
	// defaultWatchdog is the countdown of FeedWatchdog without a duration.
	defaultWatchdog = 5 * time.Minute
	maxWatchdog     = 24 * time.Hour
)

// ErrWatchdogNotSet means that the watchdog cannot be started because it was
// not set since the machine was last started.
var ErrWatchdogNotSet = errors.New("the watchdog is not set")

// Watchdog is the watchdog timer, which the running system or its firmware must
// reset in time. Enabled allows it to run; it runs while Until is set.
type Watchdog struct {
	Enabled         bool          `json:"enabled"`
	Action          TimeoutAction `json:"action"`
	Warning         WarningAction `json:"warning"`
	Until           time.Time     `json:"until,omitzero"`
	Since           time.Time     `json:"since,omitzero"`   // when it was last reset, while it runs
	Warned          bool          `json:"warned,omitempty"` // since the last reset
	PreTimeoutFlag  bool          `json:"flag,omitempty"`   // pre-timeout interrupt since it was set
	Use             WatchdogUse   `json:"use,omitempty"`    // "": never set
	PreTimeout      Duration      `json:"before,omitzero"`  // from warning to expiry; 0: no interval
	Countdown       Duration      `json:"for,omitzero"`     // initial countdown
	PausedCountdown Duration      `json:"left,omitzero"`    // remaining countdown while it is stopped
	Programmed      bool          `json:"set,omitempty"`    // by ProgramWatchdog, since the machine was last started
	DontLog         bool          `json:"silent,omitempty"` // its next expiry is not logged
	Expired         []WatchdogUse `json:"expired,omitempty"`
}

var noWatchdog = &Watchdog{Action: NoAction, Warning: NoWarning, PreTimeout: Duration{defaultPreTimeout}}

func (m *Machine) watchdog() *Watchdog {
	if m.st.Watchdog == nil {
		return noWatchdog
	}
	return m.st.Watchdog
}

// PresentCountdown returns the remaining countdown, running or not.
func (w *Watchdog) PresentCountdown(now time.Time) time.Duration {
	if w.Until.IsZero() {
		return w.PausedCountdown.Duration
	}
	return max(0, w.Until.Sub(now))
}

// updateWatchdog changes a copy of the watchdog and stores it.
func (m *Machine) updateWatchdog(how func(*Watchdog)) {
	is := m.watchdog()
	w := *is
	how(&w)
	if same := slices.Equal(w.Expired, is.Expired); !same || !w.equalExceptExpired(is) {
		m.st.Watchdog = &w
	}
}

// equalExceptExpired compares two watchdogs without Expired.
func (w *Watchdog) equalExceptExpired(o *Watchdog) bool {
	return w.Enabled == o.Enabled && w.Action == o.Action && w.Warning == o.Warning && w.Until.Equal(o.Until) && w.Since.Equal(o.Since) &&
		w.Warned == o.Warned && w.PreTimeoutFlag == o.PreTimeoutFlag && w.Use == o.Use && w.PreTimeout == o.PreTimeout && w.Countdown == o.Countdown && w.PausedCountdown == o.PausedCountdown && w.Programmed == o.Programmed && w.DontLog == o.DontLog
}

// start starts or resets the countdown.
func (w *Watchdog) start(now time.Time) {
	w.Since, w.Until, w.Warned = now, now.Add(w.Countdown.Duration), false
}

// pause stops the countdown with that much time left.
func (w *Watchdog) pause(left time.Duration) {
	w.Since, w.Until, w.Warned, w.PausedCountdown = time.Time{}, time.Time{}, false, Duration{left}
}

// SetWatchdog enables the watchdog and sets its actions.
type SetWatchdog struct {
	Enabled bool
	Action  TimeoutAction
	Warning WarningAction
}

func (c SetWatchdog) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := checkWatchdogActions(c.Action, c.Warning); err != nil {
		return nil, err
	}
	m.updateWatchdog(func(w *Watchdog) {
		if w.Warning != c.Warning {
			w.PreTimeout = Duration{defaultPreTimeout}
		}
		w.Enabled, w.Action, w.Warning = c.Enabled, c.Action, c.Warning
		if !c.Enabled {
			w.pause(w.PresentCountdown(now))
			w.Programmed = false
		}
	})
	return nil, nil
}

func checkWatchdogActions(a TimeoutAction, by WarningAction) error {
	switch {
	case !slices.Contains(TimeoutActions, a):
		return fmt.Errorf("watchdog action %q: %w", a, ErrUnknown)
	case !slices.Contains(WarningActions, by):
		return fmt.Errorf("watchdog warning %q: %w", by, ErrUnknown)
	}
	return nil
}

// ProgramWatchdog replaces the watchdog's settings and stops it (IPMI v2.0 rev
// 1.1, §27.6). StartWatchdog starts it.
type ProgramWatchdog struct {
	Use          WatchdogUse
	DontLog      bool
	DontStop     bool // a running watchdog keeps running with the new countdown
	Action       TimeoutAction
	Warning      WarningAction
	PreTimeout   time.Duration
	Countdown    time.Duration
	ClearExpired []WatchdogUse // expiration flags to clear
}

func (c ProgramWatchdog) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := checkWatchdogActions(c.Action, c.Warning); err != nil {
		return nil, err
	}
	switch {
	case !slices.Contains(WatchdogUses, c.Use):
		return nil, fmt.Errorf("watchdog use %q: %w", c.Use, ErrUnknown)
	case c.PreTimeout < 0 || c.Countdown < 0 || c.Countdown > maxWatchdog:
		return nil, fmt.Errorf("watchdog time %v: must be 0 to %v: %w", c.Countdown, maxWatchdog, ErrUnknown)
	}
	m.updateWatchdog(func(w *Watchdog) {
		runs := !w.Until.IsZero()
		w.Enabled, w.Programmed, w.PreTimeoutFlag, w.Use, w.DontLog, w.Action, w.Warning = true, true, false, c.Use, c.DontLog, c.Action, c.Warning
		w.PreTimeout, w.Countdown = Duration{c.PreTimeout}, Duration{c.Countdown}
		w.Expired = slices.DeleteFunc(slices.Clone(w.Expired), func(u WatchdogUse) bool { return slices.Contains(c.ClearExpired, u) })
		w.pause(c.Countdown)
		if runs && c.DontStop {
			w.start(now)
		}
	})
	return m.expireWatchdogNow(now), nil
}

// StartWatchdog starts or resets the watchdog (§27.5). One that has warned
// keeps running to its expiry.
type StartWatchdog struct{}

func (StartWatchdog) apply(m *Machine, now time.Time) ([]Event, error) {
	switch w := m.watchdog(); {
	case !w.Programmed:
		return nil, ErrWatchdogNotSet
	case !storagePowered(m.st.Phase):
		return nil, fmt.Errorf("%w: a watchdog stands still without power", ErrPower)
	case w.Warned:
		return nil, fmt.Errorf("%w: the watchdog has warned already", ErrConflict)
	}
	m.updateWatchdog(func(w *Watchdog) { w.start(now) })
	return m.expireWatchdogNow(now), nil
}

// expireWatchdogNow handles a watchdog whose countdown is 0.
func (m *Machine) expireWatchdogNow(now time.Time) (evs []Event) {
	for {
		at, ok := m.watchdogDue()
		if !ok || at.After(now) {
			return evs
		}
		evs = append(evs, m.fireWatchdog(now)...)
	}
}

// FeedWatchdog is done by the running system: it starts or resets the watchdog.
// For is the countdown; 0 is the default.
type FeedWatchdog struct {
	Boot uint64
	For  time.Duration
}

func (c FeedWatchdog) apply(m *Machine, now time.Time) ([]Event, error) {
	switch {
	case m.st.OS == nil || m.st.OS.Boot != c.Boot:
		return nil, fmt.Errorf("%w: boot %d", ErrStale, c.Boot)
	case !m.watchdog().Enabled:
		return nil, fmt.Errorf("%w: the watchdog is disabled", ErrConflict)
	case c.For < 0 || c.For > maxWatchdog:
		return nil, fmt.Errorf("watchdog time %v: must be 0 to %v: %w", c.For, maxWatchdog, ErrUnknown)
	case c.For == 0:
		c.For = defaultWatchdog
	}
	m.updateWatchdog(func(w *Watchdog) {
		w.Use, w.Countdown = WatchdogSMSOS, Duration{c.For}
		w.start(now)
	})
	return nil, nil
}

// watchdogDue returns when the watchdog next warns or expires.
func (m *Machine) watchdogDue() (time.Time, bool) {
	w := m.watchdog()
	if w.Until.IsZero() {
		return time.Time{}, false
	}
	if w.Warning == NoWarning || w.Warned {
		return w.Until, true
	}
	at := w.Until.Add(-w.PreTimeout.Duration)
	if at.Before(w.Since) { // the countdown is shorter than the pre-timeout interval
		at = w.Since
	}
	return at, true
}

// fireWatchdog warns or expires.
func (m *Machine) fireWatchdog(at time.Time) (evs []Event) {
	w := *m.watchdog()
	log := func(kind event.Kind, args ...string) {
		if !w.DontLog {
			evs = append(evs, note(at, kind, args...))
		}
	}
	if w.Warning != NoWarning && !w.Warned {
		m.updateWatchdog(func(w *Watchdog) { w.Warned, w.PreTimeoutFlag = true, true })
		log(event.WatchdogWarned, string(w.Warning), string(w.Use))
		if w.Warning == WarnByInterrupt {
			more, err := m.reset(at, Nmi, CauseCrash)
			if err == nil { // otherwise nothing runs that could be interrupted
				evs = append(evs, more...)
			}
		}
		return evs
	}
	m.updateWatchdog(func(w *Watchdog) {
		w.pause(0)
		w.DontLog = false
		if w.Use != "" && !slices.Contains(w.Expired, w.Use) {
			w.Expired = append(slices.Clip(w.Expired), w.Use)
		}
	})
	log(event.WatchdogExpired, string(w.Action), string(w.Use), string(w.Warning))
	if kind, ok := timeoutResets[w.Action]; ok {
		more, err := m.reset(at, kind, CauseWatchdog)
		if err == nil { // otherwise it is off already
			evs = append(evs, more...)
		}
	}
	return evs
}

// stopWatchdogIn stops the watchdog at a transition to a phase in which it does
// not run.
func (m *Machine) stopWatchdogIn(to Phase, now time.Time) {
	if m.st.Watchdog == nil || watchdogPhases[to] {
		return
	}
	m.updateWatchdog(func(w *Watchdog) {
		w.pause(w.PresentCountdown(now))
		if to == POST {
			w.Programmed, w.PreTimeoutFlag, w.DontLog = false, false, false
		}
	})
}

// watchdogPhases are the phases in which a watchdog keeps running: it is for
// firmware and systems that hang or crash. A restart stops it, and so does a
// graceful shutdown.
var watchdogPhases = map[Phase]bool{
	Selecting: true, InSetup: true, Halted: true, Loading: true, Running: true, Paused: true, Crashed: true,
}
