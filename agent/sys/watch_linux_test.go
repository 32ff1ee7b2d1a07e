package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func inotifyInstances(t *testing.T) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}

// A machine gives a user 128 inotify instances: all roots of a process share one.
func TestWatchesOfManyRootsShareOneInotifyInstance(t *testing.T) {
	before := inotifyInstances(t)
	const roots = 200
	type change struct{ root int }
	changes := make(chan change, 100)
	var hosts []*Host
	var stops []func()
	for i := range roots {
		h, err := OpenHost(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Put(File{Name: "/etc/x", Mode: 0o644, Content: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		stop, err := h.Watch([]string{"/etc/x", "/run/not/there"}, func() { changes <- change{i} })
		if err != nil {
			t.Fatal(err)
		}
		hosts, stops = append(hosts, h), append(stops, stop)
	}
	if n := inotifyInstances(t) - before; n != 1 {
		t.Errorf("%d inotify instances for %d roots, want 1", n, roots)
	}
	next := func() string {
		select {
		case c := <-changes:
			for { // one change has several events
				select {
				case <-changes:
				case <-time.After(100 * time.Millisecond):
					return fmt.Sprint(c.root)
				}
			}
		case <-time.After(10 * time.Second):
			return "none"
		}
	}
	write := func(h *Host, name string) {
		t.Helper()
		if err := h.Put(File{Name: name, Mode: 0o644, Content: []byte("2")}); err != nil {
			t.Fatal(err)
		}
	}
	write(hosts[7], "/etc/unrelated")
	write(hosts[8], "/etc/x")
	if got := next(); got != "8" {
		t.Errorf("a change of root 8 was reported for root %s; an unrelated file is not reported", got)
	}
	write(hosts[9], "/run/not/there")
	if got := next(); got != "9" {
		t.Errorf("a new file of root 9 was reported for root %s", got)
	}
	if err := os.Chmod(hosts[10].Path("/etc/x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "10" {
		t.Errorf("a change of mode of root 10 was reported for root %s", got)
	}
	for _, stop := range stops {
		stop()
		stop()
	}
	write(hosts[8], "/etc/x")
	select {
	case c := <-changes:
		t.Errorf("a change of root %d was reported after stop", c.root)
	case <-time.After(100 * time.Millisecond):
	}
	if n := inotifyInstances(t) - before; n != 0 {
		t.Errorf("%d inotify instances are left", n)
	}
}
