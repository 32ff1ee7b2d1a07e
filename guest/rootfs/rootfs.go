// Package rootfs reads the root file system of a Linux installation from a disk, without a
// kernel and without privileges: it finds it among the partitions, reads ext2, ext3, ext4 and
// squashfs, names what it does not read, unpacks it into a directory that an overlay can lie
// on, and keeps such directories for all processes of this machine. It does not know who
// wrote the disk, nor what runs on the files.
//
// All bytes of a disk are whatever somebody has written there: each number is compared with
// what there can be before it is used.
package rootfs

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// Reader reads the files of one file system. It is for one goroutine at a time.
type Reader interface {
	// Root returns the root directory and starts a walk. A reader refuses a walk that
	// reads more blocks of directories and maps than a file system can have.
	Root() (Inode, error)
	// List calls yield for the names of a directory but "." and "..", in no order.
	List(dir Inode, yield func(Entry) error) error
	Inode(Entry) (Inode, error)
	// Link returns what a symbolic link names.
	Link(Inode) (string, error)
	// Attributes returns the extended attributes by their full names.
	Attributes(Inode) (map[string][]byte, error)
	// Data calls yield for the parts of a regular file that are no holes, from its start
	// to its end. The bytes are good until yield returns.
	Data(file Inode, yield func(off int64, b []byte) error) error
}

// Entry is a name in a directory.
type Entry struct {
	Name string
	file any // what the reader finds the inode by
}

// Inode is a file of any type. Numbers of inodes tell hard links from copies.
type Inode struct {
	Number   uint64
	Mode     fs.FileMode
	UID, GID int
	Size     int64 // bytes
	Links    int   // names that the file has
	Modified time.Time
	file     any // the reader's own
}

// FileSystem is a root file system on a disk.
type FileSystem struct {
	Reader    Reader
	Type      string // as blkid(8) has it: "ext4"
	Partition int    // counted from 1, as the kernel does; 0 is the whole disk
	UUID      string // "" has none
	Label     string
	Used      int64 // bytes that it says are used; 0: not known
	// NeedsRecovery says that its journal has changes that were not carried out, because
	// it was not unmounted. They are not read: files may be as they were before.
	NeedsRecovery bool
	// OSRelease is the text of its os-release(5).
	OSRelease string
	// Architecture is the processor of its shell or init, as GOARCH names it; "": unknown.
	Architecture string
}

// Partition describes a partition that Find did not take.
type Partition struct {
	Number int    // 0 is the whole disk
	Type   string // "vfat"; "" is nothing that is known
	Reason string // why it is not the root file system
}

// String returns a text for people.
func (p Partition) String() string {
	where := "the whole disk"
	if p.Number > 0 {
		where = fmt.Sprintf("partition %d", p.Number)
	}
	kind := p.Type
	if kind == "" {
		kind = "nothing that is known"
	}
	if p.Reason != "" {
		kind += ", " + p.Reason
	}
	return where + ": " + kind
}

// NoRootError means that a disk has no root file system that this package reads.
type NoRootError struct {
	Found []Partition // empty: the disk has no partitions and no file system
}

// Error implements error.
func (e *NoRootError) Error() string {
	if len(e.Found) == 0 {
		return "the disk has no partition table and no file system that is known"
	}
	var out []string
	for i, p := range e.Found {
		if i == maxNamed {
			out = append(out, fmt.Sprintf("and %d more", len(e.Found)-i))
			break
		}
		out = append(out, p.String())
	}
	return "the disk has no root file system that can be read: " + strings.Join(out, "; ")
}

// maxNamed is how many partitions an error names.
const maxNamed = 16

// CorruptError means that a file system contradicts itself.
type CorruptError struct {
	Type string // of the file system
	What string
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("rootfs: the %s file system is damaged: %s", e.Type, e.What)
}

// UnsupportedError means that a file system, or a file of it, has a form that this package
// does not read.
type UnsupportedError struct {
	Type string // of the file system
	What string
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("rootfs: %s file system with %s, which is not read", e.Type, e.What)
}

// readFull fills p. A reader may return io.EOF with the last byte.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
