package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// Where the kernel refuses namespaces a command ends with 126 and the reason, and what needs no
// process works: files and systemctl.
func TestCommandsWithoutNamespaces(t *testing.T) {
	needNamespaces(t)
	const refused = "METALAB_TEST_NO_NAMESPACES"
	if os.Getenv(refused) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCommandsWithoutNamespaces$", "-test.v", "-test.count=1")
		c.Env = append(os.Environ(), refused+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("without namespaces: %v\n%s", err, out)
		}
		return
	}
	// user_namespaces(7): of this namespace and those below it.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	s, m := booted(t)
	for _, line := range []string{"true", "no-such-program"} {
		if out, code := run(t, s, line); code != 126 || !strings.Contains(out, "raise sysctl user.max_user_namespaces") {
			t.Errorf("%s = code %d, %q, want 126 and the setting", line, code, out)
		}
	}
	if out, code := ctl(t, s, "is-active", "none"); out != "inactive\n" || code != 3 {
		t.Errorf("systemctl is-active = code %d, %q, want 3, inactive", code, out)
	}
	put(t, s, sandbox.Tree{"etc/new": sandbox.File(0o644, "new\n")})
	checkFile(t, s, "etc/new", "new\n")
	if len(m.bytes()) == 0 {
		t.Error("the files are not stored")
	}
}
