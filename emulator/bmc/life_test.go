package bmc

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// mortal is a kind of BMC that takes its time to restart.
func mortal() *Spec {
	s := *spec
	s.Life = LifeSpec{Leave: 2 * time.Second, Offline: 40 * time.Second, Start: 20 * time.Second}
	return &s
}

func seconds(n int) time.Time { return origin.Add(time.Duration(n) * time.Second) }

func TestRestartMakesTheBMCUnreachable(t *testing.T) {
	b := New(mortal(), []Account{admin}, nil)
	do(t, b, origin, OpenSession{Account: admin, Token: "one"})
	do(t, b, origin, Restart{Kind: ForceRestart})
	for _, step := range []struct {
		at                int
		phase             LifePhase
		reachable, serves bool
	}{
		{1, Leaving, true, true}, {2, Offline, false, false}, {41, Offline, false, false}, {42, Starting, true, false},
		{61, Starting, true, false}, {62, Up, true, true}, {1000, Up, true, true},
	} {
		b.Advance(seconds(step.at))
		if l := b.View().Life; l.Is() != step.phase || l.Reachable() != step.reachable || l.Serves() != step.serves {
			t.Errorf("after %d s the BMC is %s (reachable %t, serves %t), want %s", step.at, l.Is(), l.Reachable(), l.Serves(), step.phase)
		}
	}
	l := b.View().Life
	if !l.Up.Equal(seconds(62)) {
		t.Errorf("it came up at %v, want %v", l.Up, seconds(62))
	}
	if _, ok := b.Resume(seconds(63), "one"); ok {
		t.Error("a session is still open")
	}
	e, _ := b.View().Audit.Entry(2) // after the login
	if e == nil || e.Kind != event.BMCReset || !slices.Equal(e.Args, []string{"ForceRestart"}) || !e.At.Equal(seconds(62)) {
		t.Errorf("the log says %+v", e)
	}
}

// All phases are passed, and told in order, even when time makes a leap.
func TestRestartReportsEachPhase(t *testing.T) {
	b := New(mortal(), nil, nil)
	var got []LifePhase
	for _, ev := range append(do(t, b, origin, Restart{Kind: GracefulRestart}), b.Advance(seconds(3600))...) {
		if ev, ok := ev.(LifeChanged); ok {
			got = append(got, ev.Phase)
		}
	}
	if want := []LifePhase{Leaving, Offline, Starting, Up}; !slices.Equal(got, want) {
		t.Errorf("phases %q, want %q", got, want)
	}
}

// The pair that the table does not name changes nothing; each phase is reached.
func TestEveryPhaseAndTriggerIsAnswered(t *testing.T) {
	reached := map[LifePhase]bool{Up: true}
	for _, to := range lifeTransitions {
		reached[to] = true
	}
	for _, phase := range []LifePhase{Up, Leaving, Offline, Starting, NoPower} {
		if !reached[phase] {
			t.Errorf("nothing leads to %s", phase)
		}
		for _, on := range []lifeTrigger{lifeElapsed, lifeReset, mainsGone, mainsBack} {
			b := New(mortal(), nil, &State{Life: &Life{Phase: phase}})
			b.stepLife(origin, on)
			want, ok := lifeTransitions[lifeTransition{phase, on}]
			if !ok {
				want = phase
			}
			if got := b.View().Life.Is(); got != want {
				t.Errorf("%s on %q leads to %s, want %s", phase, on, got, want)
			}
		}
	}
}

func TestMachineTasksOutliveABMCRestart(t *testing.T) {
	b := New(mortal(), []Account{admin}, nil)
	far, near, waits := openJob(t, b, origin), openJob(t, b, origin), openJob(t, b, origin)
	b.ObserveMachine(origin, []Event{event.TaskRunning{At: origin, Task: far, Until: seconds(200)}, event.TaskWaiting{At: origin, Task: waits}})
	do(t, b, origin, RunTask{ID: near, Until: seconds(200)})
	do(t, b, origin, CollectDump{Log: EventLog}) // with no time to take: it is done
	do(t, b, origin, Restart{Kind: GracefulRestart})
	b.Advance(seconds(10))
	if stateOf(b, far) != TaskInterrupted || stateOf(b, waits) != TaskPending || stateOf(b, near) != TaskException {
		t.Errorf("while the BMC is away jobs are %s, %s and %s", stateOf(b, far), stateOf(b, waits), stateOf(b, near))
	}
	b.Advance(seconds(100))
	j, _ := b.task(far)
	if j.State != TaskRunning || j.Percent(seconds(100)) < 1 || !j.Until.Equal(seconds(200)) {
		t.Errorf("job of the machine = %+v, want it running", j)
	}
	b.ObserveMachine(seconds(200), []Event{event.TaskDone{At: seconds(200), Task: far}})
	if stateOf(b, far) != TaskCompleted {
		t.Errorf("it is %s in the end", stateOf(b, far))
	}
	if j, _ := b.task(near); j.Fault == "" {
		t.Error("the job that died with the BMC does not say why")
	}
}

func TestMediaAfterABMCRestart(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		s := mortal()
		s.Life.KeepsMedia = keeps
		b := New(s, nil, nil)
		do(t, b, origin, InsertMedia{Slot: "Cd", Image: "http://images/a.iso"})
		do(t, b, origin, MediaFetched{Slot: "Cd", Fetch: 1, Size: 1})
		do(t, b, origin, InsertMedia{Slot: "Usb", Image: "http://images/slow.img"}) // on its way
		do(t, b, origin, Restart{Kind: GracefulRestart})
		ejected := 0
		for _, ev := range b.Advance(seconds(100)) {
			if _, ok := ev.(MediaEjected); ok {
				ejected++
			}
		}
		v := b.View()
		if v.Slots[0].Inserted != keeps || v.Slots[1].Image != "" || ejected != map[bool]int{true: 1, false: 2}[keeps] {
			t.Errorf("keeps %t: slots %+v, %d ejections", keeps, v.Slots, ejected)
		}
	}
}

func TestACPowerLossAndReturn(t *testing.T) {
	b := New(mortal(), nil, nil)
	b.ObserveMachine(origin, []Event{event.ACPower{At: origin}})
	b.Advance(seconds(1000))
	if l := b.View().Life; l.Is() != NoPower || l.Reachable() {
		t.Fatalf("without power the BMC is %s", l.Is())
	}
	refused(t, b, seconds(1000), Restart{Kind: GracefulRestart}, ErrDown)
	b.ObserveMachine(seconds(1000), []Event{event.ACPower{At: seconds(1000), On: true}})
	if at, ok := b.AwaitedDeadline(); !ok || !at.Equal(seconds(1040)) {
		t.Errorf("Awaited() = %v, %t, want when it is on the network", at, ok)
	}
	b.Advance(seconds(1060))
	e, _ := b.View().Audit.Entry(1)
	if l := b.View().Life; l.Is() != Up || e == nil || e.Args[0] != "PowerCycle" {
		t.Errorf("the BMC is %s, and the log says %+v", l.Is(), e)
	}
	b.ObserveMachine(seconds(2000), []Event{event.Restart{At: seconds(2000), Subject: event.Subject{Part: event.BMC}}})
	if b.View().Life.Is() != Leaving {
		t.Errorf("after an update that asks for a restart the BMC is %s", b.View().Life.Is())
	}
	b.ObserveMachine(seconds(2000), []Event{event.Restart{At: seconds(2000), Subject: event.Subject{Part: event.System}}})
}

func TestResetToDefaults(t *testing.T) {
	for wipe, preserved := range map[ResetToDefaultsType]bool{ResetAll: false, PreserveNetwork: false, PreserveNetworkAndUsers: true} {
		b := New(mortal(), []Account{admin}, nil)
		do(t, b, origin, SetSessions{Timeout: time.Hour})
		do(t, b, origin, SetZone{UTCOffset: 60, Name: "CET"})
		do(t, b, origin, SetTime{To: seconds(100)})
		do(t, b, origin, SetTaskRetention{TaskRetention{Ended: time.Hour}})
		b.ObserveMachine(origin, []Event{note(event.PowerOn)})
		do(t, b, origin, ResetToDefaults{Type: wipe})
		if v := b.View(); v.SessionTimeout != time.Hour {
			t.Errorf("%s: the defaults are back before the BMC went down", wipe)
		}
		b.Advance(seconds(62))
		v := b.View()
		if got := v.SessionTimeout == time.Hour; got != preserved || v.Clock.Local(origin).Location() != time.UTC || v.Clock.Skew() != 100*time.Second || v.Tasks.Retention != nil || v.Log.Len() != 1 {
			t.Errorf("%s: session time-out %v, clock %+v, jobs %+v, %d entries", wipe, v.SessionTimeout, v.Clock, v.Tasks.Retention, v.Log.Len())
		}
		if a, ok := b.View().Account("1"); !ok || a.Name != admin.Name {
			t.Errorf("%s: account 1 = %+v", wipe, a)
		}
		do(t, b, seconds(70), Restart{Kind: GracefulRestart})
		b.Advance(seconds(200))
		if v := b.View(); v.Life.ResetToDefaults != "" {
			t.Errorf("%s: the next restart would wipe too", wipe)
		}
	}
	for _, c := range []Command{Restart{Kind: "Nmi"}, ResetToDefaults{Type: "Some"}} {
		b := New(mortal(), nil, nil)
		if _, err := b.Apply(origin, c); err == nil {
			t.Errorf("Apply(%+v) passed", c)
		}
	}
}

func TestRestartOutlivesTheRack(t *testing.T) {
	b := New(mortal(), []Account{admin}, nil)
	do(t, b, origin, ResetToDefaults{Type: ResetAll})
	b.Advance(seconds(10))
	raw, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	b = New(mortal(), []Account{admin}, &st)
	if b.View().Life.Is() != Offline {
		t.Errorf("the BMC is %s, want offline as it was", b.View().Life.Is())
	}
	b.Advance(seconds(62))
	if b.View().Life.Is() != Up {
		t.Errorf("the BMC is %s, want up", b.View().Life.Is())
	}
}
