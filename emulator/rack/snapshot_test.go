package rack_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// mark writes to a disk, independent of the machine.
func mark(t *testing.T, h *rack.Host, disk, text string) {
	t.Helper()
	m, err := h.Medium(disk)
	if err == nil {
		_, err = m.WriteAt([]byte(text), 1<<30)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func marked(t *testing.T, h *rack.Host, disk string) string {
	t.Helper()
	b := make([]byte, 5)
	m, err := h.Medium(disk)
	if err == nil {
		_, err = m.ReadAt(b, 1<<30)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return strings.Trim(string(b), "\x00")
}

// A snapshot of a running rack restores the same machines, in the same rack or
// another.
func TestRestoreSnapshotRestoresMachines(t *testing.T) {
	for _, name := range []string{"snap.tar", "snap"} {
		t.Run(name, func(t *testing.T) {
			var d diary
			c := rack.Config{Dir: t.TempDir(), Rack: hosts(2), Events: d.event}
			l := racktest.Start(t, c)
			power(t, l.First(), machine.ResetOn)
			l.Advance(5 * time.Minute)
			mark(t, l.First(), "Disk.0", "early")
			fail(t, l, fault.Rule{ID: "busy", Method: fault.Methods{"PUT"}, Status: 503})
			at, to := l.Clock().Now(), filepath.Join(t.TempDir(), name)
			var done, all int64
			info, err := l.SaveSnapshot(t.Context(), to, func(d, a int64) { done, all = d, a })
			if err != nil || !info.Time.Equal(at) || info.Hosts != 2 || done == 0 || done != all {
				t.Fatalf("SaveSnapshot() = %+v, %v, %d of %d", info, err, done, all)
			}
			before, password := l.First().Machine(), first(t, l)
			power(t, l.First(), machine.ForceOff)
			l.Advance(time.Hour)
			mark(t, l.First(), "Disk.0", "later")
			mark(t, l.Hosts()[1], "Disk.1", "later")
			if _, err := rack.RestoreSnapshot(t.Context(), c.Dir, to, nil); !isLocked(err) {
				t.Errorf("RestoreSnapshot() of a rack that runs = %v", err)
			}
			l.Stop()

			for _, dir := range []string{c.Dir, filepath.Join(t.TempDir(), "other")} {
				if _, err := rack.RestoreSnapshot(t.Context(), dir, to, nil); err != nil {
					t.Fatal(err)
				}
				l = racktest.Start(t, rack.Config{Dir: dir, Events: d.event})
				h := l.First()
				if v := h.Machine(); v.Power != machine.PowerOn || v.Boots != before.Boots || v.Identity.Serial != before.Identity.Serial || v.Phase != before.Phase {
					t.Errorf("in %s: %s, %s, %d boots", dir, v.Power, v.Phase, v.Boots)
				}
				if now := l.Clock().Now(); !now.Equal(at) {
					t.Errorf("in %s it is %v, want %v", dir, now, at)
				}
				if got := marked(t, h, "Disk.0") + marked(t, l.Hosts()[1], "Disk.1"); got != "early" {
					t.Errorf("in %s disks hold %q", dir, got)
				}
				if code, _ := call(t, l, h, "GET", systemPath, ""); code != 200 || first(t, l) != password || len(l.Faults()) != 1 {
					t.Errorf("in %s: %d, %d faults", dir, code, len(l.Faults()))
				}
				l.Stop()
			}
		})
	}
}

func first(t *testing.T, l *racktest.Rack) string {
	t.Helper()
	_, password := l.Credentials(l.First())
	return password
}

func isLocked(err error) bool {
	var held *rack.HeldError
	return errors.As(err, &held)
}

func TestResetHostsRestoresTheProfile(t *testing.T) {
	var d diary
	c := rack.Config{Dir: t.TempDir(), Rack: hosts(2), Events: d.event}
	l := racktest.Start(t, c)
	password := first(t, l)
	for _, h := range l.Hosts() {
		power(t, h, machine.ResetOn)
		mark(t, h, "Disk.0", "bytes")
	}
	l.Advance(5 * time.Minute)
	l.Stop()
	if err := rack.ResetHosts(t.Context(), c.Dir, "node-7"); err == nil || !strings.Contains(err.Error(), "no host node-7") {
		t.Errorf("ResetHosts(node-7) = %v", err)
	}
	states := func(want ...string) {
		t.Helper()
		l := racktest.Start(t, c)
		for i, h := range l.Hosts() {
			if got := strings.TrimSpace(string(h.Machine().Power) + " " + marked(t, h, "Disk.0")); got != want[i] {
				t.Errorf("%s: %s, want %s", h.Name(), got, want[i])
			}
		}
		if first(t, l) != password {
			t.Error("the password is another one")
		}
		l.Stop()
	}
	if err := rack.ResetHosts(t.Context(), c.Dir, "node-1"); err != nil {
		t.Fatal(err)
	}
	states("On bytes", "Off")
	if err := rack.ResetHosts(t.Context(), c.Dir); err != nil {
		t.Fatal(err)
	}
	states("Off", "Off")
}

func TestSaveSnapshotOfAClosedRack(t *testing.T) {
	c := rack.Config{Dir: t.TempDir(), Rack: hosts(3)}
	l := racktest.Start(t, c)
	l.Stop()
	to := filepath.Join(t.TempDir(), "s.tar")
	if info, err := rack.SaveSnapshot(t.Context(), c.Dir, to, nil); err != nil || info.Hosts != 3 {
		t.Errorf("SaveSnapshot() = %+v, %v", info, err)
	}
	if r, err := rack.StoredRack(t.Context(), c.Dir); err != nil || r.Len() != 3 {
		t.Errorf("StoredRack() = %+v, %v", r, err)
	}
	if st, err := os.Stat(to); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: it holds passwords", st.Mode(), err)
	}
	none := t.TempDir()
	if _, err := rack.SaveSnapshot(t.Context(), none, to+"2", nil); err == nil || !strings.Contains(err.Error(), "there is no lab") {
		t.Errorf("SaveSnapshot() of no rack = %v", err)
	}
	if err := rack.ResetHosts(t.Context(), none); err == nil {
		t.Error("ResetHosts() of no rack = nil")
	}
}
