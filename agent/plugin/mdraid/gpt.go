package mdraid

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"unicode/utf16"
)

const (
	sector = 512
	mib    = 1 << 20
	gib    = 1 << 30

	tableEntries = 128 // UEFI 2.10 §5.3.2 requires space for as many
	entrySize    = 128
	tableSize    = tableEntries * entrySize
	headerSize   = 92
)

// Partition types, as GUIDs are stored (UEFI 2.10, appendix A): the first three
// fields are little-endian.
var (
	typeESP  = [16]byte{0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b}
	typeRAID = [16]byte{0x0f, 0x88, 0x9d, 0xa1, 0xfc, 0x05, 0x3b, 0x4d, 0xa0, 0x06, 0x74, 0x3f, 0x0f, 0x84, 0x91, 0x1e}
)

// guid returns a UUID as GPTs store it: like the types above.
func guid(id [16]byte) []byte {
	slices.Reverse(id[0:4])
	slices.Reverse(id[4:6])
	slices.Reverse(id[6:8])
	return id[:]
}

// partition is a part of a disk; off and size are bytes in whole MiB.
type partition struct {
	kind, id  [16]byte
	name      string
	off, size int64
}

// table is a GPT for a disk of size bytes, in units of the disk's logical blocks.
type table struct {
	size, block int64 // bytes
	id          [16]byte
	all         []partition
}

// piece is data to write at an offset.
type piece struct {
	off   int64
	bytes []byte
}

// pieces returns the parts of the table in the order of writing: the MBR last,
// because without it the rest is ignored.
func (t table) pieces() []piece {
	entries := make([]byte, tableSize)
	for i, p := range t.all {
		e := entries[i*entrySize:]
		copy(e, p.kind[:])
		copy(e[16:], guid(p.id))
		binary.LittleEndian.PutUint64(e[32:], uint64(p.off/t.block))
		binary.LittleEndian.PutUint64(e[40:], uint64((p.off+p.size)/t.block-1))
		for j, u := range utf16.Encode([]rune(p.name)) {
			binary.LittleEndian.PutUint16(e[56+2*j:], u)
		}
	}
	last := t.size/t.block - 1
	backup := last - tableSize/t.block
	sum := crc32.ChecksumIEEE(entries)
	return []piece{
		{backup * t.block, entries},
		{last * t.block, t.header(last, 1, backup, sum)},
		{2 * t.block, entries},
		{t.block, t.header(1, last, 2, sum)},
		{0, t.mbr()},
	}
}

// header returns the primary or the backup header (UEFI 2.10, table 5.5).
func (t table) header(my, other, entries int64, sum uint32) []byte {
	b := make([]byte, t.block)
	le := binary.LittleEndian
	copy(b, "EFI PART")
	le.PutUint32(b[8:], 0x00010000)
	le.PutUint32(b[12:], headerSize)
	le.PutUint64(b[24:], uint64(my))
	le.PutUint64(b[32:], uint64(other))
	le.PutUint64(b[40:], uint64(2+tableSize/t.block))
	le.PutUint64(b[48:], uint64(t.size/t.block-2-tableSize/t.block))
	copy(b[56:], guid(t.id))
	le.PutUint64(b[72:], uint64(entries))
	le.PutUint32(b[80:], tableEntries)
	le.PutUint32(b[84:], entrySize)
	le.PutUint32(b[88:], sum)
	le.PutUint32(b[16:], crc32.ChecksumIEEE(b[:headerSize]))
	return b
}

// mbr returns the protective MBR (UEFI 2.10 §5.2.3).
func (t table) mbr() []byte {
	b := make([]byte, sector)
	p := b[446:]
	copy(p, []byte{0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff})
	binary.LittleEndian.PutUint32(p[8:], 1)
	binary.LittleEndian.PutUint32(p[12:], uint32(min(t.size/t.block-1, 1<<32-1)))
	b[510], b[511] = 0x55, 0xaa
	return b
}
