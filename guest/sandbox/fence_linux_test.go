package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// The harm that a command can do to the machine that it runs on.
const (
	harmDown      = "the machine is down"
	harmFile      = "a file is lost"
	harmProcess   = "a process is lost"
	harmSpace     = "the disk is full"
	harmProcesses = "processes are left"
)

// hostile are commands that harm the machine that they run on, and how. Each ends by itself, or
// where its machine ends.
var hostile = []struct{ name, line, harm string }{
	{"rm -rf /", "rm -rf --no-preserve-root / 2>/dev/null", harmFile},
	{"kill -9 -1", "kill -9 -1", harmProcess},
	{"reboot -f", "python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x01234567)'", harmDown},
	{"a fork loop", "python3 -c '" + `
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
first = os.getpid()
for i in range(8): # 256 processes, more than a system may have
    os.fork()
if os.getpid() == first:
    os.write(1, b"forked")
time.sleep(100)'`, harmProcesses},
	{"an endless write", "cat /dev/zero > /tmp/endless", harmSpace},
}

// The machine of this test is one of its own: a PID and a mount namespace whose root is a small
// file system. Without the sandbox each command does its harm there, so that the test sees what
// it looks for.
func TestTheMachineOutlivesHostileCommands(t *testing.T) {
	needNamespaces(t)
	if at := os.Getenv(fencedEnv); at != "" {
		onOwnMachine(t, at)
		return
	}
	prerequisites.Need(t, "small file system")
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			if got := fenced(t, tt.line, false); !slices.Contains(got, tt.harm) {
				t.Errorf("without the sandbox: %q, want %q among them", got, tt.harm)
			}
			if got := fenced(t, tt.line, true); len(got) > 0 {
				t.Errorf("in a system: %q, want no harm", got)
			}
		})
	}
}

// fencedEnv names the directory of its root to the process that is the first of a machine of its own.
const fencedEnv = "METALAB_FENCED_MACHINE"

// Variables and output of that process.
const (
	fencedLine  = "METALAB_FENCED_LINE"
	fencedGuard = "METALAB_FENCED_GUARD" // set: the line is a command of a system
	fencedHarm  = "harm: "
)

// fenced runs a line on a machine of its own and returns the harm that it has done there.
func fenced(t *testing.T, line string, guarded bool) (harm []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(patience.Within(t, 2*time.Minute))
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestTheMachineOutlivesHostileCommands$", "-test.v", "-test.count=1")
	c.Env = append(os.Environ(), fencedEnv+"="+t.TempDir(), fencedLine+"="+line)
	if guarded {
		c.Env = append(c.Env, fencedGuard+"=1")
	}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL}
	if id := os.Getuid(); id != 0 {
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		c.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_BOOT, unix.CAP_SYS_CHROOT}
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatalf("start a machine: %v", err)
	}
	err := c.Wait()
	for l := range strings.Lines(out.String()) {
		if b, ok := strings.CutPrefix(l, fencedHarm); ok {
			if err := json.Unmarshal([]byte(b), &harm); err != nil {
				t.Fatal(err)
			}
			if len(harm) > 0 {
				t.Logf("%s", out.String())
			}
			return harm
		}
	}
	if ctx.Err() != nil || !c.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("the machine did not run: %v\n%s", err, out.String())
	}
	return []string{harmDown}
}

// onOwnMachine makes a machine below a directory, runs the line, and writes the harm. This process
// is the first of the machine, and ends with it.
func onOwnMachine(t *testing.T, at string) {
	t.Helper()
	if os.Getpid() != 1 { // else the machine would be this one
		t.Fatal("this process has no PID namespace of its own")
	}
	if err := ownRoot(at); err != nil {
		t.Fatalf("make a machine: %v", err)
	}
	const kept = "/srv/kept"
	if err := errors.Join(os.Mkdir("/srv", 0o755), os.WriteFile(kept, []byte("kept"), 0o644)); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("/bin/sh", "-c", "exec cat")
	in, inErr := other.StdinPipe()
	echo, echoErr := other.StdoutPipe()
	if err := errors.Join(inErr, echoErr, other.Start()); err != nil {
		t.Fatal(err)
	}
	if line := os.Getenv(fencedLine); os.Getenv(fencedGuard) != "" {
		guardedLine(t, line)
	} else {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c := exec.CommandContext(ctx, "/bin/sh", "-c", line)
		c.Stdout, c.Stderr = &signalWriter{cancel}, os.Stderr // the fork loop writes when it has forked
		c.WaitDelay = time.Millisecond                        // its processes have the output
		_ = c.Run()
	}
	harm := []string{}
	if b, err := os.ReadFile(kept); err != nil || string(b) != "kept" {
		harm = append(harm, harmFile)
	}
	answer := make([]byte, 2)
	_, inErr = io.WriteString(in, "x\n")
	_, echoErr = io.ReadFull(echo, answer)
	if inErr != nil || echoErr != nil {
		harm = append(harm, harmProcess)
	}
	if err := os.WriteFile("/tmp/new", bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		harm = append(harm, harmSpace)
	}
	if n := strangers(t, other.Process.Pid); n > 0 {
		harm = append(harm, harmProcesses)
	}
	b, err := json.Marshal(harm)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s%s\n", fencedHarm, b)
	os.Exit(0) // without the test's own end, which wants its directory
}

// guardedLine runs a line as a command of a system, which it closes, twice: the second command
// begins where the first has ended.
func guardedLine(t *testing.T, line string) {
	t.Helper()
	s := sandbox.New(sandbox.Config{Base: base(), Store: &memory{}, Dir: "/tmp/root", Limits: sandbox.Limits{Memory: 256 << 20, Processes: 100, Files: 4 << 20}})
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, _ = s.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", line}, Stdout: &signalWriter{cancel}})
		cancel()
	}
	if err := s.Close(); err != nil {
		t.Log(err)
	}
}

// ownRoot makes a small file system the root of this process: the machine's programs are there to
// be read.
func ownRoot(at string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=64m,mode=755"); err != nil {
		return err
	}
	for _, name := range []string{"/usr", "/etc", "/dev"} {
		to := filepath.Join(at, name)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(name, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := unix.MountSetattr(unix.AT_FDCWD, to, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64", "lib32"} {
		if link, err := os.Readlink("/" + name); err == nil {
			if err := os.Symlink(link, filepath.Join(at, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"proc", "tmp", "old"} {
		if err := os.Mkdir(filepath.Join(at, name), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(at, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := unix.PivotRoot(at, filepath.Join(at, "old")); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := errors.Join(os.Chdir("/"), os.Setenv("TMPDIR", "/tmp"), unix.Unmount("/old", unix.MNT_DETACH)); err != nil {
		return err
	}
	return os.Remove("/old")
}

// strangers returns how many processes of this machine are neither this one nor another. It looks
// for a second, since the kernel ends a process that was killed when it has a processor for it.
func strangers(t *testing.T, other int) (n int) {
	t.Helper()
	for range 100 {
		names, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			t.Fatal(err)
		}
		n = 0
		for _, name := range names {
			if name != "/proc/1" && name != fmt.Sprint("/proc/", other) && !strings.HasPrefix(state(name), "Z") {
				n++
			}
		}
		if n == 0 {
			return 0
		}
		<-time.After(10 * time.Millisecond)
	}
	return n
}

// state is the state of a process (proc(5), /proc/PID/stat): empty when it has ended.
func state(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return after
}
