//go:build !linux

package rootfs

import (
	"errors"
	"syscall"
)

// freeSpace is not known on this system.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

// mkfifo is not supported on this system.
func mkfifo(int, string) error { return errors.ErrUnsupported }

// syncAll writes all file systems to their disks.
func syncAll(string) error {
	syscall.Sync()
	return nil
}
