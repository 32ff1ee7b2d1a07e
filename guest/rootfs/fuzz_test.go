package rootfs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/metalab-dev/metalab/agent/gpt"
	"github.com/metalab-dev/metalab/guest/rootfs"
)

func FuzzExt4(f *testing.F) { fuzz(f, "testdata/ext4-*.gz") }

func FuzzSquashfs(f *testing.F) { fuzz(f, "testdata/squashfs-*.gz") }

// FuzzFind changes bytes of partition tables of both sizes of blocks, and of a chain of
// logical partitions.
func FuzzFind(f *testing.F) {
	var disks []disk
	for _, block := range []int64{512, 4096} {
		d := newDisk(1)
		d.partition(block, gpt.LinuxData)
		disks = append(disks, d)
	}
	d := newDisk(1)
	copy(d[446:], []byte{0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 100, 0, 0, 0})
	copy(d[510:], "\x55\xaa")
	copy(d[512+446:], []byte{0, 0, 0, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 5})
	copy(d[1022:], "\x55\xaa")
	disks = append(disks, d)
	for i := range disks {
		f.Add(uint8(i), []byte{0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		disk := bytes.Clone(disks[int(which)%len(disks)])
		alter(disk, changes)
		if _, err := rootfs.Find(bytes.NewReader(disk), int64(len(disk))); err == nil {
			t.Error("there is no root on the disk")
		}
	})
}

// alter changes bytes: each change is an offset of three bytes, and a byte.
func alter(b, changes []byte) {
	for len(changes) >= 4 {
		off := int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])
		b[off%len(b)] = changes[3]
		changes = changes[4:]
	}
}

// fuzz changes bytes of small file systems and reads all that is left.
func fuzz(f *testing.F, pattern string) {
	seeds, err := filepath.Glob(pattern)
	if err != nil || len(seeds) == 0 {
		f.Fatalf("seeds: %v", err)
	}
	var images [][]byte
	for _, name := range seeds {
		file, err := os.Open(name)
		if err != nil {
			f.Fatal(err)
		}
		z, err := gzip.NewReader(file)
		if err != nil {
			f.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			f.Fatal(err)
		}
		file.Close()
		images = append(images, b)
	}
	f.Add(uint8(0), []byte{})
	f.Add(uint8(1), []byte{0, 4, 56, 1})
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		image := bytes.Clone(images[int(which)%len(images)])
		alter(image, changes)
		found, err := rootfs.Find(bytes.NewReader(image), int64(len(image)))
		if err != nil {
			return
		}
		readAll(found.Reader)
	})
}

// readAll reads all files once, and ends at the first error.
func readAll(r rootfs.Reader) {
	seen := map[uint64]bool{}
	total := int64(0)
	var visit func(rootfs.Inode, int) error
	visit = func(in rootfs.Inode, depth int) error {
		if seen[in.Number] || depth > 100 {
			return nil
		}
		seen[in.Number] = true
		if _, err := r.Attributes(in); err != nil {
			return err
		}
		switch {
		case in.Mode.IsDir():
			return r.List(in, func(e rootfs.Entry) error {
				next, err := r.Inode(e)
				if err != nil {
					return err
				}
				return visit(next, depth+1)
			})
		case in.Mode.IsRegular():
			return r.Data(in, func(_ int64, b []byte) error {
				if total += int64(len(b)); total > 64<<20 {
					return io.ErrShortBuffer
				}
				return nil
			})
		case in.Mode&os.ModeSymlink != 0:
			_, err := r.Link(in)
			return err
		}
		return nil
	}
	if root, err := r.Root(); err == nil {
		_ = visit(root, 0)
	}
}
