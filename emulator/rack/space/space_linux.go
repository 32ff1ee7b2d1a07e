package space

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// free returns how many bytes this user can still write to the file system of a
// directory.
func free(dir string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", dir, err)
		}
		return int64(st.Bavail) * st.Bsize, nil
	}
}

// allocate gives a file blocks for size bytes.
func allocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), errors.Join(err, f.Truncate(0)))
		}
		return nil
	}
}
