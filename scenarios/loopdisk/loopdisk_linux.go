// Package loopdisk attaches files of tests as loop devices, and removes those that tests which
// were killed have left, with the md arrays on them. It knows no test, and touches no device of
// others.
package loopdisk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fileName matches the names of the files of this package. The random part tells each from the
// file of another mount namespace at the same path.
var fileName = regexp.MustCompile(`^metalab-loop-[A-Z2-7]{26}\.img$`)

// Attach attaches a sparse file of a size in bytes, with some bytes at its beginning, and returns
// the name of the device: "loop3". The end of the test detaches it, or the end of an array that
// uses it. err is the refusal of a kernel without loop devices, or that of a user who may not.
func Attach(t testing.TB, size int64, head []byte) (name string, err error) {
	t.Helper()
	if left, err := RemoveLeft(); err != nil || len(left) > 0 {
		t.Logf("a test that was killed has left %s: removed (%v)", strings.Join(left, ", "), err)
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	file := filepath.Join(t.TempDir(), "metalab-loop-"+rand.Text()+".img")
	if err := errors.Join(os.WriteFile(file, head, 0o600), os.Truncate(file, size)); err != nil {
		return "", err
	}
	// The lock ends with this process. The device keeps the file open that it is given, with its
	// locks: it is given another.
	lock, err := os.Open(file)
	if err != nil {
		return "", err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return "", errors.Join(err, lock.Close())
	}
	device, err := configure(control, file)
	if err != nil {
		return "", errors.Join(err, lock.Close())
	}
	t.Cleanup(func() {
		if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil {
			t.Errorf("detach %s: %v", device.Name(), err)
		}
		if err := errors.Join(device.Close(), lock.Close()); err != nil {
			t.Error(err)
		}
	})
	return filepath.Base(device.Name()), nil
}

// configure attaches a file to a free device, and opens that. The kernel detaches it after the
// last who has it open, however that ends.
func configure(control *os.File, file string) (device *os.File, err error) {
	backing, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	for range 100 { // others take devices, too
		i, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", i), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		c := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		copy(c.Info.File_name[:len(c.Info.File_name)-1], filepath.Base(file))
		err = unix.IoctlLoopConfigure(int(device.Fd()), &c)
		if err == nil {
			return device, nil
		}
		if err = errors.Join(err, device.Close()); !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, errors.New("other processes took each loop device that was free")
}

// RemoveLeft stops the arrays and detaches the devices that tests have left which were killed,
// and returns their names.
func RemoveLeft() (names []string, err error) {
	arrays, loops := leftovers(os.DirFS("/sys/block"), unlocked)
	var errs []error
	for _, name := range arrays { // as STOP_ARRAY does (Linux, Documentation/admin-guide/md.rst, "array_state")
		if err := os.WriteFile(filepath.Join("/sys/block", name, "md/array_state"), []byte("clear"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, name := range loops {
		if err := detach(name); err != nil && !errors.Is(err, unix.ENXIO) && !errors.Is(err, fs.ErrNotExist) { // the kernel was first
			errs = append(errs, fmt.Errorf("detach %s: %w", name, err))
		}
	}
	return slices.Concat(arrays, loops), errors.Join(errs...)
}

func detach(name string) error {
	f, err := os.Open("/dev/" + name)
	if err != nil {
		return err
	}
	return errors.Join(unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0), f.Close())
}

// unlocked reports that nobody uses a file of Attach: it is there, and the process that has made
// it has ended.
func unlocked(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false // it is a file of another mount namespace
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// leftovers returns the loop devices whose files are left, and the arrays that have no other
// members. block is /sys/block.
func leftovers(block fs.FS, unlocked func(file string) bool) (arrays, loops []string) {
	const removed = " (deleted)" // the kernel's word for a file without a name
	devices, _ := fs.Glob(block, "loop*/loop/backing_file")
	for _, at := range devices {
		b, err := fs.ReadFile(block, at)
		if err != nil {
			continue // it was detached
		}
		file, gone := strings.CutSuffix(strings.TrimSuffix(string(b), "\n"), removed)
		if fileName.MatchString(path.Base(file)) && (gone || unlocked(file)) {
			name, _, _ := strings.Cut(at, "/")
			loops = append(loops, name)
		}
	}
	all, _ := fs.Glob(block, "md*")
	for _, name := range all {
		members, err := fs.ReadDir(block, path.Join(name, "slaves"))
		if err == nil && len(members) > 0 && !slices.ContainsFunc(members, func(e fs.DirEntry) bool { return !slices.Contains(loops, e.Name()) }) {
			arrays = append(arrays, name)
		}
	}
	return arrays, loops
}
