//go:build linux

package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Linux is the operating system on which the agent runs.
type Linux struct {
	// ScratchDir is the directory of scratch files; empty means the system's
	// directory for temporary files, which on a ramdisk is memory.
	ScratchDir string
}

// FS returns the real root file system.
func (Linux) FS() fs.ReadLinkFS {
	return os.DirFS("/").(fs.ReadLinkFS) // documented since Go 1.25
}

// OpenBlock opens /dev/NAME exclusively: the kernel refuses a disk that is mounted
// or used by RAID or LVM.
func (Linux) OpenBlock(name string) (Block, error) {
	if name == "" || strings.Contains(name, "/") || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%w: %q", ErrNoDevice, name)
	}
	// sysfs has an exclamation mark for the slash in names like cciss/c0d0.
	path := "/dev/" + strings.ReplaceAll(name, "!", "/")
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENXIO):
		return nil, fmt.Errorf("%w: %s", ErrNoDevice, path)
	case errors.Is(err, unix.EBUSY):
		return nil, fmt.Errorf("sys: %s is in use (mounted, or held by RAID or LVM): %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("sys: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("sys: %w", err)
	}
	if info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0 {
		f.Close()
		return nil, fmt.Errorf("%w: %s is no block device", ErrNoDevice, path)
	}
	b, err := newFileBlock(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return b, nil
}

// StopArray stops an array through the md driver
// (Documentation/admin-guide/md.rst: "clear"), which refuses one in use.
func (Linux) StopArray(name string) error {
	if name == "" || strings.ContainsAny(name, "/.") {
		return fmt.Errorf("%w: %q", ErrNoDevice, name)
	}
	err := os.WriteFile("/sys/block/"+name+"/md/array_state", []byte("clear\n"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: /dev/%s is no software RAID", ErrNoDevice, name)
	}
	if err != nil {
		return fmt.Errorf("sys: %w", err)
	}
	return nil
}

// TempFile returns a scratch file in ScratchDir.
func (l Linux) TempFile() (Scratch, error) { return NewScratch(l.ScratchDir) }

// Arch returns the machine field of uname(2).
func (Linux) Arch() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}

// Hostname returns the kernel's host name; "" if it cannot be read.
func (Linux) Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// Addresses returns the interface's addresses in the kernel's order; none if there
// is no such interface.
func (Linux) Addresses(nic string) []string {
	ifc, err := net.InterfaceByName(nic)
	if err != nil {
		return nil
	}
	addrs, err := ifc.Addrs()
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			out = append(out, n.IP.String())
		}
	}
	return out
}
