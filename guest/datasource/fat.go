package datasource

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf16"
)

// fat is a file system of FAT12, FAT16 or FAT32 (Microsoft, "FAT32 File System Specification"
// 1.03). Offsets and sizes are in bytes.
type fat struct {
	device   *device
	bits     int   // of an entry of the table: 12, 16 or 32
	table    int64 // offset of the first table
	rootAt   int64 // offset of the root directory of FAT12 and FAT16
	rootSize int64
	rootBase uint32 // first cluster of the root directory of FAT32
	data     int64  // offset of cluster 2
	cluster  int64  // size of a cluster
	clusters uint32 // their number
}

const (
	dirEntrySize = 32
	// endOfChain is the lowest entry of FAT32 that ends a chain; those of FAT12 and FAT16 are its
	// low bits.
	endOfChain = 0x0ffffff8
	// maxFAT12 is the largest number of clusters of FAT12, for Linux (fs/fat/fat.h, MAX_FAT12).
	maxFAT12 = 0xff4
)

// openFAT reads the boot sector ("Boot Sector and BPB Structure"), which is the beginning of the
// device.
func openFAT(d *device, boot []byte) (*fat, error) {
	if len(boot) < 512 {
		return nil, fmt.Errorf("%w: a boot sector of %d bytes", errDamaged, len(boot))
	}
	u16 := func(at int) int64 { return int64(binary.LittleEndian.Uint16(boot[at:])) }
	u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(boot[at:])) }
	sector, perCluster, tables, entries := u16(11), int64(boot[13]), int64(boot[16]), u16(17)
	if sector < 512 || sector > 4096 || bits.OnesCount16(uint16(sector)) != 1 {
		return nil, fmt.Errorf("%w: sectors of %d bytes", errDamaged, sector)
	}
	if bits.OnesCount8(uint8(perCluster)) != 1 || tables == 0 {
		return nil, fmt.Errorf("%w: %d sectors in a cluster, %d tables", errDamaged, perCluster, tables)
	}
	total, tableSectors := u16(19), u16(22)
	if total == 0 {
		total = u32(32)
	}
	f := &fat{device: d, table: u16(14) * sector, cluster: perCluster * sector}
	if tableSectors == 0 {
		f.bits, tableSectors, f.rootBase = 32, u32(36), uint32(u32(44))
	}
	f.rootAt, f.rootSize = f.table+tables*tableSectors*sector, entries*dirEntrySize
	f.data = f.rootAt + (f.rootSize+sector-1)/sector*sector
	count := (total*sector - f.data) / f.cluster
	if total*sector < f.data || count == 0 || tableSectors == 0 {
		return nil, fmt.Errorf("%w: %d sectors, of which %d are a table, and the data begin at byte %d", errDamaged, total, tableSectors, f.data)
	}
	switch {
	case f.bits == 32:
	case count > maxFAT12:
		f.bits = 16
	default:
		f.bits = 12
	}
	f.clusters = uint32(min(count, tableSectors*sector*8/int64(f.bits)-2))
	return f, nil
}

func (f *fat) root() entry { return entry{name: ".", dir: true, at: f.rootBase} }

// same compares names without regard to case, as every driver of FAT does.
func (f *fat) same(name, wanted string) bool { return strings.EqualFold(name, wanted) }

// label returns the label that the root directory has, in lower case, or else that of the boot
// sector: Windows changes the first alone, and util-linux prefers it.
func (f *fat) label(inBootSector string) string {
	p, err := f.directory(f.root())
	if err != nil {
		return inBootSector
	}
	for ; len(p) > 0 && p[0] != 0; p = p[dirEntrySize:] {
		if p[0] != 0xe5 && p[11]&0x3f != longName && p[11]&isLabel != 0 {
			return strings.ToLower(strings.TrimRight(string(p[:11]), " \x00"))
		}
	}
	return inBootSector
}

// next returns the cluster after another; end reports that there is none.
func (f *fat) next(c uint32) (next uint32, end bool, err error) {
	at, n := f.table+int64(c)*int64(f.bits)/8, int64(4)
	if f.bits < 32 {
		n = 2
	}
	p, err := f.device.read(at, n)
	if err != nil {
		return 0, false, err
	}
	switch f.bits {
	case 12:
		next = uint32(binary.LittleEndian.Uint16(p)) >> (4 * (c % 2)) & 0xfff
	case 16:
		next = uint32(binary.LittleEndian.Uint16(p))
	default:
		next = binary.LittleEndian.Uint32(p) & 0x0fffffff
	}
	return next, next >= endOfChain&(1<<min(f.bits, 28)-1), nil
}

// chain returns the content of at most n bytes of the clusters that begin with one. It reads no
// more clusters than these bytes need, so that a loop of clusters ends.
func (f *fat) chain(c uint32, n int64) (out []byte, err error) {
	for end := false; n > 0 && !end; {
		if c < 2 || c-2 >= f.clusters {
			return nil, fmt.Errorf("%w: cluster %d is none of its %d", errDamaged, c, f.clusters)
		}
		p, err := f.device.read(f.data+int64(c-2)*f.cluster, min(n, f.cluster))
		if err != nil {
			return nil, err
		}
		out, n = append(out, p...), n-int64(len(p))
		if c, end, err = f.next(c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// content returns the content of a file. One without content has no cluster.
func (f *fat) content(file entry) ([]byte, error) {
	out, err := f.chain(file.at, file.size)
	if err == nil && int64(len(out)) < file.size {
		err = fmt.Errorf("%w: %d bytes in the clusters of %d", errDamaged, len(out), file.size)
	}
	return out, err
}

// directory returns the entries of a directory, of 32 bytes each.
func (f *fat) directory(dir entry) ([]byte, error) {
	var p []byte
	var err error
	if dir.at == 0 {
		p, err = f.device.read(f.rootAt, f.rootSize)
	} else {
		p, err = f.chain(dir.at, maxDirectory)
	}
	return p, errors.Join(err, f.device.count(int64(len(p))*directoryCost))
}

// Attributes of a directory entry ("FAT Directory Structure").
const (
	isLabel  = 0x08
	isDir    = 0x10
	longName = 0x0f // of the low 6 bits
)

func (f *fat) list(dir entry) (out []entry, err error) {
	p, err := f.directory(dir)
	if err != nil {
		return nil, err
	}
	var long longNames
	for ; len(p) >= dirEntrySize && p[0] != 0; p = p[dirEntrySize:] {
		e := p[:dirEntrySize]
		switch {
		case e[0] == 0xe5: // it is free
			long = longNames{}
			continue
		case e[11]&0x3f == longName:
			long.add(e)
			continue
		}
		name := long.of(e)
		long = longNames{}
		if e[11]&isLabel != 0 || name == "." || name == ".." {
			continue
		}
		at := uint32(binary.LittleEndian.Uint16(e[26:]))
		if f.bits == 32 {
			at |= uint32(binary.LittleEndian.Uint16(e[20:])) << 16
		}
		if e[11]&isDir != 0 && at == 0 {
			continue // it would be the root directory
		}
		out = append(out, entry{name: name, dir: e[11]&isDir != 0, size: int64(binary.LittleEndian.Uint32(e[28:])), at: at})
	}
	return out, nil
}

// longNames collects the parts of a long name, which precede its entry, the last part first
// ("FAT Long Directory Entries").
type longNames struct {
	text []uint16
	sum  byte // checksum of the short name
	left int  // parts that are still to come
}

func (l *longNames) add(e []byte) {
	order := int(e[0] & 0x3f)
	if e[0]&0x40 != 0 {
		*l = longNames{sum: e[13], left: order}
	} else if l.left != order || l.sum != e[13] {
		*l = longNames{}
		return
	}
	l.left--
	var part []uint16
	for _, span := range [][2]int{{1, 11}, {14, 26}, {28, 32}} {
		for at := span[0]; at < span[1]; at += 2 {
			u := binary.LittleEndian.Uint16(e[at:])
			if u == 0 { // 0xffff fills the rest
				l.text = append(part, l.text...)
				return
			}
			part = append(part, u)
		}
	}
	l.text = append(part, l.text...)
}

// of returns the name of an entry: the long one, if one belongs to it.
func (l *longNames) of(e []byte) string {
	var sum byte
	for _, c := range e[:11] {
		sum = bits.RotateLeft8(sum, -1) + c
	}
	if len(l.text) > 0 && l.left == 0 && l.sum == sum {
		return string(utf16.Decode(l.text))
	}
	base, ext := strings.TrimRight(string(e[:8]), " "), strings.TrimRight(string(e[8:11]), " ")
	if e[12]&0x08 != 0 { // Windows NT: the base is in lower case
		base = strings.ToLower(base)
	}
	if e[12]&0x10 != 0 {
		ext = strings.ToLower(ext)
	}
	if ext != "" {
		base += "." + ext
	}
	return base
}
