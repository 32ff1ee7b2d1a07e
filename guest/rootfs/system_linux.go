package rootfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace returns how many bytes this user can still write to the file system of a
// directory.
func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("rootfs: %s: %w", dir, err)
		}
		return int64(st.Bavail) * st.Bsize, nil
	}
}

// mkfifo makes a named pipe in a directory.
func mkfifo(dir int, base string) error { return unix.Mknodat(dir, base, unix.S_IFIFO|0o600, 0) }

// syncAll writes all of the file system that a directory is on to the disk: a sync of each
// file costs more.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("rootfs: %w", err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("rootfs: sync of %s: %w", dir, err)
	}
	return nil
}
