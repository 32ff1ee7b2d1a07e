package crash

import (
	"os"
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

// outOfMemoryKills returns how many processes the kernel has killed for lack of memory,
// in control groups too (oom_kill of proc_vmstat(5)).
func outOfMemoryKills() int64 {
	b, err := os.ReadFile("/proc/vmstat")
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
