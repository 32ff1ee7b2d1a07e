package snapshot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// extents returns the ranges of a file that are not holes.
func extents(f *os.File, size int64) ([]extent, error) {
	var out []extent
	for off := int64(0); off < size; {
		begin, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO): // only a hole follows
			return out, nil
		case err != nil: // the file system has no holes
			return append(out, extent{off, size - off}), nil
		}
		end, err := unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE)
		if err != nil {
			return nil, err
		}
		out = append(out, extent{begin, end - begin})
		off = end
	}
	return out, nil
}

// clone makes two files share their blocks, on a file system that can.
func clone(to, from *os.File) error {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}
