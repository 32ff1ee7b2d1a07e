package sandbox_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// timed returns a system with a timer of the lines, and the seconds after its start at which its
// service runs.
func timed(t *testing.T, lines string, change ...func(*sandbox.Config)) (s *sandbox.System, runs func() []int) {
	t.Helper()
	a, begin := newAgents(), time.Now()
	var at []int
	a.ends = func(int) error { at = append(at, int(time.Since(begin).Seconds())); return nil }
	all := append([]func(*sandbox.Config){func(c *sandbox.Config) {
		c.Programs, c.Run, c.Now, c.Boot = []string{"agent"}, a.run, time.Now, sys.Boot{ID: "b", Time: begin.Add(-time.Minute)}
	}}, change...)
	s, _ = booted(t, all...)
	put(t, s, sandbox.Tree{
		"etc/systemd/system/tick.service": sandbox.File(0o644, "[Service]\nType=oneshot\nExecStart=/usr/local/bin/agent\n"),
		"etc/systemd/system/tick.timer":   sandbox.File(0o644, "[Timer]\n"+lines+"\n[Install]\nWantedBy=timers.target\n"),
	})
	return s, func() []int {
		synctest.Wait()
		return at
	}
}

// Timers elapse in the system's time (systemd.timer(5)). The clock begins at midnight.
func TestTimersStartTheirUnits(t *testing.T) {
	for _, tt := range []struct {
		lines string
		want  []int // seconds within five minutes
	}{
		{"OnActiveSec=1", []int{1}},
		{"OnBootSec=90", []int{30}},
		{"OnBootSec=5s", []int{0}},
		{"OnStartupSec=2min", []int{60}},
		{"OnActiveSec=10\nOnUnitActiveSec=1min 10s", []int{10, 80, 150, 220, 290}},
		{"OnActiveSec=10\nOnUnitInactiveSec=2min", []int{10, 130, 250}},
		{"OnUnitActiveSec=10", nil},
		{"OnActiveSec=290\nOnUnitActiveSec=0", []int{290, 291, 292, 293, 294}},
		{"OnCalendar=*:0/2", []int{120, 240}},
		{"OnCalendar=*:1\nOnCalendar=\nOnCalendar=*:03:30", []int{210}},
		{"OnActiveSec=200\nOnActiveSec=100\nRandomizedDelaySec=1h", []int{100, 200}},
	} {
		t.Run(tt.lines, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, runs := timed(t, tt.lines)
				if out, code := ctl(t, s, "start", "tick.timer"); code != 0 {
					t.Fatalf("start = code %d, %q", code, out)
				}
				<-time.After(5*time.Minute - time.Millisecond)
				got := runs()
				if len(got) != len(tt.want) {
					t.Fatalf("the service runs after %v s, want %v", got, tt.want)
				}
				for i := range got {
					if got[i] != tt.want[i] {
						t.Errorf("the service runs after %v s, want %v", got, tt.want)
					}
				}
				ctl(t, s, "stop", "tick.timer")
				<-time.After(time.Hour)
				if after := runs(); len(after) != len(got) {
					t.Errorf("a timer that was stopped has elapsed: %v", after)
				}
			})
		})
	}
}

func TestListOfTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, runs := timed(t, "OnCalendar=hourly")
		ctl(t, s, "enable", "--now", "tick.timer")
		synctest.Wait()
		for _, want := range []string{
			"Sat 2000-01-01 01:00:00 UTC 1h left - - tick.timer tick.service",
			"Sat 2000-01-01 02:00:00 UTC 30min left Sat 2000-01-01 01:00:00 UTC 30min ago tick.timer tick.service",
		} {
			if out, _ := ctl(t, s, "list-timers", "--no-legend"); strings.Join(strings.Fields(out), " ") != want {
				t.Errorf("list-timers = %q, want %q", out, want)
			}
			<-time.After(90 * time.Minute)
			runs()
		}
		if out, _ := ctl(t, s, "show", "tick.timer", "-p", "NextElapseUSecRealtime,SubState,Triggers"); out != "SubState=waiting\nTriggers=tick.service\nNextElapseUSecRealtime=Sat 2000-01-01 04:00:00 UTC\n" {
			t.Errorf("show = %q", out)
		}
	})
}

// A timer with Persistent= makes up for what it has missed while the server was down.
func TestPersistentTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		share := func(c *sandbox.Config) { c.Store = m }
		s, runs := timed(t, "OnCalendar=daily\nPersistent=yes", share)
		ctl(t, s, "start", "tick.timer")
		<-time.After(25 * time.Hour)
		if got := runs(); len(got) != 1 {
			t.Errorf("the service runs after %v s, want one day", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(50 * time.Hour)
		s, runs = timed(t, "OnCalendar=daily\nPersistent=yes", share)
		ctl(t, s, "start", "tick.timer")
		if got := runs(); len(got) != 1 || got[0] != 0 {
			t.Errorf("the service runs after %v s, want at once", got)
		}
	})
}

// A clock at max speed jumps to what happens once, and not to what comes again and again.
func TestRepeatingTimersWaitLazily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		s, runs := timed(t, "OnActiveSec=10\nOnUnitActiveSec=60", func(c *sandbox.Config) {
			c.After = func(d time.Duration, do func()) func() bool {
				waits = append(waits, d)
				return time.AfterFunc(d, do).Stop
			}
		})
		ctl(t, s, "start", "tick.timer")
		<-time.After(2 * time.Minute)
		if got := runs(); len(got) != 2 || len(waits) != 2 || waits[0] != time.Minute {
			t.Errorf("the service runs after %v s, and waits lazily for %v, want 10, 70 and 1m0s twice", got, waits)
		}
	})
}

func TestTimersThatCannotStart(t *testing.T) {
	s, _ := booted(t)
	for text, want := range map[string]string{
		"": "has none of OnActiveSec=", "OnCalendar=foo": "is no calendar event", "OnBootSec=x": "is no time span", "OnBootSec=1\nUnit=none.service": "Unit none.service not found",
		"OnBootSec=1\nUnit=x.timer": "does not start itself",
	} {
		put(t, s, sandbox.Tree{"etc/systemd/system/x.timer": sandbox.File(0o644, "[Timer]\n"+text+"\n"), "etc/systemd/system/x.service": sandbox.File(0o644, oneshot)})
		if out, code := ctl(t, s, "start", "x.timer"); code == 0 || !strings.Contains(out, want) {
			t.Errorf("start of %q = code %d, %q, want %q", text, code, out, want)
		}
	}
}
