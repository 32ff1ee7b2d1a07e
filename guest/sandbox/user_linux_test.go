package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// An ordinary user of this machine gets the same: commands run for one as for the superuser.
func TestOfAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		return // they all are
	}
	needNamespaces(t)
	const user = 64123                       // nobody's
	dir, err := os.MkdirTemp("", "ordinary") //nolint:usetesting // whose parents that user may enter
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
	// It can make no control group: it waits until it is in one of the superuser's.
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `read joined && exec "$0" "$@"`, program, "-test.run", "^(TestCommands|TestLimits|TestFilesBeyond|TestTerminal|TestSessions|TestReboot|TestCrontabs|TestMounts|TestUpdateGrub|TestHostnamectl)")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	leave, err := sandbox.JoinGroups(cmd.Process.Pid, sandbox.Limits{Memory: 1 << 30, Processes: 500})
	if err == nil {
		_, err = in.Write([]byte("joined\n"))
	}
	err = errors.Join(err, in.Close(), cmd.Wait(), leave())
	if err != nil || strings.Contains(out.String(), "no tests to run") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
