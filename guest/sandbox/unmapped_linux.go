package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmappedEvery is the number of looks of the watcher after which unmappedOf is asked: once a second.
const unmappedEvery = 20

// memoryFile begins the target of a descriptor of memfd_create(2) in /proc (proc_pid_fd(5)).
const memoryFile = "/memfd:"

// unmappedOf returns the memory in bytes that processes have without mapping it: files of
// memfd_create(2), each once, and detached segments of System V's shared memory. Control groups count
// them; the memory of a process does not have them.
func unmappedOf(pids []int) (sum int64) {
	const block = 512 // inode(7), st_blocks
	seen := map[uint64]bool{}
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd/", pid)
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}
		for _, fd := range fds {
			if to, err := os.Readlink(dir + fd.Name()); err != nil || !strings.HasPrefix(to, memoryFile) {
				continue
			}
			var st unix.Stat_t
			if unix.Stat(dir+fd.Name(), &st) == nil && !seen[st.Ino] {
				seen[st.Ino] = true
				sum += st.Blocks * block
			}
		}
	}
	return sum + detachedSegments()
}

// segment is a segment of System V's shared memory.
type segment struct {
	id, attached int
	size         int64 // bytes in memory
}

// segments returns those of the server (proc_sysvipc(5): the columns "shmid", "nattch" and "rss").
func segments() (out []segment) {
	b, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return nil // a kernel without them
	}
	var columns []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if columns == nil {
			columns = f
			continue
		}
		value := func(name string) int64 {
			i := slices.Index(columns, name)
			if i < 0 || i >= len(f) {
				return 0
			}
			n, _ := strconv.ParseInt(f[i], 10, 64) // the kernel writes a number
			return n
		}
		out = append(out, segment{int(value("shmid")), int(value("nattch")), value("rss")})
	}
	return out
}

// detachedSegments returns the memory of segments that no process has attached.
func detachedSegments() (sum int64) {
	for _, s := range segments() {
		if s.attached == 0 {
			sum += s.size
		}
	}
	return sum
}

// removeSegments removes all segments, each when its last process has ended. They would outlive the
// processes that are killed for them, and be the end of the next ones.
func removeSegments() {
	for _, s := range segments() {
		_, _ = unix.SysvShmCtl(s.id, unix.IPC_RMID, nil) // a process may have removed it
	}
}
