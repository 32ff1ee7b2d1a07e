package rootfs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/metalab-dev/metalab/guest/rootfs"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// makeSquash makes a squashfs of a directory and returns its file.
func makeSquash(t testing.TB, dir string, options ...string) string {
	t.Helper()
	mksquashfs := prerequisites.Need(t, "mksquashfs")
	image := filepath.Join(t.TempDir(), "image")
	args := append([]string{dir, image, "-noappend", "-quiet", "-no-progress", "-processors", "1"}, options...)
	if out, err := exec.Command(mksquashfs, args...).CombinedOutput(); err != nil {
		t.Fatalf("mksquashfs %q: %v: %s", args, err, out)
	}
	return image
}

func TestSquashfsIsReadWithAllOptions(t *testing.T) {
	dir := makeTree(t)
	for _, options := range [][]string{
		{"-comp", "gzip"}, {"-comp", "xz"}, {"-comp", "zstd"}, {"-comp", "zstd", "-b", "1M"}, {"-b", "4096"},
		{"-noI", "-noD", "-noF"}, {"-no-fragments"}, {"-always-use-fragments", "-b", "8192"}, {"-no-exports", "-no-xattrs"},
	} {
		found := find(t, makeSquash(t, dir, options...))
		if found.Type != "squashfs" || found.OSRelease != osRelease || found.Architecture != "arm64" {
			t.Errorf("%q: Find() = %+v", options, found)
		}
		compare(t, found.Reader, dir)
		if t.Failed() {
			t.Fatalf("options %q", options)
		}
	}
}

func TestSquashfsIsUnpacked(t *testing.T) {
	dir := makeTree(t)
	named := unix.Setxattr(filepath.Join(dir, "etc/tiny"), "user.name", []byte("value"), 0) == nil // where TMPDIR has them
	image := makeSquash(t, dir, "-force-uid", "70000", "-p", "etc/null c 666 0 0 1 3", "-p", "etc/pipe i 644 0 0 f")
	found := find(t, image)
	if attributes, err := found.Reader.Attributes(at(t, found.Reader, "etc/tiny")); err != nil || named && string(attributes["user.name"]) != "value" {
		t.Errorf("Attributes() = %q, %v", attributes, err)
	}
	root := unpack(t, image)
	if mode, uid, _, ok := root.Attributes("usr/bin/sudo"); mode.String() != "urwxr-xr-x" || uid != 70000 || !ok {
		t.Errorf("Attributes(usr/bin/sudo) = %v, %d, %v", mode, uid, ok)
	}
	for _, name := range []string{"usr/bin/sudo", "var/large", "etc/shadow", "usr/share/many", "etc/link1000", "var/sparse"} {
		same(t, filepath.Join(dir, name), filepath.Join(root.Dir, name), name)
	}
	if st := stat(t, root, "var/large"); st.Nlink != 2 || st.Ino != stat(t, root, "etc/hard").Ino {
		t.Errorf("var/large has %d links", st.Nlink)
	}
	if _, err := os.Lstat(filepath.Join(root.Dir, "etc/null")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the device was made: %v", err)
	}
}

func TestSquashfsNamesCompressionThatIsNotRead(t *testing.T) {
	f, size := openImage(t, makeSquash(t, makeTree(t), "-comp", "lz4"))
	if _, err := rootfs.Find(f, size); err == nil || !strings.Contains(err.Error(), "LZ4 compression, which is not read") {
		t.Errorf("Find() = %v", err)
	}
}
