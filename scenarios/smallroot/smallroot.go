// Package smallroot makes root file systems that have a shell with its libraries and little else, for
// tests that boot one.
package smallroot

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// OSRelease is the text of its os-release(5).
const OSRelease = "ID=small\nPRETTY_NAME=\"Small 1\"\n"

// A Dir is a root file system in a directory.
type Dir struct {
	t    testing.TB
	Path string
}

// New makes one whose /usr is merged, or which has its /bin, /sbin and /lib beside it.
func New(t testing.TB, merged bool) Dir {
	t.Helper()
	d := Dir{t, t.TempDir()}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		d.check(os.MkdirAll(filepath.Join(d.Path, "usr", name), 0o755))
		if merged {
			d.Link("usr/"+name, name)
		}
	}
	d.check(os.Mkdir(filepath.Join(d.Path, "root"), 0o700))
	libraries, err := exec.Command("ldd", "/bin/sh", "/bin/cat").Output()
	d.check(err)
	files := []string{"/bin/sh", "/bin/cat"}
	for word := range strings.FieldsSeq(string(libraries)) {
		if strings.HasPrefix(word, "/") && !strings.HasSuffix(word, ":") {
			files = append(files, word)
		}
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		d.check(err)
		d.Put(name, string(b), 0o755)
	}
	d.Put("usr/lib/os-release", OSRelease, 0o644)
	d.Link("../usr/lib/os-release", "etc/os-release")
	d.Put("etc/passwd", "root:x:0:0::/root:/bin/sh\n", 0o644)
	d.Put("etc/group", "root:x:0:\n", 0o644)
	return d
}

func (d Dir) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// Put writes a file.
func (d Dir) Put(name, content string, mode fs.FileMode) {
	d.t.Helper()
	file := filepath.Join(d.Path, name)
	d.check(os.MkdirAll(filepath.Dir(file), 0o755))
	d.check(os.WriteFile(file, []byte(content), mode))
	d.check(os.Chmod(file, mode))
}

// Link makes a symbolic link.
func (d Dir) Link(to, name string) {
	d.t.Helper()
	file := filepath.Join(d.Path, name)
	d.check(os.MkdirAll(filepath.Dir(file), 0o755))
	d.check(os.Symlink(to, file))
}

// Disk returns the bytes of a disk that firmware boots, with the root file system as ext4 in its
// first partition.
func (d Dir) Disk() []byte {
	const size = 24
	return Disk(d.t, d.Path, size)
}

// Disk returns such a disk with any root file system, whose partition has a size in MiB.
func Disk(t testing.TB, dir string, size int) []byte {
	t.Helper()
	mkfs := prerequisites.Need(t, "mkfs.ext4")
	const mib, sector = 1 << 20, 512
	part := filepath.Join(t.TempDir(), "part")
	out, err := exec.Command(mkfs, "-q", "-d", dir, part, fmt.Sprintf("%dM", size)).CombinedOutput()
	if err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	b, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	disk := bytes.Join([][]byte{make([]byte, mib), b}, nil)
	copy(disk, "\xeb\xfe") // boot code: jump here
	const bootable, linux = 0x80, 0x83
	entry := disk[446:]
	entry[0], entry[4] = bootable, linux
	for i, n := range []uint32{mib / sector, uint32(len(b) / sector)} {
		for j := range 4 {
			entry[8+4*i+j] = byte(n >> (8 * j))
		}
	}
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}
