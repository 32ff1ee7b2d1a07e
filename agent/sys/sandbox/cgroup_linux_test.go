package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
				t.Errorf("joinGroups() = %q, %v, want no limit of %q", made, err, tt.missing)
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
					t.Errorf("joinGroups() = %q, %v", made, err)
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
