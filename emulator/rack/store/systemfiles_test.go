package store

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"
)

const mib = 1 << 20

func systemDisk(t *testing.T) (*Store, *Disk) {
	t.Helper()
	s, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, s.Disk("node-0", "A1", 8*mib)
}

func putSystem(t *testing.T, d *Disk, anchor int64, content string) {
	t.Helper()
	if err := d.PutSystemFiles(anchor, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func checkSystem(t *testing.T, d *Disk, anchor int64, want string) {
	t.Helper()
	got, err := d.SystemFiles(anchor)
	if err != nil || string(got) != want {
		t.Errorf("files of the system at %d = %.20q, %v, want %.20q", anchor, got, err, want)
	}
}

func TestSystemFilesAreStoredPerSystem(t *testing.T) {
	_, d := systemDisk(t)
	checkSystem(t, d, 0, "")
	for _, content := range []string{"one", "another", string(bytes.Repeat([]byte("x"), 3*mib)), "short"} {
		putSystem(t, d, 0, content)
		putSystem(t, d, mib, "volume")
		checkSystem(t, d, 0, content)
		checkSystem(t, d, mib, "volume")
	}
	if err := d.PutSystemFiles(mib, nil); err != nil {
		t.Fatal(err)
	}
	checkSystem(t, d, 0, "short")
	checkSystem(t, d, mib, "")
	st, err := os.Stat(d.path)
	if err != nil || st.Size() > 8*mib+4*mib {
		t.Errorf("the file has %d bytes, %v: want old files cut off", st.Size(), err)
	}
}

func TestOverwritingAnImageRemovesItsSystem(t *testing.T) {
	_, d := systemDisk(t)
	for name, change := range map[string]func() error{
		"first sector":  func() error { _, err := d.WriteAt(make([]byte, 512), 0); return err },
		"first byte":    func() error { _, err := d.WriteAt([]byte{1}, 0); return err },
		"discard":       func() error { return d.Discard(0, 8*mib) },
		"discard first": func() error { return d.Discard(0, 512) },
	} {
		putSystem(t, d, 0, "first")
		putSystem(t, d, 7*mib, "second")
		if err := change(); err != nil {
			t.Fatal(err)
		}
		checkSystem(t, d, 0, "")
		if name != "discard" {
			checkSystem(t, d, 7*mib, "second")
		}
	}
	putSystem(t, d, mib, "stays")
	if _, err := d.WriteAt(make([]byte, mib), 0); err != nil {
		t.Fatal(err)
	}
	if err := d.Discard(mib+1, mib); err != nil {
		t.Fatal(err)
	}
	checkSystem(t, d, mib, "stays")
}

func TestSystemFilesMoveWithTheDrive(t *testing.T) {
	s, d := systemDisk(t)
	putSystem(t, d, 0, "first")
	if err := s.ShareDisk("node-0", "node-1", "A1"); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveDisk("node-0", "A1"); err != nil {
		t.Fatal(err)
	}
	checkSystem(t, d, 0, "")
	checkSystem(t, s.Disk("node-1", "A1", 8*mib), 0, "first")
}

func TestSystemFilesSurviveReopening(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir, Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	putSystem(t, s.Disk("node-0", "A1", 8*mib), 0, "first")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(Config{Dir: dir, Fsync: true}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := s.Disk("node-0", "A1", 8*mib)
	if _, err := d.WriteAt([]byte{1}, 512); err != nil {
		t.Fatal(err)
	}
	checkSystem(t, d, 0, "first")
	if _, err := d.WriteAt([]byte{1}, 0); err != nil {
		t.Fatal(err)
	}
	checkSystem(t, d, 0, "")
}

// A reader never sees what follows the last sector.
func TestSystemFilesAreNoSectors(t *testing.T) {
	_, d := systemDisk(t)
	putSystem(t, d, 0, "first")
	if at, err := d.NextData(0); err == nil {
		t.Errorf("data at %d of an empty drive", at)
	}
	got := make([]byte, 8*mib)
	if _, err := d.ReadAt(got, 0); err != nil || slices.Max(got) != 0 {
		t.Errorf("an empty drive reads %d, %v", slices.Max(got), err)
	}
}

func TestDamagedSystemFilesAreReported(t *testing.T) {
	_, d := systemDisk(t)
	putSystem(t, d, 0, "first")
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{'x'}, 8*mib+systemBlock+16); err != nil {
		t.Fatal(err)
	}
	_, err = d.SystemFiles(0)
	if damage := (*DamageError)(nil); !errors.As(err, &damage) || damage.Path != d.path {
		t.Errorf("error %v, want a DamageError of %s", err, d.path)
	}
	if _, err := d.WriteAt([]byte{1}, 0); err != nil {
		t.Errorf("a damaged system cannot be overwritten: %v", err)
	}
}
