package rootfs

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// What is where is in the kernel's Documentation/filesystems/squashfs.rst and
// fs/squashfs/squashfs_fs.h, whose names are used below. Libraries that were looked at lose
// the bits beyond permissions, and crash on numbers that cannot be.

// Sizes of structures, in bytes.
const (
	squashSuper   = 96
	squashMeta    = 8192 // of a block of metadata, unpacked
	squashInode   = 16   // of what all inodes begin with
	maxSquash     = 1 << 20
	minSquash     = 4096
	noFragment    = 0xffffffff
	noTable       = 0xffffffffffffffff
	squashVersion = 4
)

// Types of inodes; the extended form of each is 7 more.
const (
	squashDir = 1 + iota
	squashFile
	squashLink
	squashBlock
	squashChar
	squashFifo
	squashSocket
	squashExtended = squashSocket
)

var squashTypes = map[uint16]fs.FileMode{
	squashDir: fs.ModeDir, squashFile: 0, squashLink: fs.ModeSymlink, squashBlock: fs.ModeDevice,
	squashChar: fs.ModeDevice | fs.ModeCharDevice, squashFifo: fs.ModeNamedPipe, squashSocket: fs.ModeSocket,
}

// squash reads a squashfs 4.0.
type squash struct {
	r      io.ReaderAt
	size   int64
	unpack func(dst, src []byte) (int, error)
	block  int64 // bytes of a block of data

	inodes, dirs, fragments, ids, attributes int64 // where tables begin
	fragmentCount, idCount, attributeCount   int64
	values                                   int64 // where attributes begin
	root                                     uint64

	meta   map[int64]metaBlock // unpacked, by where they are
	packed []byte
	data   []byte
	tails  map[uint32][]byte // unpacked fragments
}

// metaBlock is a block of metadata, and where the next one is.
type metaBlock struct {
	b    []byte
	next int64
}

// squashNode is the part of an inode that only this reader uses.
type squashNode struct {
	start         int64  // of the data, or of a listing in the table of directories
	offset        int    // in the block of the listing, or of the fragment
	fragment      uint32 // or noFragment
	sizes         cursor // of the blocks' sizes
	attribute     uint32 // or noFragment
	link          string
	listing       int64 // bytes
	hasAttributes bool
}

func (s *squash) corrupt(format string, a ...any) error {
	return &CorruptError{Type: "squashfs", What: fmt.Sprintf(format, a...)}
}

// openSquash reads the superblock.
func openSquash(r io.ReaderAt, size int64) (*FileSystem, error) {
	b := make([]byte, squashSuper)
	if err := readFull(r, b, 0); err != nil {
		return nil, fmt.Errorf("rootfs: superblock: %w", err)
	}
	s := &squash{
		r: r, block: int64(le.Uint32(b[12:])), root: le.Uint64(b[32:]),
		fragmentCount: int64(le.Uint32(b[16:])), idCount: int64(le.Uint16(b[26:])),
		meta: map[int64]metaBlock{}, tails: map[uint32][]byte{}, packed: make([]byte, squashMeta),
	}
	if v := le.Uint16(b[28:]); v != squashVersion {
		return nil, &UnsupportedError{Type: "squashfs", What: fmt.Sprintf("version %d", v)}
	}
	used := le.Uint64(b[40:])
	if used > uint64(size) {
		return nil, s.corrupt("it has %d bytes, and its partition %d", used, size)
	}
	s.size = int64(used)
	if s.block < minSquash || s.block > maxSquash || s.block&(s.block-1) != 0 {
		return nil, s.corrupt("blocks of %d bytes", s.block)
	}
	var err error
	if s.unpack, err = squashUnpacker(le.Uint16(b[20:])); err != nil {
		return nil, err
	}
	for at, table := range map[int]*int64{48: &s.ids, 64: &s.inodes, 72: &s.dirs, 80: &s.fragments} {
		n := le.Uint64(b[at:])
		if n > uint64(s.size) && (at != 80 || s.fragmentCount > 0) {
			return nil, s.corrupt("a table begins at %d of %d", n, s.size)
		}
		*table = int64(n)
	}
	if at := le.Uint64(b[56:]); at != noTable {
		head := make([]byte, 16)
		if at > uint64(s.size) {
			return nil, s.corrupt("a table begins at %d of %d", at, s.size)
		}
		if err := s.read(head, int64(at)); err != nil {
			return nil, err
		}
		s.attributes, s.values, s.attributeCount = int64(at)+16, int64(min(le.Uint64(head), noTable>>1)), int64(le.Uint32(head[8:]))
	}
	s.data = make([]byte, s.block)
	return &FileSystem{Reader: s, Type: "squashfs"}, nil
}

// read reads bytes that are not packed.
func (s *squash) read(p []byte, off int64) error {
	if off < 0 || off > s.size-int64(len(p)) {
		return s.corrupt("it names bytes %d to %d, and has %d", off, off+int64(len(p)), s.size)
	}
	return readFull(s.r, p, off)
}

// Root implements Reader.
func (s *squash) Root() (Inode, error) {
	in, err := s.inode(s.root)
	if err == nil && !in.Mode.IsDir() {
		err = s.corrupt("its root is no directory")
	}
	return in, err
}

// Inode implements Reader.
func (s *squash) Inode(at Entry) (Inode, error) {
	ref, ok := at.file.(uint64)
	if !ok {
		return Inode{}, fmt.Errorf("rootfs: %q is of another file system", at.Name)
	}
	return s.inode(ref)
}

// inode reads the inode of a reference: where its block begins in the table, and 16 bits of
// offset in that.
func (s *squash) inode(ref uint64) (Inode, error) {
	if ref>>16 > uint64(s.size) {
		return Inode{}, s.corrupt("it names the inode %#x", ref)
	}
	c := cursor{s: s, at: s.inodes + int64(ref>>16), skip: int(ref & 0xffff)}
	var h [squashInode]byte
	if err := c.read(h[:]); err != nil {
		return Inode{}, err
	}
	kind := le.Uint16(h[0:])
	extended := kind > squashExtended
	if extended {
		kind -= squashExtended
	}
	mode, ok := modeOf(le.Uint16(h[2:])&0o7777 | 0x8000)
	kindMode, known := squashTypes[kind]
	if !ok || !known {
		return Inode{}, s.corrupt("an inode of type %d", kind)
	}
	in := Inode{
		Number: uint64(le.Uint32(h[12:])), Mode: mode | kindMode, Links: 1,
		Modified: time.Unix(int64(le.Uint32(h[8:])), 0),
	}
	var err error
	if in.UID, err = s.id(le.Uint16(h[4:])); err == nil {
		in.GID, err = s.id(le.Uint16(h[6:]))
	}
	n := squashNode{fragment: noFragment}
	if err == nil {
		switch kind {
		case squashDir:
			err = s.dirInode(&c, extended, &in, &n)
		case squashFile:
			err = s.fileInode(&c, extended, &in, &n)
		default:
			err = s.otherInode(&c, kind, extended, &in, &n)
		}
	}
	in.file = n
	return in, err
}

func (s *squash) dirInode(c *cursor, extended bool, in *Inode, n *squashNode) error {
	b := make([]byte, 16)
	if extended {
		b = make([]byte, 24)
	}
	if err := c.read(b); err != nil {
		return err
	}
	if extended {
		n.listing, n.start, n.offset = int64(le.Uint32(b[4:])), int64(le.Uint32(b[8:])), int(le.Uint16(b[18:]))
		n.attribute, n.hasAttributes = le.Uint32(b[20:]), true
	} else {
		n.start, n.listing, n.offset = int64(le.Uint32(b)), int64(le.Uint16(b[8:])), int(le.Uint16(b[10:]))
	}
	in.Size = n.listing
	return nil
}

func (s *squash) fileInode(c *cursor, extended bool, in *Inode, n *squashNode) error {
	b := make([]byte, 16)
	if extended {
		b = make([]byte, 40)
	}
	if err := c.read(b); err != nil {
		return err
	}
	size, start := uint64(le.Uint32(b[12:])), uint64(le.Uint32(b))
	if extended {
		start, size = le.Uint64(b), le.Uint64(b[8:])
		in.Links = int(le.Uint32(b[24:]))
		n.fragment, n.offset = le.Uint32(b[28:]), int(le.Uint32(b[32:]))
		n.attribute, n.hasAttributes = le.Uint32(b[36:]), true
	} else {
		n.fragment, n.offset = le.Uint32(b[4:]), int(le.Uint32(b[8:]))
	}
	if size > maxFile || start > uint64(s.size) {
		return s.corrupt("a file of %d bytes from %d on", size, start)
	}
	in.Size, n.start, n.sizes = int64(size), int64(start), *c
	return nil
}

// otherInode reads the rest of links, devices and what has no data.
func (s *squash) otherInode(c *cursor, kind uint16, extended bool, in *Inode, n *squashNode) error {
	b := make([]byte, 4)
	if kind == squashLink || kind == squashBlock || kind == squashChar {
		b = make([]byte, 8)
	}
	if err := c.read(b); err != nil {
		return err
	}
	in.Links = int(le.Uint32(b))
	if kind == squashLink {
		size := le.Uint32(b[4:])
		if size == 0 || size > 4095 {
			return s.corrupt("a symbolic link of %d bytes", size)
		}
		to := make([]byte, size)
		if err := c.read(to); err != nil {
			return err
		}
		n.link, in.Size = cText(to), int64(size)
	}
	if extended {
		if err := c.read(b[:4]); err != nil {
			return err
		}
		n.attribute, n.hasAttributes = le.Uint32(b), true
	}
	return nil
}

// id returns the user or group of an index.
func (s *squash) id(index uint16) (int, error) {
	if int64(index) >= s.idCount {
		return 0, s.corrupt("it names owner %d of %d", index, s.idCount)
	}
	var b [4]byte
	err := s.tableEntry(b[:], s.ids, int64(index))
	return int(le.Uint32(b[:])), err
}

// tableEntry reads an entry of a table, which begins with the places of its blocks.
func (s *squash) tableEntry(p []byte, table, index int64) error {
	off := index * int64(len(p))
	var at [8]byte
	if err := s.read(at[:], table+off/squashMeta*8); err != nil {
		return err
	}
	place := le.Uint64(at[:])
	if place > uint64(s.size) {
		return s.corrupt("a table's block is at %d of %d", place, s.size)
	}
	c := cursor{s: s, at: int64(place), skip: int(off % squashMeta)}
	return c.read(p)
}

// List implements Reader.
func (s *squash) List(dir Inode, yield func(Entry) error) error {
	n, ok := dir.file.(squashNode)
	if !ok || !dir.Mode.IsDir() {
		return s.corrupt("inode %d is no directory", dir.Number)
	}
	c := cursor{s: s, at: s.dirs + n.start, skip: n.offset}
	left := n.listing - 3 // which stand for "." and ".."
	for left > 0 {
		var h [12]byte
		if err := c.read(h[:]); err != nil {
			return err
		}
		left -= int64(len(h))
		count, block := int(le.Uint32(h[:]))+1, uint64(le.Uint32(h[4:]))
		if count > 256 { // SQUASHFS_DIR_COUNT
			return s.corrupt("a directory's header has %d names", count)
		}
		for range count {
			var e [8]byte
			if err := c.read(e[:]); err != nil {
				return err
			}
			name := make([]byte, int(le.Uint16(e[6:]))+1)
			if len(name) > 256 {
				return s.corrupt("a name of %d bytes", len(name))
			}
			if err := c.read(name); err != nil {
				return err
			}
			left -= int64(len(e) + len(name))
			if text := string(name); text == "." || text == ".." || strings.ContainsAny(text, "/\x00") {
				return s.corrupt("a directory has the name %q", text)
			}
			if err := yield(Entry{Name: string(name), file: block<<16 | uint64(le.Uint16(e[:]))}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Link implements Reader.
func (s *squash) Link(in Inode) (string, error) {
	n, ok := in.file.(squashNode)
	if !ok || n.link == "" {
		return "", s.corrupt("inode %d is no symbolic link", in.Number)
	}
	return n.link, nil
}
