// Package gpt reads, makes and changes GUID partition tables (UEFI 2.10, §5.3). It
// does not know what partitions are for, nor when the parts of a table are written.
package gpt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"slices"
	"unicode/utf16"
)

const (
	signature  = "EFI PART"
	headerSize = 92 // bytes of a header of revision 1.0
	entrySize  = 128
	minEntries = 128     // UEFI 2.10, §5.3.2 requires space for as many
	maxEntries = 1 << 20 // bytes that Read reads; usual are 16 KiB
	maxName    = 36      // UTF-16 units
)

// ErrDamaged reports a header that is not valid, or entries that are not.
var ErrDamaged = errors.New("GPT is damaged")

var le = binary.LittleEndian

// Table is a partition table. It keeps the bytes of its header and its entries that this
// package does not interpret: a changed table must not lose data of other programs.
type Table struct {
	block   int64  // bytes
	header  []byte // a block
	entries []byte // whole blocks
}

// Partition is an entry of a table.
type Partition struct {
	Type, ID    GUID
	First, Last uint64 // blocks
	Attributes  uint64
	Name        string // at most 36 UTF-16 units; the rest is cut off
}

// New returns a table without partitions, for a disk with logical blocks of so many
// bytes.
func New(block int64, disk GUID) *Table {
	n := (minEntries*entrySize + block - 1) / block
	t := &Table{block: block, header: make([]byte, block), entries: make([]byte, n*block)}
	copy(t.header, signature)
	le.PutUint32(t.header[8:], 0x00010000) // revision 1.0
	le.PutUint32(t.header[12:], headerSize)
	le.PutUint64(t.header[40:], uint64(2+n)) // first usable block
	copy(t.header[56:], disk[:])
	le.PutUint64(t.header[72:], 2)
	le.PutUint32(t.header[80:], minEntries)
	le.PutUint32(t.header[84:], entrySize)
	return t
}

// Read reads the copy of a table whose header is in a block of a disk that has so many
// blocks. It returns nil if there is no header, ErrDamaged if firmware would ignore the
// copy (UEFI 2.10, §5.3.2), and errors of r.
func Read(r io.ReaderAt, block, at, blocks int64) (*Table, error) {
	t := &Table{block: block, header: make([]byte, block)}
	if err := readAt(r, t.header, at*block); err != nil {
		return nil, err
	}
	h := t.header
	if string(h[:len(signature)]) != signature {
		return nil, nil
	}
	length, sum := le.Uint32(h[12:]), le.Uint32(h[16:])
	if length < headerSize || int64(length) > block {
		return nil, fmt.Errorf("%w: its header has %d bytes", ErrDamaged, length)
	}
	clear(h[16:20])
	if crc32.ChecksumIEEE(h[:length]) != sum || le.Uint64(h[24:]) != uint64(at) {
		return nil, fmt.Errorf("%w: its header has another checksum or belongs elsewhere", ErrDamaged)
	}
	// Sizes and addresses come from the disk: they are compared so that nothing overflows.
	first, count, each := le.Uint64(h[72:]), uint64(le.Uint32(h[80:])), uint64(le.Uint32(h[84:]))
	if each < entrySize || each%entrySize != 0 || count*each > maxEntries || first < 2 || first >= uint64(blocks) ||
		count*each > uint64(blocks-int64(first))*uint64(block) {
		return nil, fmt.Errorf("%w: it has %d entries of %d bytes from block %d of %d on", ErrDamaged, count, each, first, blocks)
	}
	t.entries = make([]byte, (int64(count*each)+block-1)/block*block)
	if err := readAt(r, t.entries, int64(first)*block); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(t.entries[:count*each]) != le.Uint32(h[88:]) {
		return nil, fmt.Errorf("%w: its entries have another checksum", ErrDamaged)
	}
	return t, nil
}

// readAt fills p. A reader may return io.EOF with the last byte.
func readAt(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) && errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Disk returns the identity of the disk.
func (t *Table) Disk() GUID { return GUID(t.header[56:72]) }

// Alternate returns the block of the other header.
func (t *Table) Alternate() uint64 { return le.Uint64(t.header[32:]) }

// LastUsable returns the last block that partitions may take.
func (t *Table) LastUsable() uint64 { return le.Uint64(t.header[48:]) }

// each yields the entries, used or not, with their indices.
func (t *Table) each() iter.Seq2[int, []byte] {
	size := int(le.Uint32(t.header[84:]))
	return func(yield func(int, []byte) bool) {
		for i := range int(le.Uint32(t.header[80:])) {
			if !yield(i, t.entries[i*size:][:size]) {
				return
			}
		}
	}
}

// All yields the partitions with their indices. What they say is not checked.
func (t *Table) All() iter.Seq2[int, Partition] {
	return func(yield func(int, Partition) bool) {
		for i, e := range t.each() {
			p := Partition{
				Type: GUID(e[:16]), ID: GUID(e[16:32]),
				First: le.Uint64(e[32:]), Last: le.Uint64(e[40:]), Attributes: le.Uint64(e[48:]), Name: name(e[56:entrySize]),
			}
			if p.Type != (GUID{}) && !yield(i, p) {
				return
			}
		}
	}
}

func name(b []byte) string {
	var units []uint16
	for c := range slices.Chunk(b, 2) {
		units = append(units, le.Uint16(c))
	}
	if end := slices.Index(units, 0); end >= 0 {
		units = units[:end]
	}
	return string(utf16.Decode(units))
}

// Add adds a partition in the first entry that is free. It returns false if there is
// none.
func (t *Table) Add(p Partition) bool {
	for i := range t.each() {
		if t.Put(i, p) {
			return true
		}
	}
	return false
}

// Put adds a partition in one entry. It returns false if that is used or does not exist.
func (t *Table) Put(index int, p Partition) bool {
	for i, e := range t.each() {
		if i != index || GUID(e[:16]) != (GUID{}) {
			continue
		}
		clear(e)
		copy(e, p.Type[:])
		copy(e[16:], p.ID[:])
		le.PutUint64(e[32:], p.First)
		le.PutUint64(e[40:], p.Last)
		le.PutUint64(e[48:], p.Attributes)
		units := utf16.Encode([]rune(p.Name))
		for i, u := range units[:min(len(units), maxName)] {
			le.PutUint16(e[56+2*i:], u)
		}
		return true
	}
	return false
}

// End returns the block of the backup's entries on a disk that has so many blocks.
func (t *Table) End(blocks int64) int64 { return blocks - 1 - int64(len(t.entries))/t.block }

// Part is a part of a table, and where it is on the disk in bytes.
type Part struct {
	Off   int64
	Bytes []byte
}

// Parts returns the table for a disk that has so many blocks, which may be more than
// those of the disk that it was read from: the backup's entries and header, then those
// of the primary.
func (t *Table) Parts(blocks int64) []Part {
	h := t.header
	last, backup, primary := blocks-1, t.End(blocks), int64(le.Uint64(h[72:]))
	le.PutUint64(h[48:], uint64(backup-1))
	le.PutUint32(h[88:], crc32.ChecksumIEEE(t.entries[:le.Uint32(h[80:])*le.Uint32(h[84:])]))
	header := func(at, alternate, entries int64) Part {
		b := slices.Clone(h)
		le.PutUint64(b[24:], uint64(at))
		le.PutUint64(b[32:], uint64(alternate))
		le.PutUint64(b[72:], uint64(entries))
		clear(b[16:20])
		le.PutUint32(b[16:], crc32.ChecksumIEEE(b[:le.Uint32(b[12:])]))
		return Part{at * t.block, b}
	}
	return []Part{{backup * t.block, t.entries}, header(last, 1, backup), {primary * t.block, t.entries}, header(1, last, primary)}
}

// Protect writes the partition of a protective MBR, which covers a disk that has so many
// blocks, and the MBR's signature (UEFI 2.10, §5.2.3).
func Protect(mbr []byte, blocks int64) {
	const heads, sectors, cylinders = 255, 63, 1024 // the geometry of CHS addresses
	last := blocks - 1
	p := mbr[446:]
	copy(p, []byte{0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff})
	if last < heads*sectors*cylinders {
		cylinder := last / sectors / heads
		p[5], p[6], p[7] = byte(last/sectors%heads), byte(last%sectors+1)|byte(cylinder>>8<<6), byte(cylinder)
	}
	le.PutUint32(p[8:], 1)
	Resize(mbr, blocks)
	mbr[510], mbr[511] = 0x55, 0xaa
}

// Resize sets the size of the partition of a protective MBR, if the first one is that.
func Resize(mbr []byte, blocks int64) {
	if p := mbr[446:]; p[4] == 0xee && le.Uint32(p[8:]) == 1 {
		le.PutUint32(p[12:], uint32(min(blocks-1, 1<<32-1)))
	}
}
