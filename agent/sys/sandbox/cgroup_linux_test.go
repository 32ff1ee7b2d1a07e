package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
