package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of disks of a store that was killed have what was written, or the store is not opened:
// the error has the file and the fix.
func TestDamagedDisksOfAKilledStoreAreRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	plain, system, moved, gone := s.Disk("node-0", "A/1", 8*mib), s.Disk("node-0", "A2", 8*mib), s.Disk("node-1", "A3", 8*mib), s.Disk("node-1", "A4", 8*mib)
	for _, d := range []*Disk{plain, moved, gone} {
		if _, err := d.WriteAt([]byte("bytes"), 0); err != nil {
			t.Fatal(err)
		}
	}
	putSystem(t, system, 0, "files")
	putSystem(t, plain, 0, "files that are overwritten")
	if _, err := plain.WriteAt([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.ShareDisk("node-1", "node-2", "A3"), s.RemoveDisk("node-1", "A3"), s.RemoveDisks("node-1")); err != nil {
		t.Fatal(err)
	}
	open := func(damage func(dir string) error, c Config) (string, error) {
		t.Helper()
		c.Dir = filepath.Join(t.TempDir(), "copy")
		err := os.CopyFS(c.Dir, os.DirFS(dir))
		if err == nil {
			err = damage(c.Dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(c)
		if err == nil {
			err = s.Close()
		}
		return c.Dir, err
	}
	if _, err := open(func(string) error { return nil }, Config{}); err != nil {
		t.Errorf("Open() of undamaged files = %v", err)
	}
	cut := func(name string, size int64) func(string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, disksDir, name), size) }
	}
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, disksDir, name)) }
	}
	for _, tt := range []struct {
		file, want string
		damage     func(dir string) error
	}{
		{"node-0/A%2F1.img", "it is missing", remove("node-0/A%2F1.img")},
		{"node-0/A%2F1.img", "it is empty", cut("node-0/A%2F1.img", 0)},
		{"node-0/A%2F1.img", "at byte 512: it ends there, and the drive has 8388608 bytes", cut("node-0/A%2F1.img", 512)},
		{"node-0/A2.img", "it is missing", remove("node-0/A2.img")},
		{"node-0/A2.img", "the files of the server's operating system follow", cut("node-0/A2.img", 8*mib)},
		{"node-0/A2.img", "the files of the server's operating system follow", cut("node-0/A2.img", 8*mib+10)},
		{"node-0/A2.img", "the files of the server's operating system follow", cut("node-0/A2.img", 8*mib+systemBlock+3)},
		{"node-2/A3.img", "it is missing", remove("node-2/A3.img")},
	} {
		at, err := open(tt.damage, Config{})
		damage := (*DamageError)(nil)
		if path := filepath.Join(at, disksDir, tt.file); !errors.As(err, &damage) || damage.Path != path || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "snapshot reset HOST") {
			t.Errorf("Open() = %v, want %q of %s, and the fix", err, tt.want, path)
		}
		host := filepath.Dir(tt.file)
		if _, err := open(tt.damage, Config{Emptied: func(h string) bool { return h == host }}); err != nil {
			t.Errorf("Open() when %s is about to be emptied = %v", host, err)
		}
		if _, err := open(tt.damage, Config{AcceptLoss: true, Fsync: true}); err != nil {
			t.Errorf("Open() with AcceptLoss = %v", err)
		}
	}
}

// The files of a system that were cut off are not read as if there were none.
func TestReadOfCutSystemFilesNamesTheFile(t *testing.T) {
	_, d := systemDisk(t)
	putSystem(t, d, 0, "files")
	if err := os.Truncate(d.path, d.size+systemBlock+3); err != nil {
		t.Fatal(err)
	}
	damage := (*DamageError)(nil)
	if b, err := d.SystemFiles(0); !errors.As(err, &damage) || damage.Path != d.path {
		t.Errorf("SystemFiles() = %q, %v, want a DamageError of %s", b, err, d.path)
	}
}

// A close while disks are written to ends: a write may save its disk's record.
func TestCloseWhileADiskIsFirstWritten(t *testing.T) {
	s, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for i := range 20 {
		d := s.Disk("node-0", string(rune('a'+i)), mib)
		go func() { _, err := d.WriteAt([]byte("x"), 0); done <- err }()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 20 {
		if err := <-done; err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("WriteAt() = %v", err)
		}
	}
}
