package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var info = Info{Name: "lab", Seed: 7, Hosts: 2, Time: time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)}

// fill makes a directory with a plain file, a disk that is mostly a hole, an empty
// disk, and a file that is not part of a snapshot.
func fill(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, size int64, at ...int64) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		for i, off := range at {
			if _, err := f.WriteAt(bytes.Repeat([]byte{byte(i + 1)}, 5000), off); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("state.db", 5000, 0)
	write("disks/node-0/Disk.0.img", 1<<34, 0, 1<<20, 1<<33, 1<<34-5000)
	write("disks/node-1/Disk.0.img", 1<<34)
	write("lock", 5000, 0)
	return dir
}

func keep(name string) bool { return name != "lock" }

func blocks(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Blocks * 512
}

func TestLoadRestoresWhatSaveWrote(t *testing.T) {
	for _, name := range []string{"snap.tar", "snap"} {
		t.Run(name, func(t *testing.T) {
			dir, to, back := fill(t), filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), "back")
			var done, all int64
			if err := Save(t.Context(), dir, to, info, keep, func(d, a int64) { done, all = d, a }); err != nil {
				t.Fatal(err)
			}
			if done != all || all < 25_000 || all > 1<<20 {
				t.Errorf("progress ended with %d of %d bytes", done, all)
			}
			got, err := Open(to)
			want := info
			want.Format, want.Sums = 1, true
			if err != nil || got != want {
				t.Errorf("Open() = %+v, %v, want %+v", got, err, want)
			}
			if err := Load(t.Context(), to, back, nil); err != nil {
				t.Fatal(err)
			}
			for _, f := range []string{"state.db", "disks/node-0/Disk.0.img", "disks/node-1/Disk.0.img"} {
				a, b := filepath.Join(dir, f), filepath.Join(back, f)
				sa, _ := os.Stat(a)
				sb, err := os.Stat(b)
				if err != nil || sa.Size() != sb.Size() || blocks(t, b) > blocks(t, a)+1<<16 {
					t.Errorf("%s: %v, %d bytes on the disk, want about %d", f, err, blocks(t, b), blocks(t, a))
					continue
				}
				in, _ := os.Open(a)
				out, _ := os.Open(b)
				for _, off := range []int64{0, 1 << 20, 1 << 33, 1<<34 - 5000, 1 << 30} {
					p, q := make([]byte, 6000), make([]byte, 6000)
					n, _ := in.ReadAt(p, off)
					m, _ := out.ReadAt(q, off)
					if n != m || !bytes.Equal(p, q) {
						t.Errorf("%s differs at %d", f, off)
					}
				}
				in.Close()
				out.Close()
			}
			if _, err := os.Stat(filepath.Join(back, "lock")); err == nil {
				t.Error("a file outside of the snapshot was saved")
			}
			if err := Save(t.Context(), dir, to, info, keep, nil); err == nil || !strings.Contains(err.Error(), "exists") {
				t.Errorf("Save() once more = %v, want a refusal", err)
			}
		})
	}
}

func TestFailedSaveAndLoadLeaveNothing(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	dir, to := fill(t), filepath.Join(t.TempDir(), "snap.tar")
	if err := Save(ended, dir, to, info, keep, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Save() = %v", err)
	}
	left, err := filepath.Glob(filepath.Dir(to) + "/*")
	if d := cmp.Diff([]string(nil), left); d != "" || err != nil {
		t.Errorf("it left %v, %v", left, err)
	}
	if err := Save(t.Context(), dir, to, info, keep, nil); err != nil {
		t.Fatal(err)
	}
	back := filepath.Join(t.TempDir(), "back")
	if err := Load(ended, to, back, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Load() = %v", err)
	}
	if _, err := os.Stat(back); err == nil {
		t.Error("a directory is left")
	}
}

// A snapshot that was cut off, emptied or changed is refused, by name and with the fix, and leaves
// nothing behind.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	dir := fill(t)
	check := func(what, path, want string) {
		t.Helper()
		back := filepath.Join(t.TempDir(), "back")
		err := Load(t.Context(), path, back, nil)
		if err == nil || !strings.Contains(err.Error(), path+" is damaged: "+want) || !strings.Contains(err.Error(), "use another snapshot") {
			t.Errorf("%s: Load() = %v, want %q of %s, and the fix", what, err, want, path)
		}
		if _, err := os.Stat(back); err == nil {
			t.Errorf("%s: a directory is left", what)
		}
	}
	tarFile := filepath.Join(t.TempDir(), "snap.tar")
	if err := Save(t.Context(), dir, tarFile, info, keep, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(tarFile)
	if err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(t.TempDir(), "part.tar")
	write := func(b []byte) string {
		if err := os.WriteFile(part, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return part
	}
	// What follows the last file says nothing: two blocks of zeros, and less after a file.
	content := len(bytes.TrimRight(whole, "\x00"))
	for n := 0; n < content; n += 256 {
		check(fmt.Sprint("cut to ", n), write(whole[:n]), "it ")
	}
	check("cut to a part of a name", write(whole[:3]), "it is empty, or cut off in snapshot.json")
	changed := bytes.Clone(whole)
	changed[bytes.LastIndex(changed, []byte{1, 1, 1, 1})+2] = 9
	check("changed", write(changed), "state.db was changed")
	for name, c := range map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"without a file":    {func(dir string) error { return os.Remove(filepath.Join(dir, "disks/node-1/Disk.0.img")) }, "it lacks disks/node-1/Disk.0.img"},
		"with an empty one": {func(dir string) error { return os.Truncate(filepath.Join(dir, "disks/node-0/Disk.0.img"), 0) }, "disks/node-0/Disk.0.img has 0 bytes and had 17179869184"},
		"with half of one":  {func(dir string) error { return os.Truncate(filepath.Join(dir, "state.db"), 2500) }, "state.db has 2500 bytes and had 5000"},
		"without a list":    {func(dir string) error { return os.Remove(filepath.Join(dir, sumsFile)) }, "it ends before snapshot.sums"},
		"an empty list":     {func(dir string) error { return os.Truncate(filepath.Join(dir, sumsFile), 0) }, "snapshot.sums has no list of files"},
		"no description":    {func(dir string) error { return os.Truncate(filepath.Join(dir, infoFile), 0) }, "it is empty, or cut off in snapshot.json"},
	} {
		path := filepath.Join(t.TempDir(), "snap")
		if err := errors.Join(Save(t.Context(), dir, path, info, keep, nil), c.damage(path)); err != nil {
			t.Fatal(err)
		}
		check(name, path, c.want)
	}
}

// A snapshot of an earlier release has no list.
func TestSnapshotWithoutAListIsLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snap")
	head := []byte(`{"format": 1}`)
	if err := errors.Join(Save(t.Context(), fill(t), path, info, keep, nil), os.Remove(filepath.Join(path, sumsFile)), os.WriteFile(filepath.Join(path, infoFile), head, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Load(t.Context(), path, filepath.Join(t.TempDir(), "back"), nil); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(filepath.Join(dir, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("old/"+infoFile, `{"format": 9}`)
	for name, path := range map[string]string{
		"none": filepath.Join(dir, "none"), "a directory": t.TempDir(), "a text": write("a.tar", "hello"), "format 9": filepath.Join(dir, "old"),
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: Open() = %v", name, err)
		}
	}
	for _, h := range []*tar.Header{
		{Name: "../evil", Size: 0}, {Name: "/etc/evil"}, {Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "x", PAXRecords: map[string]string{sizeRecord: "-1"}}, {Name: "x", PAXRecords: map[string]string{sizeRecord: "10", extentsRecord: "9+2"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		head := []byte(`{"format": 1}`)
		h.Format, h.Mode = tar.FormatPAX, 0o600
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: infoFile, Size: int64(len(head)), Mode: 0o600}), second(w.Write(head)), w.WriteHeader(h), w.Close()); err != nil {
			t.Fatal(err)
		}
		if err := Load(t.Context(), write("evil.tar", b.String()), filepath.Join(t.TempDir(), "back"), nil); err == nil {
			t.Errorf("%+v is loaded", h)
		}
	}
}

func second(_ int, err error) error { return err }
