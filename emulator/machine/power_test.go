package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// benchOf steps a machine of a model that is like profile but for what change
// changes.
func benchOf(t *testing.T, change func(*Profile)) *bench {
	t.Helper()
	p := *profile
	change(&p)
	m, err := New(&p, NewIdentity(1, 0, "node-0", &p), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, m: m, now: origin}
}

// running brings a machine up.
func (b *bench) running() *bench {
	b.t.Helper()
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	b.load(disk)
	return b
}

// notes are the kinds of what events put into the log.
func notes(evs []Event) []event.Kind {
	var out []event.Kind
	for _, ev := range evs {
		if n, ok := ev.(event.Note); ok {
			out = append(out, n.Kind)
		}
	}
	return out
}

func TestPowerRestorePolicies(t *testing.T) {
	for _, tt := range []struct {
		policy RestorePolicy
		was    Phase
		want   Phase
	}{
		{AlwaysOn, Off, Starting}, {AlwaysOn, Running, Starting},
		{AlwaysOff, Off, Off}, {AlwaysOff, Running, Off},
		{LastState, Off, Off}, {LastState, Running, Starting}, {LastState, POST, Starting},
		{LastState, Cutting, Off}, {LastState, Paused, Starting}, {LastState, Delaying, Starting},
	} {
		b := &bench{t: t, m: in(t, tt.was), now: origin}
		b.do(SetPowerPolicy{PowerPolicy{Restore: tt.policy}})
		b.do(CutAC{})
		if v := b.m.View(); v.AC || v.Power != PowerOff || v.OS != nil {
			t.Errorf("%s without mains: AC %t, power %s, system %v", tt.was, v.AC, v.Power, v.OS)
		}
		if at, ok := b.m.Deadline(); ok {
			t.Errorf("%s without mains: something is due at %v", tt.was, at)
		}
		if _, err := b.m.Apply(b.now, Reset{Kind: ResetOn}); !errors.Is(err, ErrPower) {
			t.Errorf("Reset(On) without mains = %v, want %v", err, ErrPower)
		}
		b.now = b.now.Add(time.Hour)
		evs := b.do(RestoreAC{})
		if got := b.m.View(); got.Phase != tt.want || !got.AC {
			t.Errorf("%s, %s: after the outage %s, want %s", tt.policy, tt.was, got.Phase, tt.want)
		}
		if !slices.Contains(evs, Event(event.ACPower{At: b.now, On: true})) {
			t.Errorf("%s, %s: %v do not tell of the mains", tt.policy, tt.was, evs)
		}
		if tt.want == Starting {
			b.until(Selecting)
			if got := b.m.View().Reset.Cause; got != CauseRestore {
				t.Errorf("cause of the start = %s, want %s", got, CauseRestore)
			}
		}
	}
}

func TestACLossStopsTheSystem(t *testing.T) {
	b := newBench(t).running()
	got := b.do(CutAC{})
	want := []Event{
		SystemStopped{At: b.now, OS: OS{Source: disk, Name: "agent", Boot: 1}}, PowerChanged{At: b.now, Power: PowerOff}, event.ACPower{At: b.now},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events of an outage (-want +got):\n%s", d)
	}
	if _, err := b.m.Apply(b.now, CutAC{}); !errors.Is(err, ErrPower) {
		t.Errorf("a second CutAC = %v, want %v", err, ErrPower)
	}
}

func TestPowerOnDelay(t *testing.T) {
	b := newBench(t)
	b.do(SetPowerPolicy{PowerPolicy{Restore: LastState, OnDelay: seconds(40), CycleDelay: seconds(7)}})
	b.do(Reset{Kind: ResetOn})
	if v := b.m.View(); v.Phase != Delaying || v.Power != PowerOff {
		t.Fatalf("after Reset(On): %s, %s", v.Phase, v.Power)
	}
	b.do(Reset{Kind: ForceOff})
	if _, ok := b.m.Deadline(); ok || b.m.st.Phase != Off {
		t.Fatalf("ForceOff did not end the delay: %s", b.m.st.Phase)
	}
	b.do(Reset{Kind: ResetOn})
	b.next()
	if got, want := b.now.Sub(origin), 40*time.Second; got != want || b.m.st.Phase != Starting {
		t.Errorf("%s after %v, want %s after %v", b.m.st.Phase, got, Starting, want)
	}
	b.until(Selecting)
	b.load(disk)
	began := b.now
	b.do(Reset{Kind: PowerCycle})
	b.until(Selecting)
	if got, want := b.now.Sub(began), (3+7+2+90)*time.Second; got != want {
		t.Errorf("a power cycle took %v, want %v", got, want)
	}
	b.do(Reset{Kind: ForceOff})
	b.until(Off)
	b.do(Reset{Kind: ForceOn}) // now, whatever the delay
	if b.m.st.Phase != Starting {
		t.Errorf("after Reset(ForceOn): %s", b.m.st.Phase)
	}
	for _, bad := range []PowerPolicy{{Restore: "Maybe"}, {Restore: AlwaysOn, OnDelay: Duration{-1}}, {Restore: AlwaysOn, CycleDelay: Duration{2 * MaxDelay}}} {
		if _, err := b.m.Apply(b.now, SetPowerPolicy{bad}); !errors.Is(err, ErrUnknown) {
			t.Errorf("SetPowerPolicy(%+v) = %v, want %v", bad, err, ErrUnknown)
		}
	}
}

func TestIgnoredGracefulReset(t *testing.T) {
	patient := func(p *Profile) {
		p.Timings.Graceful = seconds(300)
		p.OS.ForcedAfterTimeout = []ResetKind{GracefulRestart}
	}
	for _, tt := range []struct {
		kind  ResetKind
		ended Phase // when the time is up
	}{{GracefulShutdown, Running}, {GracefulRestart, POST}} {
		b := benchOf(t, patient).running()
		b.do(IgnorePowerButton{Boot: 1, Ignore: true})
		b.do(Reset{Kind: tt.kind})
		if got := b.m.st.Phase; got != Running {
			t.Fatalf("%s: a deaf system is %s", tt.kind, got)
		}
		at, ok := b.m.Deadline()
		if want := b.now.Add(300 * time.Second); !ok || !at.Equal(want) {
			t.Fatalf("%s: deadline %v, want %v", tt.kind, at, want)
		}
		evs := b.m.Advance(at)
		if got := b.m.st.Phase; got != tt.ended || b.m.st.PendingReset != nil {
			t.Errorf("%s: when the time is up: %s, want %s", tt.kind, got, tt.ended)
		}
		if got := notes(evs); !slices.Contains(got, event.ResetIgnored) {
			t.Errorf("%s: notes %v", tt.kind, got)
		}
	}
	// A system that listens in time, and one that is gone, end the wait.
	b := benchOf(t, patient).running()
	b.do(IgnorePowerButton{Boot: 1, Ignore: true})
	b.do(Reset{Kind: GracefulRestart})
	b.do(IgnorePowerButton{Boot: 1, Ignore: false})
	b.do(Reset{Kind: GracefulShutdown})
	b.until(Off)
	if b.m.st.PendingReset != nil {
		t.Errorf("off, and still asked: %+v", b.m.st.PendingReset)
	}
	// The button has no time-out.
	b = benchOf(t, patient)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	b.do(Reset{Kind: PushPowerButton})
	if at, ok := b.m.Deadline(); ok {
		t.Errorf("after the button was pushed something is due at %v", at)
	}
}

func TestNMIAndCrash(t *testing.T) {
	for _, tt := range []struct {
		conduct OSBehavior
		do      Command
		phase   Phase // right after
		end     Phase
	}{
		{OSBehavior{}, Reset{Kind: Nmi}, Running, Running},
		{OSBehavior{PanicOnNMI: true}, Reset{Kind: Nmi}, Crashed, Crashed},
		{OSBehavior{PanicOnNMI: true, RestartOnCrash: true}, Reset{Kind: Nmi}, Crashed, Selecting},
		{OSBehavior{RestartOnCrash: true}, Crash{}, Crashed, Selecting},
	} {
		b := benchOf(t, func(p *Profile) { p.OS, p.Timings.Dump = tt.conduct, seconds(60) }).running()
		evs, err := b.m.Apply(b.now, tt.do)
		if err != nil || b.m.st.Phase != tt.phase {
			t.Fatalf("%+v: %+v = %v, %s; want %s", tt.conduct, tt.do, err, b.m.st.Phase, tt.phase)
		}
		if len(notes(evs)) != 1 {
			t.Errorf("%+v: notes %v", tt.conduct, notes(evs))
		}
		gone := slices.ContainsFunc(evs, func(ev Event) bool { _, ok := ev.(SystemStopped); return ok })
		if gone != (tt.phase == Crashed) || (b.m.st.OS == nil) != gone {
			t.Errorf("%+v: Stopped %t, system %v", tt.conduct, gone, b.m.st.OS)
		}
		b.until(tt.end)
		if tt.end == Selecting && b.m.st.Reset.Cause != CauseCrash {
			t.Errorf("cause of the restart = %s, want %s", b.m.st.Reset.Cause, CauseCrash)
		}
	}
	if _, err := newMachine(t).Apply(origin, Crash{}); !errors.Is(err, ErrPower) {
		t.Errorf("Crash while off = %v, want %v", err, ErrPower)
	}
}

func TestPauseAndResume(t *testing.T) {
	b := newBench(t).running()
	os := *b.m.st.OS
	if d := cmp.Diff([]Event{PowerChanged{At: b.now, Power: PowerPaused}, SystemPaused{At: b.now, OS: os}}, b.do(Reset{Kind: Pause})); d != "" {
		t.Errorf("events of a pause (-want +got):\n%s", d)
	}
	if _, err := b.m.Apply(b.now, Reset{Kind: Pause}); !errors.Is(err, ErrPower) {
		t.Errorf("Pause while paused = %v, want %v", err, ErrPower)
	}
	if d := cmp.Diff([]Event{PowerChanged{At: b.now, Power: PowerOn}, SystemResumed{At: b.now, OS: os}}, b.do(Reset{Kind: Resume})); d != "" {
		t.Errorf("events of a resume (-want +got):\n%s", d)
	}
	b.do(Reset{Kind: Pause})
	b.do(Reset{Kind: ForceOff})
	b.until(Off)
}

func TestSuspendedSystemIsBootedFirst(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	for b.m.st.PendingSources[0] != nic {
		b.do(NotBootable{Boot: 1, Source: b.m.st.PendingSources[0]})
	}
	b.load(nic)
	b.do(SetOverride{Override{Enabled: Once, Target: Cd, Mode: UEFI}})
	b.do(Reset{Kind: Suspend})
	b.until(Off)
	b.do(Reset{Kind: ResetOn})
	b.until(Selecting)
	if got := b.m.st.PendingSources; got[0] != nic || len(got) != 4 {
		t.Errorf("after a suspend the sources are %v", got)
	}
	if b.m.st.Override.Enabled != Once {
		t.Error("waking up has spent the boot override")
	}
	b.load(nic)
	b.do(Reset{Kind: ForceRestart})
	b.until(Selecting)
	if got := b.m.st.PendingSources[0]; got != cd {
		t.Errorf("first source of the next boot = %v, want the override's", got)
	}
}

func TestPOSTSteps(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	type step struct {
		Is Progress
		At time.Duration // since the power was asked for
	}
	var got []step
	note := func() {
		v := b.m.View()
		if s := (step{v.Progress, v.ProgressAt.Sub(origin)}); len(got) == 0 || got[len(got)-1] != s {
			got = append(got, s)
		}
	}
	for b.m.st.Phase != Selecting {
		b.next()
		note()
	}
	b.do(Loaded{Boot: 1, Source: disk, Name: "disk"})
	note()
	b.next()
	note()
	s := time.Second
	want := []step{
		{ProcessorStarted, 2 * s}, {BusStarted, 2*s + 5400*time.Millisecond}, {MemoryStarted, 11 * s}, {ProcessorsStarted, 47 * s},
		{PCIStarted, 2*s + 55800*time.Millisecond}, {HardwareComplete, 2*s + 85500*time.Millisecond}, {OSBootStarted, 92 * s}, {OSRunning, 117 * s},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("boot progress (-want +got):\n%s", d)
	}
	if got := b.m.View().BootTime.Duration; got != 115*time.Second {
		t.Errorf("boot time = %v, want 1m55s", got)
	}
	b.do(Reset{Kind: ForceOff})
	if v := b.m.View(); v.Progress != NoProgress || !v.ProgressAt.Equal(b.now) {
		t.Errorf("switched off: %s since %v", v.Progress, v.ProgressAt)
	}
}

// One Advance over a span of time, and many over its parts, lead to the same
// state and events.
func TestAdvanceInOneStepOrMany(t *testing.T) {
	a, b := newBench(t), newBench(t)
	a.do(Reset{Kind: ResetOn})
	b.do(Reset{Kind: ResetOn})
	end := origin.Add(50 * time.Second)
	many := []Event{}
	for now := origin; !now.After(end); now = now.Add(700 * time.Millisecond) {
		many = append(many, b.m.Advance(now)...)
	}
	many = append(many, b.m.Advance(end)...)
	if d := cmp.Diff(a.m.Advance(end), many); d != "" {
		t.Errorf("events (-in one +in many):\n%s", d)
	}
	if d := cmp.Diff(a.m.View(), b.m.View()); d != "" {
		t.Errorf("view (-in one +in many):\n%s", d)
	}
}

func TestLastResetCause(t *testing.T) {
	for _, tt := range []struct {
		do   Command
		want ResetCause
	}{
		{Reset{Kind: ForceRestart}, CauseCommand}, {Reset{Kind: GracefulRestart}, CauseCommand}, {Exit{Boot: 1, Restart: true}, CauseSystem},
	} {
		b := newBench(t).running()
		if got := b.m.View().Reset; got.Cause != CauseCommand || !got.At.Equal(origin.Add(2*time.Second)) {
			t.Errorf("first start: %+v", got)
		}
		b.do(tt.do)
		b.until(Selecting)
		if got := b.m.View().Reset; got.Cause != tt.want || !got.At.Equal(b.now.Add(-90*time.Second)) {
			t.Errorf("%+v: %+v, want %s", tt.do, got, tt.want)
		}
	}
	b := newBench(t)
	b.do(Reset{Kind: PushPowerButton})
	b.until(Selecting)
	if got := b.m.View().Reset.Cause; got != CauseButton {
		t.Errorf("button: %s", got)
	}
}
