package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// occupied returns a system in which a process runs: its files are read through the kernel.
func occupied(t *testing.T, change ...func(*sandbox.Config)) *sandbox.System {
	t.Helper()
	needNamespaces(t)
	s, _ := booted(t, change...)
	run(t, s, "sleep 600 > /dev/null 2>&1 &")
	return s
}

// What a user of a server puts where this program looks is read when it is a regular file of a
// bounded size.
func TestFilesWithoutEndAreRefused(t *testing.T) {
	s := occupied(t)
	run(t, s, "mkdir -p /etc/systemd/system; ln -s /dev/zero /etc/systemd/system/zero.service; mkfifo /etc/systemd/system/pipe.service; "+
		"mkdir /etc/systemd/system/dir.service; ln -s loop.service /etc/systemd/system/loop.service; truncate -s 2M /etc/systemd/system/large.service; truncate -s 65M /var/large; "+
		"printf '[Service]\\nEnvironmentFile=/dev/zero\\nExecStart=/bin/true\\n' > /etc/systemd/system/environment.service")
	for name, want := range map[string]string{
		"zero.service": "not a file", "pipe.service": "not a file", "dir.service": "is a directory", "loop.service": "too many levels", "large.service": "more than 1024 KiB",
	} {
		if out, code := run(t, s, "systemctl start "+name); code == 0 || !strings.Contains(out, want) {
			t.Errorf("systemctl start %s = code %d, %q, want %q", name, code, out, want)
		}
	}
	run(t, s, "systemctl start environment")
	if _, err := s.ReadFile("var/large"); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a file of 65 MiB: %v, want %v", err, syscall.EFBIG)
	}
	for _, name := range []string{"etc/systemd/system/zero.service", "etc/systemd/system/pipe.service", "dev/tty"} {
		if b, err := s.ReadFile(name); err == nil {
			t.Errorf("%s has %d bytes, want an error", name, len(b))
		}
	}
}

// The first process opens the files of StandardInput= and StandardOutput= with its own rights: a unit
// that names that process's memory fails.
func TestServiceGetsNoFileOfTheFirstProcess(t *testing.T) {
	s := occupied(t)
	for _, line := range []string{
		"StandardOutput=file:/proc/self/mem", "StandardOutput=append:/proc/1/mem", "StandardError=file:/proc/1/mem", "StandardInput=file:/proc/self/environ",
		"StandardOutput=file:/var/link",
	} {
		put(t, s, sandbox.Tree{
			"etc/systemd/system/mem.service": sandbox.File(0o644, "[Service]\nType=oneshot\nExecStart=/bin/true\n"+line+"\n"),
			"var/link":                       {Mode: fs.ModeSymlink | 0o777, Link: "/proc/self/mem"},
		})
		if out, code := ctl(t, s, "start", "mem"); code == 0 || !strings.Contains(out, "a file of /proc cannot be given to a service") {
			t.Errorf("%s: start = code %d, %q, want a refusal", line, code, out)
		}
		ctl(t, s, "reset-failed", "mem")
	}
}

// The first process of a system answers whoever writes to its socket, and survives it.
func TestQuestionsOfProgramsAreBounded(t *testing.T) {
	s := occupied(t)
	ask := func(program string) string {
		out, _ := run(t, s, "python3 -c '"+`
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect("/run/metalab-system.sock")
`+program+`
try:
    sys.stdout.write(s.recv(4096).decode())
except OSError: # the question was not read to its end
    sys.stdout.write("reset")
`+"'")
		return out
	}
	if out := ask(`s.sendall(b"{\"Program\": []}")`); !strings.Contains(out, "names no program") {
		t.Errorf("a question without a program is answered %q", out)
	}
	if out := ask(`s.sendall(b"nonsense")`); !strings.Contains(out, "invalid character") {
		t.Errorf("a question that is no JSON is answered %q", out)
	}
	if out := ask(`
try:
    s.sendall(b"{\"Program\": [\"" + b"a" * (64 << 20))
except OSError:
    pass`); !strings.Contains(out, "at most 1024 KiB") && out != "reset" {
		t.Errorf("a question without an end is answered %q", out)
	}
	if out, code := run(t, s, "systemctl is-active none"); out != "inactive\n" || code != 3 {
		t.Errorf("systemctl is-active = code %d, %q, want 3, inactive", code, out)
	}
}

// A command may put anything below /proc/sys.
func TestValuesOfTheKernelAreBounded(t *testing.T) {
	s := occupied(t)
	run(t, s, "ln -s /dev/zero /proc/sys/kernel/endless; mkfifo /proc/sys/kernel/pipe; head -c 100000 /dev/zero > /proc/sys/kernel/large; echo 9 > /proc/sys/vm/swappiness")
	if got, _ := run(t, s, "cat /proc/sys/vm/swappiness"); got != "9\n" {
		t.Errorf("the next command reads %q, want 9", got)
	}
}

// serving returns a system with a service that runs, and its store.
func serving(t *testing.T, change ...func(*sandbox.Config)) (*sandbox.System, *memory) {
	t.Helper()
	needNamespaces(t)
	s, m := booted(t, change...)
	put(t, s, sandbox.Tree{"etc/systemd/system/x.service": sandbox.File(0o644, "[Service]\nExecStart=sleep 600\n")})
	if out, code := ctl(t, s, "start", "x"); code != 0 {
		t.Fatalf("start = code %d, %q", code, out)
	}
	patience.Await(t, "the service runs", func() bool { out, _ := run(t, s, listSleeps); return strings.Contains(out, "sleep 600") })
	return s, m
}

// runs fails the test unless the service of a system that serving has returned is the one that was
// started.
func runs(t *testing.T, s *sandbox.System) {
	t.Helper()
	if out, _ := ctl(t, s, "is-active", "x"); out != "active\n" {
		t.Errorf("the service is %q, want active", out)
	}
	if out, _ := run(t, s, listSleeps); strings.Count(out, "sleep 600") != 1 {
		t.Errorf("processes are %q, want that of the service", out)
	}
}

// refused runs a line whose files cannot be stored.
func refused(t *testing.T, s *sandbox.System, line string, want error) string {
	t.Helper()
	var out strings.Builder
	if _, err := s.Exec(patience.Within(t, time.Minute), sandbox.Command{Args: []string{"/bin/sh", "-c", line}, Stdout: &out, Stderr: &out}); !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", line, err, want)
	}
	return out.String()
}

// A command that fills the root is killed, and what runs beside it stays.
func TestServicesOutliveAFullRoot(t *testing.T) {
	s, _ := serving(t, func(c *sandbox.Config) { c.Limits = sandbox.Limits{Files: 1 << 20} })
	const fill = "for i in 1 2 3; do head -c 600000 /dev/zero > /var/full-$i; done; "
	if out := refused(t, s, fill+"sleep 601", syscall.ENOSPC); !strings.Contains(out, "killed: more than 1 MiB of files") {
		t.Errorf("the command shows %q, want the reason", out)
	}
	refused(t, s, "true", syscall.ENOSPC)
	if out := refused(t, s, "sleep 2; echo survived", syscall.ENOSPC); out != "survived\n" {
		t.Errorf("a command that writes nothing shows %q", out)
	}
	if out, code := run(t, s, "rm /var/full-*; echo y > /etc/y"); code != 0 {
		t.Errorf("removal = code %d, %q", code, out)
	}
	runs(t, s)
	checkFile(t, s, "etc/y", "y\n")
}

// A disk of the machine without room refuses what a command has written until there is room again.
func TestServicesOutliveAFullDiskOfTheMachine(t *testing.T) {
	s, m := serving(t)
	m.refuse(syscall.ENOSPC)
	refused(t, s, "echo a > /etc/a", syscall.ENOSPC)
	if out := refused(t, s, listSleeps, syscall.ENOSPC); strings.Count(out, "sleep 600") != 1 { // the command that looks is refused, too
		t.Errorf("processes are %q, want that of the service", out)
	}
	m.refuse(nil)
	runs(t, s)
	next := sandbox.New(sandbox.Config{Base: base(), Store: m})
	checkFile(t, next, "etc/a", "a\n")
}

// forks is a program whose processes each start the next and end, so that none stays while it is
// looked at. It is bounded, should nothing end it.
const forks = `python3 -c '
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(5):
    os.fork()
os.write(1, b"forks")
for i in range(200000):
    if os.fork():
        os._exit(0)
'`

// listForks shows how many processes of forks there are. It stops all processes while it counts.
const listForks = `python3 -c '
import os, signal
os.kill(-1, signal.SIGSTOP)
n = 0
for p in os.listdir("/proc"):
    try:
        n += p.isdigit() and int(p) != os.getpid() and b"range(" + b"200000)" in open("/proc/" + p + "/cmdline", "rb").read()
    except OSError:
        pass # it has ended
os.kill(-1, signal.SIGCONT)
print(n)
'`

// A command that forks without an end leaves no process when it is killed, and neither does a
// service; what runs beside them stays.
func TestForkLoopsAreKilled(t *testing.T) {
	s, _ := serving(t)
	none := func() bool { // the kernel ends a process that was killed when it has a processor for it
		out, _ := run(t, s, listForks)
		return out == "0\n"
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := s.Exec(ctx, sandbox.Command{Args: []string{"/bin/sh", "-c", forks + "; sleep 602"}, Stdout: &signalWriter{cancel}}); err != nil {
			t.Fatal(err)
		}
		patience.Await(t, "no process of the command that was killed is left", none)
	}
	put(t, s, sandbox.Tree{
		"usr/bin/forks":                    sandbox.File(0o755, "#!/bin/sh\n"+forks+"\nexec sleep 602\n"),
		"etc/systemd/system/forks.service": sandbox.File(0o644, "[Service]\nExecStart=/usr/bin/forks\nTimeoutStopSec=1\n"),
	})
	if out, code := run(t, s, "systemctl start forks; until [ \"$(systemctl is-active forks)\" = active ]; do :; done; sleep 1; systemctl stop forks"); code != 0 {
		t.Errorf("systemctl stop = code %d, %q", code, out)
	}
	patience.Await(t, "no process of the service that was stopped is left", none)
	runs(t, s)
}

// Memory that no process maps counts, where no control group does: that of memfd_create(2), once for all
// that have it open and not beside its mappings, and of segments of shared memory that are detached.
func TestMemoryWithoutMappingsIsLimited(t *testing.T) {
	needNamespaces(t)
	s, _ := booted(t, func(c *sandbox.Config) { c.Limits, c.RequireLimits = sandbox.Limits{Memory: 64 << 20}, false })
	s.SetControlGroups(t.TempDir())
	const write = "import ctypes, mmap, os, time\nf = os.memfd_create(\"x\")\n"
	for line, killed := range map[string]bool{
		write + "os.write(f, bytes(30 << 20)); os.write(f, bytes(50 << 20)); time.sleep(30)":                                                                                                                                    true,
		write + "os.posix_fallocate(f, 0, 40 << 20); os.fork(); os.fork(); time.sleep(3)":                                                                                                                                       false,
		write + "os.posix_fallocate(f, 0, 40 << 20); m = mmap.mmap(f, 40 << 20); s = sum(m[::4096]); time.sleep(3)":                                                                                                             false,
		"import ctypes, time\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\nn = c.shmget(0, 80 << 20, 0o1600)\np = c.shmat(n, None, 0)\nctypes.memset(p, 1, 80 << 20)\nc.shmdt(ctypes.c_void_p(p))\ntime.sleep(30)": true,
	} {
		out, code := run(t, s, "python3 -c '"+line+"'")
		if (code != 0) != killed || strings.Contains(out, "killed: more than 64 MiB of memory") != killed {
			t.Errorf("%s\n= code %d, %q, want it killed: %t", line, code, out, killed)
		}
	}
}

// Directories below each other take neither the descriptors of this program nor the system.
func TestNestedDirectoriesAreBounded(t *testing.T) {
	const nest = `python3 -c '
import os
os.chdir("/var")
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
'`
	s, _ := serving(t)
	refused(t, s, nest, syscall.ENAMETOOLONG)
	var err error
	patience.Await(t, "all processes are killed, and the root is as it was", func() bool {
		_, err = s.Exec(t.Context(), sandbox.Command{Args: []string{"/bin/true"}})
		return err == nil
	}, &err)
	alone, _ := booted(t)
	run(t, alone, "echo kept > /etc/kept")
	refused(t, alone, nest, syscall.ENAMETOOLONG)
	if out, code := run(t, alone, "cat /etc/kept; ls /var"); out != "kept\n" || code != 0 {
		t.Errorf("the next command = code %d, %q", code, out)
	}
	long := strings.Repeat("n", 250)
	refused(t, alone, "cd /var; for i in 1 2 3 4 5 6 7 8 9; do mkdir "+long+"; cd "+long+"; done", syscall.ENAMETOOLONG)
	if out, code := run(t, alone, "ls /var"); out != "" || code != 0 {
		t.Errorf("after a long path: code %d, %q", code, out)
	}
}

// The device nodes of a system are this machine's: commands use them, and change nothing of them.
func TestDevicesOfTheMachineStayAsTheyAre(t *testing.T) {
	needNamespaces(t)
	describe := func() (out string) {
		for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
			st, err := os.Stat("/dev/" + name)
			if err != nil {
				t.Fatal(err)
			}
			sys := st.Sys().(*syscall.Stat_t)
			out += fmt.Sprintf("%s %v %d:%d %v\n", name, st.Mode(), sys.Uid, sys.Gid, sys.Mtim)
		}
		return out
	}
	before := describe()
	s, _ := booted(t)
	for _, line := range []string{"chmod 600 /dev/full", "chown 1:1 /dev/random", "touch -d 2001-01-01 /dev/urandom", "chmod 600 /proc/keys"} {
		if out, code := run(t, s, line); code == 0 || !strings.Contains(out, "Read-only") {
			t.Errorf("%s = code %d, %q, want that it is read only", line, code, out)
		}
	}
	if out, code := run(t, s, "echo x > /dev/null && head -c 4 /dev/zero | wc -c && head -c 8 /dev/urandom | wc -c; echo x > /dev/full"); code == 0 || !strings.HasPrefix(out, "4\n8\n") {
		t.Errorf("the devices = code %d, %q", code, out)
	}
	if after := describe(); after != before {
		t.Errorf("the machine's devices are\n%s, were\n%s", after, before)
	}
}

// A descriptor that this program has inherited leads a command nowhere.
func TestCommandsInheritNoDescriptors(t *testing.T) {
	needNamespaces(t)
	if os.Getenv("METALAB_TEST_INHERITS") == "" {
		dir, err := os.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestCommandsInheritNoDescriptors$", "-test.v")
		c.Env = append(os.Environ(), "METALAB_TEST_INHERITS=1")
		c.ExtraFiles = []*os.File{dir, dir, dir, dir, dir, dir, dir} // 3 to 9
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("a program with open descriptors: %v\n%s", err, out)
		}
		return
	}
	if _, err := os.Stat("/proc/self/fd/9"); err != nil {
		t.Fatalf("this program has not inherited what it should: %v", err)
	}
	s, _ := booted(t)
	if out, code := run(t, s, "ls /proc/self/fd/9/ || ls /proc/1/fd/9/"); code == 0 {
		t.Errorf("a command sees a directory of the machine: %q", out)
	}
	if out, _ := run(t, s, "ls /proc/$$/fd"); out != "0\n1\n2\n" {
		t.Errorf("the descriptors of a command are %q, want 0 to 2", out)
	}
}

// A program that is set-user-ID in a server's root would be so for every user of the machine.
func TestRootIsForNoOtherUserOfTheMachine(t *testing.T) {
	needNamespaces(t)
	var dir string
	s, _ := booted(t, func(c *sandbox.Config) { dir = c.Dir })
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil { // as another program has left it
		t.Fatal(err)
	}
	run(t, s, "cp /bin/sh /var/sh; chmod 4755 /var/sh; sleep 600 > /dev/null 2>&1 &")
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the root has the mode %v, %v, want 0700", st.Mode(), err)
	}
}

// onDisk lists the privileged files below directories of this machine: set-user-ID programs, devices
// and capabilities.
func onDisk(t *testing.T, dirs ...string) (out []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := d.Info()
			if err != nil {
				return err
			}
			if st.Mode().IsRegular() && st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 || st.Mode()&fs.ModeDevice != 0 {
				out = append(out, fmt.Sprint(filepath.Base(name), " ", st.Mode()))
			}
			if k, err := syscall.Getxattr(name, "security.capability", make([]byte, 64)); err == nil && k > 0 {
				out = append(out, filepath.Base(name)+" has capabilities")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Set-user-ID bits and capabilities of a server's files are data of this machine, in each session after
// the one that has set them, and stay what they are for the server.
func TestPrivilegedProgramsAreDataOfTheMachine(t *testing.T) {
	needNamespaces(t)
	const program = fs.ModeSetuid | 0o755
	lowersDir := filepath.Join(t.TempDir(), "lowers")
	own := sandbox.NewLowers(lowersDir)
	defer own.Close()
	var dir string
	files := base()
	files["opt/base"] = sandbox.Node{Mode: fs.ModeSetgid | 0o755, Content: []byte("base"), Capability: "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"}
	s, m := booted(t, func(c *sandbox.Config) { dir, c.Base, c.Lowers = c.Dir, files, own })
	check := func(when string) {
		t.Helper()
		layer, err := s.Layer()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]fs.FileMode{"var/su": program, "var/chmod": program, "var/plain": 0o755, "var/put": program, "var/dir": fs.ModeDir | fs.ModeSetgid | 0o755} {
			n, ok := layer[name]
			if !ok && name == "var/put" {
				continue
			}
			if n.Mode != want {
				t.Errorf("%s: the mode of %s is %v, want %v", when, name, n.Mode, want)
			}
			if st, err := s.Stat(name); err != nil || st.Mode != want {
				t.Errorf("%s: Stat(%s) = %v, %v, want %v", when, name, st.Mode, err, want)
			}
		}
		if layer["var/cap"].Capability == "" {
			t.Errorf("%s: var/cap has no capabilities", when)
		}
	}
	put(t, s, sandbox.Tree{"var/su": {Mode: program, Content: []byte("x")}, "var/plain": {Mode: program, Content: []byte("x")}})
	run(t, s, "cp /bin/true /var/chmod; chmod u+s /var/chmod; mkdir /var/dir; chmod 2755 /var/dir; chmod 700 /var/plain; cp /bin/true /var/cap; setcap cap_net_raw+ep /var/cap")
	run(t, s, "chmod 755 /var/plain")
	check("when no process runs")
	out, _ := run(t, s, "ls -ld /var/dir; grep ' / ' /proc/self/mountinfo; grep -E ' /(usr|run|tmp) ' /proc/self/mountinfo; sleep 600 > /dev/null 2>&1 &")
	if !strings.HasPrefix(out, "drwxr-sr-x") || strings.Count(out, "nosuid") != strings.Count(out, "\n")-1 {
		t.Errorf("a directory and the mounts are\n%s", out)
	}
	put(t, s, sandbox.Tree{"var/put": {Mode: program, Content: []byte("x")}})
	check("while a process runs")
	if got := onDisk(t, dir, lowersDir); len(got) > 0 {
		t.Errorf("on the disk: %q, want nothing privileged", got)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	stored, err := sandbox.Decode(m.bytes())
	if err != nil || stored["var/put"].Mode != program || stored["var/cap"].Capability == "" {
		t.Errorf("stored: %v, %q, %v", stored["var/put"].Mode, stored["var/cap"].Capability, err)
	}
	run(t, s, "echo more >> /opt/base") // copies it up
	if layer, err := s.Layer(); err != nil || layer["opt/base"].Mode != fs.ModeSetgid|0o755 || layer["opt/base"].Capability == "" {
		t.Errorf("a file of the base that was copied: %v, %q, %v", layer["opt/base"].Mode, layer["opt/base"].Capability, err)
	}
}

// Files that this program writes for an agent have no more room than those of commands: those that
// replace larger ones always have it.
func TestPutIsRefusedByAFullRoot(t *testing.T) {
	small := func(c *sandbox.Config) { c.Limits = sandbox.Limits{Files: 1 << 20} }
	alone, _ := booted(t, small)
	check := func(s *sandbox.System) {
		t.Helper()
		put(t, s, sandbox.Tree{"var/large": sandbox.File(0o644, strings.Repeat("x", 1000000)), "var/small": sandbox.File(0o644, "small")})
		for _, content := range []string{strings.Repeat("y", 100000), strings.Repeat("y", 1048576-1000000)} {
			err := s.Put(sandbox.Tree{"etc/new": sandbox.File(0o644, content), "etc/other": sandbox.File(0o644, "x")})
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%d bytes more: %v, want %v", len(content), err, syscall.ENOSPC)
			}
		}
		checkNoFile(t, s, "etc/new")
		checkNoFile(t, s, "etc/other")
		put(t, s, sandbox.Tree{"var/large": sandbox.File(0o644, "less"), "var/small": sandbox.File(0o644, strings.Repeat("z", 900000))})
		put(t, s, sandbox.Tree{"etc/new": sandbox.File(0o644, strings.Repeat("y", 100000))})
	}
	check(alone)
	running, _ := serving(t, small)
	check(running)
	runs(t, running)
}
