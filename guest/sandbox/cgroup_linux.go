package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where distributions mount control groups.
const cgroupRoot = "/sys/fs/cgroup"

// controllers are those whose limits a system needs.
var controllers = []string{"pids", "memory"}

// sharing is the controller that shares the processors. A system runs without it.
const sharing = "cpu"

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

// Weights of a system's control group (cgroup-v2.rst, "cpu.weight"; version 1: cpu.shares). They are
// half of the default, which this process has: its servers use what it leaves them, all of the machine
// where nothing else runs.
const (
	cpuWeight = 50
	cpuShares = 512
)

// cpuPeriod is the time, in microseconds, in which a quota is used up: the kernel's default.
const cpuPeriod = 100_000

// shareFiles are the settings by which a controller shares the processors.
func shareFiles(l Limits, controller string) map[string]string {
	if controller != sharing {
		return map[string]string{}
	}
	files := map[string]string{"cpu.weight": strconv.Itoa(cpuWeight), "cpu.shares": strconv.Itoa(cpuShares)}
	if l.CPU > 0 {
		quota := l.CPU * cpuPeriod / 100
		files["cpu.cfs_quota_us"] = strconv.Itoa(quota)
		files["cpu.max"] = fmt.Sprintf("%d %d", quota, cpuPeriod)
	}
	return files
}

// place is where a group with limits can be made.
type place struct {
	self, above string // the group of this process, and the one to make groups in
	controllers []string
	unified     bool // version 2
}

// mounted reports whether a hierarchy is there: beside those of version 1 systemd mounts that of
// version 2 elsewhere, without controllers.
func (p place) mounted() bool {
	return !p.unified || fileExists(filepath.Join(p.above, "cgroup.controllers"))
}

// groupPlaces returns the places that the file /proc/self/cgroup gives a process below the
// directory where control groups are mounted.
func groupPlaces(root, self string) (out []place) {
	for line := range strings.Lines(self) { // "ID:controllers:/path" (cgroups(7))
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		if f[1] == "" { // version 2: below the group above, since one with processes has no groups with limits
			out = append(out, place{filepath.Join(root, f[2]), filepath.Join(root, filepath.Dir(f[2])), append(slices.Clone(controllers), sharing), true})
			continue
		}
		p := place{self: filepath.Join(root, f[1], f[2]), above: filepath.Join(root, f[1], f[2])}
		for c := range strings.SplitSeq(f[1], ",") {
			if slices.Contains(controllers, c) || c == sharing {
				p.controllers = append(p.controllers, c)
			}
		}
		if len(p.controllers) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// group is a control group that this process has made. The lock on its directory ends with this
// process, however that ends.
type group struct {
	dir  string
	lock *os.File
}

// groupPrefix begins the names of this process's groups: its number alone is that of others in
// other PID namespaces, and later.
var groupPrefix = fmt.Sprintf("metalab-%d-%s-", os.Getpid(), rand.Text()[:8])

// groupName matches the names of groups that programs with this package make.
var groupName = regexp.MustCompile(`^metalab-[0-9]+-[A-Z2-7]{8}-[A-Z2-7]{8}$`)

// joinGroups puts a process into control groups with the limits, and returns the groups that
// were made. Its error names the controllers of which this process has no limit either.
func joinGroups(root string, pid int, l Limits) (made []group, err error) {
	return makeGroups(root, l, func(dir string) error {
		return writeExisting(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid))
	})
}

// CheckLimits returns a LimitsError where the kernel would not limit the commands of a system.
func CheckLimits() error {
	made, err := makeGroups(cgroupRoot, Limits{}.orDefault(), func(string) error { return nil })
	if err := errors.Join(err, removeGroups(made)); err != nil {
		return &LimitsError{err}
	}
	return nil
}

// makeGroups makes control groups with the limits, and calls join with each. It removes those
// that ended processes have left there.
func makeGroups(root string, l Limits, join func(dir string) error) (made []group, err error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	limited := map[string]bool{}
	var refused []error
	for _, p := range groupPlaces(root, string(self)) {
		var (
			g   group
			has []string
			err error
		)
		if p.mounted() {
			removeLeftGroups(p.above)
			g, has, err = makeGroup(p, l)
		}
		if len(has) > 0 {
			if failed := join(g.dir); failed != nil {
				has, err = nil, errors.Join(err, failed, removeGroups([]group{g})) // it has no process
			} else {
				made = append(made, g)
			}
		}
		if err != nil {
			refused = append(refused, err)
		}
		for _, c := range has {
			limited[c] = true
		}
		if slices.ContainsFunc(controllers, func(c string) bool { return slices.Contains(p.controllers, c) && !limited[c] }) {
			for _, c := range inherited(root, p) {
				limited[c] = true
			}
		}
	}
	if os.Getuid() != 0 {
		limited["pids"] = true // RLIMIT_NPROC counts for all but the superuser (getrlimit(2))
	}
	var missing []error
	for _, c := range controllers {
		if !limited[c] {
			missing = append(missing, fmt.Errorf("no limit of the controller %s", c))
		}
	}
	if len(missing) > 0 {
		return made, errors.Join(slices.Concat(missing, refused)...)
	}
	return made, nil
}

// makeGroup makes a group with the limits of a place's controllers, and returns those that it
// limits. It removes a group without any.
func makeGroup(p place, l Limits) (g group, limited []string, err error) {
	if g, err = newGroup(p.above); err != nil {
		return group{}, nil, err
	}
	var errs []error
	for _, c := range p.controllers {
		files := shareFiles(l, c)
		for file, limit := range groupFiles(l)[c] {
			files[file] = strconv.FormatInt(limit, 10)
		}
		for file, value := range files {
			if err := writeExisting(filepath.Join(g.dir, file), value); err == nil {
				limited = append(limited, c)
			} else if !errors.Is(err, fs.ErrNotExist) { // a file of the other version
				errs = append(errs, err)
			}
		}
	}
	if len(limited) == 0 {
		errs = append(errs, removeGroups([]group{g}))
	}
	return g, limited, errors.Join(errs...)
}

// newGroup makes a group and locks it. Another process may take the group for one that is left,
// and remove it, before it is locked: newGroup makes another then.
func newGroup(above string) (g group, err error) {
	for range 10 {
		dir := filepath.Join(above, groupPrefix+rand.Text()[:8])
		if err := os.Mkdir(dir, 0o755); err != nil {
			return group{}, err
		}
		lock, locked := lockGroup(dir)
		switch {
		case locked != nil && !errors.Is(locked, fs.ErrNotExist) && !errors.Is(locked, unix.EWOULDBLOCK):
			return group{}, errors.Join(locked, os.Remove(dir))
		case locked == nil:
			return group{dir, lock}, nil
		}
		err = locked
	}
	return group{}, err
}

// lockGroup locks a group that is there.
func lockGroup(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
	}
	locked, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(dir); err == nil && !os.SameFile(locked, there) {
			err = &fs.PathError{Op: "lock", Path: dir, Err: fs.ErrNotExist}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// removeLeftGroups removes the groups of processes that have ended without removing them: nobody
// holds their locks. The kernel keeps one whose last processes are ending; it goes the next time.
func removeLeftGroups(above string) {
	entries, err := os.ReadDir(above)
	if err != nil {
		return // no group can be made there either, and makeGroup says so
	}
	for _, e := range entries {
		if !groupName.MatchString(e.Name()) || strings.HasPrefix(e.Name(), groupPrefix) {
			continue
		}
		dir := filepath.Join(above, e.Name())
		if lock, err := lockGroup(dir); err == nil {
			_ = os.Remove(dir) // else it goes the next time
			_ = lock.Close()   // it was read only
		}
	}
}

// inherited returns the controllers that limit this process to less than the machine has, by its
// group or one above: they stop a system of this process, too, before it takes the machine.
func inherited(root string, p place) (out []string) {
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) != nil {
		return nil
	}
	threads, err := readNumber("/proc/sys/kernel/threads-max")
	if err != nil {
		return nil
	}
	less := map[string]int64{"pids": threads, "memory": int64(machine.Totalram) * int64(machine.Unit)}
	for _, c := range p.controllers {
		for dir := p.self; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			for file := range groupFiles(Limits{})[c] {
				if limit, err := readNumber(filepath.Join(dir, file)); err == nil && limit < less[c] && !slices.Contains(out, c) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// readNumber reads a file with a number; "max" is none.
func readNumber(file string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

func writeExisting(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// removeTimeout is how long the processes of a group may take to leave it after the first process
// has ended: those that were killed with it become zombies one by one. removeEvery is the time
// between two tries.
const (
	removeTimeout = 5 * time.Second
	removeEvery   = 10 * time.Millisecond
)

// removeGroups removes groups whose processes have ended. Its error names the groups that are
// left, with their processes.
func removeGroups(groups []group) error {
	var errs []error
	deadline := time.Now().Add(removeTimeout)
	for _, g := range groups {
		dir := g.dir
		err := os.Remove(dir)
		for errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(removeEvery) //nolint:forbidigo // the kernel tells nobody that a group is empty of processes that end
			err = os.Remove(dir)
		}
		switch {
		case errors.Is(err, syscall.EBUSY):
			left, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // else the error says enough
			errs = append(errs, fmt.Errorf("after %v processes are left in a control group (%s): %w", removeTimeout, strings.Join(strings.Fields(string(left)), " "), err))
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
		_ = g.lock.Close() // it was read only, and others may remove the groups that are left
	}
	return errors.Join(errs...)
}
