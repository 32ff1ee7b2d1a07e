package kube

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocateAhead gives a file blocks of the disk for its holes and for ahead bytes beyond
// its end. A file system that cannot do that is no error.
func allocateAhead(path string, ahead int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, st.Size()+ahead)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
			return &os.PathError{Op: "allocate", Path: path, Err: err}
		default:
			return nil
		}
	}
}
