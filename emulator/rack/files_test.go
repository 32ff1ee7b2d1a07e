package rack_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// damages are the ways to damage a file.
var damages = map[string]func(name string) error{
	"empty": func(name string) error { return os.Truncate(name, 0) },
	"half": func(name string) error {
		st, err := os.Stat(name)
		if err != nil {
			return err
		}
		return os.Truncate(name, st.Size()/2)
	},
	"missing": os.Remove,
	"one byte changed": func(name string) error {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil || st.Size() == 0 {
			return err
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, st.Size()/2); err != nil {
			return err
		}
		b[0] ^= 0x20
		_, err = f.WriteAt(b, st.Size()/2)
		return err
	},
	"a directory": func(name string) error {
		return errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "x"), 0o700))
	},
}

// copyRack copies the files of a rack. It keeps the disks sparse: only mark has written to
// them.
func copyRack(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, name)
		if d.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		if !strings.HasPrefix(name, "disks") {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(at, b, 0o600)
		}
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		f, err := os.Create(at)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("bytes"), 1<<30)
		return errors.Join(err, f.Truncate(st.Size()), f.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A rack whose files were damaged while it was down opens without a loss, or is not opened
// and not changed. The error has the file and the fix.
func TestDamagedFilesOfAClosedRack(t *testing.T) {
	url, _ := images(t)
	folder, _ := folder(t)
	models, err := rack.LoadModels(folder)
	if err != nil {
		t.Fatal(err)
	}
	c := rack.Config{Dir: t.TempDir(), Rack: hosts(2)}
	c.Rack.Hosts = append(c.Rack.Hosts, rackfile.Group{NamePrefix: "rsa", Profile: "dell-r640", Count: 1})
	c.Rack.Hosts[0].Profile = "mine"
	if err := rack.KeepModels(c.Dir, models); err != nil {
		t.Fatal(err)
	}
	l := racktest.Start(t, c)
	power(t, l.First(), machine.ResetOn)
	mark(t, l.First(), "Disk.0", "bytes")
	if _, err := l.First().ApplyBMC(t.Context(), insert(url+"/a.iso")); err != nil {
		t.Fatal(err)
	}
	l.Advance(time.Minute)
	_, password := l.Credentials(l.First())
	l.Stop()

	// Where it makes no difference.
	harmless := func(name, damage string) bool {
		switch {
		case damage == "a directory":
			return false
		case name == "state.log", name == "state.mark", name == "lock":
			return true // all of the log is in the database, and the lock is that of the kernel
		case strings.HasPrefix(name, "disks/"):
			return damage == "one byte changed" // a drive has no checksum of what systems write
		}
		return name == "files.json" && damage == "missing"
	}
	seen := 0
	err = filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(c.Dir, path)
		if err != nil {
			return err
		}
		seen++
		for damage, do := range damages {
			if name == "state.log" && damage == "a directory" {
				continue // shown below
			}
			checkDamage(t, c, name, damage, do, harmless(name, damage), func(l *rack.Rack) {
				h := l.Hosts()[0]
				if a, ok := h.Admin(); !ok || a.Password != password {
					t.Errorf("%s, %s: the password is another one", name, damage)
				}
				if m, ok := h.Media("Cd"); !ok || m.Close() != nil || marked(t, h, "Disk.0") != "bytes" {
					t.Errorf("%s, %s: the medium or the disk is gone", name, damage)
				}
			})
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Errorf("%d files, %v", seen, err)
	}
	checkDamage(t, c, "state.log", "a directory", damages["a directory"], false, nil)
}

// checkDamage damages a file in a copy of a rack, and opens that.
func checkDamage(t *testing.T, c rack.Config, name, damage string, do func(string) error, harmless bool, same func(*rack.Rack)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lab")
	copyRack(t, dir, c.Dir)
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := do(path); err != nil {
		t.Fatal(err)
	}
	last, err := rack.LastTime(dir)
	var l *rack.Rack
	if err == nil {
		l, err = rack.Open(t.Context(), rack.Config{Dir: dir, Rack: c.Rack, Clock: clock.NewVirtual(last), Listen: "lo:0"})
	}
	switch {
	case err == nil && !harmless:
		t.Errorf("%s, %s: the rack opens, and Close() = %v", name, damage, l.Close())
	case err != nil && harmless:
		t.Errorf("%s, %s: %v", name, damage, err)
	case err != nil:
		if text := err.Error(); !strings.Contains(text, path) || !strings.Contains(text, "remove ") && !strings.Contains(text, "move it away") {
			t.Errorf("%s, %s: %v, want the file and what to do", name, damage, err)
		}
	default:
		same(l)
		if err := l.Close(); err != nil {
			t.Errorf("%s, %s: Close() = %v", name, damage, err)
		}
	}
}

// Damaged files of the owner of a rack are not listed as those of a closed rack, so that a copy
// can take their place.
func TestUnlistedFilesMayBePutBack(t *testing.T) {
	for _, unlist := range []bool{false, true} {
		c := rack.Config{Dir: t.TempDir(), Rack: hosts(1), Files: []integrity.Rule{{Pattern: "etcd/snap/*"}}}
		name := filepath.Join(c.Dir, "etcd", "snap", "db")
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("damaged"), 0o600)); err != nil {
			t.Fatal(err)
		}
		l := racktest.Start(t, c)
		if unlist {
			l.Unlist("etcd")
		}
		l.Stop()
		if err := os.WriteFile(name, []byte("a copy"), 0o600); err != nil {
			t.Fatal(err)
		}
		last, err := rack.LastTime(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		c.Clock, c.Listen = clock.NewVirtual(last), "lo:0"
		again, err := rack.Open(t.Context(), c)
		if err == nil {
			err = again.Close()
		}
		if err != nil && unlist {
			t.Errorf("Open() with a copy in place of an unlisted file = %v", err)
		}
		if !unlist && !errors.As(err, new(*integrity.DamageError)) {
			t.Errorf("Open() with another file than that of the closed rack = %v, want a DamageError", err)
		}
	}
}

// A rack that was killed has its authority and its models as before, or is refused.
func TestMissingAuthorityOfAKilledRackIsRefused(t *testing.T) {
	c := rack.Config{Dir: t.TempDir(), Rack: hosts(1)}
	racktest.Start(t, c) // the files of a running rack are those that a kill leaves
	dir := filepath.Join(t.TempDir(), "lab")
	copyRack(t, dir, c.Dir)
	if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	_, err := rack.Open(t.Context(), rack.Config{Dir: dir, Clock: clock.NewVirtual(racktest.Origin.Add(time.Hour)), Listen: "lo:0"})
	if err == nil || !strings.Contains(err.Error(), "ca.crt is missing") {
		t.Errorf("Open() = %v", err)
	}
}

// The fix that the error names works.
func TestResetHostOfADamagedDisk(t *testing.T) {
	c := rack.Config{Dir: t.TempDir(), Rack: hosts(2)}
	l := racktest.Start(t, c)
	for _, h := range l.Hosts() {
		mark(t, h, "Disk.0", "bytes")
	}
	l.Stop()
	disks, err := filepath.Glob(filepath.Join(c.Dir, "disks", "node-1", "*"))
	if err != nil || len(disks) != 1 {
		t.Fatal(disks, err)
	}
	if err := os.Truncate(disks[0], 1000); err != nil {
		t.Fatal(err)
	}
	if err := rack.ResetHosts(t.Context(), c.Dir, "node-0"); err == nil || !strings.Contains(err.Error(), disks[0]) {
		t.Errorf("ResetHosts(node-0) = %v, want the damaged disk of the other", err)
	}
	if err := rack.ResetHosts(t.Context(), c.Dir, "node-1"); err != nil {
		t.Fatal(err)
	}
	l = racktest.Start(t, c)
	if got := marked(t, l.First(), "Disk.0") + "," + marked(t, l.Hosts()[1], "Disk.0"); got != "bytes," {
		t.Errorf("the disks hold %q", got)
	}
}

// A disk that was cut off while the rack was killed is not filled up with zeros.
func TestReadOfACutDiskFails(t *testing.T) {
	c := rack.Config{Dir: t.TempDir(), Rack: hosts(1)}
	l := racktest.Start(t, c)
	mark(t, l.First(), "Disk.0", "bytes")
	l.Stop()
	disks, err := filepath.Glob(filepath.Join(c.Dir, "disks", "node-0", "*"))
	if err != nil || len(disks) != 1 {
		t.Fatal(disks, err)
	}
	if err := errors.Join(os.Truncate(disks[0], 1000), os.Remove(filepath.Join(c.Dir, "files.json"))); err != nil {
		t.Fatal(err)
	}
	m, err := racktest.Start(t, c).First().Medium("Disk.0")
	if err == nil {
		_, err = m.ReadAt(make([]byte, 5), 1<<30)
	}
	if err == nil || !strings.Contains(err.Error(), disks[0]) || !strings.Contains(err.Error(), "snapshot reset HOST") {
		t.Errorf("ReadAt() = %v", err)
	}
}
