package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/smalldisk"
)

func needNamespaces(t *testing.T) {
	t.Helper()
	prerequisites.Need(t, "user namespaces")
}

func TestCommandsSeeTheSystem(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	put(t, s, sandbox.Tree{"etc/hostname": sandbox.File(0o644, "web-0\n"), "etc/motd": sandbox.File(0o644, "layer\n"), "tmp/a": sandbox.File(0o644, "a")})
	for line, want := range map[string]string{
		"cat /etc/motd; hostname; id -u; echo $PPID": "layer\nweb-0\n0\n1\n",
		"cat /tmp/a; pwd; echo $HOME":                "a/root\n/root\n",
		"ls /home /root /mnt":                        "/home:\n\n/mnt:\n\n/root:\n",
		"ls /sys":                                    "",
		"ls /dev/pts /dev/shm":                       "/dev/pts:\nptmx\n\n/dev/shm:\n",
		"echo x > /dev/null && head -c 2 /dev/zero | od -An -tx1": " 00 00\n",
		"ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev":  "1\n",
		"exit 3":        "",
		"kill -9 $$":    "",
		"no-such-thing": "/bin/sh: 1: no-such-thing: not found\n",
		"echo e >&2":    "e\n",
		"ulimit -c":     "0\n",
		"python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",0)); print(1)'": "1\n",
	} {
		if got, _ := run(t, s, line); got != want {
			t.Errorf("%s = %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string]int{"exit 3": 3, "kill -9 $$": 137, "no-such-thing": 127, "true": 0} {
		if _, got := run(t, s, line); got != want {
			t.Errorf("%s = code %d, want %d", line, got, want)
		}
	}
	for program, want := range map[string]int{"no-such-program": sandbox.CodeNotFound, "/etc/motd": sandbox.CodeCannotRun} {
		var b strings.Builder
		if code, err := s.Exec(t.Context(), sandbox.Command{Args: []string{program}, Stderr: &b}); code != want || err != nil || !strings.Contains(b.String(), program) {
			t.Errorf("%s = code %d, %v, %q, want %d", program, code, err, b.String(), want)
		}
	}
}

func TestCommandsChangeTheLayer(t *testing.T) {
	needNamespaces(t)
	s, m := booted(t)
	run(t, s, "echo changed > /etc/motd; rm -r /etc/dir /etc/passwd; mkdir -p /var/lib/x && echo y > /var/lib/x/y; echo z > /usr/bin/mine; chmod 700 /usr/bin/mine; echo r > /run/r; ln -s motd /etc/l")
	checkFile(t, s, "etc/l", "changed\n")
	checkNoFile(t, s, "etc/dir/a")
	checkFile(t, s, "run/r", "r\n")
	checkFile(t, s, "usr/bin/mine", "z\n")
	if got, _ := run(t, s, "cat /etc/motd /run/r /usr/bin/mine /var/lib/x/y; ls /etc"); got != "changed\nr\nz\ny\ngroup\nhostname\nl\nmotd\n" {
		t.Errorf("the next command sees %q", got)
	}
	next := sandbox.New(sandbox.Config{Base: base(), Store: m, Dir: t.TempDir() + "/next", RequireLimits: true})
	defer next.Close()
	if got, _ := run(t, next, "cat /etc/motd /usr/bin/mine; ls /run/r"); !strings.Contains(got, "changed\nz\n") || !strings.Contains(got, "ls:") {
		t.Errorf("the next boot sees %q", got)
	}
	if _, err := os.Stat("/usr/bin/mine"); err == nil {
		t.Error("the machine's /usr was written to")
	}
}

// The options of an overlay are separated by commas, and its directories by colons.
func TestCommandsRunBelowAnyDirectory(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t, func(c *sandbox.Config) { c.Dir += `,upperdir=a:b\c "d"` })
	run(t, s, "echo changed > /etc/motd")
	checkFile(t, s, "etc/motd", "changed\n")
	if got, _ := run(t, s, "cat /etc/motd"); got != "changed\n" {
		t.Errorf("the next command reads %q", got)
	}
}

func TestCommandsCannotReachTheMachine(t *testing.T) {
	needNamespaces(t)
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile("/proc/sys/vm/swappiness")
	s, _ := booted(t)
	for line, refused := range map[string]bool{
		"cat " + secret:                        true,
		"ls /home/* /root/*":                   true,
		"mount -t tmpfs x /mnt":                true,
		"mknod /tmp/sda b 8 0 && cat /tmp/sda": true,
		"date -s 2001-01-01":                   true,
		"unshare -U true":                      true,
		"unshare -m true":                      true,
		"cat /proc/kcore | grep -q .":          true,
		"chroot /proc/1/root ls " + secret:     true,
		"hostname other":                       true,
		"ip link add dummy0 type dummy":        true,
		"echo 9 > /proc/sys/vm/swappiness":     false,
	} {
		if out, code := run(t, s, line); (code != 0) != refused {
			t.Errorf("%s = code %d, %q", line, code, out)
		}
	}
	if got, _ := run(t, s, "cat /proc/sys/vm/swappiness"); got != "9\n" {
		t.Errorf("the private value is %q", got)
	}
	if after, _ := os.ReadFile("/proc/sys/vm/swappiness"); string(after) != string(before) {
		t.Errorf("the machine's value is %q, was %q", after, before)
	}
}

// The bomb forks without an end: it runs where the kernel limits it alone, which booted requires.
func TestLimits(t *testing.T) {
	needNamespaces(t)
	small := func(c *sandbox.Config) {
		c.Limits = sandbox.Limits{Memory: 64 << 20, Processes: 40, Files: 1 << 20}
	}
	s, _ := booted(t, small)
	for line, want := range map[string]string{
		"python3 -c 'x=bytearray(200<<20); import time; time.sleep(60)'":                                                "more than 64 MiB of memory",
		"python3 -c 'import mmap, time; m=mmap.mmap(-1, 200<<20); m.write(bytes(100<<20)); time.sleep(60)'":             "more than 64 MiB of memory",
		"python3 -c 'import mmap, os, time; m=mmap.mmap(-1, 40<<20); m.write(bytes(40<<20)); os.fork(); time.sleep(1)'": "",
	} {
		out, code := run(t, s, line)
		if (code == 0) != (want == "") || !strings.Contains(out, want) {
			t.Errorf("%s = code %d, %q, want %q", line, code, out, want)
		}
	}
	// The kernel refuses more processes, also to the first, or the watcher ends all of them.
	if out, code := run(t, s, "f() { f | f & }; f; sleep 2; false"); code == 0 || !strings.Contains(out, "Cannot fork") && !strings.Contains(out, "processes") {
		t.Errorf("a fork bomb = code %d, %q", code, out)
	}
	if err := s.Close(); err != nil { // else the rest of the bomb may leave no process to the next system
		t.Fatal(err)
	}
	s, _ = booted(t, small)
	// Of an ordinary user the kernel counts the processes, and refuses the fork.
	if out, code := run(t, s, "for i in $(seq 60); do sleep 60 & done; wait"); code == 0 || !strings.Contains(out, "more than 40 processes") && !strings.Contains(out, "Cannot fork") {
		t.Errorf("too many processes = code %d, %q", code, out)
	}
}

// The files lie on a file system of a fixed size, so that a limit that fails cannot fill the
// machine's. An ordinary user mounts none for a system of its own user namespace, and writes no
// more than would fit there.
func TestFilesBeyondTheLimitEndTheCommand(t *testing.T) {
	needNamespaces(t)
	if os.Getuid() != 0 {
		filesBeyondTheLimit(t, t.TempDir(), "[ $i -lt 400 ]")
		return
	}
	prerequisites.Need(t, "small file system")
	smalldisk.Run(t, 64<<20, func(dir string) { filesBeyondTheLimit(t, dir, ":") })
}

// filesBeyondTheLimit writes files of 100 kB while a shell's condition holds.
func filesBeyondTheLimit(t *testing.T, dir, condition string) {
	t.Helper()
	s, _ := booted(t, func(c *sandbox.Config) {
		c.Dir, c.Limits = filepath.Join(dir, "root"), sandbox.Limits{Files: 1 << 20}
	})
	run(t, s, "echo stays > /etc/stays")
	ctx := patience.Within(t, time.Minute)
	line := "echo lost > /etc/stays; i=0; while " + condition + "; do i=$((i+1)); head -c 100000 /dev/zero > /var/$i || exit 1; done; sleep 600"
	if code, err := s.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", line}}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("files beyond the limit: code %d, %v, want %v", code, err, syscall.ENOSPC)
	}
	if ctx.Err() != nil {
		t.Error("the deadline has ended the command, not the limit")
	}
	checkFile(t, s, "etc/stays", "stays\n")
	if _, err := s.Stat("var/1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("var/1, which was written with it: %v, want %v", err, fs.ErrNotExist)
	}
	if out, code := run(t, s, "echo alive"); out != "alive\n" || code != 0 {
		t.Errorf("the next command = code %d, %q", code, out)
	}
}

// listSleeps lists the processes that sleep.
const listSleeps = `for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline; echo; done | grep ^sleep`

// The end of the context ends all processes that a command has started.
func TestContextEndsACommandWithItsProcesses(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := &signalWriter{ready: cancel}
	code, err := s.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", "setsid sleep 600 & (trap '' TERM; sleep 600) & echo x; wait"}, Stdout: w})
	if code != 137 || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
	if out, _ := run(t, s, listSleeps); out != "" {
		t.Errorf("processes are left: %q", out)
	}
}

func TestContextEndsOneOfSeveralCommands(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	other, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan int)
	go func() {
		code, _ := s.Exec(other, sandbox.Command{Args: []string{"/bin/sh", "-c", "echo ready; exec sleep 601"}, Stdout: &signalWriter{func() { close(ready) }}})
		ended <- code
	}()
	<-ready
	patience.Await(t, "the shell has become sleep", func() bool { out, _ := run(t, s, listSleeps); return strings.Contains(out, "601") })
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", "setsid sleep 602 & sleep 603 & echo x; wait"}, Stdout: &signalWriter{cancel}}); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(t, s, listSleeps); !strings.Contains(out, "601") || strings.Contains(out, "602") || strings.Contains(out, "603") {
		t.Errorf("processes that are left: %q, want sleep 601", out)
	}
	stop()
	if code := <-ended; code != 137 {
		t.Errorf("the other ends with %d", code)
	}
}

func TestInputAndTerminal(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	var out strings.Builder
	code, err := s.Exec(t.Context(), sandbox.Command{Args: []string{"cat"}, Stdin: strings.NewReader("input"), Stdout: &out})
	if code != 0 || err != nil || out.String() != "input" {
		t.Errorf("cat = %d, %v, %q", code, err, out.String())
	}
	size := make(chan sandbox.WindowSize, 1)
	size <- sandbox.WindowSize{Rows: 33, Columns: 99}
	out.Reset()
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer typed.Close()
	if _, err := typed.WriteString("x\n"); err != nil {
		t.Fatal(err)
	}
	code, err = s.Exec(t.Context(), sandbox.Command{
		Args: []string{"/bin/sh", "-c", "read x; test -t 0 && test -t 1 && stty size"}, Stdin: in, Stdout: &out, Terminal: true, Resize: size,
	})
	if code != 0 || err != nil || !strings.Contains(out.String(), "33 99") {
		t.Errorf("a terminal = %d, %v, %q", code, err, out.String())
	}
}

// A program that asks for the size of its terminal at once gets that of the client's window.
func TestTerminalHasItsSizeFromTheStart(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	var out strings.Builder
	code, err := s.Exec(t.Context(), sandbox.Command{
		Args: []string{"stty", "size"}, Stdout: &out, Terminal: true, Size: sandbox.WindowSize{Rows: 33, Columns: 99},
	})
	if out.String() != "33 99\r\n" || code != 0 || err != nil {
		t.Errorf("stty size = %q, %d, %v, want 33 99", out.String(), code, err)
	}
}

// A terminal is one of the system's, by its name too, and controls the command.
func TestTerminalBelongsToTheSystem(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	var out strings.Builder
	code, err := s.Exec(t.Context(), sandbox.Command{
		Args: []string{"/bin/sh", "-c", "tty && test -c $(tty) && echo typed > /dev/tty"}, Stdout: &out, Terminal: true,
	})
	if out.String() != "/dev/pts/0\r\ntyped\r\n" || code != 0 || err != nil {
		t.Errorf("tty = %q, %d, %v", out.String(), code, err)
	}
}

func TestCloseEndsCommands(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	ready, ended := make(chan struct{}), make(chan error)
	go func() {
		_, err := s.Exec(context.Background(), sandbox.Command{Args: []string{"/bin/sh", "-c", "echo x; sleep 600"}, Stdout: &signalWriter{func() { close(ready) }}})
		ended <- err
	}()
	<-ready
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("the command ends with %v", err)
	}
}

// A program that asks for a reboot loses nothing that was written before.
func TestRebootStoresTheFiles(t *testing.T) {
	needNamespaces(t)
	stored := make(chan string, 1)
	var s *sandbox.System
	var m *memory
	s, m = booted(t, func(c *sandbox.Config) {
		c.Reboot = func() {
			layer, err := sandbox.Decode(m.bytes())
			stored <- fmt.Sprint(string(layer["etc/new"].Content), err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = s.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", "echo -n x > /etc/new; reboot; sleep 600"}}) // it is ended
	}()
	if got := <-stored; got != "x<nil>" {
		t.Errorf("at the reboot /etc/new is %s", got)
	}
}

// A session ends with the last process, which need not be a command.
func TestTheLastProcessEndsTheSession(t *testing.T) {
	needNamespaces(t)
	changed := make(chan struct{}, 1)
	dir := ""
	s, m := booted(t, func(c *sandbox.Config) { dir = c.Dir })
	m.saved = func() { changed <- struct{}{} }
	run(t, s, "mkfifo /tmp/wait; (read x < /tmp/wait; echo -n late > /etc/new) > /dev/null 2>&1 &")
	<-changed
	if err := os.WriteFile(dir+"/tmp/wait", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	<-changed
	checkFile(t, s, "etc/new", "late")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the session goes on: %v", err)
	}
}

func TestACommandThatIsEndedBeforeItBegins(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, err := s.Exec(ctx, sandbox.Command{Args: []string{"sleep", "600"}}); code != 137 || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
}

// A sequence of commands leaves no process and no mount. Permissions that forbid the owner
// to read hinder neither the storing of files nor the next session.
func TestSessionsLeaveNothing(t *testing.T) {
	needNamespaces(t)
	dir := ""
	s, _ := booted(t, func(c *sandbox.Config) { dir = c.Dir })
	for range 3 {
		if out, code := run(t, s, "echo x > /etc/motd; chmod 0 /etc/motd; mkdir -p /etc/y /tmp/x; echo y > /etc/y/f; chmod 0 /etc/y /tmp/x"); code != 0 {
			t.Errorf("the command = code %d, %q", code, out)
		}
	}
	if out, code := run(t, s, "stat -c %a /etc/motd /etc/y; cat /etc/motd /etc/y/f"); out != "0\n0\nx\ny\n" || code != 0 {
		t.Errorf("the next command = code %d, %q", code, out)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the mounts is left: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), t.Name()) {
		t.Errorf("mounts are left: %v", err)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func children(t *testing.T) (out []string) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%s/children", task.Name()))
		if err == nil {
			out = append(out, strings.Fields(string(b))...)
		}
	}
	return slices.Compact(out)
}
