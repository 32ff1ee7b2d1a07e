package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

var _ storage.Medium = (*Disk)(nil)

const tera = int64(1) << 40

func onDisk(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Blocks * 512
}

// A disk behaves like memory under random operations.
func TestDiskBehavesLikeMemory(t *testing.T) {
	const size, seed = 300_001, 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	d, model := newStore(t, Config{}).Disk("node-0", "Disk.0", size), storage.NewMemory(size)
	for i := range 500 {
		off := rnd.Int64N(size+10) - 5
		n := rnd.Int64N(100_000)
		var got, want string
		switch rnd.IntN(3) {
		case 0:
			p := bytes.Repeat([]byte{byte(1 + rnd.IntN(255))}, int(n))
			a, err := d.WriteAt(p, off)
			b, werr := model.WriteAt(p, off)
			got, want = fmt.Sprint(a, err != nil), fmt.Sprint(b, werr != nil)
		case 1:
			got, want = fmt.Sprint(d.Discard(off, n) != nil), fmt.Sprint(model.Discard(off, n) != nil)
		case 2:
			p, q := bytes.Repeat([]byte{0xff}, int(n)), bytes.Repeat([]byte{0xff}, int(n))
			a, err := d.ReadAt(p, off)
			b, werr := model.ReadAt(q, off)
			got, want = fmt.Sprint(a, errors.Is(err, io.EOF), err != nil), fmt.Sprint(b, errors.Is(werr, io.EOF), werr != nil)
			if !bytes.Equal(p, q) {
				t.Fatalf("seed %d, step %d: ReadAt(%d bytes, %d) gave other bytes", seed, i, n, off)
			}
		}
		if got != want {
			t.Fatalf("seed %d, step %d at %d, %d bytes: got %s, want %s", seed, i, off, n, got, want)
		}
	}
}

func TestDisksAreSparse(t *testing.T) {
	s := newStore(t, Config{Fsync: true})
	d := s.Disk("node-0", "Disk.0", 4*tera)
	path := filepath.Join(s.dir, "disks", "node-0", "Disk.0.img")
	p := bytes.Repeat([]byte{0xff}, 4096)
	if n, err := d.ReadAt(p, 2*tera); n != 4096 || err != nil || !bytes.Equal(p, make([]byte, 4096)) {
		t.Errorf("ReadAt() of a new drive = %d, %v, want zeros", n, err)
	}
	if err := d.Discard(0, 4*tera); err != nil {
		t.Error(err)
	}
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
	if _, err := d.NextData(0); !errors.Is(err, io.EOF) {
		t.Errorf("NextData(0) of a new drive = %v, want EOF", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a drive that was never written has a file: %v", err)
	}

	if _, err := d.WriteAt(bytes.Repeat([]byte{1}, 8192), 3*tera); err != nil {
		t.Fatal(err)
	}
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() != 4*tera || st.Mode().Perm() != 0o600 {
		t.Errorf("file has %d bytes, mode %v, want the capacity and 0600", st.Size(), st.Mode())
	}
	if got := onDisk(t, path); got > 1<<20 {
		t.Errorf("the file takes %d bytes on disk", got)
	}
	if at, err := d.NextData(0); err != nil || at > 3*tera || at < 3*tera-1<<16 {
		t.Errorf("NextData(0) = %d, %v, want about %d", at, err, 3*tera)
	}
	if _, err := d.NextData(3*tera + 1<<20); !errors.Is(err, io.EOF) {
		t.Errorf("NextData() behind the data = %v, want EOF", err)
	}
	if err := d.Discard(0, 4*tera); err != nil {
		t.Error(err)
	}
	if _, err := d.NextData(0); !errors.Is(err, io.EOF) {
		t.Errorf("NextData(0) after Discard = %v, want EOF", err)
	}
	if err := d.Discard(5, 0); err != nil {
		t.Errorf("Discard() of no bytes = %v", err)
	}
	if _, err := d.NextData(4 * tera); !errors.Is(err, io.EOF) {
		t.Errorf("NextData() at the end = %v, want EOF", err)
	}
}

// On a file system without holes, Discard writes zeros.
func TestDiscardWritesZerosWithoutHoles(t *testing.T) {
	d := newStore(t, Config{}).Disk("node-0", "Disk.0", tera)
	if _, err := d.WriteAt(bytes.Repeat([]byte{7}, 3<<20), 1<<20); err != nil {
		t.Fatal(err)
	}
	f, err := d.store.files.acquire(d.path, d.size, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.store.files.release(f)
	if err := d.zero(f.File, 2<<20, tera); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4<<20)
	if _, err := d.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 4<<20)
	copy(want[1<<20:2<<20], bytes.Repeat([]byte{7}, 1<<20))
	if !bytes.Equal(got, want) {
		t.Error("zero() left data, or took what is not its")
	}
}

// A disk file that a killed rack has created but not sized gets its size.
func TestDiskFileIsCompletedAfterAKill(t *testing.T) {
	s := newStore(t, Config{})
	d := s.Disk("node-0", "Disk.0", tera)
	if err := os.Mkdir(filepath.Dir(d.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 512)
	if n, err := d.ReadAt(p, tera-512); n != 512 || err != nil {
		t.Errorf("ReadAt() = %d, %v, want 512 zeros", n, err)
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	s := newStore(t, Config{})
	s.files.most = 3
	var all sync.WaitGroup
	for h := range 40 {
		all.Go(func() {
			d := s.Disk(fmt.Sprintf("node-%d", h), "Disk.0", tera)
			for i := range 20 {
				if _, err := d.WriteAt([]byte{byte(h), byte(i)}, int64(i)*4096); err != nil {
					t.Error(err)
				}
				p := make([]byte, 2)
				if _, err := d.ReadAt(p, int64(i)*4096); err != nil || p[0] != byte(h) || p[1] != byte(i) {
					t.Errorf("disk %d: ReadAt() = %v, %v", h, p, err)
				}
			}
		})
	}
	all.Wait()
	for h := range 10 { // one user at a time: no more than three may be open
		if _, err := s.Disk(fmt.Sprintf("node-%d", h), "Disk.0", tera).ReadAt(make([]byte, 1), 0); err != nil {
			t.Error(err)
		}
	}
	if got := len(s.files.open); got > 3 {
		t.Errorf("%d files are open, want at most 3", got)
	}
}

func TestDiskAfterClose(t *testing.T) {
	s := newStore(t, Config{})
	d := s.Disk("node-0", "Disk.0", tera)
	if _, err := d.WriteAt([]byte{1}, 0); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := d.WriteAt([]byte{1}, 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("WriteAt() after Close = %v, want %v", err, fs.ErrClosed)
	}
	if _, err := d.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("ReadAt() after Close = %v, want %v", err, fs.ErrClosed)
	}
}

func TestMedia(t *testing.T) {
	for _, fsync := range []bool{false, true} {
		s := newStore(t, Config{Fsync: fsync})
		if _, err := s.Media("node-0", "Cd"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Media() of an empty slot = %v, want %v", err, fs.ErrNotExist)
		}
		dropped, err := s.NewMedia("node-0", "Cd", 1)
		if err != nil {
			t.Fatal(err)
		}
		in, err := s.NewMedia("node-0", "Cd", 2)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.WriteString("image"); err != nil {
			t.Fatal(err)
		}
		if err := in.Keep(); err != nil {
			t.Fatal(err)
		}
		if err := dropped.Drop(); err != nil {
			t.Error(err)
		}
		f, err := s.Media("node-0", "Cd")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // removing a missing image is no error
			if err := s.RemoveMedia("node-0", "Cd"); err != nil {
				t.Fatal(err)
			}
		}
		if b, err := io.ReadAll(f); err != nil || string(b) != "image" {
			t.Errorf("who had it open reads %q, %v", b, err)
		}
		f.Close()
		if err := in.Keep(); err == nil {
			t.Error("Keep() twice = nil, want an error")
		}
	}
}

func TestKeepMediaRemovesTheRest(t *testing.T) {
	s := newStore(t, Config{})
	for _, slot := range []string{"Cd", "Usb/1", "Old"} {
		in, err := s.NewMedia("node-0", slot, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	in, err := s.NewMedia("node-0", "Cd", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() // KeepMedia removes it
	if err := s.KeepMedia([]Image{{"node-0", "Cd"}, {"node-0", "Usb/1"}}); err != nil {
		t.Fatal(err)
	}
	for slot, want := range map[string]bool{"Cd": true, "Usb/1": true, "Old": false} {
		f, err := s.Media("node-0", slot)
		if (err == nil) != want {
			t.Errorf("slot %s is there: %v, want %v", slot, err == nil, want)
		}
		f.Close()
	}
	if entries, err := os.ReadDir(filepath.Join(s.dir, string(mediaDir))); err != nil || len(entries) != 2 {
		t.Errorf("media directory = %v, %v, want two images", entries, err)
	}
}
