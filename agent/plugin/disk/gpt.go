package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unicode/utf16"

	"github.com/metalab-dev/metalab/agent/configdrive"
)

// gptTable is a GUID partition table (UEFI 2.10 §5.3) in an image that may be
// smaller than the disk.
type gptTable struct {
	t       *target
	sector  int64
	header  []byte // the part with a checksum
	entries []byte
	each    int64 // bytes of one entry
	at      int64 // offset of the entries in bytes
}

const (
	gptSignature = "EFI PART"
	minGPTHeader = 92 // bytes
	// linuxData is sgdisk's default partition type
	// 0FC63DAF-8483-4772-8E79-3D69D8477DE4, in the byte order of disks.
	linuxData = "\xaf\x3d\xc6\x0f\x83\x84\x72\x47\x8e\x79\x3d\x69\xd8\x47\x7d\xe4"
)

// readGPT reads the table at an image's beginning; nil if there is none. It
// rejects a damaged table, whose partitions are unknown.
func readGPT(t *target, sectorSize int64) (*gptTable, error) {
	h := t.head[sectorSize : 2*sectorSize]
	if string(h[:8]) != gptSignature {
		return nil, nil
	}
	le := binary.LittleEndian
	size, count, each, first := le.Uint32(h[12:]), int64(le.Uint32(h[80:])), int64(le.Uint32(h[84:])), le.Uint64(h[72:])
	switch {
	case size < minGPTHeader || int64(size) > sectorSize:
		return nil, fmt.Errorf("the image's GPT has a header of %d bytes", size)
	case each < 128 || each > maxGPTEntry || each%128 != 0 || count < 1 || count > maxGPTEntries:
		return nil, fmt.Errorf("the image's GPT has %d entries of %d bytes", count, each)
	case le.Uint64(h[24:]) != 1 || first < 2 || first > headSize/512 || int64(first)*sectorSize+count*each > headSize:
		return nil, errors.New("the image's GPT is not at its beginning")
	}
	g := &gptTable{t: t, sector: sectorSize, header: bytes.Clone(h[:size]), each: each, at: int64(first) * sectorSize}
	g.entries = bytes.Clone(t.head[g.at : g.at+count*each])
	sum := le.Uint32(g.header[16:])
	le.PutUint32(g.header[16:], 0)
	if crc32.ChecksumIEEE(g.header) != sum || crc32.ChecksumIEEE(g.entries) != le.Uint32(g.header[88:]) {
		return nil, errors.New("the image's GPT is damaged: its checksums are wrong")
	}
	if g.room() <= 0 {
		return nil, fmt.Errorf("%s is too small for the image's GPT", t.name)
	}
	return g, nil
}

// backup returns the first sector of the backup entries on this disk; the backup
// header is the last sector.
func (g *gptTable) backup() int64 {
	return g.t.block.Size()/g.sector - 1 - (int64(len(g.entries))+g.sector-1)/g.sector
}

func (g *gptTable) room() int64 { return g.backup() * g.sector }

func (g *gptTable) used() []span {
	var out []span
	sectors := uint64(g.t.block.Size() / g.sector)
	for e := range g.all() {
		first, last := binary.LittleEndian.Uint64(e[32:]), binary.LittleEndian.Uint64(e[40:])
		if isZero(e[:16]) || first >= sectors || last < first {
			continue
		}
		last = min(last, sectors-1)
		out = append(out, span{int64(first) * g.sector, int64(last-first+1) * g.sector})
	}
	return out
}

// all yields the entries, used or not.
func (g *gptTable) all() func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for off := int64(0); off < int64(len(g.entries)); off += g.each {
			if !yield(g.entries[off : off+g.each]) {
				return
			}
		}
	}
}

func (g *gptTable) add(s span) error {
	for e := range g.all() {
		if !isZero(e[:16]) {
			continue
		}
		le := binary.LittleEndian
		clear(e)
		copy(e, linuxData)
		// The same disk and partition give the same GUID (RFC 9562 §5.8: version
		// 8), so that a repetition changes nothing.
		id := sha256.Sum256(le.AppendUint64(bytes.Clone(g.header[56:72]), uint64(s.off)))
		id[7], id[8] = id[7]&0x0f|0x80, id[8]&0x3f|0x80
		copy(e[16:32], id[:])
		le.PutUint64(e[32:], uint64(s.off/g.sector))
		le.PutUint64(e[40:], uint64((s.off+s.n)/g.sector-1))
		for i, u := range utf16.Encode([]rune(configdrive.Label)) {
			le.PutUint16(e[56+2*i:], u)
		}
		return nil
	}
	return fmt.Errorf("all %d entries of the image's GPT are used", int64(len(g.entries))/g.each)
}

// store writes both copies. Like sgdisk -e it moves the backup to this disk's end.
func (g *gptTable) store() error {
	le := binary.LittleEndian
	last := g.t.block.Size()/g.sector - 1
	le.PutUint64(g.header[48:], uint64(g.backup()-1)) // last usable
	le.PutUint32(g.header[88:], crc32.ChecksumIEEE(g.entries))
	second := bytes.Clone(g.header)
	g.finishHeader(g.header, 1, last, g.at/g.sector)
	g.finishHeader(second, last, 1, g.backup())
	copy(g.t.head[g.at:], g.entries)
	copy(g.t.head[g.sector:], g.header)
	// The protective partition covers the disk, as far as its fields permit
	// (§5.2.3).
	if mbr := g.t.head[446:]; mbr[4] == 0xee && le.Uint32(mbr[8:]) == 1 {
		le.PutUint32(mbr[12:], uint32(min(last, 1<<32-1)))
	}
	tail := make([]byte, (last+1-g.backup())*g.sector)
	copy(tail, g.entries)
	copy(tail[int64(len(tail))-g.sector:], second)
	return g.t.replace(g.backup()*g.sector, tail)
}

func (g *gptTable) finishHeader(h []byte, my, alternate, entries int64) {
	le := binary.LittleEndian
	le.PutUint64(h[24:], uint64(my))
	le.PutUint64(h[32:], uint64(alternate))
	le.PutUint64(h[72:], uint64(entries))
	le.PutUint32(h[16:], 0)
	le.PutUint32(h[16:], crc32.ChecksumIEEE(h))
}
