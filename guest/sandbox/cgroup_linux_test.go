package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A group that limits this process to less than the machine has limits its systems, too; one
// with the kernel's initial values limits nothing.
func TestLimitsOfTheGroupAboveCount(t *testing.T) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, processes, memory, missing string
	}{
		{name: "both", processes: "2000", memory: "6442450944"},
		{name: "none of memory", processes: "2000", memory: "9223372036854771712", missing: "memory"}, // version 1
		{name: "no more processes than the machine", processes: "max", memory: "6442450944", missing: "pids"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if os.Getuid() != 0 && tt.missing == "pids" {
				return // RLIMIT_NPROC limits them
			}
			root := t.TempDir()
			for _, p := range groupPlaces(root, string(self)) {
				for file, content := range map[string]string{"pids.max": tt.processes, "memory.max": tt.memory, "memory.limit_in_bytes": tt.memory} {
					if err := os.MkdirAll(p.self, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(p.self, file), []byte(content+"\n"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			made, err := joinGroups(root, os.Getpid(), Limits{}.orDefault())
			if len(made) > 0 || (err == nil) != (tt.missing == "") || err != nil && !strings.Contains(err.Error(), "no limit of the controller "+tt.missing) {
				t.Errorf("joinGroups() = %v, %v, want no limit of %q", made, err, tt.missing)
			}
		})
	}
}

// A group is removed when its last process has left it, however late, and the error names the
// processes of one that is left.
func TestGroupsAreRemovedAfterTheirProcesses(t *testing.T) {
	if os.Getuid() != 0 {
		return // an ordinary user may have groups of others only
	}
	for _, tt := range []struct {
		name string
		late time.Duration // after which the process ends
		left bool
	}{
		{name: "a slow end", late: removeTimeout - removeEvery},
		{name: "no end", late: time.Hour, left: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := exec.Command("sh", "-c", "exec sleep 600")
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				made, err := joinGroups(cgroupRoot, c.Process.Pid, Limits{}.orDefault())
				if err != nil || len(made) == 0 {
					t.Errorf("joinGroups() = %v, %v", made, err)
				}
				end := func() { _ = errors.Join(c.Process.Kill(), c.Wait()) } // by its signal
				later := time.AfterFunc(tt.late, end)
				err = removeGroups(made)
				if (err != nil) != tt.left || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("(%d)", c.Process.Pid)) {
					t.Errorf("removeGroups() = %v, want an error: %t", err, tt.left)
				}
				if later.Stop() {
					end()
				}
				if err := removeGroups(made); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Systems whose first processes have the same number, as in two PID namespaces, have groups of
// their own.
func TestGroupsOfEqualProcessNumbersDiffer(t *testing.T) {
	if os.Getuid() != 0 {
		return // an ordinary user may have groups of others only
	}
	join := func(string) error { return nil }
	first, err := makeGroups(cgroupRoot, Limits{}.orDefault(), join)
	if err != nil {
		t.Fatal(err)
	}
	second, err := makeGroups(cgroupRoot, Limits{}.orDefault(), join)
	if err != nil || len(second) != len(first) || len(first) == 0 {
		t.Errorf("groups of the second = %v, %v, want as many as %v", second, err, first)
	}
	if err := errors.Join(removeGroups(first), removeGroups(second)); err != nil {
		t.Error(err)
	}
}

// killedEnv is set in the process that TestGroupsOfAKilledProcessAreRemoved kills.
const killedEnv = "METALAB_TEST_KILLED"

// The groups of a process that was killed go when another makes its own; those of one that lives
// stay, though they are empty, and so do those of others.
func TestGroupsOfAKilledProcessAreRemoved(t *testing.T) {
	if os.Getuid() != 0 {
		return // an ordinary user may have groups of others only
	}
	made, err := makeGroups(cgroupRoot, Limits{}.orDefault(), func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(killedEnv) != "" {
		for _, g := range made {
			fmt.Println("made", g.dir)
		}
		fmt.Println("ready")
		_, _ = io.ReadAll(os.Stdin) // until it is killed
		t.Fatal("the process was not killed")
	}
	defer func() { _ = removeGroups(made) }()
	c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	c.Env = append(os.Environ(), killedEnv+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var theirs []string
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		if dir, ok := strings.CutPrefix(lines.Text(), "made "); ok {
			theirs = append(theirs, dir)
		}
	}
	if len(theirs) == 0 {
		t.Error("the process has made no group")
	}
	others := filepath.Join(filepath.Dir(made[0].dir), fmt.Sprintf("metalab-of-others-%d", os.Getpid()))
	if err := os.Mkdir(others, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(others)
	check := func(when string, left bool) {
		t.Helper()
		if err := CheckLimits(); err != nil {
			t.Error(err)
		}
		for _, dir := range append(slices.Clone(theirs), others) {
			if _, err := os.Stat(dir); (err == nil) != (left || dir == others) {
				t.Errorf("%s: %s: %v, want it left: %t", when, dir, err, left || dir == others)
			}
		}
	}
	check("while the process lives", true)
	_ = errors.Join(c.Process.Kill(), c.Wait()) // by its signal
	check("after it was killed", false)
}
