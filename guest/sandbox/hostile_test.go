package sandbox_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/metalab-dev/metalab/guest/sandbox"
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
