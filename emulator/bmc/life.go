package bmc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// ErrDown means that the BMC is not up, or about to go down.
var ErrDown = errors.New("bmc: it restarts")

// LifePhase is how far a BMC is between dark and up. Values are stored.
type LifePhase string

// The phases.
const (
	Up       LifePhase = "up"
	Leaving  LifePhase = "leaving"  // it still answers, and will go down
	Offline  LifePhase = "offline"  // it boots, and is not on the network
	Starting LifePhase = "starting" // it is on the network, and its services are not ready
	NoPower  LifePhase = "dark"     // it has no power
)

// Life is where a BMC is in its life; a nil Life is up since it was made.
type Life struct {
	Phase           LifePhase           `json:"phase"`
	Until           time.Time           `json:"until,omitzero"` // when the phase ends by itself
	Reset           ResetKind           `json:"reset,omitempty"`
	ResetToDefaults ResetToDefaultsType `json:"wipe,omitempty"` // what it does on its way down
	Up              time.Time           `json:"up,omitzero"`    // when it came up last
}

// ResetKind is a way to restart a BMC; the values are Redfish's ResetType
// (DSP2046, Resource.ResetType).
type ResetKind string

// The resets.
const (
	GracefulRestart ResetKind = "GracefulRestart"
	ForceRestart    ResetKind = "ForceRestart"
	powerRestored   ResetKind = "PowerCycle" // the mains came back
)

// ResetKinds are those that can be asked for.
var ResetKinds = []ResetKind{GracefulRestart, ForceRestart}

// ResetToDefaultsType is what a BMC forgets when it is reset to its defaults; the values are
// Redfish's ResetToDefaultsType (DSP2046, Manager).
type ResetToDefaultsType string

// The ways.
const (
	ResetAll                ResetToDefaultsType = "ResetAll"
	PreserveNetwork         ResetToDefaultsType = "PreserveNetwork"
	PreserveNetworkAndUsers ResetToDefaultsType = "PreserveNetworkAndUsers"
)

// ResetToDefaultsTypes are all of them.
var ResetToDefaultsTypes = []ResetToDefaultsType{ResetAll, PreserveNetworkAndUsers, PreserveNetwork}

// LifeSpec says how long a BMC is in each phase of a restart.
type LifeSpec struct {
	Leave   time.Duration // from the command until it is gone
	Offline time.Duration
	Start   time.Duration
	// KeepsMedia says that virtual media stay inserted over a restart.
	KeepsMedia bool
}

// lifeTrigger moves a BMC from one phase to another.
type lifeTrigger string

const (
	lifeElapsed lifeTrigger = "time is up"
	lifeReset   lifeTrigger = "reset"
	mainsGone   lifeTrigger = "mains gone"
	mainsBack   lifeTrigger = "mains back"
)

type lifeMove struct {
	from LifePhase
	on   lifeTrigger
}

// lifeMoves is the state machine. A pair that is absent changes nothing.
var lifeMoves = map[lifeMove]LifePhase{
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

// lasts is how long each phase lasts; nil lasts until something comes.
var lasts = map[LifePhase]func(LifeSpec) time.Duration{
	Leaving:  func(s LifeSpec) time.Duration { return s.Leave },
	Offline:  func(s LifeSpec) time.Duration { return s.Offline },
	Starting: func(s LifeSpec) time.Duration { return s.Start },
}

// Is the phase that a BMC is in.
func (l *Life) Is() LifePhase {
	if l == nil {
		return Up
	}
	return l.Phase
}

// Reachable says whether a connection to the BMC comes about.
func (l *Life) Reachable() bool { return l.Is() != Offline && l.Is() != NoPower }

// Serves says whether the BMC's services are ready.
func (l *Life) Serves() bool { return l.Is() == Up || l.Is() == Leaving }

// live makes one move; it alone assigns the phase.
func (b *BMC) live(now time.Time, on lifeTrigger) []Event {
	from := b.st.Life.Is()
	to, ok := lifeMoves[lifeMove{from, on}]
	if !ok {
		return nil
	}
	l := b.forkLife()
	l.Phase, l.Until = to, time.Time{}
	if last := lasts[to]; last != nil {
		l.Until = now.Add(last(b.spec.Life))
	}
	b.st.Life = l
	evs := []Event{LifeChanged{At: now, Phase: to}}
	switch to {
	case Offline, NoPower:
		if from != NoPower { // then it went down before
			evs = append(evs, b.goDown(now)...)
		}
	case Up:
		evs = append(evs, b.comeUp(now)...)
	}
	return evs
}

// forkLife is a copy of the life that a step may write and put in place.
func (b *BMC) forkLife() *Life {
	if b.st.Life == nil {
		return &Life{Phase: Up}
	}
	return new(*b.st.Life)
}

// goDown ends what does not outlive the BMC: sessions, its own work and that of
// others for it, and what it fetched. The machine's goes on.
func (b *BMC) goDown(now time.Time) []Event {
	b.closeSessions(func(*Session) bool { return true })
	evs := b.bootstrapped(now)
	for _, j := range b.st.Tasks.All() {
		switch {
		case j.State.Ended():
		case !j.Outlives:
			evs = append(evs, b.done(event.TaskDone{At: now, Task: j.ID, Fault: "the BMC was restarted", Cancelled: j.State == TaskCancelling})...)
		case j.State == TaskRunning:
			evs = append(evs, b.change(j.ID, now, func(j *Task) {
				j.rest(now)
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
		b.wipe(w)
	}
	return evs
}

// comeUp notes that the BMC is up again, and goes on with what the machine has
// gone on with.
func (b *BMC) comeUp(now time.Time) []Event {
	l := b.forkLife()
	kind := l.Reset
	l.Up, l.Reset, l.ResetToDefaults = now, "", ""
	b.st.Life = l
	b.keepLog(&b.st.Log, true) // IPMI v2.0 rev 1.1, §22.1
	b.attend()
	evs := []Event{b.audit(event.Note{At: now, Kind: event.BMCReset, Subject: event.Subject{Part: event.BMC}, Args: []string{string(kind)}})}
	for _, j := range b.st.Tasks.All() {
		if j.State == TaskInterrupted {
			evs = append(evs, b.running(event.TaskRunning{At: now, Task: j.ID, Until: j.Until})...)
		}
	}
	return evs
}

// wipe forgets settings. Logs, jobs and the clock's time stay: they are no
// settings.
func (b *BMC) wipe(w ResetToDefaultsType) {
	for _, p := range wiped {
		if !slices.Contains(p.but, w) {
			p.forget(b)
		}
	}
}

// wiped are all settings, and what lets each stay as it is.
var wiped = []struct {
	forget func(*BMC)
	but    []ResetToDefaultsType
}{
	{func(b *BMC) {
		b.st.Access = b.newAccess()
		b.keyed()
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

// Restart restarts the BMC. It goes down a little later: whoever asks for it has
// an answer first.
type Restart struct{ Kind ResetKind }

func (c Restart) apply(b *BMC, now time.Time) ([]Event, error) {
	if !slices.Contains(ResetKinds, c.Kind) {
		return nil, fmt.Errorf("bmc: reset %q: there is no such kind", c.Kind)
	}
	return b.restart(now, c.Kind, "")
}

// ResetToDefaults restarts the BMC, and has it forget settings.
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
	return b.live(now, lifeReset), nil
}

// mains tells what becomes of the BMC's power.
func (b *BMC) mains(ev event.ACPower) []Event {
	if !ev.On {
		return b.live(ev.At, mainsGone)
	}
	if b.st.Life.Is() == NoPower {
		l := b.forkLife()
		l.Reset = powerRestored
		b.st.Life = l
	}
	return b.live(ev.At, mainsBack)
}

// grow makes the moves that time has made due.
func (b *BMC) grow(now time.Time) []Event {
	var evs []Event
	for l := b.st.Life; l != nil && !l.Until.IsZero() && !now.Before(l.Until); l = b.st.Life {
		evs = append(evs, b.live(l.Until, lifeElapsed)...)
	}
	return evs
}

// nextOfLife is when time next moves the BMC; zero when it does not.
func (b *BMC) nextOfLife() time.Time {
	if b.st.Life == nil {
		return time.Time{}
	}
	return b.st.Life.Until
}

// LifeChanged tells a phase that the BMC has come to.
type LifeChanged struct {
	At    time.Time
	Phase LifePhase
}

// Time implements Event.
func (e LifeChanged) Time() time.Time { return e.At }
