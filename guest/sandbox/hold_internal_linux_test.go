package sandbox

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// heldEnv is set in the process that is the first of a PID namespace of its own: hold stops every
// process that it sees.
const heldEnv = "METALAB_HELD_PROCESSES"

// A process runs again after several commands were ended at once, each of which has stopped all
// processes for a moment.
func TestHoldsAtOnceLeaveNoProcessStopped(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	if os.Getenv(heldEnv) == "" {
		c := exec.CommandContext(patience.Within(t, time.Minute), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		c.Env = append(os.Environ(), heldEnv+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
		if id := os.Getuid(); id != 0 {
			c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
			c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("in a PID namespace: %v\n%s", err, out)
		}
		return
	}
	if os.Getpid() != 1 { // else it would stop the processes of this machine
		t.Fatal("this process has no PID namespace of its own")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	sleep := exec.Command("/bin/sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 200 {
				hold(func() {})
			}
		})
	}
	all.Wait()
	if f := statFields(sleep.Process.Pid); len(f) == 0 || f[0] == "T" {
		t.Errorf("the process is stopped: %v", f)
	}
}
