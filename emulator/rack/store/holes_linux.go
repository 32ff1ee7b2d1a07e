package store

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// seekData returns the offset of the first data at or after off, or io.EOF when only
// a hole follows. On a file system without holes everything is data.
func seekData(f *os.File, off int64) (int64, error) {
	at, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return 0, io.EOF
	case errors.Is(err, unix.EINVAL), errors.Is(err, errors.ErrUnsupported):
		return off, nil
	case err != nil:
		return 0, fmt.Errorf("search: %w", err)
	}
	return at, nil
}

// punchHole makes a hole. It returns errors.ErrUnsupported on a file system without
// holes.
func punchHole(f *os.File, off, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("discard: %w", err)
		}
		return nil
	}
}
