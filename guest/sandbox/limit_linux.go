package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// capabilities are those that containers have by default (Docker Engine, "Linux kernel
// capabilities"; podman and containerd have subsets).
var capabilities = map[uintptr]bool{
	unix.CAP_CHOWN: true, unix.CAP_DAC_OVERRIDE: true, unix.CAP_FSETID: true, unix.CAP_FOWNER: true, unix.CAP_MKNOD: true,
	unix.CAP_NET_RAW: true, unix.CAP_SETGID: true, unix.CAP_SETUID: true, unix.CAP_SETFCAP: true, unix.CAP_SETPCAP: true,
	unix.CAP_NET_BIND_SERVICE: true, unix.CAP_SYS_CHROOT: true, unix.CAP_KILL: true, unix.CAP_AUDIT_WRITE: true,
}

// restrict limits the processes that the calling thread starts.
func restrict(l Limits) error {
	for kind, limit := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: uint64(l.Files), unix.RLIMIT_NPROC: uint64(l.Processes), unix.RLIMIT_NOFILE: 4096,
	} {
		if err := unix.Setrlimit(kind, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("resource limit %d: %w", kind, err)
		}
	}
	for c := uintptr(0); ; c++ {
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil {
			break // the last that the kernel knows
		} else if has == 0 || capabilities[c] {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	return nil
}

// watchEvery is the time between two comparisons of memory and processes with the limits.
// Control groups alone would not do: they refuse or kill processes without a reason, and do
// not exist everywhere. They are the second barrier behind the watcher.
const watchEvery = 50 * time.Millisecond

// watch ends all processes that together exceed a limit.
func (p *first) watch() {
	unmapped, looks := int64(0), 0
	for range time.Tick(watchEvery) {
		all := processes()
		if looks++; looks%unmappedEvery == 0 {
			unmapped = unmappedOf(all)
		}
		if len(all) < 4*p.setup.Limits.Processes { // else counting is too slow
			all = living()
		}
		reason := ""
		if len(all) > p.setup.Limits.Processes {
			reason = fmt.Sprintf("killed: more than %d processes", p.setup.Limits.Processes)
		} else if used := memoryOf(all, unmapped, p.setup.Limits.Memory); used > p.setup.Limits.Memory {
			reason = fmt.Sprintf("killed: more than %d MiB of memory", p.setup.Limits.Memory>>20)
		}
		if reason != "" {
			p.killAll(reason)
			removeSegments()
			unmapped, looks = 0, 0
		}
	}
}

func (p *first) killAll(reason string) {
	p.mu.Lock()
	for id := range p.running {
		p.reasons[id] = reason
	}
	p.mu.Unlock()
	_ = unix.Kill(-1, unix.SIGKILL) // every process but this one
}

// memoryOf returns the memory of processes in bytes, but for that of files (proc_pid_statm(5)). What
// they share is counted only where it could exceed the limit: the kernel walks all pages for that.
// Memory that need not be mapped counts as well where it is more than what is mapped: the one may be
// the other.
func memoryOf(pids []int, unmapped, limit int64) (sum int64) {
	page, shared := int64(os.Getpagesize()), int64(0)
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			continue
		}
		f := bytes.Fields(b)
		if len(f) < 3 {
			continue
		}
		r, _ := strconv.ParseInt(string(f[1]), 10, 64)
		s, _ := strconv.ParseInt(string(f[2]), 10, 64)
		sum += (r - s) * page
		shared += s * page
	}
	if sum > limit || sum+max(shared, unmapped) <= limit {
		return sum
	}
	mapped := int64(0)
	for _, pid := range pids {
		mapped += sharedOf(pid)
	}
	return sum + max(mapped, unmapped)
}

// sharedOf returns the part of a process of the memory that processes share and that is no file's,
// in bytes (proc_pid_smaps(5), smaps_rollup).
func sharedOf(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss_Shmem:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// loopbackUp brings up the loopback interface, the only one of the network namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// firstWord returns the first word of a text, or another word if there is none.
func firstWord(text, none string) string {
	if words := strings.Fields(text); len(words) > 0 {
		return words[0]
	}
	return none
}
