package sys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileBlock is a block device, or a regular file in place of one.
type fileBlock struct {
	file   *os.File
	device bool
	size   int64
	dirty  atomic.Bool // written since it was opened
}

// newFileBlock takes ownership of f if it returns no error.
func newFileBlock(f *os.File) (*fileBlock, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("sys: %w", err)
	}
	b := &fileBlock{file: f, device: info.Mode()&fs.ModeDevice != 0, size: info.Size()}
	if !b.device {
		return b, nil
	}
	var size uint64
	if err := b.ioctl(unix.BLKGETSIZE64, unsafe.Pointer(&size)); err != nil {
		return nil, fmt.Errorf("sys: size of %s: %w", f.Name(), err)
	}
	b.size = int64(size)
	return b, nil
}

func (b *fileBlock) Size() int64 { return b.size }

func (b *fileBlock) ReadAt(p []byte, off int64) (int, error) { return b.file.ReadAt(p, off) }

// WriteAt rejects writes beyond the end, which would extend a regular file.
func (b *fileBlock) WriteAt(p []byte, off int64) (int, error) {
	if err := b.within(off, int64(len(p))); err != nil {
		return 0, err
	}
	b.dirty.Store(true)
	return b.file.WriteAt(p, off)
}

// Zero tries the device's command (BLKZEROOUT) or a hole in the file first. The
// kernel itself writes zeros for a device without such a command; the loop is for
// file systems and drivers that refuse both.
func (b *fileBlock) Zero(off, n int64) error {
	if off%512 != 0 || n%512 != 0 {
		return fmt.Errorf("sys: zero %s: %d bytes at %d are not whole sectors", b.file.Name(), n, off)
	}
	if err := b.within(off, n); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	b.dirty.Store(true)
	var err error
	if b.device {
		span := [2]uint64{uint64(off), uint64(n)}
		err = b.ioctl(unix.BLKZEROOUT, unsafe.Pointer(&span))
	} else {
		err = b.control(func(fd int) error {
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
		})
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return b.writeZeros(off, n)
	default:
		return fmt.Errorf("sys: zero %s: %w", b.file.Name(), err)
	}
}

func (b *fileBlock) writeZeros(off, n int64) error {
	zeros := make([]byte, min(n, 1<<20))
	for n > 0 {
		p := zeros[:min(n, int64(len(zeros)))]
		if _, err := b.file.WriteAt(p, off); err != nil {
			return fmt.Errorf("sys: zero %s: %w", b.file.Name(), err)
		}
		off += int64(len(p))
		n -= int64(len(p))
	}
	return nil
}

// Sync also drops the kernel's cache of the device, so that later reads return
// what the device holds.
func (b *fileBlock) Sync() error {
	if err := b.file.Sync(); err != nil {
		return fmt.Errorf("sys: %w", err)
	}
	return b.control(func(fd int) error {
		_ = unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) // advice only
		return nil
	})
}

// Close makes the kernel read the partition table again if the device was written
// to. That fails harmlessly on devices without partitions.
func (b *fileBlock) Close() error {
	if b.device && b.dirty.Load() {
		_ = b.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.BLKRRPART, 0) })
	}
	return b.file.Close()
}

func (b *fileBlock) within(off, n int64) error {
	if off < 0 || n < 0 || off > b.size-n {
		return fmt.Errorf("sys: %s: %d bytes at %d are beyond the end at %d: %w",
			b.file.Name(), n, off, b.size, io.ErrShortWrite)
	}
	return nil
}

func (b *fileBlock) ioctl(request uintptr, arg unsafe.Pointer) error {
	return b.control(func(fd int) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg)); errno != 0 {
			return errno
		}
		return nil
	})
}

// control calls do with the descriptor. Unlike File.Fd it does not make the file
// blocking.
func (b *fileBlock) control(do func(fd int) error) error {
	raw, err := b.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("sys: %w", err)
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return fmt.Errorf("sys: %w", err)
	}
	return inner
}
