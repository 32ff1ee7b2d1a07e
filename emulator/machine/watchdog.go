package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// TimeoutAction is what a watchdog does when it runs out; the values are
// Redfish's (DSP2046, ComputerSystem.HostWatchdogTimer.TimeoutAction).
type TimeoutAction string

// The actions.
const (
	NoAction         TimeoutAction = "None"
	WatchdogReset    TimeoutAction = "ResetSystem"
	WatchdogCycle    TimeoutAction = "PowerCycle"
	WatchdogPowerOff TimeoutAction = "PowerDown"
)

// TimeoutActions are all of them, and what they do.
var (
	TimeoutActions = []TimeoutAction{NoAction, WatchdogReset, WatchdogCycle, WatchdogPowerOff}
	timeoutResets  = map[TimeoutAction]ResetKind{WatchdogReset: ForceRestart, WatchdogCycle: PowerCycle, WatchdogPowerOff: ForceOff}
)

// WarningAction is what a watchdog does shortly before; the values are
// Redfish's.
type WarningAction string

// The warnings.
const (
	NoWarning         WarningAction = "None"
	WarnByInterrupt   WarningAction = "DiagnosticInterrupt"
	WarnBySMI         WarningAction = "SMI" // of which the firmware makes nothing
	WarnByMessageOnly WarningAction = "MessagingInterrupt"
)

// WarningActions are all of them.
var WarningActions = []WarningAction{NoWarning, WarnByInterrupt, WarnBySMI, WarnByMessageOnly}

// WatchdogUse is who a watchdog watches over. Values are stored, and are in
// notes about it.
type WatchdogUse string

// The uses (IPMI v2.0 rev 1.1, §27.2).
const (
	WatchdogFRB2   WatchdogUse = "BIOS FRB2"
	WatchdogPOST   WatchdogUse = "BIOS/POST"
	WatchdogOSLoad WatchdogUse = "OS load"
	WatchdogSMSOS  WatchdogUse = "SMS/OS"
	WatchdogOEM    WatchdogUse = "OEM"
)

// WatchdogUses are all of them.
var WatchdogUses = []WatchdogUse{WatchdogFRB2, WatchdogPOST, WatchdogOSLoad, WatchdogSMSOS, WatchdogOEM}

const (
	// warnBefore is how long before the end a watchdog warns if nobody says.
	warnBefore = 10 * time.Second
	// defaultWatchdog is how long a watchdog runs if who feeds it does not say.
	defaultWatchdog = 5 * time.Minute
	maxWatchdog     = 24 * time.Hour
)

// ErrWatchdogNotSet means that a watchdog is to start that nobody has set since the
// machine was last started.
var ErrWatchdogNotSet = errors.New("machine: the watchdog is not set")

// Watchdog is the timer that somebody has to feed, most likely the running
// system. Enabled lets it be started; it runs while Until is set.
type Watchdog struct {
	Enabled         bool          `json:"enabled"`
	Action          TimeoutAction `json:"action"`
	Warning         WarningAction `json:"warning"`
	Until           time.Time     `json:"until,omitzero"`
	Since           time.Time     `json:"since,omitzero"`   // when it was last wound up, while it runs
	Warned          bool          `json:"warned,omitempty"` // since it was wound up
	PreTimeoutFlag  bool          `json:"flag,omitempty"`   // it has warned since it was set
	Use             WatchdogUse   `json:"use,omitempty"`    // "": nobody's yet
	PreTimeout      Duration      `json:"before,omitzero"`  // that it warns before the end; 0: at the end
	Countdown       Duration      `json:"for,omitzero"`     // that it runs when it is wound up
	PausedCountdown Duration      `json:"left,omitzero"`    // of that, while it stands still
	Programmed      bool          `json:"set,omitempty"`    // by ProgramWatchdog, since the machine was last started
	DontLog         bool          `json:"silent,omitempty"` // its next end is not logged
	Expired         []WatchdogUse `json:"expired,omitempty"`
}

var noWatchdog = &Watchdog{Action: NoAction, Warning: NoWarning, PreTimeout: Duration{warnBefore}}

func (m *Machine) watchdog() *Watchdog {
	if m.st.Watchdog == nil {
		return noWatchdog
	}
	return m.st.Watchdog
}

// PresentCountdown is for how long the watchdog runs on, or would if it were going.
func (w *Watchdog) PresentCountdown(now time.Time) time.Duration {
	if w.Until.IsZero() {
		return w.PausedCountdown.Duration
	}
	return max(0, w.Until.Sub(now))
}

// setWatchdog changes a copy and puts it in place.
func (m *Machine) setWatchdog(how func(*Watchdog)) {
	is := m.watchdog()
	w := *is
	how(&w)
	if same := slices.Equal(w.Expired, is.Expired); !same || !w.alike(is) {
		m.st.Watchdog = &w
	}
}

// alike compares all but what has expired.
func (w *Watchdog) alike(o *Watchdog) bool {
	return w.Enabled == o.Enabled && w.Action == o.Action && w.Warning == o.Warning && w.Until.Equal(o.Until) && w.Since.Equal(o.Since) &&
		w.Warned == o.Warned && w.PreTimeoutFlag == o.PreTimeoutFlag && w.Use == o.Use && w.PreTimeout == o.PreTimeout && w.Countdown == o.Countdown && w.PausedCountdown == o.PausedCountdown && w.Programmed == o.Programmed && w.DontLog == o.DontLog
}

// wind starts it, or starts it anew.
func (w *Watchdog) wind(now time.Time) {
	w.Since, w.Until, w.Warned = now, now.Add(w.Countdown.Duration), false
}

// stop stands it still with so much time left.
func (w *Watchdog) stop(left time.Duration) {
	w.Since, w.Until, w.Warned, w.PausedCountdown = time.Time{}, time.Time{}, false, Duration{left}
}

// SetWatchdog says whether the watchdog may be used, and what it does.
type SetWatchdog struct {
	Enabled bool
	Action  TimeoutAction
	Warning WarningAction
}

func (c SetWatchdog) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := knowWatchdog(c.Action, c.Warning); err != nil {
		return nil, err
	}
	m.setWatchdog(func(w *Watchdog) {
		if w.Warning != c.Warning {
			w.PreTimeout = Duration{warnBefore}
		}
		w.Enabled, w.Action, w.Warning = c.Enabled, c.Action, c.Warning
		if !c.Enabled {
			w.stop(w.PresentCountdown(now))
			w.Programmed = false
		}
	})
	return nil, nil
}

func knowWatchdog(a TimeoutAction, by WarningAction) error {
	switch {
	case !slices.Contains(TimeoutActions, a):
		return fmt.Errorf("machine: watchdog action %q: %w", a, ErrUnknown)
	case !slices.Contains(WarningActions, by):
		return fmt.Errorf("machine: watchdog warning %q: %w", by, ErrUnknown)
	}
	return nil
}

// ProgramWatchdog sets the watchdog, whole, and stops it (IPMI v2.0 rev 1.1,
// §27.6). StartWatchdog starts it.
type ProgramWatchdog struct {
	Use          WatchdogUse
	DontLog      bool
	DontStop     bool // it does not stop: if it runs, it is wound up as it is set now
	Action       TimeoutAction
	Warning      WarningAction
	PreTimeout   time.Duration
	Countdown    time.Duration
	ClearExpired []WatchdogUse // that have expired
}

func (c ProgramWatchdog) apply(m *Machine, now time.Time) ([]Event, error) {
	if err := knowWatchdog(c.Action, c.Warning); err != nil {
		return nil, err
	}
	switch {
	case !slices.Contains(WatchdogUses, c.Use):
		return nil, fmt.Errorf("machine: watchdog use %q: %w", c.Use, ErrUnknown)
	case c.PreTimeout < 0 || c.Countdown < 0 || c.Countdown > maxWatchdog:
		return nil, fmt.Errorf("machine: watchdog time %v: must be 0 to %v: %w", c.Countdown, maxWatchdog, ErrUnknown)
	}
	m.setWatchdog(func(w *Watchdog) {
		runs := !w.Until.IsZero()
		w.Enabled, w.Programmed, w.PreTimeoutFlag, w.Use, w.DontLog, w.Action, w.Warning = true, true, false, c.Use, c.DontLog, c.Action, c.Warning
		w.PreTimeout, w.Countdown = Duration{c.PreTimeout}, Duration{c.Countdown}
		w.Expired = slices.DeleteFunc(slices.Clone(w.Expired), func(u WatchdogUse) bool { return slices.Contains(c.ClearExpired, u) })
		w.stop(c.Countdown)
		if runs && c.DontStop {
			w.wind(now)
		}
	})
	return m.watchAtOnce(now), nil
}

// StartWatchdog starts the watchdog, or winds it up (§27.5). One that has
// warned runs on to its end.
type StartWatchdog struct{}

func (StartWatchdog) apply(m *Machine, now time.Time) ([]Event, error) {
	switch w := m.watchdog(); {
	case !w.Programmed:
		return nil, ErrWatchdogNotSet
	case !powersDisks(m.st.Phase):
		return nil, fmt.Errorf("%w: a watchdog stands still without power", ErrPower)
	case w.Warned:
		return nil, fmt.Errorf("%w: the watchdog has warned already", ErrConflict)
	}
	m.setWatchdog(func(w *Watchdog) { w.wind(now) })
	return m.watchAtOnce(now), nil
}

// watchAtOnce does what a watchdog without any time does.
func (m *Machine) watchAtOnce(now time.Time) (evs []Event) {
	for {
		at, ok := m.watchdogDue()
		if !ok || at.After(now) {
			return evs
		}
		evs = append(evs, m.watchdogFires(now)...)
	}
}

// FeedWatchdog is the running system's doing: it starts the watchdog, or winds
// it up. For is until when it must do so again; 0 is the usual time.
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
		return nil, fmt.Errorf("machine: watchdog time %v: must be 0 to %v: %w", c.For, maxWatchdog, ErrUnknown)
	case c.For == 0:
		c.For = defaultWatchdog
	}
	m.setWatchdog(func(w *Watchdog) {
		w.Use, w.Countdown = WatchdogSMSOS, Duration{c.For}
		w.wind(now)
	})
	return nil, nil
}

// watchdogDue is when the watchdog next does something.
func (m *Machine) watchdogDue() (time.Time, bool) {
	w := m.watchdog()
	if w.Until.IsZero() {
		return time.Time{}, false
	}
	if w.Warning == NoWarning || w.Warned {
		return w.Until, true
	}
	at := w.Until.Add(-w.PreTimeout.Duration)
	if at.Before(w.Since) { // it has less time than that
		at = w.Since
	}
	return at, true
}

// watchdogFires does it.
func (m *Machine) watchdogFires(at time.Time) (evs []Event) {
	w := *m.watchdog()
	tell := func(kind event.Kind, args ...string) {
		if !w.DontLog {
			evs = append(evs, note(at, kind, args...))
		}
	}
	if w.Warning != NoWarning && !w.Warned {
		m.setWatchdog(func(w *Watchdog) { w.Warned, w.PreTimeoutFlag = true, true })
		tell(event.WatchdogWarned, string(w.Warning), string(w.Use))
		if w.Warning == WarnByInterrupt {
			more, err := m.reset(at, Nmi, CauseCrash)
			if err == nil { // else nothing is on that could be interrupted
				evs = append(evs, more...)
			}
		}
		return evs
	}
	m.setWatchdog(func(w *Watchdog) {
		w.stop(0)
		w.DontLog = false
		if w.Use != "" && !slices.Contains(w.Expired, w.Use) {
			w.Expired = append(slices.Clip(w.Expired), w.Use)
		}
	})
	tell(event.WatchdogExpired, string(w.Action), string(w.Use), string(w.Warning))
	if kind, ok := timeoutResets[w.Action]; ok {
		more, err := m.reset(at, kind, CauseWatchdog)
		if err == nil { // else it is off already
			evs = append(evs, more...)
		}
	}
	return evs
}

// stopWatchdog ends the time that somebody was given, as a move to a phase does.
func (m *Machine) stopWatchdog(to Phase, now time.Time) {
	if m.st.Watchdog == nil || watched[to] {
		return
	}
	m.setWatchdog(func(w *Watchdog) {
		w.stop(w.PresentCountdown(now))
		if to == POST {
			w.Programmed, w.PreTimeoutFlag, w.DontLog = false, false, false
		}
	})
}

// watched are the phases through which a watchdog runs on: it is there for
// firmware and systems that hang or crash. A restart stops it, and so does a
// system that shuts down in good order.
var watched = map[Phase]bool{
	Selecting: true, InSetup: true, Halted: true, Loading: true, Running: true, Paused: true, Crashed: true,
}
