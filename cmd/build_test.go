package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeGo writes a program that stands in for go: it lists 1,000 packages, compiles so many
// of them for labctl and three for the other programs, and fails when failure is not "".
func fakeGo(t *testing.T, compiles int, failure string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "go")
	text := fmt.Sprintf(`#!/bin/sh
for last; do :; done
case "$1 $last" in
"list ./cmd/...") seq 1 1000 ;;
"build ./cmd/labctl")
  for i in $(seq 1 %d); do echo "k8s.io/api/v$i" >&2; done
  failure='%s'
  [ -z "$failure" ] || { echo "$failure" >&2; exit 1; } ;;
"build ./cmd/"*) for i in 1 2 3; do echo "k8s.io/api/v$i" >&2; done ;;
*) echo "unexpected: $*" >&2; exit 2 ;;
esac
`, compiles, failure)
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return name
}

// build returns build.sh with a program in place of go.
func build(t *testing.T, goProgram string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "./build.sh", t.TempDir())
	c.Env = append(os.Environ(), "GO="+goProgram)
	return c
}

// In a pipe, a build says that it takes minutes and then, now and then, how far it is; a
// build whose packages are compiled already says nothing.
func TestBuildReportsProgressInAPipe(t *testing.T) {
	const notice = "compiling: Kubernetes takes some minutes the first time\n"
	for compiles, want := range map[int]string{
		0: "", 19: "", 20: notice,
		600: notice + "250 of about 1000 packages\n500 of about 1000 packages\n",
	} {
		var out, progress strings.Builder
		c := build(t, fakeGo(t, compiles, ""))
		c.Stdout, c.Stderr = &out, &progress
		if err := c.Run(); err != nil || progress.String() != want || out.Len() > 0 {
			t.Errorf("build of %d packages: %v, progress %q, output %q, want %q", compiles, err, progress.String(), out.String(), want)
		}
	}
}

// In a terminal the count is in place, on one line that ends.
func TestBuildReportsProgressInATerminal(t *testing.T) {
	terminal, ours := openTerminal(t)
	c := build(t, fakeGo(t, 40, ""))
	c.Stderr = terminal
	shown := make(chan string)
	go func() {
		b, err := io.ReadAll(ours)
		if err != nil && !errors.Is(err, syscall.EIO) { // that nobody has the terminal open any more
			t.Error(err)
		}
		shown <- string(b)
	}()
	err := c.Run()
	terminal.Close()
	got := <-shown
	want := "compiling: Kubernetes takes some minutes the first time\r\n"
	for n := 20; n <= 40; n++ {
		want += fmt.Sprintf("\r%d of about 1000 packages", n)
	}
	if want += "\r\n"; err != nil || got != want {
		t.Errorf("build in a terminal: %v, %q, want %q", err, got, want)
	}
}

// The errors of the compiler are shown, and the build fails.
func TestBuildFailsWithTheErrorsOfTheCompiler(t *testing.T) {
	const failure = "cmd/labctl/main.go:1:1: expected package"
	out, err := build(t, fakeGo(t, 2, failure)).CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || string(out) != failure+"\n" {
		t.Errorf("build = %v, %q, want a failure and %q", err, out, failure)
	}
}

// openTerminal returns a terminal and the end from which its output is read.
func openTerminal(t *testing.T) (terminal, ours *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	raw, err := ours.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return terminal, ours
}
