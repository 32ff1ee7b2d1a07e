package rootfs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/metalab-dev/metalab/guest/rootfs"
)

func FuzzExt4(f *testing.F) { fuzz(f, "testdata/ext4-*.gz") }

func FuzzSquashfs(f *testing.F) { fuzz(f, "testdata/squashfs-*.gz") }

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
		for len(changes) >= 4 { // an offset and a byte
			off := int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])
			image[off%len(image)] = changes[3]
			changes = changes[4:]
		}
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
