package disk

import (
	"encoding/binary"
	"io"
)

// span is a range of a disk in bytes.
type span struct{ off, n int64 }

// Limits for tables of untrusted disks.
const (
	maxLogical    = 128  // partitions in a chain of extended boot records
	maxGPTEntries = 1024 // usually 128
	maxGPTEntry   = 4096 // bytes; usually 128
)

// partitions returns the partitions of a disk, and the boot records and headers
// outside the disk's ends. It ignores checksums, because stale and broken tables
// are to be wiped, too. It leaves out what lies outside the disk; ranges may
// overlap.
func partitions(r io.ReaderAt, size int64) []span {
	t := tables{r: r, size: size}
	t.mbr()
	// Headers are in the second and the last sector, for every sector size.
	for _, sectorSize := range []int64{512, 4096} {
		last := size - sectorSize
		if alternate := t.gpt(sectorSize, sectorSize); alternate != 0 && alternate != last {
			t.gpt(alternate, sectorSize)
		}
		t.gpt(last, sectorSize)
	}
	return t.found
}

type tables struct {
	r     io.ReaderAt
	size  int64
	found []span
}

// add records a range given in sectors, clipped to the disk.
func (t *tables) add(first, count uint64, sectorSize int64) {
	sectors := uint64(t.size / sectorSize)
	if first == 0 || first >= sectors || count == 0 {
		return
	}
	count = min(count, sectors-first)
	t.found = append(t.found, span{int64(first) * sectorSize, int64(count) * sectorSize})
}

// read returns nil if the range is not on the disk or cannot be read.
func (t *tables) read(off, n int64) []byte {
	if off < 0 || n < 0 || off > t.size-n {
		return nil
	}
	p := make([]byte, n)
	if k, _ := t.r.ReadAt(p, off); int64(k) < n {
		return nil
	}
	return p
}

// record is an entry of a boot record (UEFI 2.10 §5.2.1).
type record struct {
	kind         byte
	first, count uint64 // sectors
}

func (r record) extended() bool { return r.kind == 0x05 || r.kind == 0x0f || r.kind == 0x85 }

// records reads the four entries of a boot record; nil if there is none.
func (t *tables) records(off int64) []record {
	p := t.read(off, sector)
	if p == nil || p[510] != 0x55 || p[511] != 0xaa {
		return nil
	}
	out := make([]record, 4)
	for i := range out {
		e := p[446+16*i:]
		out[i] = record{
			kind:  e[4],
			first: uint64(binary.LittleEndian.Uint32(e[8:])),
			count: uint64(binary.LittleEndian.Uint32(e[12:])),
		}
	}
	return out
}

func (t *tables) mbr() {
	for _, r := range t.records(0) {
		if r.kind == 0 {
			continue
		}
		t.add(r.first, r.count, sector)
		if r.extended() {
			t.logical(r.first)
		}
	}
}

// logical follows the chain of boot records in an extended partition. Each has one
// partition, relative to itself, and the next record, relative to the first.
func (t *tables) logical(base uint64) {
	at := base
	for range maxLogical {
		t.add(at, 1, sector)
		records := t.records(int64(at) * sector) // at most 33 bits
		if records == nil {
			return
		}
		var next uint64
		for _, r := range records[:2] {
			switch {
			case r.kind == 0:
			case r.extended():
				next = base + r.first
			default:
				t.add(at+r.first, r.count, sector)
			}
		}
		if next <= at { // the end, or a loop
			return
		}
		at = next
	}
}

// gpt reads the table whose header is at off (UEFI 2.10 §5.3). It returns the
// offset of the other header; 0 if there is none.
func (t *tables) gpt(off, sectorSize int64) (alternate int64) {
	h := t.read(off, sector)
	if h == nil || string(h[:8]) != "EFI PART" {
		return 0
	}
	t.add(uint64(off/sectorSize), 1, sectorSize)
	if other := binary.LittleEndian.Uint64(h[32:]); other > 1 && other < uint64(t.size/sectorSize) {
		alternate = int64(other) * sectorSize
	}
	first := binary.LittleEndian.Uint64(h[72:])
	count := int64(min(binary.LittleEndian.Uint32(h[80:]), maxGPTEntries))
	each := int64(binary.LittleEndian.Uint32(h[84:]))
	if each < 128 || each > maxGPTEntry || first >= uint64(t.size/sectorSize) {
		return alternate
	}
	t.add(first, uint64((count*each+sectorSize-1)/sectorSize), sectorSize)
	for i := range count {
		e := t.read(int64(first)*sectorSize+i*each, 128)
		if e == nil || string(e[:16]) == string(zeros[:16]) { // type GUID: unused
			continue
		}
		start, last := binary.LittleEndian.Uint64(e[32:]), binary.LittleEndian.Uint64(e[40:])
		if last >= start && last-start < 1<<62 {
			t.add(start, last-start+1, sectorSize)
		}
	}
	return alternate
}
