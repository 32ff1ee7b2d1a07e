package machine

import (
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
	WarnByMessageOnly WarningAction = "MessagingInterrupt"
)

// WarningActions are all of them.
var WarningActions = []WarningAction{NoWarning, WarnByInterrupt, WarnByMessageOnly}

const (
	// warnBefore is how long before the end a watchdog warns.
	warnBefore = 10 * time.Second
	// defaultWatchdog is how long a watchdog runs if who feeds it does not say.
	defaultWatchdog = 5 * time.Minute
	maxWatchdog     = 24 * time.Hour
)

// Watchdog is the timer that a system has to feed. Enabled lets a system start
// it; it runs while Until is set.
type Watchdog struct {
	Enabled bool          `json:"enabled"`
	Action  TimeoutAction `json:"action"`
	Warning WarningAction `json:"warning"`
	Until   time.Time     `json:"until,omitzero"`
	Warned  bool          `json:"warned,omitempty"`
}

var noWatchdog = &Watchdog{Action: NoAction, Warning: NoWarning}

func (m *Machine) watchdog() *Watchdog {
	if m.st.Watchdog == nil {
		return noWatchdog
	}
	return m.st.Watchdog
}

// setWatchdog changes a copy and puts it in place.
func (m *Machine) setWatchdog(how func(*Watchdog)) {
	w := *m.watchdog()
	how(&w)
	if w != *m.watchdog() {
		m.st.Watchdog = &w
	}
}

// SetWatchdog says whether a system may use the watchdog, and what that does.
type SetWatchdog struct {
	Enabled bool
	Action  TimeoutAction
	Warning WarningAction
}

func (c SetWatchdog) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch {
	case !slices.Contains(TimeoutActions, c.Action):
		return nil, fmt.Errorf("machine: watchdog action %q: %w", c.Action, ErrUnknown)
	case !slices.Contains(WarningActions, c.Warning):
		return nil, fmt.Errorf("machine: watchdog warning %q: %w", c.Warning, ErrUnknown)
	}
	m.setWatchdog(func(w *Watchdog) {
		w.Enabled, w.Action, w.Warning = c.Enabled, c.Action, c.Warning
		if !c.Enabled {
			w.Until, w.Warned = time.Time{}, false
		}
	})
	return nil, nil
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
	m.setWatchdog(func(w *Watchdog) { w.Until, w.Warned = now.Add(c.For), false })
	return nil, nil
}

// watchdogDue is when the watchdog next does something.
func (m *Machine) watchdogDue() (time.Time, bool) {
	w := m.watchdog()
	if w.Until.IsZero() {
		return time.Time{}, false
	}
	if w.Warning != NoWarning && !w.Warned {
		return w.Until.Add(-warnBefore), true
	}
	return w.Until, true
}

// watchdogFires does it.
func (m *Machine) watchdogFires(at time.Time) []Event {
	w := *m.watchdog()
	if w.Warning != NoWarning && !w.Warned {
		m.setWatchdog(func(w *Watchdog) { w.Warned = true })
		evs := []Event{note(at, event.WatchdogWarned)}
		if w.Warning == WarnByInterrupt {
			more, err := m.reset(at, Nmi, CauseCrash)
			if err == nil { // else nothing is on that could be interrupted
				evs = append(evs, more...)
			}
		}
		return evs
	}
	m.stopWatchdog()
	evs := []Event{note(at, event.WatchdogExpired, string(w.Action))}
	if kind, ok := timeoutResets[w.Action]; ok {
		more, err := m.reset(at, kind, CauseWatchdog)
		if err == nil { // else it is off already
			evs = append(evs, more...)
		}
	}
	return evs
}

// stopWatchdog ends the time that a system was given.
func (m *Machine) stopWatchdog() {
	if m.st.Watchdog != nil {
		m.setWatchdog(func(w *Watchdog) { w.Until, w.Warned = time.Time{}, false })
	}
}

// watched are the phases through which a watchdog runs on: it is there for
// systems that hang or crash.
var watched = map[Phase]bool{Running: true, Paused: true, Crashed: true}
