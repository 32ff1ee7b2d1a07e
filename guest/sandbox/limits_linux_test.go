package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// Where the kernel's limits are required and cannot be made no command runs.
func TestCommandWithoutRequiredLimitsFails(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	s.SetControlGroups(t.TempDir())
	var out strings.Builder
	_, err := s.Exec(t.Context(), sandbox.Command{Args: []string{"/bin/sh", "-c", "echo ran"}, Stdout: &out, Stderr: &out})
	var limits *sandbox.LimitsError
	if !errors.As(err, &limits) || !strings.Contains(err.Error(), "no limit of the controller memory") {
		t.Errorf("Exec() = %v, want a LimitsError of memory", err)
	}
	if out.Len() > 0 {
		t.Errorf("the command ran: %q", out.String())
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	s.SetControlGroups("/sys/fs/cgroup")
	if out, code := run(t, s, "echo ran"); out != "ran\n" || code != 0 {
		t.Errorf("with limits the command = code %d, %q", code, out)
	}
}

// A lab runs commands without the kernel's limits, and the server's console says that once.
func TestCommandsWithoutLimitsAreReportedOnce(t *testing.T) {
	needNamespaces(t)
	var lines []string
	s, _ := booted(t, func(c *sandbox.Config) {
		c.RequireLimits = false
		c.Report = func(line string) { lines = append(lines, line) }
	})
	s.SetControlGroups(t.TempDir())
	for range 2 {
		if out, code := run(t, s, "echo ran"); out != "ran\n" || code != 0 {
			t.Errorf("without limits the command = code %d, %q", code, out)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "the kernel does not limit the commands of servers") {
		t.Errorf("the console shows %q, want one line about limits", lines)
	}
}

// A process and what it starts are in groups with the limits, and with a share of the processors.
func TestCommandsHaveTheKernelsLimits(t *testing.T) {
	if os.Getuid() != 0 {
		return // an ordinary user may have those of a group above only
	}
	needNamespaces(t)
	if err := sandbox.CheckLimits(); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"pids.max": "processes", "memory.limit_in_bytes": "memory", "memory.max": "memory",
		"cpu.shares": "weight", "cpu.weight": "weight", "cpu.cfs_quota_us": "quota", "cpu.max": "quota",
	}
	for cpu, quota := range map[int][]string{0: {"-1", "max 100000"}, 150: {"150000", "150000 100000"}} {
		s, _ := booted(t, func(c *sandbox.Config) { c.Limits = sandbox.Limits{Memory: 64 << 20, Processes: 40, CPU: cpu} })
		self, _ := run(t, s, "sleep 600 > /dev/null 2>&1 & cat /proc/self/cgroup")
		got := map[string]string{}
		for line := range strings.Lines(self) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			for file, limit := range files {
				if b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", f[1], f[2], file)); err == nil {
					got[limit] = strings.TrimSpace(string(b))
				}
			}
		}
		want := map[string]string{"processes": "144", "memory": strconv.Itoa(640 << 20)}
		if _, has := got["weight"]; has { // the controller is there
			want["weight"], want["quota"] = "512", quota[0]
			if strings.HasSuffix(got["quota"], " 100000") { // version 2
				want["weight"], want["quota"] = "50", quota[1]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limits of a command in %s (-want +got):\n%s", self, diff)
		}
	}
}

// The processor time of a server is that of its processes, of those that run, too, with control groups
// and without.
func TestProcessorTimeOfAServerIsCounted(t *testing.T) {
	needNamespaces(t)
	for _, root := range []string{"/sys/fs/cgroup", t.TempDir()} {
		s, _ := booted(t, func(c *sandbox.Config) { c.RequireLimits = false })
		s.SetControlGroups(root)
		if d := s.CPUTime(); d != 0 {
			t.Errorf("%s: before a command: %v, want 0", root, d)
		}
		out, _ := run(t, s, "python3 -c 'import time\nwhile time.process_time() < 0.2: pass\nprint(time.process_time())'")
		used, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
		if err != nil {
			t.Fatalf("the command shows %q", out)
		}
		const tick = 0.02 // /proc has hundredths of a second, of user and system time
		if d := s.CPUTime(); d.Seconds() < used-tick {
			t.Errorf("%s: after a command that used %v s: %v", root, used, d)
		}
		run(t, s, "timeout 60 sh -c 'while :; do :; done' > /dev/null 2>&1 &")
		began := s.CPUTime()
		patience.Await(t, "the time of a process that runs is counted", func() bool { return s.CPUTime() > began+100*time.Millisecond })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		last := s.CPUTime()
		if last < began+100*time.Millisecond {
			t.Errorf("%s: after the end: %v, was more than %v", root, last, began+100*time.Millisecond)
		}
	}
}
