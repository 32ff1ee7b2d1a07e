// Package sys is the agent's access to an operating system. Everything that the
// agent knows about a machine comes through it: it reads files under /proc, /sys
// and /run/udev as the kernel writes them, and opens block devices by name. It
// does not know what the agent uses them for.
//
// Linux is the real operating system. Package systest has an in-memory one, which
// emulated servers use, too, so that the same code parses sysfs everywhere.
package sys

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// ErrNoDevice reports that no block device has this name.
var ErrNoDevice = errors.New("sys: no such block device")

// System is one running operating system.
type System interface {
	// FS returns the root file system, read-only, with paths without a leading
	// slash ("sys/block"). It implements fs.ReadLinkFS, because sysfs consists of
	// links.
	FS() fs.ReadLinkFS
	// OpenBlock opens a block device (disk, partition or array) by its kernel name
	// ("sda") for reading and writing, exclusively if the system supports that.
	OpenBlock(name string) (Block, error)
	// TempFile returns an unnamed scratch file that is deleted when it is closed.
	TempFile() (Scratch, error)
	// Arch returns the machine's architecture like uname -m ("x86_64").
	Arch() string
	// Hostname returns the system's name.
	Hostname() string
	// Addresses returns the IP addresses of an interface, without prefix lengths.
	Addresses(nic string) []string
}

// Block is an open block device.
type Block interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() int64 // bytes
	// Zero makes n bytes at off read as zeros, without writing them if the device
	// supports that. off and n are multiples of 512.
	Zero(off, n int64) error
	// Sync returns when all writes are durable.
	Sync() error
}

// ErrNoErase reports that a device has no command to erase itself, or none that it
// executes now.
var ErrNoErase = errors.New("sys: the device cannot erase itself")

// Eraser is a Block whose device may be able to erase itself.
type Eraser interface {
	// SecureErase erases the whole device, including what writes cannot reach, and
	// returns the name of the command. It returns ErrNoErase if nothing was done.
	// A device that has begun does not stop when ctx ends.
	SecureErase(ctx context.Context) (command string, err error)
}

// Stopper is a System that can stop a running software RAID: the device disappears
// and its members are free.
type Stopper interface {
	StopArray(name string) error // kernel name ("md127")
}

// FrameReceiver is a System that can listen on its network interfaces.
type FrameReceiver interface {
	// ReceiveFrames waits until a frame of an EtherType that is sent to neighbours
	// has arrived on each of the interfaces, or until ctx ends. It returns the
	// first frame of each, by the interface's name.
	ReceiveFrames(ctx context.Context, etherType uint16, nics []string) map[string][]byte
}

// Scratch is a temporary file.
type Scratch interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}
