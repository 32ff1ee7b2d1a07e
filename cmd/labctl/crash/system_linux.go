package crash

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bootID identifies the start of the computer (proc_sys_kernel(5)).
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// memoryEvents returns the file in which the kernel counts the processes of this one's memory
// control group that it has killed, or "". A path of a control group that the file system here
// does not show, as in a container, is that of its root here.
func memoryEvents() string {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	return memoryEventsOf(string(b), "/sys/fs/cgroup")
}

// memoryEventsOf is memoryEvents for the text of /proc/self/cgroup (cgroups(7)) and the
// directory where control groups are mounted.
func memoryEventsOf(groups, mounted string) string {
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var hierarchy, file string
		switch {
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			hierarchy, file = "memory", "memory.oom_control"
		case parts[0] == "0" && parts[1] == "":
			file = "memory.events"
		default:
			continue
		}
		for _, group := range []string{parts[2], "/"} {
			name := filepath.Join(mounted, hierarchy, group, file)
			if _, err := os.Stat(name); err == nil {
				return name
			}
		}
	}
	return ""
}

// outOfMemoryKills returns how many processes of a control group the kernel has killed for lack
// of memory (oom_kill in both versions' files).
func outOfMemoryKills(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			kills, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if err != nil {
				return 0
			}
			return kills
		}
	}
	return 0
}

// reserve gives an empty file blocks on the disk, without a size. A file system that
// cannot do that has them when they are written, or not.
func reserve(f *os.File, size int64) {
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
}
