package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

func TestWatchdogActsWhenItIsNotFed(t *testing.T) {
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

func TestWatchdogInterruptsFirst(t *testing.T) {
	b := benchOf(t, func(p *Profile) { p.OS.PanicOnNMI = true }).running()
	b.do(SetWatchdog{Enabled: true, Action: WatchdogPowerOff, Warning: WarnByInterrupt})
	b.do(FeedWatchdog{Boot: 1, For: time.Minute})
	at, _ := b.m.Deadline()
	evs := b.m.Advance(at)
	if got := notes(evs); !slices.Contains(got, event.Interrupted) || b.m.st.Phase != Crashed {
		t.Errorf("warned: %v, %s", got, b.m.st.Phase)
	}
	b.until(Off)
}

func TestWatchdogRefuses(t *testing.T) {
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
