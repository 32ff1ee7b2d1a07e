package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An ordinary user of this machine gets the same: commands run for one as for the superuser.
func TestOfAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // they all are
	}
	needNamespaces(t)
	const user = 64123                       // nobody's
	dir, err := os.MkdirTemp("", "ordinary") // whose parents that user may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "tests")
	this, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(this)
	if err == nil {
		err = errors.Join(os.WriteFile(program, b, 0o755), os.Chown(dir, user, user))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^(TestCommands|TestLimits|TestTerminal|TestSessions|TestReboot)")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "no tests to run") {
		t.Errorf("%v:\n%s", err, out)
	}
}
