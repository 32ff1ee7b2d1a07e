package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// cgroupRoot is where distributions mount control groups.
const cgroupRoot = "/sys/fs/cgroup"

// groupFiles are the limits that a control group sets, by controller: files of version 1
// (Documentation/admin-guide/cgroup-v1) and of version 2 (cgroup-v2.rst). They are wider than
// the watcher's limits, so that the watcher acts first and reports a reason; its process is in
// the groups, too.
func groupFiles(l Limits) map[string]map[string]int64 {
	memory := 2*l.Memory + 512<<20
	return map[string]map[string]int64{
		"pids":   {"pids.max": int64(2*l.Processes + 64)},
		"memory": {"memory.limit_in_bytes": memory, "memory.max": memory},
	}
}

// joinGroups puts a process into control groups with the limits, and returns the groups
// that were made. There are none where this process may make none.
func joinGroups(pid int, l Limits) (made []string) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	name := fmt.Sprintf("metalab-%d", pid)
	for line := range strings.Lines(string(b)) { // "ID:controllers:/path" (cgroups(7))
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		if f[1] == "" { // version 2: below the group above, since one with processes has no groups with limits
			made = append(made, makeGroup(filepath.Join(cgroupRoot, filepath.Dir(f[2]), name), pid, l)...)
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			if _, ok := groupFiles(l)[controller]; ok {
				made = append(made, makeGroup(filepath.Join(cgroupRoot, f[1], f[2], name), pid, l)...)
			}
		}
	}
	return made
}

// makeGroup makes one group, and returns it if it has a limit and the process.
func makeGroup(dir string, pid int, l Limits) []string {
	if os.Mkdir(dir, 0o755) != nil {
		return nil
	}
	limited := false
	for _, files := range groupFiles(l) {
		for file, limit := range files {
			if writeExisting(filepath.Join(dir, file), limit) == nil {
				limited = true
			}
		}
	}
	if !limited || writeExisting(filepath.Join(dir, "cgroup.procs"), int64(pid)) != nil {
		_ = os.Remove(dir) // it has no process
		return nil
	}
	return []string{dir}
}

func writeExisting(file string, value int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(value, 10))
	return errors.Join(err, f.Close())
}

// removeGroups removes groups whose processes have ended.
func removeGroups(groups []string) error {
	var errs []error
	for _, dir := range groups {
		err := os.Remove(dir)
		for try := 0; errors.Is(err, syscall.EBUSY) && try < 1000; try++ { // zombies leave it after the first process
			err = os.Remove(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
