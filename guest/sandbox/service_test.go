package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// unitFile returns the file of a service that runs the agent.
func unitFile(lines ...string) sandbox.Node {
	return sandbox.File(0o644, "[Unit]\nDescription=x\n[Service]\nExecStart=/usr/local/bin/agent run --fast\n"+strings.Join(lines, "\n")+"\n[Install]\nWantedBy=multi-user.target\n")
}

// agents is the program of a system: its runs, and how each ends.
type agents struct {
	mu   sync.Mutex
	now  time.Time
	runs []string
	ends func(n int) error // nil: it runs until it is stopped
	more chan struct{}
}

func newAgents() *agents {
	return &agents{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), more: make(chan struct{}, 100)}
}

func (a *agents) run(ctx context.Context, unit string, args, _ []string) error {
	a.mu.Lock()
	a.runs = append(a.runs, unit+": "+strings.Join(args, " "))
	n, ends := len(a.runs), a.ends
	a.mu.Unlock()
	a.more <- struct{}{}
	if ends == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return ends(n)
}

func (a *agents) sleep(ctx context.Context, d time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = a.now.Add(d)
	return ctx.Err()
}

func (a *agents) clock() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *agents) system(t *testing.T, report func(string)) *sandbox.System {
	s, _ := booted(t, func(c *sandbox.Config) {
		c.Programs, c.Run, c.Sleep, c.Now, c.Report = []string{"agent"}, a.run, a.sleep, a.clock, report
	})
	return s
}

// ctl runs systemctl, and returns its output and code.
func ctl(t *testing.T, s *sandbox.System, args ...string) (string, int) {
	t.Helper()
	var out strings.Builder
	code, err := s.Exec(t.Context(), sandbox.Command{Args: append([]string{"systemctl"}, args...), Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), code
}

// A unit that is enabled starts at every boot, without a process for systemctl.
func TestEnabledUnitsStartAtBoot(t *testing.T) {
	a := newAgents()
	s := a.system(t, nil)
	put(t, s, sandbox.Tree{"etc/systemd/system/a.service": unitFile()})
	if err := s.Boot(); err != nil || len(a.runs) > 0 {
		t.Errorf("a unit that is not enabled: %v, %v", a.runs, err)
	}
	if out, code := ctl(t, s, "is-enabled", "a"); out != "disabled\n" || code != 1 {
		t.Errorf("is-enabled = %q, %d", out, code)
	}
	if out, code := ctl(t, s, "enable", "a"); code != 0 {
		t.Fatalf("enable = %q, %d", out, code)
	}
	if out, code := ctl(t, s, "is-active", "a"); out != "inactive\n" || code != 3 {
		t.Errorf("is-active = %q, %d", out, code)
	}
	if err := s.Boot(); err != nil {
		t.Fatal(err)
	}
	<-a.more
	if a.runs[0] != "a.service: /usr/local/bin/agent run --fast" {
		t.Errorf("the unit runs %q", a.runs)
	}
	if out, code := ctl(t, s, "is-active", "a"); out != "active\n" || code != 0 {
		t.Errorf("is-active = %q, %d", out, code)
	}
	if out, code := ctl(t, s, "stop", "a"); code != 0 {
		t.Errorf("stop = %q, %d", out, code)
	}
	if out, code := ctl(t, s, "is-active", "a.service"); out != "inactive\n" || code != 3 {
		t.Errorf("is-active after stop = %q, %d", out, code)
	}
	if _, code := ctl(t, s, "disable", "a"); code != 0 {
		t.Error("disable fails")
	}
	if err := s.Boot(); err != nil || len(a.runs) > 1 {
		t.Errorf("a unit that is disabled again: %v, %v", a.runs, err)
	}
}

// Restart= of systemd.service(5), and the limit of starts.
func TestServicesThatEndStartAgain(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name, restart string
		ends          []error // errors with which its runs end; it runs on after them
		want          int     // runs
	}{
		{"no", "Restart=no", []error{broken}, 1},
		{"default", "", []error{nil}, 1},
		{"on-failure after success", "Restart=on-failure", []error{nil}, 1},
		{"on-failure", "Restart=on-failure", []error{broken, broken, nil}, 3},
		{"on-success", "Restart=on-success", []error{nil, nil, broken}, 3},
		{"always too often", "Restart=always", []error{nil, nil, nil, broken, broken, broken, broken}, 5},
		{"slowly", "Restart=always\nRestartSec=3", []error{nil, nil, nil, nil, nil, nil, nil, nil}, 9},
		{"without a limit", "Restart=always\nRestartSec=10ms\n[Unit]\nStartLimitIntervalSec=0", []error{nil, nil, nil, nil, nil, nil, nil}, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAgents()
			stay := make(chan struct{})
			defer close(stay)
			a.ends = func(n int) error {
				if n > len(tt.ends) {
					<-stay
					return nil
				}
				return tt.ends[n-1]
			}
			failed := make(chan string, 1)
			s := a.system(t, func(line string) { failed <- line })
			put(t, s, sandbox.Tree{"etc/systemd/system/a.service": unitFile(tt.restart)})
			ctl(t, s, "start", "a")
			for range tt.want {
				<-a.more
			}
			if tt.want > len(tt.ends) {
				return
			}
			if tt.ends[tt.want-1] != nil {
				if line := <-failed; !strings.Contains(line, "broken") || tt.want == 5 && !strings.Contains(line, "start-limit-hit") {
					t.Errorf("the console shows %q", line)
				}
			}
			ctl(t, s, "stop", "a") // returns when it has ended
			if len(a.runs) != tt.want {
				t.Errorf("%d runs, want %d", len(a.runs), tt.want)
			}
		})
	}
}

// Path units start their services when the watched path appears or changes (systemd.path(5)).
func TestPathUnits(t *testing.T) {
	for _, tt := range []struct{ line, file string }{
		{"PathExists=/var/lib/x/wanted", "var/lib/x/wanted"},
		{"PathChanged=/etc/motd", "etc/motd"},
		{"PathModified=/etc/motd", "etc/motd"},
		{"DirectoryNotEmpty=/var/lib/x", "var/lib/x/y"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			a := newAgents()
			s := a.system(t, nil)
			put(t, s, sandbox.Tree{
				"etc/systemd/system/a.service": unitFile(),
				"etc/systemd/system/b.path":    sandbox.File(0o644, "[Path]\n"+tt.line+"\nUnit=a.service\n"),
			})
			ctl(t, s, "start", "b.path")
			put(t, s, sandbox.Tree{"etc/other": sandbox.File(0o644, "x")})
			if err := s.CheckPaths(); err != nil || len(a.runs) > 0 {
				t.Fatalf("another file: %v, %v", a.runs, err)
			}
			_ = a.sleep(t.Context(), time.Second)
			put(t, s, sandbox.Tree{tt.file: sandbox.File(0o644, "new")})
			if err := s.CheckPaths(); err != nil {
				t.Fatal(err)
			}
			<-a.more
		})
	}
}

// A service that is stopped gets SIGTERM, and SIGKILL after TimeoutStopSec=
// (systemd.service(5)); so do the processes that it has started.
func TestServicesAreStoppedBySIGTERM(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	put(t, s, sandbox.Tree{
		"etc/stubborn.sh":                 sandbox.File(0o644, "trap '' TERM\ntouch /etc/stubborn\nwhile :; do /bin/sleep 1000; done\n"),
		"etc/systemd/system/tidy.service": sandbox.File(0o644, "[Service]\nExecStart=/bin/sh -c 'trap \"echo stopped > /etc/tidy; exit 0\" TERM; touch /etc/started; /bin/sleep 1000 & wait'\n"),
		"etc/systemd/system/rude.service": sandbox.File(0o644, "[Service]\nTimeoutStopSec=200ms\nExecStart=/bin/sh /etc/stubborn.sh\n"),
		"etc/systemd/system/heir.service": sandbox.File(0o644, "[Service]\nTimeoutStopSec=1600ms\nExecStart=/bin/sh -c '/bin/sh /etc/stubborn.sh & wait'\n"),
	})
	const await = "until test -e %s; do /bin/sleep 0.02; done; "
	if out, code := run(t, s, "systemctl start tidy; "+fmt.Sprintf(await, "/etc/started")+"systemctl stop tidy; cat /etc/tidy"); out != "stopped\n" || code != 0 {
		t.Errorf("a service with a handler of SIGTERM = %q, %d", out, code)
	}
	const ended = "grep -qszx '/etc/stubborn.s[h]' /proc/[0-9]*/cmdline && echo left; "
	for _, unit := range []string{"rude", "heir"} {
		out, code := run(t, s, "rm -f /etc/stubborn; systemctl start "+unit+"; "+fmt.Sprintf(await, "/etc/stubborn")+"systemctl stop "+unit+"; "+ended+"systemctl is-active "+unit)
		if out != "inactive\n" || code != 3 {
			t.Errorf("stop of %s = %q, %d", unit, out, code)
		}
	}
}

// A service that restarts without a limit, or that a timer starts at once, runs five times a second
// of real time, however fast the lab's clock is.
func TestServicesWithoutAStartLimitArePaced(t *testing.T) {
	for _, tt := range []struct{ name, service, timer string }{
		{"restart", "Restart=always\nRestartSec=0\n[Unit]\nStartLimitIntervalSec=0", ""},
		{"restart after an hour of the lab", "Restart=always\nRestartSec=1h\n[Unit]\nStartLimitIntervalSec=0", ""},
		{"timer", "[Unit]\nStartLimitIntervalSec=0", "[Timer]\nOnActiveSec=0\nOnUnitInactiveSec=0\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAgents()
				a.ends = func(int) error { return nil }
				s := a.system(t, nil)
				put(t, s, sandbox.Tree{
					"etc/systemd/system/a.service": unitFile(tt.service),
					"etc/systemd/system/a.timer":   sandbox.File(0o644, tt.timer),
				})
				start := "a.service"
				if tt.timer != "" {
					start = "a.timer"
				}
				if out, code := ctl(t, s, "start", start); code != 0 {
					t.Fatalf("start = code %d, %q", code, out)
				}
				began := time.Now()
				for range 50 {
					<-a.more
				}
				if took := time.Since(began); took != 9*time.Second {
					t.Errorf("50 starts took %v, want 9s", took)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Processes run as services, and end with the system.
func TestServicesOfProcesses(t *testing.T) {
	needNamespaces(t)
	lines := make(chan string, 1)
	s, _ := booted(t, func(c *sandbox.Config) { c.Report = func(line string) { lines <- line } })
	put(t, s, sandbox.Tree{
		"etc/systemd/system/once.service":   sandbox.File(0o644, "[Service]\nType=oneshot\nEnvironment=A=b\nWorkingDirectory=/etc\nExecStart=/bin/sh -c 'echo $A $PWD > /etc/once'\n"),
		"etc/systemd/system/broken.service": sandbox.File(0o644, "[Service]\nExecStart=/bin/sh -c 'echo no such thing >&2; exit 3'\n"),
	})
	if out, code := run(t, s, "systemctl start once && cat /etc/once"); out != "b /etc\n" || code != 0 {
		t.Errorf("a oneshot = %q, %d", out, code)
	}
	run(t, s, "systemctl start broken")
	if line := <-lines; !strings.Contains(line, "broken.service failed") || !strings.Contains(line, "code 3 no such thing") {
		t.Errorf("the console shows %q", line)
	}
	if out, code := run(t, s, "systemctl is-active broken; systemctl is-failed broken"); out != "failed\nfailed\n" || code != 0 {
		t.Errorf("is-active, is-failed = %q, %d", out, code)
	}
	if out, code := run(t, s, "systemctl start none"); code == 0 || !strings.Contains(out, "none.service") {
		t.Errorf("a unit that is not there = %q, %d", out, code)
	}
}

// A unit without a program fails alone, and an agent that panics ends its system alone.
func TestUnitsCannotEndTheLab(t *testing.T) {
	a := newAgents()
	a.ends = func(int) error { panic("a file of the user's") }
	crashed := make(chan error, 1)
	s, _ := booted(t, func(c *sandbox.Config) {
		c.Programs, c.Run, c.Sleep, c.Now = []string{"agent"}, a.run, a.sleep, a.clock
		c.Crashed = func(cause error) { crashed <- cause }
	})
	for _, line := range []string{"-", "@", "+!:", `""`} {
		put(t, s, sandbox.Tree{"etc/systemd/system/empty.service": sandbox.File(0o644, "[Service]\nType=oneshot\nExecStart="+line+"\n")})
		if out, code := ctl(t, s, "start", "empty"); code == 0 || !strings.Contains(out, "names no program") {
			t.Errorf("start of ExecStart=%s = code %d, %q", line, code, out)
		}
	}
	put(t, s, sandbox.Tree{"etc/systemd/system/x.service": unitFile()})
	if out, code := ctl(t, s, "start", "x"); code != 0 {
		t.Fatalf("start = code %d, %q", code, out)
	}
	if err := <-crashed; !strings.Contains(err.Error(), "panic: a file of the user's") || !strings.Contains(err.Error(), "service_test.go") {
		t.Errorf("the cause is %v, want the panic and its stack", err)
	}
}

// A unit that restarts itself is stopped by its limit of starts.
func TestUnitThatRestartsItselfEnds(t *testing.T) {
	s, _ := booted(t)
	put(t, s, sandbox.Tree{"etc/systemd/system/x.service": sandbox.File(0o644, "[Service]\nType=oneshot\nExecStart=systemctl restart x\n[Install]\nWantedBy=multi-user.target\n")})
	if _, code := ctl(t, s, "enable", "x"); code != 0 {
		t.Fatalf("enable = code %d", code)
	}
	ended := make(chan error)
	go func() { ended <- s.Boot() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Boot() = %v", err)
		}
	case <-patience.Within(t, time.Minute).Done():
		t.Fatal("the boot does not end")
	}
	patience.Await(t, "the unit has failed", func() bool { out, _ := ctl(t, s, "is-failed", "x"); return out == "failed\n" })
	if out, code := ctl(t, s, "start", "x"); code == 0 || !strings.Contains(out, "repeated too quickly") {
		t.Errorf("start = code %d, %q, want that it is repeated too quickly", code, out)
	}
	ctl(t, s, "reset-failed", "x")
	put(t, s, sandbox.Tree{"etc/systemd/system/x.service": sandbox.File(0o644, "[Service]\nType=oneshot\nExecStart=systemctl is-active y\nExecStart=-systemctl is-active y\n")})
	if out, code := ctl(t, s, "start", "x"); code == 0 || strings.Contains(out, "repeated") {
		t.Errorf("start after reset-failed = code %d, %q", code, out)
	}
}

// The caller's program stands for those files that it says, with the environment of the service.
// Others run as processes, and what may not run fails its unit for the reason.
func TestStandsFor(t *testing.T) {
	type run struct{ args, env string }
	runs := make(chan run, 10)
	s, _ := booted(t, func(c *sandbox.Config) {
		c.Run = func(_ context.Context, unit string, args, env []string) error {
			runs <- run{unit + " " + strings.Join(args, " "), strings.Join(env, " ")}
			if args[0] == "/opt/fetch" {
				return errors.New("it is not downloaded")
			}
			return nil
		}
		c.StandsFor = func(_, program string) (bool, error) {
			if program == "/opt/refused" {
				return false, errors.New("only at the speed 1x")
			}
			return program != "/opt/other", nil
		}
	})
	for _, tt := range []struct {
		name, lines string
		code        int
		runs        string
		status      string // in systemctl status
	}{
		{"program", "Environment=http_proxy=http://p\nExecStart=/opt/any a", 0, "program.service /opt/any a", ""},
		{"refused", "ExecStart=/opt/refused", 1, "", ""},
		{"pre", "ExecStartPre=/opt/fetch \"http://x/a b\" 5a\nExecStart=/opt/any", 1, "pre.service /opt/fetch http://x/a b 5a", "fetch: it is not downloaded"},
	} {
		put(t, s, sandbox.Tree{"etc/systemd/system/" + tt.name + ".service": sandbox.File(0o644, "[Service]\nType=oneshot\n"+tt.lines+"\n")})
		out, code := ctl(t, s, "start", tt.name)
		if code != tt.code || tt.name == "refused" && !strings.Contains(out, "only at the speed 1x") {
			t.Errorf("start of %s = %d, %q", tt.name, code, out)
		}
		select {
		case r := <-runs:
			if r.args != tt.runs || tt.name == "program" && !strings.Contains(r.env, "http_proxy=http://p") {
				t.Errorf("%s: it runs %q with %q, want %q", tt.name, r.args, r.env, tt.runs)
			}
		default:
			if tt.runs != "" {
				t.Errorf("%s: nothing runs", tt.name)
			}
		}
		if out, _ := ctl(t, s, "status", tt.name); !strings.Contains(out, tt.status) {
			t.Errorf("%s: the status is\n%s\nwant %s", tt.name, out, tt.status)
		}
	}
}
