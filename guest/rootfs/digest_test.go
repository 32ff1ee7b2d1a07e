package rootfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/rootfs"
)

func digest(t testing.TB, image string) string {
	t.Helper()
	key, err := rootfs.Digest(t.Context(), find(t, image), rootfs.Limits{})
	if err != nil || len(key) != 64 {
		t.Fatalf("Digest() = %q, %v", key, err)
	}
	return key
}

func TestDigestIsOfTheFilesAlone(t *testing.T) {
	dir := makeTree(t)
	want := digest(t, makeExt(t, dir, "64M"))
	for _, options := range [][]string{
		{"-b", "4096"}, {"-O", "^64bit,^metadata_csum,^has_journal"}, {"-O", "inline_data"}, {"-b", "4096", "-O", "^extents,^64bit"},
		{"-L", "other"},
	} {
		if got := digest(t, makeExt(t, dir, "80M", options...)); got != want {
			t.Errorf("%q: Digest() = %s, want %s", options, got, want)
		}
	}
}

func TestDigestSeesEachChange(t *testing.T) {
	image := makeExt(t, makeTree(t), "64M")
	original := read(t, image)
	seen := map[string]string{digest(t, image): "the original"}
	for _, script := range []string{
		"sif /etc/shadow uid 7", "sif /etc/shadow gid 7", "sif /etc/shadow mtime @5", "sif /etc/shadow mtime_extra 4", "sif /etc/shadow mode 0100600",
		"sif /usr/bin/sudo mode 0100755", "ea_set /etc/tiny security.capability cap", "ea_set /etc/tiny security.capability cab",
		"rm /etc/tiny", "rm /etc/hard", "unlink /etc/link150", "symlink /etc/new to", "symlink /etc/new tu", "ln /etc/tiny /etc/new",
		"sif /etc/tiny size 11",
	} {
		if err := os.WriteFile(image, original, 0o600); err != nil {
			t.Fatal(err)
		}
		edit(t, image, script+"\n")
		key := digest(t, image)
		if seen[key] != "" {
			t.Errorf("%s and %s have the same digest", script, seen[key])
		}
		seen[key] = script
	}
	// Other bytes in a file: nothing else of the file system changes.
	changed := bytes.Replace(original, []byte("root:*:1:"), []byte("root:*:2:"), 1)
	if err := os.WriteFile(image, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if key := digest(t, image); bytes.Equal(changed, original) || seen[key] != "" {
		t.Errorf("other data and %s have the same digest", seen[key])
	}
}

// The same bytes at another place of a file are another file.
func TestDigestSeesWhereHolesAre(t *testing.T) {
	var keys []string
	for _, off := range []int64{0, 8192} {
		dir := filepath.Dir(filepath.Dir(makeFile(t, "etc/os-release", "ID=x\n")))
		for name, text := range map[string]string{"bin/sh": string(program), "sparse": ""} {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(filepath.Join(dir, "sparse"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), 8192), off); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(16384), f.Close()); err != nil {
			t.Fatal(err)
		}
		setTimes(t, dir)
		keys = append(keys, digest(t, makeExt(t, dir, "8M")))
	}
	if keys[0] == keys[1] {
		t.Error("they have the same digest")
	}
}

// makeFile writes a file in a directory of its own and returns its path.
func makeFile(t testing.TB, name, text string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return at
}

// setTimes gives all files of a tree the same time.
func setTimes(t testing.TB, dir string) {
	t.Helper()
	then := time.Unix(1_600_000_000, 0)
	err := filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(at, then, then))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDigestStops(t *testing.T) {
	image := makeExt(t, makeTree(t), "64M")
	var limit *rootfs.LimitError
	for _, limits := range []rootfs.Limits{{Bytes: 1 << 20}, {Files: 100}} {
		if _, err := rootfs.Digest(t.Context(), find(t, image), limits); !errors.As(err, &limit) {
			t.Errorf("Digest(%+v) = %v", limits, err)
		}
	}
	found := find(t, image)
	ctx, cancel := context.WithCancel(t.Context())
	found.Reader = &counting{Reader: found.Reader, at: 50, then: cancel}
	if _, err := rootfs.Digest(ctx, found, rootfs.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Digest() = %v", err)
	}
	edit(t, image, "link /usr /usr/share/again\n")
	if _, err := rootfs.Digest(t.Context(), find(t, image), rootfs.Limits{}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("Digest() = %v", err)
	}
}

// BenchmarkDigest reads a file system of 2 GB with 1.3 GB in 20,000 files, and has
// sha256sum(1) of all its bytes beside it.
func BenchmarkDigest(b *testing.B) {
	dir := bigTree(b)
	for i := range 11 {
		at := filepath.Join(dir, fmt.Sprintf("usr/lib/large%d", i))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(at, bytes.Repeat([]byte("a shared library"), 100<<20/16), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	image := makeExt(b, dir, "2G")
	b.Run("digest", func(b *testing.B) {
		for range b.N {
			digest(b, image)
		}
	})
	b.Run("sha256sum", func(b *testing.B) {
		for range b.N {
			if out, err := exec.Command("sh", "-c", `sha256sum "$0"`, image).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
}
