package bmc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// ErrDown means that the BMC is down, or about to restart.
var ErrDown = errors.New("bmc: it restarts")

// LifePhase is the state of a BMC between no power and up. Values are stored.
type LifePhase string

// The phases.
const (
	Up       LifePhase = "up"
	Leaving  LifePhase = "leaving"  // still answers, about to go down
	Offline  LifePhase = "offline"  // boots, without network
	Starting LifePhase = "starting" // on the network, services not ready
	NoPower  LifePhase = "dark"     // without AC power
)

// Life is the life cycle of a BMC; a nil Life has been up since it was created.
type Life struct {
	Phase           LifePhase           `json:"phase"`
	Until           time.Time           `json:"until,omitzero"` // end of the phase, when it ends by itself
	Reset           ResetKind           `json:"reset,omitempty"`
	ResetToDefaults ResetToDefaultsType `json:"wipe,omitempty"` // settings to reset while going down
	Up              time.Time           `json:"up,omitzero"`    // when it last came up
}

// ResetKind is a reset of the BMC; the values are Redfish's ResetType (DSP2046,
// Resource.ResetType).
type ResetKind string

// The resets.
const (
	GracefulRestart ResetKind = "GracefulRestart"
	ForceRestart    ResetKind = "ForceRestart"
	powerRestored   ResetKind = "PowerCycle" // AC power returned
)

// ResetKinds lists the resets that clients can request.
var ResetKinds = []ResetKind{GracefulRestart, ForceRestart}

// ResetToDefaultsType says which settings a reset to defaults keeps; the values
// are Redfish's (DSP2046, Manager).
type ResetToDefaultsType string

// The types.
const (
	ResetAll                ResetToDefaultsType = "ResetAll"
	PreserveNetwork         ResetToDefaultsType = "PreserveNetwork"
	PreserveNetworkAndUsers ResetToDefaultsType = "PreserveNetworkAndUsers"
)

// ResetToDefaultsTypes lists all types.
var ResetToDefaultsTypes = []ResetToDefaultsType{ResetAll, PreserveNetworkAndUsers, PreserveNetwork}

// LifeSpec holds the durations of the phases of a restart.
type LifeSpec struct {
	Leave   time.Duration // from the request until it is down
	Offline time.Duration // while it boots, without network
	Start   time.Duration // while it is on the network and its services are not ready
	// KeepsMedia keeps virtual media inserted over a restart.
	KeepsMedia bool
}

// lifeTrigger causes a transition between phases.
type lifeTrigger string

const (
	lifeElapsed lifeTrigger = "time is up"
	lifeReset   lifeTrigger = "reset"
	mainsGone   lifeTrigger = "mains gone"
	mainsBack   lifeTrigger = "mains back"
)

type lifeTransition struct {
	from LifePhase
	on   lifeTrigger
}

// lifeTransitions is the state machine. A missing pair changes nothing.
var lifeTransitions = map[lifeTransition]LifePhase{
	{Up, lifeReset}:         Leaving,
	{Leaving, lifeElapsed}:  Offline,
	{Offline, lifeElapsed}:  Starting,
	{Starting, lifeElapsed}: Up,

	{Up, mainsGone}:       NoPower,
	{Leaving, mainsGone}:  NoPower,
	{Offline, mainsGone}:  NoPower,
	{Starting, mainsGone}: NoPower,
	{NoPower, mainsBack}:  Offline,
}

// phaseDurations holds the duration of the phases that end by themselves.
var phaseDurations = map[LifePhase]func(LifeSpec) time.Duration{
	Leaving:  func(s LifeSpec) time.Duration { return s.Leave },
	Offline:  func(s LifeSpec) time.Duration { return s.Offline },
	Starting: func(s LifeSpec) time.Duration { return s.Start },
}

// Is returns the BMC's phase.
func (l *Life) Is() LifePhase {
	if l == nil {
		return Up
	}
	return l.Phase
}

// Reachable reports whether the BMC accepts connections.
func (l *Life) Reachable() bool { return l.Is() != Offline && l.Is() != NoPower }

// Serves reports whether the BMC's services are ready.
func (l *Life) Serves() bool { return l.Is() == Up || l.Is() == Leaving }

// stepLife makes one transition; only it assigns the phase.
func (b *BMC) stepLife(now time.Time, on lifeTrigger) []Event {
	from := b.st.Life.Is()
	to, ok := lifeTransitions[lifeTransition{from, on}]
	if !ok {
		return nil
	}
	l := b.forkLife()
	l.Phase, l.Until = to, time.Time{}
	if last := phaseDurations[to]; last != nil {
		l.Until = now.Add(last(b.spec.Life))
	}
	b.st.Life = l
	evs := []Event{LifeChanged{At: now, Phase: to}}
	switch to {
	case Offline, NoPower:
		if from != NoPower { // otherwise it went down before
			evs = append(evs, b.goDown(now)...)
		}
	case Up:
		evs = append(evs, b.comeUp(now)...)
	}
	return evs
}

// forkLife returns a copy that a step may change, and stores it.
func (b *BMC) forkLife() *Life {
	if b.st.Life == nil {
		return &Life{Phase: Up}
	}
	return new(*b.st.Life)
}

// goDown ends sessions, the BMC's jobs, and the jobs of others
// for it, and virtual media. The machine's work continues.
func (b *BMC) goDown(now time.Time) []Event {
	b.closeSessions(func(*Session) bool { return true })
	evs := b.resetBootstrap(now)
	for _, j := range b.st.Tasks.All() {
		switch {
		case j.State.Ended():
		case !j.Outlives:
			evs = append(evs, b.taskDone(event.TaskDone{At: now, Task: j.ID, Fault: "the BMC was restarted", Cancelled: j.State == TaskCancelling})...)
		case j.State == TaskRunning:
			evs = append(evs, b.change(j.ID, now, func(j *Task) {
				j.suspendProgress(now)
				j.State = TaskInterrupted
			})...)
		}
	}
	for _, s := range b.st.Media.Slots {
		if s.Image != "" && (!s.Inserted || !b.spec.Life.KeepsMedia) {
			evs = append(evs, b.empty(&s, now)...)
		}
	}
	if w := b.st.Life.ResetToDefaults; w != "" {
		b.resetSettings(w)
	}
	return evs
}

// comeUp records that the BMC is up, and resumes the tasks whose work the
// machine has continued.
func (b *BMC) comeUp(now time.Time) []Event {
	l := b.forkLife()
	kind := l.Reset
	l.Up, l.Reset, l.ResetToDefaults = now, "", ""
	b.st.Life = l
	b.keepLog(&b.st.Log, true) // IPMI v2.0 rev 1.1, §22.1
	b.endPostpone()
	evs := []Event{b.audit(event.Note{At: now, Kind: event.BMCReset, Subject: event.Subject{Part: event.BMC}, Args: []string{string(kind)}})}
	for _, j := range b.st.Tasks.All() {
		if j.State == TaskInterrupted {
			evs = append(evs, b.taskRunning(event.TaskRunning{At: now, Task: j.ID, Until: j.Until})...)
		}
	}
	return evs
}

// resetSettings resets settings to their defaults. Logs, tasks and the clock
// are not settings.
func (b *BMC) resetSettings(w ResetToDefaultsType) {
	for _, p := range resettable {
		if !slices.Contains(p.but, w) {
			p.forget(b)
		}
	}
}

// resettable lists all settings and the types of reset that keep each.
var resettable = []struct {
	forget func(*BMC)
	but    []ResetToDefaultsType
}{
	{func(b *BMC) {
		b.st.Access = b.newAccess()
		b.refreshLogins()
		b.st.LoginFailures = nil
	}, []ResetToDefaultsType{PreserveNetworkAndUsers}},
	{func(b *BMC) { b.st.Net, b.st.Channel = nil, nil }, []ResetToDefaultsType{PreserveNetworkAndUsers, PreserveNetwork}},
	{func(b *BMC) { b.st.Chassis = nil }, nil},
	{func(b *BMC) { b.st.DCMI, b.st.SDRs = nil, nil }, nil},
	{func(b *BMC) { b.st.Serial = nil }, nil},
	{func(b *BMC) { b.st.PEF = nil }, nil},
	{func(b *BMC) { b.st.OEM = nil }, nil},
	{func(b *BMC) {
		if b.st.Tasks != nil && b.st.Tasks.Retention != nil {
			j := b.forkTasks()
			j.Retention = nil
			b.st.Tasks = j
		}
	}, nil},
	{func(b *BMC) {
		if b.st.Clock != nil {
			b.st.Clock = &Clock{Offset: b.st.Clock.Offset}
		}
	}, nil},
}

// Restart restarts the BMC. It goes down a little later, so that the request
// can be answered.
type Restart struct{ Kind ResetKind }

func (c Restart) apply(b *BMC, now time.Time) ([]Event, error) {
	if !slices.Contains(ResetKinds, c.Kind) {
		return nil, fmt.Errorf("bmc: reset %q: there is no such kind", c.Kind)
	}
	return b.restart(now, c.Kind, "")
}

// ResetToDefaults restarts the BMC and resets its settings.
type ResetToDefaults struct{ Type ResetToDefaultsType }

func (c ResetToDefaults) apply(b *BMC, now time.Time) ([]Event, error) {
	if !slices.Contains(ResetToDefaultsTypes, c.Type) {
		return nil, fmt.Errorf("bmc: reset to defaults %q: there is no such kind", c.Type)
	}
	return b.restart(now, GracefulRestart, c.Type)
}

func (b *BMC) restart(now time.Time, kind ResetKind, w ResetToDefaultsType) ([]Event, error) {
	if b.st.Life.Is() != Up {
		return nil, fmt.Errorf("%w: it is %s", ErrDown, b.st.Life.Is())
	}
	l := b.forkLife()
	l.Reset, l.ResetToDefaults = kind, w
	b.st.Life = l
	return b.stepLife(now, lifeReset), nil
}

// handleACPower handles a loss or return of AC power.
func (b *BMC) handleACPower(ev event.ACPower) []Event {
	if !ev.On {
		return b.stepLife(ev.At, mainsGone)
	}
	if b.st.Life.Is() == NoPower {
		l := b.forkLife()
		l.Reset = powerRestored
		b.st.Life = l
	}
	return b.stepLife(ev.At, mainsBack)
}

// advanceLife makes the transitions that are due.
func (b *BMC) advanceLife(now time.Time) []Event {
	var evs []Event
	for l := b.st.Life; l != nil && !l.Until.IsZero() && !now.Before(l.Until); l = b.st.Life {
		evs = append(evs, b.stepLife(l.Until, lifeElapsed)...)
	}
	return evs
}

// lifeDue returns when the phase ends by itself; zero: never.
func (b *BMC) lifeDue() time.Time {
	if b.st.Life == nil {
		return time.Time{}
	}
	return b.st.Life.Until
}

// LifeChanged reports the BMC's new phase.
type LifeChanged struct {
	At    time.Time
	Phase LifePhase
}

// Time implements Event.
func (e LifeChanged) Time() time.Time { return e.At }
