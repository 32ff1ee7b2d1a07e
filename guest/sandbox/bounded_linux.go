package sandbox

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// readBounded reads an open file if it is a regular one of at most a size: a device may be without
// an end.
func readBounded(f *os.File, name string, most int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: "/" + Clean(name), Err: notRegular(Node{Mode: st.Mode()})}
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, tooLarge(name, most)
	}
	return b, err
}

// readRegular reads a regular file of at most a size, without following a link at its end.
func readRegular(name string, most int64) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return readBounded(f, name, most)
}
