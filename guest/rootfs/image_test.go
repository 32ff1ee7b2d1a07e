package rootfs_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/guest/rootfs"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// program is the start of a program for arm64, which is all that is read of it.
var program = append([]byte("\x7fELF\x02\x01\x01"), append(make([]byte, 11), 0xb7, 0)...)

const osRelease = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n"

// makeTree writes the files of a small root, with all that readers get wrong.
func makeTree(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, mode fs.FileMode, b []byte) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("usr/lib/os-release", 0o644, []byte(osRelease))
	write("usr/bin/dash", 0o755, program)
	write("usr/bin/sudo", fs.ModeSetuid|0o755, program)
	write("etc/shadow", 0o640, []byte("root:*:1:::::\n"))
	write("etc/empty", 0o600, nil)
	write("etc/tiny", 0o644, []byte("in the inode"))
	write("etc/small", 0o644, bytes.Repeat([]byte("s"), 100)) // inline with an attribute
	write("etc/.wh.name", 0o644, []byte("no whiteout"))
	write("var/large", 0o644, bytes.Repeat([]byte("0123456789abcdef"), 200_000))
	link("../usr/lib/os-release", "etc/os-release")
	link("usr/bin", "bin")
	link("dash", "usr/bin/sh")
	link(strings.Repeat("/long", 30), "etc/link150")
	link(strings.Repeat("/long", 200), "etc/link1000")
	if err := os.Link(filepath.Join(dir, "var/large"), filepath.Join(dir, "etc/hard")); err != nil {
		t.Fatal(err)
	}
	// More names than a block has, for a tree of hashes.
	for i := range 700 {
		write(fmt.Sprintf("usr/share/many/a file with a name that is somewhat long %d", i), 0o644, fmt.Appendf(nil, "%d", i))
	}
	// Each second block is a hole: more extents than an inode or a block has.
	f, err := os.Create(filepath.Join(dir, "var/sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range int64(700) {
		if _, err := f.WriteAt(bytes.Repeat([]byte{byte(i%255 + 1)}, 4096), i*8192); err != nil {
			t.Fatal(err)
		}
	}
	// mke2fs forgets a hole at the end where data are in inodes.
	if _, err := f.WriteAt([]byte("end"), 20<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "usr/share/many"), fs.ModeSticky|fs.ModeSetgid|0o775); err != nil {
		t.Fatal(err)
	}
	return dir
}

// makeExt makes a file system of a directory and returns its file.
func makeExt(t testing.TB, dir, size string, options ...string) string {
	t.Helper()
	mkfs := prerequisites.Need(t, "mkfs.ext4")
	image := filepath.Join(t.TempDir(), "image")
	args := append([]string{"-q", "-F", "-d", dir, "-L", "root", "-U", "6f1c2d5e-9f53-4c5a-8d0e-0c9c5f0f8b11"}, options...)
	cmd := exec.Command(mkfs, append(args, image, size)...)
	cmd.Env = append(os.Environ(), "E2FSPROGS_FAKE_TIME=1700000000") // of lost+found
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("mkfs.ext4 %q: %v: %s", args, err, out)
	}
	return image
}

// edit runs commands of debugfs(8) on a file system.
func edit(t testing.TB, image, script string) {
	t.Helper()
	cmd := exec.Command(prerequisites.Need(t, "debugfs"), "-w", "-f", "-", image)
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("not found")) || bytes.Contains(out, []byte("nvalid")) {
		t.Fatalf("debugfs: %v: %s", err, out)
	}
}

// openImage returns the bytes of an image.
func openImage(t testing.TB, image string) (*os.File, int64) {
	t.Helper()
	f, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return f, st.Size()
}

func find(t testing.TB, image string) *rootfs.FileSystem {
	t.Helper()
	f, size := openImage(t, image)
	found, err := rootfs.Find(f, size)
	if err != nil {
		t.Fatalf("Find() = %v", err)
	}
	return found
}

// walk calls visit for all files below a directory by their names.
func walk(t testing.TB, r rootfs.Reader, dir rootfs.Inode, name string, visit func(string, rootfs.Inode)) {
	t.Helper()
	err := r.List(dir, func(e rootfs.Entry) error {
		in, err := r.Inode(e)
		if err != nil {
			return err
		}
		at := filepath.Join(name, e.Name)
		visit(at, in)
		if in.Mode.IsDir() {
			walk(t, r, in, at, visit)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("List(%s) = %v", name, err)
	}
}

// content returns the bytes of a file, and how many were not in a hole.
func content(t testing.TB, r rootfs.Reader, in rootfs.Inode) ([]byte, int64) {
	t.Helper()
	out, data := make([]byte, in.Size), int64(0)
	err := r.Data(in, func(off int64, b []byte) error {
		if copy(out[off:], b) < len(b) {
			return io.ErrShortBuffer
		}
		data += int64(len(b))
		return nil
	})
	if err != nil {
		t.Fatalf("Data(%d) = %v", in.Number, err)
	}
	return out, data
}

// compare compares all files of a file system with those that it was made of.
func compare(t testing.TB, r rootfs.Reader, dir string) {
	t.Helper()
	root, err := r.Root()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]uint64{}
	walk(t, r, root, "", func(name string, in rootfs.Inode) {
		if name == "lost+found" {
			return
		}
		seen[name] = in.Number
		want, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if in.Mode != want.Mode() || !in.Mode.IsDir() && in.Size != want.Size() {
			t.Errorf("%s is %v with %d bytes, want %v with %d", name, in.Mode, in.Size, want.Mode(), want.Size())
		}
		switch {
		case in.Mode.IsRegular():
			got, _ := content(t, r, in)
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(got, b) {
				t.Errorf("%s has other bytes: %v", name, err)
			}
		case in.Mode&fs.ModeSymlink != 0:
			got, err := r.Link(in)
			if want, _ := os.Readlink(filepath.Join(dir, name)); err != nil || got != want {
				t.Errorf("Link(%s) = %q, %v, want %q", name, got, err, want)
			}
		}
	})
	err = filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, at)
		if seen[name] == 0 && name != "." {
			t.Errorf("%s is missing", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen["etc/hard"] != seen["var/large"] {
		t.Errorf("etc/hard is inode %d, var/large %d", seen["etc/hard"], seen["var/large"])
	}
}
