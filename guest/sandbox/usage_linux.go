package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usageFile has the processor time of a control group of version 1, in nanoseconds, where the
// controllers cpu and cpuacct are mounted together, as systemd does (cgroup-v1/cpuacct.rst); that of
// version 2 has it in cpu.stat, in microseconds. A group of cpuacct alone would make each command
// dearer.
const usageFile = "cpuacct.usage"

// cpuTime returns the processor time of a session's processes, as its control groups count it, or as
// the processes themselves do where there is none.
func (r *session) cpuTime() time.Duration {
	for _, g := range r.groups {
		if n, err := readNumber(filepath.Join(g.dir, usageFile)); err == nil {
			return time.Duration(n)
		}
		b, err := os.ReadFile(filepath.Join(g.dir, "cpu.stat"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "usage_usec "); ok {
				n, _ := strconv.ParseInt(text, 10, 64) // the kernel writes a number
				return time.Duration(n) * time.Microsecond
			}
		}
	}
	if !r.hasEnded() {
		return timeOf(r.command.Process.Pid)
	}
	if r.command.ProcessState != nil {
		return r.command.ProcessState.UserTime() + r.command.ProcessState.SystemTime() // with those that it has waited for
	}
	return 0
}

// tick is the unit of the kernel's times in /proc (proc_pid_stat(5); sysconf(3), _SC_CLK_TCK).
const tick = time.Second / 100

// timeOf returns the time of a process and of all below it: those of a PID namespace are below its
// first.
func timeOf(pid int) (sum time.Duration) {
	f := statFields(pid)
	const first, last = 14 - 3, 17 - 3 // utime, stime, cutime, cstime; the first that statFields returns is field 3
	if len(f) <= last {
		return 0
	}
	for _, text := range f[first : last+1] {
		n, _ := strconv.ParseInt(text, 10, 64) // as above
		sum += time.Duration(n) * tick
	}
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // else it has ended
	for _, task := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name())) // as above
		for _, text := range strings.Fields(string(b)) {
			child, _ := strconv.Atoi(text)
			sum += timeOf(child)
		}
	}
	return sum
}
