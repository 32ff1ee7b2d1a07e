package rootfs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"time"
)

// What is where is in the kernel's Documentation/filesystems/ext4; the names below are its
// names.
const (
	superAt    = 1024
	superSize  = 1024
	extMagicAt = superAt + 0x38
	extMagic   = 0xef53
)

// Features that a reader must know, s_feature_incompat.
const (
	incompatFiletype   = 0x2
	incompatRecover    = 0x4
	incompatMetaBG     = 0x10
	incompatExtents    = 0x40
	incompat64bit      = 0x80
	incompatMMP        = 0x100
	incompatFlexBG     = 0x200
	incompatEAInode    = 0x400
	incompatCsumSeed   = 0x2000
	incompatLargedir   = 0x4000
	incompatInlineData = 0x8000
	incompatEncrypt    = 0x10000
	incompatCasefold   = 0x20000

	known = incompatFiletype | incompatRecover | incompatMetaBG | incompatExtents | incompat64bit | incompatMMP | incompatFlexBG |
		incompatEAInode | incompatCsumSeed | incompatLargedir | incompatInlineData | incompatEncrypt | incompatCasefold
)

// unknown has the names of those that are not read.
var unknown = map[uint32]string{0x1: "compression", 0x8: "journal_dev", 0x1000: "dirdata"}

// Other features that matter here.
const (
	compatHasJournal   = 0x4
	compatSparseSuper2 = 0x200
	roSparseSuper      = 0x1

	// What ext2 and ext3 have.
	ext3Incompat = incompatFiletype | incompatRecover | incompatMetaBG
	ext3RO       = 0x1 | 0x2 | 0x4
)

// Flags of inodes, i_flags.
const (
	flagEncrypt  = 0x800
	flagExtents  = 0x80000
	flagInline   = 0x10000000
	flagCasefold = 0x40000000
)

// ext reads a file system of ext2, ext3 or ext4. Checksums are not looked at, and the
// journal is not replayed.
type ext struct {
	r    io.ReaderAt
	meta pages
	kind string
	buf  []byte // of Data

	compat, incompat, ro uint32
	block                int64 // bytes
	blocks, first        int64 // in all; of the first group
	perGroup             int64 // blocks
	inodes, inodesPer    int64 // in all; of a group
	inodeSize, descSize  int64 // bytes
	firstMetaBG          int64
	backups              [2]int64 // groups with copies, for sparse_super2

	budget int64 // blocks of directories and maps that the walk may still read
}

// extFile is the inode as it is on the disk.
type extFile struct {
	raw   []byte
	flags uint32
}

func (e *ext) corrupt(format string, a ...any) error {
	return &CorruptError{Type: e.kind, What: fmt.Sprintf(format, a...)}
}

// extType tells the type by the features, as libblkid does.
func extType(r io.ReaderAt) string {
	b := make([]byte, superSize)
	if readFull(r, b, superAt) != nil {
		return "ext4"
	}
	switch {
	case le.Uint32(b[96:])&^ext3Incompat != 0 || le.Uint32(b[100:])&^ext3RO != 0:
		return "ext4"
	case le.Uint32(b[92:])&compatHasJournal != 0:
		return "ext3"
	}
	return "ext2"
}

// openExt reads the superblock.
func openExt(r io.ReaderAt, size int64) (*FileSystem, error) {
	b := make([]byte, superSize)
	if err := readFull(r, b, superAt); err != nil {
		return nil, fmt.Errorf("rootfs: superblock: %w", err)
	}
	e := &ext{
		r: r, meta: pages{r: r, size: size}, kind: extType(r),
		compat: le.Uint32(b[92:]), incompat: le.Uint32(b[96:]), ro: le.Uint32(b[100:]),
		inodes: int64(le.Uint32(b)), first: int64(le.Uint32(b[20:])),
		perGroup: int64(le.Uint32(b[32:])), inodesPer: int64(le.Uint32(b[40:])),
		firstMetaBG: int64(le.Uint32(b[0x104:])), backups: [2]int64{int64(le.Uint32(b[0x24c:])), int64(le.Uint32(b[0x250:]))},
	}
	if le.Uint16(b[56:]) != extMagic {
		return nil, e.corrupt("no magic number")
	}
	if rest := e.incompat &^ known; rest != 0 {
		bit := uint32(1) << bits.TrailingZeros32(rest)
		name := unknown[bit]
		if name == "" {
			name = "not known"
		}
		return nil, &UnsupportedError{Type: e.kind, What: fmt.Sprintf("incompatible feature %#x (%s)", bit, name)}
	}
	shift := le.Uint32(b[24:])
	if shift > 6 {
		return nil, e.corrupt("blocks of 2^%d bytes", 10+uint64(shift))
	}
	e.block = 1024 << shift
	high := func(at int) uint64 {
		if e.incompat&incompat64bit == 0 {
			return 0
		}
		return uint64(le.Uint32(b[at:])) << 32
	}
	blocks := uint64(le.Uint32(b[4:])) | high(0x150)
	if blocks > uint64(size/e.block) {
		return nil, e.corrupt("it has %d blocks of %d bytes, and its partition %d bytes", blocks, e.block, size)
	}
	e.blocks = int64(blocks)
	if err := e.geometry(b); err != nil {
		return nil, err
	}
	free := uint64(le.Uint32(b[12:])) | high(0x158)
	e.budget = e.walkBudget()
	return &FileSystem{
		Reader: e, Type: e.kind, UUID: uuidText(b[104:120]), Label: cText(b[120:136]),
		Used: int64(blocks-min(blocks, free)) * e.block, NeedsRecovery: e.incompat&incompatRecover != 0,
	}, nil
}

// geometry reads and checks the sizes of groups.
func (e *ext) geometry(b []byte) error {
	e.inodeSize, e.descSize = 128, 32
	if le.Uint32(b[76:]) > 0 { // s_rev_level: else sizes are fixed
		e.inodeSize = int64(le.Uint16(b[88:]))
	}
	if e.incompat&incompat64bit != 0 {
		e.descSize = int64(le.Uint16(b[254:]))
	}
	power := func(n int64) bool { return n > 0 && n&(n-1) == 0 }
	switch {
	case !power(e.inodeSize) || e.inodeSize < 128 || e.inodeSize > e.block:
		return e.corrupt("inodes of %d bytes", e.inodeSize)
	case !power(e.descSize) || e.descSize < 32 || e.descSize > 1024:
		return e.corrupt("group descriptors of %d bytes", e.descSize)
	case e.incompat&incompat64bit != 0 && e.descSize < 64:
		return e.corrupt("group descriptors of %d bytes", e.descSize)
	case e.perGroup == 0 || e.inodesPer == 0 || e.inodesPer > e.block*8:
		return e.corrupt("groups of %d blocks and %d inodes", e.perGroup, e.inodesPer)
	case e.first > 1 || e.first >= e.blocks:
		return e.corrupt("%d blocks from block %d on", e.blocks, e.first)
	}
	groups := (e.blocks - e.first + e.perGroup - 1) / e.perGroup
	if e.inodes > groups*e.inodesPer {
		return e.corrupt("%d inodes in %d groups of %d", e.inodes, groups, e.inodesPer)
	}
	return nil
}

// walkBudget is how many blocks of directories and maps one walk may read: each of a real
// file system has one place, and is read once or, where a path is looked up, some times.
func (e *ext) walkBudget() int64 { return 4*e.blocks + 4096 }

// spend takes a block from the budget.
func (e *ext) spend() error {
	if e.budget--; e.budget < 0 {
		return e.corrupt("its directories and maps have more blocks than it has")
	}
	return nil
}

// readBlock reads a block of metadata.
func (e *ext) readBlock(p []byte, n int64) error {
	if err := e.inside(n, 1); err != nil {
		return err
	}
	return e.meta.read(p[:e.block], n*e.block)
}

// inside refuses blocks that the file system does not have.
func (e *ext) inside(n, count int64) error {
	if n <= 0 || count < 0 || count > e.blocks || n > e.blocks-count {
		return e.corrupt("it names %d blocks from %d on, and has %d", count, n, e.blocks)
	}
	return nil
}

// hasSuper reports whether a group begins with a copy of the superblock.
func (e *ext) hasSuper(group int64) bool {
	switch {
	case group == 0:
		return true
	case e.compat&compatSparseSuper2 != 0:
		return group == e.backups[0] || group == e.backups[1]
	case group == 1 || e.ro&roSparseSuper == 0:
		return true
	}
	for _, base := range []int64{3, 5, 7} {
		n := base
		for n < group {
			n *= base
		}
		if n == group {
			return true
		}
	}
	return false
}

// inodeTable returns the first block of a group's inodes.
func (e *ext) inodeTable(group int64) (int64, error) {
	per := e.block / e.descSize
	n := group / per // of the blocks with descriptors
	at := e.first + 1 + n
	if e.incompat&incompatMetaBG != 0 && n >= e.firstMetaBG {
		// Each stands in the first group that it describes.
		at = n*per*e.perGroup + e.first
		if e.hasSuper(n * per) {
			at++
		}
	}
	if e.block == 1024 && e.first == 0 {
		at++ // with bigalloc the superblock is in block 1 all the same
	}
	if err := e.inside(at, 1); err != nil {
		return 0, err
	}
	d := make([]byte, e.descSize)
	if err := e.meta.read(d, at*e.block+group%per*e.descSize); err != nil {
		return 0, fmt.Errorf("rootfs: group %d: %w", group, err)
	}
	table := int64(le.Uint32(d[8:]))
	if e.descSize >= 64 {
		table |= int64(le.Uint32(d[0x28:])&0x7fff) << 32
	}
	return table, e.inside(table, (e.inodesPer*e.inodeSize+e.block-1)/e.block)
}

// rootInode is the number of the root directory.
const rootInode = 2

// Root implements Reader.
func (e *ext) Root() (Inode, error) {
	e.budget = e.walkBudget()
	in, err := e.inode(rootInode)
	if err == nil && !in.Mode.IsDir() {
		err = e.corrupt("its root is no directory")
	}
	return in, err
}

// Inode implements Reader.
func (e *ext) Inode(at Entry) (Inode, error) {
	n, ok := at.file.(uint32)
	if !ok {
		return Inode{}, fmt.Errorf("rootfs: %q is of another file system", at.Name)
	}
	return e.inode(n)
}

func (e *ext) inode(n uint32) (Inode, error) {
	if n == 0 || int64(n) > e.inodes {
		return Inode{}, e.corrupt("it names inode %d of %d", n, e.inodes)
	}
	group, index := (int64(n)-1)/e.inodesPer, (int64(n)-1)%e.inodesPer
	table, err := e.inodeTable(group)
	if err != nil {
		return Inode{}, err
	}
	b := make([]byte, e.inodeSize)
	if err := e.meta.read(b, table*e.block+index*e.inodeSize); err != nil {
		return Inode{}, fmt.Errorf("rootfs: inode %d: %w", n, err)
	}
	mode, ok := modeOf(le.Uint16(b))
	if !ok || le.Uint16(b[26:]) == 0 {
		return Inode{}, e.corrupt("inode %d is not in use", n)
	}
	in := Inode{
		Number: uint64(n), Mode: mode, Links: int(le.Uint16(b[26:])),
		UID:      int(le.Uint16(b[2:])) | int(le.Uint16(b[120:]))<<16,
		GID:      int(le.Uint16(b[24:])) | int(le.Uint16(b[122:]))<<16,
		Size:     int64(le.Uint32(b[4:])),
		Modified: e.modified(b),
		file:     extFile{raw: b, flags: le.Uint32(b[32:])},
	}
	if mode.IsRegular() || mode.IsDir() && e.incompat&incompatLargedir != 0 {
		size := uint64(le.Uint32(b[4:])) | uint64(le.Uint32(b[108:]))<<32
		if size > maxFile {
			return Inode{}, e.corrupt("inode %d has %d bytes", n, size)
		}
		in.Size = int64(size)
	}
	return in, nil
}

// maxFile is how many bytes a file can have: 2^32 blocks of 64 KiB.
const maxFile = 1 << 48

// modified returns i_mtime with its two bits of epoch and its nanoseconds.
func (e *ext) modified(b []byte) time.Time {
	seconds := int64(int32(le.Uint32(b[16:])))
	var nanos int64
	if e.inodeSize > 128 && le.Uint16(b[128:]) >= 0x8c-128 {
		extra := le.Uint32(b[0x88:])
		seconds += int64(extra&3) << 32
		nanos = min(int64(extra>>2), 999_999_999)
	}
	return time.Unix(seconds, nanos)
}

// modeOf returns the mode of a file's mode in Unix's form, and whether that has a type.
func modeOf(m uint16) (fs.FileMode, bool) {
	types := map[uint16]fs.FileMode{
		0x1000: fs.ModeNamedPipe, 0x2000: fs.ModeDevice | fs.ModeCharDevice, 0x4000: fs.ModeDir,
		0x6000: fs.ModeDevice, 0x8000: 0, 0xa000: fs.ModeSymlink, 0xc000: fs.ModeSocket,
	}
	out, ok := types[m&0xf000]
	out |= fs.FileMode(m & 0o777)
	if m&0o4000 != 0 {
		out |= fs.ModeSetuid
	}
	if m&0o2000 != 0 {
		out |= fs.ModeSetgid
	}
	if m&0o1000 != 0 {
		out |= fs.ModeSticky
	}
	return out, ok
}

// uuidText returns the text of a UUID, "" if it is zero.
func uuidText(b []byte) string {
	if bytes.Count(b, []byte{0}) == len(b) {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// cText returns a text that ends with a NUL, or fills its field.
func cText(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(bytes.ToValidUTF8(text, []byte("\uFFFD")))
}
