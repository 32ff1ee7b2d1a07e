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
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/metalab-dev/metalab/guest/rootfs"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// dangerous is a script of debugfs(8): what must not be on this machine's disk.
const dangerous = `ea_set /etc/tiny security.capability cap
ea_set /etc/tiny user.overlay.whiteout y
ea_set /etc/small trusted.overlay.opaque y
ea_set /etc/small user.name value
ea_set /etc/small security.capability longer-than-a-capability-can-be
sif /etc/tiny uid 70000
sif /etc/shadow gid 42
cd /etc
mknod pipe p
mknod null c 1 3
mknod whiteout c 0 0
`

func unpack(t testing.TB, image string) *rootfs.Root {
	t.Helper()
	root, err := rootfs.Unpack(t.Context(), find(t, image), filepath.Join(t.TempDir(), "root"), rootfs.Limits{})
	if err != nil {
		t.Fatalf("Unpack() = %v", err)
	}
	return root
}

func TestUnpackWritesTheTree(t *testing.T) {
	dir := makeTree(t)
	image := makeExt(t, dir, "64M", "-O", "inline_data")
	edit(t, image, dangerous)
	root := unpack(t, image)
	if root.Architecture != "arm64" || root.OSRelease != osRelease || root.Bytes < 6<<20 || root.Bytes > 12<<20 || root.Files < 700 {
		t.Errorf("Unpack() = %+v", root)
	}
	err := filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, at)
		same(t, at, filepath.Join(root.Dir, name), name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	one, two := stat(t, root, "etc/hard"), stat(t, root, "var/large")
	if one.Ino != two.Ino || one.Nlink != 2 {
		t.Errorf("etc/hard is inode %d with %d links, var/large %d", one.Ino, one.Nlink, two.Ino)
	}
	if st := stat(t, root, "var/sparse"); st.Blocks*512 > 4<<20 || st.Size != 20<<20+3 {
		t.Errorf("var/sparse takes %d bytes of %d", st.Blocks*512, st.Size)
	}
	if st := stat(t, root, "etc/pipe"); st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		t.Errorf("etc/pipe has mode %o", st.Mode)
	}
	for _, name := range []string{"etc/null", "etc/whiteout"} {
		if _, err := os.Lstat(filepath.Join(root.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the device %s was made: %v", name, err)
		}
	}
}

// same compares a file with the one that it was made of.
func same(t *testing.T, want, got, name string) {
	t.Helper()
	a, err := os.Lstat(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.Lstat(got)
	if err != nil {
		t.Error(err)
		return
	}
	mode := a.Mode() &^ (fs.ModeSetuid | fs.ModeSetgid)
	if b.Mode() != mode || !b.IsDir() && b.Size() != a.Size() {
		t.Errorf("%s is %v with %d bytes, want %v with %d", name, b.Mode(), b.Size(), mode, a.Size())
	}
	if b.ModTime().Unix() != a.ModTime().Unix() && name != "." && name != "etc" { // where debugfs made files
		t.Errorf("%s has the time %v, want %v", name, b.ModTime(), a.ModTime())
	}
	if n, err := unix.Llistxattr(got, nil); n != 0 && err == nil {
		t.Errorf("%s has extended attributes", name)
	}
	switch {
	case mode.IsRegular():
		if x, y := read(t, want), read(t, got); !bytes.Equal(x, y) {
			t.Errorf("%s has other bytes", name)
		}
	case mode&fs.ModeSymlink != 0:
		x, _ := os.Readlink(want)
		if y, err := os.Readlink(got); x != y {
			t.Errorf("%s leads to %q, want %q: %v", name, y, x, err)
		}
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func stat(t testing.TB, root *rootfs.Root, name string) *syscall.Stat_t {
	t.Helper()
	st, err := os.Lstat(filepath.Join(root.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t)
}

func TestUnpackDescribesWhatTheDiskHasNot(t *testing.T) {
	image := makeExt(t, makeTree(t), "64M")
	edit(t, image, dangerous+"sif /usr/bin/sudo uid 0\nsif /usr/bin/sudo gid 0\nsif /usr/share/many gid 0\nsif /usr/share/many uid 0\nsif /etc/empty size 5000\n")
	root := unpack(t, image)
	for _, tt := range []struct {
		name, want string
	}{
		{"usr/bin/sudo", "urwxr-xr-x 0 0 true"},
		{"/usr/bin/sudo", "urwxr-xr-x 0 0 true"},
		{"usr/share/many", "dgtrwxrwxr-x 0 0 true"},
		{"etc/tiny", fmt.Sprintf("-rw-r--r-- 70000 %d true", os.Getgid())},
		{"usr/bin/none", "---------- 0 0 false"},
	} {
		mode, uid, gid, ok := root.Attributes(tt.name)
		if got := fmt.Sprint(mode, uid, gid, ok); got != tt.want {
			t.Errorf("Attributes(%s) = %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := root.Capability("etc/tiny"); string(got) != "cap" {
		t.Errorf("Capability(etc/tiny) = %q", got)
	}
	if got := root.Capability("etc/small"); got != nil {
		t.Errorf("Capability(etc/small) = %q", got)
	}
	if st := stat(t, root, "etc/empty"); st.Size != 5000 || st.Blocks != 0 { // a hole alone
		t.Errorf("etc/empty has %d bytes in %d blocks", st.Size, st.Blocks)
	}
	_, _, gid, ok := root.Attributes("etc/shadow")
	if os.Geteuid() == 0 {
		if st := stat(t, root, "etc/shadow"); st.Gid != 42 || ok {
			t.Errorf("etc/shadow has group %d on the disk", st.Gid)
		}
	} else if gid != 42 || !ok {
		t.Errorf("etc/shadow has group %d", gid)
	}
	if os.Geteuid() == 0 {
		if st := stat(t, root, "etc/tiny"); st.Uid != 0 {
			t.Errorf("etc/tiny has owner %d on the disk", st.Uid)
		}
		if lines := bytes.Count(read(t, filepath.Join(filepath.Dir(root.Dir), "manifest")), []byte("\n")); lines != 3 {
			t.Errorf("the manifest has %d lines", lines)
		}
	}
}

func TestUnpackStopsAndLeavesNothing(t *testing.T) {
	image := makeExt(t, makeTree(t), "64M")
	for _, tt := range []struct {
		name   string
		limits rootfs.Limits
		want   string
	}{
		{"bytes", rootfs.Limits{Bytes: 1 << 20}, "more than 1048576 bytes"},
		{"files", rootfs.Limits{Files: 100}, "more than 100 files"},
	} {
		dir := filepath.Join(t.TempDir(), "root")
		var limit *rootfs.LimitError
		_, err := rootfs.Unpack(t.Context(), find(t, image), dir, tt.limits)
		if !errors.As(err, &limit) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Unpack() = %v, want %q", tt.name, err, tt.want)
		}
		absent(t, dir)
	}
	var names strings.Builder // each of these files has a name that is to be kept
	for i := range 700 {
		fmt.Fprintf(&names, "sif \"/usr/share/many/a file with a name that is somewhat long %d\" links_count 2\n", i)
	}
	named := makeExt(t, makeTree(t), "64M")
	edit(t, named, names.String())
	dir := filepath.Join(t.TempDir(), "root")
	var limit *rootfs.LimitError
	if _, err := rootfs.Unpack(t.Context(), find(t, named), dir, rootfs.Limits{Files: 1000}); !errors.As(err, &limit) || !strings.Contains(err.Error(), "names of hard links") {
		t.Errorf("Unpack() = %v", err)
	}
	absent(t, dir)

	found := find(t, image)
	ctx, cancel := context.WithCancel(t.Context())
	found.Reader = &counting{Reader: found.Reader, at: 200, then: cancel}
	if _, err := rootfs.Unpack(ctx, found, dir, rootfs.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Unpack() = %v", err)
	}
	absent(t, dir)

	found = find(t, image)
	found.Used = 1 << 60
	if _, err := rootfs.Unpack(t.Context(), found, dir, rootfs.Limits{}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("Unpack() without space = %v", err)
	}
	absent(t, dir)
}

func absent(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

// counting does something when so many inodes were read.
type counting struct {
	rootfs.Reader
	at   int
	then func()
}

func (c *counting) Inode(e rootfs.Entry) (rootfs.Inode, error) {
	if c.at--; c.at == 0 {
		c.then()
	}
	return c.Reader.Inode(e)
}

// Names in an image may be anything.
func TestUnpackRefusesHostileNames(t *testing.T) {
	for to, want := range map[string]string{
		"../x":    "the name",
		"hard":    "exists",   // a second file of a name
		"....":    "",         // a usual name
		"a\x00bc": "the name", // which the kernel would cut
	} {
		image := makeExt(t, makeTree(t), "64M")
		b := read(t, image)
		if !bytes.Contains(b, []byte("\x04\x01tiny")) {
			t.Fatal("no entry of that name")
		}
		if err := os.WriteFile(image, bytes.ReplaceAll(b, []byte("\x04\x01tiny"), []byte("\x04\x01"+to)), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "root")
		_, err := rootfs.Unpack(t.Context(), find(t, image), dir, rootfs.Limits{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: Unpack() = %v, want %q", to, err, want)
		}
	}
}

// A directory that has itself below it ends.
func TestUnpackRefusesDirectoriesInThemselves(t *testing.T) {
	image := makeExt(t, makeTree(t), "64M")
	edit(t, image, "link /usr /usr/share/again\n")
	_, err := rootfs.Unpack(t.Context(), find(t, image), filepath.Join(t.TempDir(), "root"), rootfs.Limits{})
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("Unpack() = %v", err)
	}
}

// The kernel takes the tree as a lower layer, and nothing of it as a whiteout.
func TestUnpackedTreeIsALowerLayer(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	image := makeExt(t, makeTree(t), "64M")
	edit(t, image, dangerous)
	root := unpack(t, image)
	const script = `unshare --map-root-user --mount sh -c 'cd "$1" && mkdir upper work root && mount -t overlay overlay -o lowerdir="$0",upperdir=upper,workdir=work,userxattr root &&
cat root/etc/.wh.name root/etc/tiny root/etc/shadow && echo more >> root/etc/tiny && cat root/etc/tiny' "$0" "$1"`
	out, err := exec.Command("sh", "-c", script, root.Dir, t.TempDir()).CombinedOutput()
	if want := "no whiteoutin the inoderoot:*:1:::::\nin the inodemore\n"; err != nil || string(out) != want {
		t.Errorf("the overlay has %q, %v, want %q", out, err, want)
	}
	if b := read(t, filepath.Join(root.Dir, "etc/tiny")); string(b) != "in the inode" {
		t.Errorf("etc/tiny is %q afterwards", b)
	}
}

// bigTree makes 200 MB in 8,000 files.
func bigTree(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	block := bytes.Repeat([]byte("some bytes of a program "), 4<<10)
	for i := range 8000 {
		at := filepath.Join(dir, fmt.Sprintf("usr/share/%d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(at, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(at, fmt.Sprint(i)), block[:i%2*50000+500+i%1000], 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for name, text := range map[string]string{"etc/os-release": "ID=x\n", "bin/sh": string(program)} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// BenchmarkUnpack has cp(1) of the same files beside it, which is the floor.
func BenchmarkUnpack(b *testing.B) {
	dir := bigTree(b)
	image := makeExt(b, dir, "400M")
	b.Run("unpack", func(b *testing.B) {
		for range b.N {
			to := filepath.Join(b.TempDir(), "root")
			if _, err := rootfs.Unpack(b.Context(), find(b, image), to, rootfs.Limits{}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := os.RemoveAll(to); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("cp", func(b *testing.B) {
		for range b.N {
			to := filepath.Join(b.TempDir(), "root")
			if out, err := exec.Command("sh", "-c", `cp -a "$0" "$1"`, dir, to).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			b.StopTimer()
			if err := os.RemoveAll(to); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}
