// Package smalldisk runs tests on file systems that are small enough to fill. It knows no
// test and no subject of one.
package smalldisk

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// dirEnv names the directory of the small disk in the process that has one.
const dirEnv = "METALAB_SMALL_DISK"

// Run runs a test in a process of its own with a file system of some bytes, and
// calls f with its directory there. The test is no subtest, and first calls
// prerequisites.Need(t, "small file system"): Run fails where the kernel allows none.
func Run(t *testing.T, size int64, f func(dir string)) {
	t.Helper()
	if dir := os.Getenv(dirEnv); dir != "" {
		err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		if err == nil {
			err = unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.FormatInt(size, 10))
		}
		if err != nil {
			t.Fatalf("mount a small file system: %v", err)
		}
		f(dir)
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v", "-test.count=1")
	c.Env = append(os.Environ(), dirEnv+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if id := os.Getuid(); id != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatalf("start a process with a mount namespace: %v", err)
	}
	err := c.Wait()
	switch {
	case err != nil:
		t.Errorf("on a disk of %d bytes: %v\n%s", size, err, out.String())
	case !strings.Contains(out.String(), "--- PASS: "+t.Name()):
		t.Errorf("the test did not run:\n%s", out.String())
	default:
		t.Log(out.String())
	}
}

// Fill fills the file system of a directory and leaves some bytes free. empty frees the
// space again.
func Fill(t testing.TB, dir string, leave int64) (empty func()) {
	t.Helper()
	name := fmt.Sprintf("%s/filler", dir)
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		free := int64(st.Bavail)*st.Bsize - leave
		if free <= 0 {
			break
		}
		if _, err := f.Write(block[:min(free, int64(len(block)))]); err != nil {
			break
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}
