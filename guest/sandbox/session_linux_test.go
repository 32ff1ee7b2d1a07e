package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// stuck returns a session whose first process never ends, as one that waits for a disk: its
// process is another's, whose end nobody waits for.
func stuck(t *testing.T) *session {
	t.Helper()
	c := exec.Command("sh", "-c", "exec sleep 600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // the session may have
		_ = c.Wait()
	})
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	defer ours.Close()
	t.Cleanup(func() { _ = theirs.Close() })
	conn, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	return &session{command: c, control: conn.(*net.UnixConn), done: make(chan struct{})}
}

// A first process that the kernel does not end keeps its system's lock for a bounded time, and
// the error names it.
func TestEndOfASessionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, begun := stuck(t), time.Now()
		err := r.end()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", r.command.Process.Pid)) {
			t.Errorf("end() = %v, want the process %d", err, r.command.Process.Pid)
		}
		if got, want := time.Since(begun), endTimeout+killTimeout; got != want {
			t.Errorf("end() has taken %v, want %v", got, want)
		}
	})
}

// A first process that never mounts the root keeps the lock no longer than another.
func TestStartOfASessionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := (&session{}).ready(make(chan response)); err == nil || !strings.Contains(err.Error(), "not mounted the root after 1m0s") {
			t.Errorf("ready() = %v, want that the time is over", err)
		}
	})
}

// The console of the server shows that its session does not end, and the system goes on.
func TestSessionThatDoesNotEndIsReported(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan string, 1)
		s := New(Config{Store: &diskOf{}, Report: func(line string) { lines <- line }})
		r := stuck(t)
		r.dir, r.idle = dir, make(chan struct{}, 1)
		for _, place := range r.places() {
			if err := os.MkdirAll(filepath.Join(dir, place), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s.session = r
		watched := make(chan struct{})
		go func() { s.watch(r); close(watched) }()
		r.idle <- struct{}{} // its last process has ended
		if line := <-lines; !strings.Contains(line, "has not ended") || strings.Contains(line, "not stored") {
			t.Errorf("the console shows %q", line)
		}
		if _, err := s.ReadFile("etc/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the next call = %v, want %v", err, fs.ErrNotExist)
		}
		close(r.done)
		<-watched
	})
}
