package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

func TestWatchdogExpires(t *testing.T) {
	for _, tt := range []struct {
		action TimeoutAction
		end    Phase
	}{{NoAction, Running}, {WatchdogReset, Selecting}, {WatchdogCycle, Selecting}, {WatchdogPowerOff, Off}} {
		b := newBench(t).running()
		b.do(SetWatchdog{Enabled: true, Action: tt.action, Warning: WarnByMessageOnly})
		if at, ok := b.m.Deadline(); ok {
			t.Fatalf("before it is fed something is due at %v", at)
		}
		for range 3 {
			b.do(FeedWatchdog{Boot: 1, For: time.Minute})
			b.now = b.now.Add(45 * time.Second)
			if got := notes(b.m.Advance(b.now)); len(got) != 0 {
				t.Fatalf("fed in time, and %v", got)
			}
		}
		fed := b.now.Add(-45 * time.Second)
		var got []event.Note
		for len(got) < 2 {
			at, _ := b.m.Deadline()
			b.now = at
			for _, ev := range b.m.Advance(at) {
				if n, ok := ev.(event.Note); ok && len(got) < 2 {
					got = append(got, n)
				}
			}
		}
		if got[0].Kind != event.WatchdogWarned || !got[0].At.Equal(fed.Add(50*time.Second)) || got[1].Kind != event.WatchdogExpired || !got[1].At.Equal(fed.Add(time.Minute)) {
			t.Errorf("%s: notes %+v", tt.action, got)
		}
		b.until(tt.end)
		if tt.end == Selecting && b.m.st.Reset.Cause != CauseWatchdog {
			t.Errorf("%s: cause %s", tt.action, b.m.st.Reset.Cause)
		}
		if w := b.m.View().Watchdog; !w.Until.IsZero() || !w.Enabled {
			t.Errorf("%s: afterwards %+v", tt.action, w)
		}
	}
}

func TestWatchdogOutlivesACrashButNoShutdown(t *testing.T) {
	b := newBench(t).running()
	b.do(SetWatchdog{Enabled: true, Action: WatchdogReset, Warning: NoWarning})
	b.do(FeedWatchdog{Boot: 1})
	b.do(Crash{})
	b.until(Selecting)
	b.load(disk)
	b.do(FeedWatchdog{Boot: 2})
	b.do(Reset{Kind: GracefulShutdown})
	b.until(Off)
	if at, ok := b.m.Deadline(); ok {
		t.Errorf("shut down, and something is due at %v", at)
	}
}

func TestWatchdogPreTimeoutInterrupt(t *testing.T) {
	b := benchOf(t, func(p *Profile) { p.OS.PanicOnNMI = true }).running()
	b.do(SetWatchdog{Enabled: true, Action: WatchdogPowerOff, Warning: WarnByInterrupt})
	b.do(FeedWatchdog{Boot: 1, For: time.Minute})
	at, _ := b.m.Deadline()
	evs := b.m.Advance(at)
	if got := notes(evs); !slices.Contains(got, event.NMISent) || b.m.st.Phase != Crashed {
		t.Errorf("warned: %v, %s", got, b.m.st.Phase)
	}
	b.until(Off)
}

func TestWatchdogErrors(t *testing.T) {
	b := newBench(t).running()
	for _, tt := range []struct {
		do   Command
		want error
	}{
		{SetWatchdog{Action: "Bark", Warning: NoWarning}, ErrUnknown}, {SetWatchdog{Action: NoAction, Warning: "Growl"}, ErrUnknown},
		{FeedWatchdog{Boot: 1}, ErrConflict}, {FeedWatchdog{Boot: 7}, ErrStale},
	} {
		if _, err := b.m.Apply(b.now, tt.do); !errors.Is(err, tt.want) {
			t.Errorf("%+v = %v, want %v", tt.do, err, tt.want)
		}
	}
	b.do(SetWatchdog{Enabled: true, Action: NoAction, Warning: NoWarning})
	if _, err := b.m.Apply(b.now, FeedWatchdog{Boot: 1, For: 25 * time.Hour}); !errors.Is(err, ErrUnknown) {
		t.Errorf("FeedWatchdog for 25 h = %v, want %v", err, ErrUnknown)
	}
}

// programmed is a watchdog of one minute with a pre-timeout interrupt 10 s before.
func programmed(a TimeoutAction, by WarningAction) ProgramWatchdog {
	return ProgramWatchdog{Use: WatchdogSMSOS, Action: a, Warning: by, PreTimeout: 10 * time.Second, Countdown: time.Minute}
}

func TestWatchdogMustBeSetAfterEachStart(t *testing.T) {
	b := newBench(t)
	start := func(want error) {
		t.Helper()
		if _, err := b.m.Apply(b.now, StartWatchdog{}); !errors.Is(err, want) {
			t.Errorf("start while %s = %v, want %v", b.m.st.Phase, err, want)
		}
	}
	start(ErrWatchdogNotSet)
	b.do(programmed(NoAction, NoWarning))
	start(ErrPower)
	b.running()
	start(ErrWatchdogNotSet)
	b.do(programmed(NoAction, NoWarning))
	start(nil)
	b.do(Reset{Kind: ForceRestart})
	start(ErrWatchdogNotSet)
	if w := b.m.View().Watchdog; !w.Until.IsZero() || w.PresentCountdown(b.now) != time.Minute || !w.Enabled {
		t.Errorf("after a reset %+v", w)
	}
}

func TestProgramWatchdogStopsItUnlessDontStop(t *testing.T) {
	b := newBench(t).running()
	on := programmed(NoAction, NoWarning)
	on.DontStop = true
	b.do(on)
	if w := b.m.View().Watchdog; !w.Until.IsZero() {
		t.Errorf("one that stood still runs: %+v", w)
	}
	b.do(StartWatchdog{})
	b.now = b.now.Add(20 * time.Second)
	if got, want := b.m.View().Watchdog.PresentCountdown(b.now), 40*time.Second; got != want {
		t.Errorf("remains %v, want %v", got, want)
	}
	b.do(on)
	if got, want := b.m.View().Watchdog.Until, b.now.Add(time.Minute); !got.Equal(want) {
		t.Errorf("runs until %v, want %v", got, want)
	}
	b.do(programmed(NoAction, NoWarning))
	if w := b.m.View().Watchdog; !w.Until.IsZero() || w.PresentCountdown(b.now) != time.Minute {
		t.Errorf("stopped: %+v", w)
	}
}

func TestWarnedWatchdogRunsToExpiry(t *testing.T) {
	b := newBench(t).running()
	b.do(programmed(WatchdogPowerOff, WarnBySMI))
	b.do(StartWatchdog{})
	at, _ := b.m.Deadline()
	evs := b.m.Advance(at)
	if want := b.now.Add(50 * time.Second); !at.Equal(want) || !slices.Equal(notes(evs), []event.Kind{event.WatchdogWarned}) {
		t.Fatalf("at %v: %v", at, evs)
	}
	if n := evs[0].(event.Note); !slices.Equal(n.Args, []string{"SMI", "SMS/OS"}) {
		t.Errorf("warned with %v", n.Args)
	}
	if _, err := b.m.Apply(at, StartWatchdog{}); !errors.Is(err, ErrConflict) {
		t.Errorf("started after the warning: %v", err)
	}
	b.now = at
	b.until(Off)
}

func TestWatchdogExpirationFlagsAreCleared(t *testing.T) {
	b := newBench(t).running()
	silent := programmed(NoAction, WarnByMessageOnly)
	silent.DontLog, silent.Countdown = true, 0
	b.do(silent)
	evs, err := b.m.Apply(b.now, StartWatchdog{})
	if err != nil || len(evs) != 0 {
		t.Errorf("without time and silent = %v, %v", evs, err)
	}
	w := b.m.View().Watchdog
	if !w.Until.IsZero() || w.DontLog || !slices.Equal(w.Expired, []WatchdogUse{WatchdogSMSOS}) {
		t.Errorf("expired: %+v", w)
	}
	evs, err = b.m.Apply(b.now, StartWatchdog{})
	if err != nil || !slices.Equal(notes(evs), []event.Kind{event.WatchdogWarned, event.WatchdogExpired}) {
		t.Errorf("once more, aloud = %v, %v", evs, err)
	}
	b.do(Reset{Kind: ForceRestart})
	next := programmed(NoAction, NoWarning)
	next.Use, next.ClearExpired = WatchdogOEM, []WatchdogUse{WatchdogFRB2}
	b.do(next)
	if w := b.m.View().Watchdog; !slices.Equal(w.Expired, []WatchdogUse{WatchdogSMSOS}) {
		t.Errorf("after a reset: %+v", w)
	}
	next.ClearExpired = []WatchdogUse{WatchdogSMSOS}
	b.do(next)
	if w := b.m.View().Watchdog; len(w.Expired) != 0 {
		t.Errorf("forgotten: %+v", w)
	}
}

func TestWatchdogOfFirmwareRunsFromPOSTOn(t *testing.T) {
	b := newBench(t)
	b.do(Reset{Kind: ResetOn})
	for b.m.st.Phase != POST {
		b.next()
	}
	frb := ProgramWatchdog{Use: WatchdogFRB2, Action: WatchdogPowerOff, Warning: NoWarning, Countdown: 10 * time.Minute}
	b.do(frb)
	b.do(StartWatchdog{})
	for b.m.st.Phase == POST {
		b.next()
	}
	b.do(Loaded{Boot: 1, Source: disk, Name: "agent"})
	b.until(Off) // as nobody feeds it
	if w := b.m.View().Watchdog; !slices.Equal(w.Expired, []WatchdogUse{WatchdogFRB2}) {
		t.Errorf("expired: %+v", w)
	}
}
