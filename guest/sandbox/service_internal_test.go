package sandbox

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serviceOf returns a unit of the lines of a section [Service].
func serviceOf(lines ...string) unit {
	u := unit{name: "x.service", names: []string{"x.service"}, keys: map[string][]string{}}
	u.parse("etc/systemd/system/x.service", "[Service]\n"+strings.Join(lines, "\n"))
	return u
}

// The table of systemd.service(5), "Restart=".
func TestRestartAfterEachEnd(t *testing.T) {
	ends := map[string]result{
		"success": {}, "code": {kind: "exit-code", exit: exit{code: 7}}, "signal": {kind: "signal", exit: exit{signal: syscall.SIGSEGV}},
		"timeout": {kind: "timeout", err: errors.New("late")}, "skipped": {kind: resultSkipped},
	}
	for lines, want := range map[string]string{
		"": "", "Restart=no": "", "Restart=always": "code signal success timeout", "Restart=on-success": "success", "Restart=on-failure": "code signal timeout",
		"Restart=on-abnormal": "signal timeout", "Restart=on-abort": "signal", "Restart=on-watchdog": "",
		"Restart=always\nRestartPreventExitStatus=7 SIGSEGV": "success timeout", "Restart=no\nRestartForceExitStatus=SEGV": "signal",
	} {
		var got []string
		for _, end := range []string{"code", "signal", "skipped", "success", "timeout"} {
			if restarts(serviceOf(lines), ends[end]) {
				got = append(got, end)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q restarts after %q, want %q", lines, got, want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for _, tt := range []struct {
		exit    exit
		oneshot bool
		list    string
		clean   bool
	}{
		{exit{}, true, "", true}, {exit{code: 1}, false, "", false}, {exit{signal: syscall.SIGTERM}, false, "", true}, {exit{signal: syscall.SIGTERM}, true, "", false},
		{exit{signal: syscall.SIGKILL}, false, "", false}, {exit{signal: syscall.SIGKILL}, false, "1 SIGKILL", true}, {exit{code: 9}, false, "SIGKILL", false},
		{exit{code: 143}, false, "143", true}, {exit{code: 75}, false, "TEMPFAIL", true}, {exit{code: 12}, false, "USR2", false},
	} {
		if got := tt.exit.clean(tt.oneshot) || tt.exit.in(strings.Fields(tt.list)); got != tt.clean {
			t.Errorf("%+v with SuccessExitStatus=%s (oneshot %t) is a success: %t, want %t", tt.exit, tt.list, tt.oneshot, got, tt.clean)
		}
	}
}

func TestStreamsOfServices(t *testing.T) {
	for lines, want := range map[string][2]output{
		"":                    {{}, {Same: true}},
		"StandardOutput=null": {{File: "/dev/null"}, {Same: true}},
		"StandardOutput=file:/a\nStandardError=append:/b":   {{File: "/a"}, {File: "/b", Append: true}},
		"StandardOutput=truncate:/a\nStandardError=journal": {{File: "/a", Truncate: true}, {}},
		"StandardOutput=append:/a\nStandardError=append:/a": {{File: "/a", Append: true}, {Same: true}},
		"StandardOutput=journal+console":                    {{Console: true}, {Same: true}},
	} {
		got, err := serviceOf(lines).outputs()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q, error %v (-want +got):\n%s", lines, err, diff)
		}
	}
	for _, line := range []string{"StandardOutput=file:a", "StandardOutput=socket", "StandardError=fd:x", "StandardOutput=journald"} {
		if _, err := serviceOf(line).outputs(); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%s = %v, want an error that names it", line, err)
		}
	}
	if got, err := serviceOf("StandardInput=file:/a").input(); got != "/a" || err != nil {
		t.Errorf("StandardInput= %q, %v", got, err)
	}
	if _, err := serviceOf("StandardInput=data").input(); err == nil {
		t.Error("StandardInput=data is accepted")
	}
}

func TestWorkingDirectories(t *testing.T) {
	loading(t, Tree{"srv/x/y": File(0o644, "")}, func(l *loader) {
		as := credential{account: account{home: "/home/web"}}
		for value, want := range map[string]string{"": "/", "~": "/home/web", "/srv/x": "/srv/x", "-/srv/x": "/srv/x", "-/srv/none": "/", "/srv/none": "/srv/none", "-/var/lib/own": "/var/lib/own", "relative": ""} {
			got, err := serviceOf("WorkingDirectory="+value).workingDirectory(l.f, as, Tree{"var/lib/own": {}})
			if got != want || (err != nil) != (want == "") {
				t.Errorf("WorkingDirectory=%s is %q, %v, want %q", value, got, err, want)
			}
		}
	})
}

func TestStartLimits(t *testing.T) {
	for text, want := range map[string]struct {
		burst    int
		interval time.Duration
	}{
		"": {5, 10 * time.Second}, "[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1min": {2, time.Minute}, "StartLimitInterval=0": {5, 0}, "[Unit]\nStartLimitBurst=0": {0, 0},
	} {
		if burst, interval := serviceOf(text).startLimit(); burst != want.burst || interval != want.interval {
			t.Errorf("%q is %d in %v, want %d in %v", text, burst, interval, want.burst, want.interval)
		}
	}
}

func TestNamesThatSystemctlCompletes(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a.service", "a.b": "a.b.service", "a.timer": "a.timer", "/dev/sda": "dev-sda.device", "/": "-.mount", "/srv/my-data": `srv-my\x2ddata.mount`, "foo@1.2": "foo@1.2.service",
	} {
		if got := unitName(name); got != want {
			t.Errorf("unitName(%q) = %q, want %q", name, got, want)
		}
	}
}
