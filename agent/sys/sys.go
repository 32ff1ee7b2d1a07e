// Package sys is the agent's window on an operating system. Everything that
// the agent knows of a machine comes through it: files under /proc, /sys and
// /run/udev are read as the kernel writes them, and block devices are opened by name. It refuses to
// know what the agent wants them for.
//
// Linux is the real one. systest has its in-memory twin, which emulated servers use
// too, so that the code that parses sysfs is the same everywhere.
package sys

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// ErrNoDevice means that no block device has that name.
var ErrNoDevice = errors.New("sys: no such block device")

// System is one running operating system.
type System interface {
	// FS is the root file system, read-only, paths without a leading slash
	// ("sys/block"). It implements fs.ReadLinkFS: sysfs is made of links.
	FS() fs.ReadLinkFS
	// OpenBlock opens a block device, a disk, partition or array, by its kernel
	// name ("sda") for reading and writing, exclusively where the system can do
	// that.
	OpenBlock(name string) (Block, error)
	// TempFile makes an unnamed scratch file that is gone when it is closed.
	TempFile() (Scratch, error)
	// Arch is the machine's architecture as uname -m says ("x86_64").
	Arch() string
	// Hostname is the system's name.
	Hostname() string
	// Addresses are the IP addresses of an interface, without prefix length.
	Addresses(nic string) []string
}

// Block is an open block device.
type Block interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() int64 // bytes
	// Zero makes n bytes from off read as zeros, without writing them where
	// the device can do that. off and n are multiples of 512.
	Zero(off, n int64) error
	// Sync returns when what was written is durable.
	Sync() error
}

// ErrNoErase means that a device has no command to erase itself, or none that
// it would take now.
var ErrNoErase = errors.New("sys: the device cannot erase itself")

// Eraser is a Block whose device may know how to erase itself.
type Eraser interface {
	// SecureErase erases the whole device, also what cannot be reached by
	// writing, and names the command that did. It wraps ErrNoErase when nothing
	// was done. A device that has begun does not stop when ctx ends.
	SecureErase(ctx context.Context) (command string, err error)
}

// Stopper is a System that can take apart a software RAID that it runs: its
// device goes, and its members are free.
type Stopper interface {
	StopArray(name string) error // kernel name ("md127")
}

// Hearer is a System that can listen on its network interfaces.
type Hearer interface {
	// Hear waits until a frame of an EtherType that is sent to neighbours has
	// come in on each of the interfaces, or ctx ends, and returns the first of
	// each, whole, by the interface's name.
	Hear(ctx context.Context, etherType uint16, nics []string) map[string][]byte
}

// Scratch is a temporary file.
type Scratch interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}
