package store

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fullDisk is a log on a disk with room for some more bytes.
type fullDisk struct {
	logStorage
	room int
}

func (d *fullDisk) WriteAt(p []byte, off int64) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	m, err := d.logStorage.WriteAt(p[:n], off)
	if err == nil && m < len(p) {
		err = &os.PathError{Op: "write", Path: logFile, Err: syscall.ENOSPC}
	}
	return m, err
}

// A save for which there is no space changes nothing, wherever the write ends; the next
// one works when there is space again, also after a kill.
func TestSaveOnAFullDisk(t *testing.T) {
	for _, room := range []int{0, 1, rowHead, rowHead + 10} {
		dir := t.TempDir()
		s := newStore(t, Config{Dir: dir})
		save := func(n int) error {
			return s.Save(origin.Add(time.Duration(n)*time.Hour), Put{Kind: Hosts, Key: "a", Value: value{n}})
		}
		if err := save(1); err != nil {
			t.Fatal(err)
		}
		file := s.log.f
		s.log.f = &fullDisk{file, room}
		if err := save(2); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d bytes: Save() = %v, want ENOSPC", room, err)
		}
		if !s.Last().Equal(origin.Add(time.Hour)) {
			t.Errorf("room for %d bytes: the time is %v", room, s.Last())
		}
		s.log.f = file
		if err := save(3); err != nil {
			t.Errorf("room for %d bytes: Save() afterwards = %v", room, err)
		}
		killed(t, s)
		var got value
		if _, err := newStore(t, Config{Dir: dir}).Load(Hosts, "a", &got); err != nil || got.N != 3 {
			t.Errorf("room for %d bytes: Load(a) after a kill = %v, %v, want 3", room, got, err)
		}
	}
}

// A disk or an image is not written when the user of the store says so.
func TestWritesOfDisksAndImagesAskForSpace(t *testing.T) {
	asked := 0
	full := error(nil)
	s := newStore(t, Config{Use: func(n int) error { asked += n; return full }})
	d := s.Disk("node-0", "D0", 1<<20)
	if _, err := d.WriteAt(make([]byte, 1000), 0); err != nil || asked != 1000 {
		t.Errorf("WriteAt() = %v, and asked for %d bytes", err, asked)
	}
	in, err := s.NewMedia("node-0", "Cd", 1)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(in, strings.NewReader("an image")); n != 8 || err != nil || asked != 1008 {
		t.Errorf("Copy() = %d, %v, and asked for %d bytes", n, err, asked)
	}
	full = syscall.ENOSPC
	if _, err := d.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("WriteAt() without space = %v", err)
	}
	if _, err := io.Copy(in, strings.NewReader("an image")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Copy() without space = %v", err)
	}
	if err := in.Drop(); err != nil {
		t.Error(err)
	}
}
