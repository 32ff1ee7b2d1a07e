package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// Sparse extents (VMware, Virtual Disk Format 5.0, "Hosted Sparse Extents" and
// "Stream-Optimized Compressed Sparse Extents"). All numbers are little endian;
// offsets and sizes are in sectors.
const (
	vmdkHeaderSize    = 79
	vmdkZeroGrain     = 1 << 2 // flag: an entry of 1 is a grain of zeros
	vmdkCompressed    = 1 << 16
	vmdkAtEnd         = 1<<64 - 1 // the footer has the offset of the grain directory
	vmdkFooterFromEnd = 2 * sector
	minGrain          = 8       // sectors
	maxGrain          = 4096    // 2 MiB; writers use 64 KiB
	maxGrainTable     = 512     // entries
	maxDescriptor     = 1 << 20 // bytes
	maxCapacity       = 1 << 52 // sectors
	deflate           = 1
)

// singleFileKinds lists the kinds of images that consist of one file with a whole
// disk.
var singleFileKinds = map[string]bool{"monolithicSparse": true, "streamOptimized": true}

// checkVMDKKind returns an error for an image that is not a whole disk, as far as
// the file's first bytes show.
func checkVMDKKind(first []byte) error {
	switch {
	case bytes.HasPrefix(first, []byte("COWD")):
		return errors.New("disk: vmdk: vmfsSparse is not supported, want monolithicSparse or streamOptimized")
	case bytes.HasPrefix(first, []byte("# Disk DescriptorFile")):
		text := first[:min(len(first), maxDescriptor)]
		kind, _ := parseDescriptor(text)
		return fmt.Errorf("disk: vmdk: %s is not supported: the file only names others; want monolithicSparse or streamOptimized",
			shortened(kind))
	}
	return nil
}

// parseDescriptor returns the kind of an image and its parent.
func parseDescriptor(text []byte) (kind, parent string) {
	kind, parent = "a descriptor without createType", "ffffffff"
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		value = strings.Trim(strings.TrimSpace(value), "\"\x00")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "createtype":
			kind = value
		case "parentcid":
			parent = strings.ToLower(value)
		}
	}
	return kind, parent
}

// extentHeader holds the fields that the agent reads of a sparse extent's header.
type extentHeader struct {
	version, flags     uint32
	capacity, grain    int64
	descriptor, length int64
	entries            int64 // number of entries of a grain table
	directory          uint64
	compression        uint16
}

func parseExtentHeader(r io.ReaderAt, off int64) (extentHeader, error) {
	var h [vmdkHeaderSize]byte
	if err := readFull(r, h[:], off); err != nil {
		return extentHeader{}, fmt.Errorf("disk: vmdk: header: %w", err)
	}
	if string(h[:4]) != "KDMV" {
		return extentHeader{}, errors.New("disk: vmdk: no magic number")
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(h[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(h[at:]) }
	out := extentHeader{
		version: u32(4), flags: u32(8), entries: int64(u32(44)), directory: u64(56),
		compression: binary.LittleEndian.Uint16(h[77:]),
	}
	switch {
	case out.version < 1 || out.version > 3:
		return extentHeader{}, fmt.Errorf("disk: vmdk: version %d is not supported", out.version)
	case u64(12) == 0 || u64(12) > maxCapacity:
		return extentHeader{}, fmt.Errorf("disk: vmdk: a capacity of %d sectors is not allowed", u64(12))
	case u64(20) < minGrain || u64(20) > maxGrain || u64(20)&(u64(20)-1) != 0:
		return extentHeader{}, fmt.Errorf("disk: vmdk: grains of %d sectors are not allowed", u64(20))
	case out.entries < 1 || out.entries > maxGrainTable:
		return extentHeader{}, fmt.Errorf("disk: vmdk: grain tables of %d entries are not allowed", out.entries)
	case out.flags&vmdkCompressed != 0 && out.compression != deflate:
		return extentHeader{}, fmt.Errorf("disk: vmdk: compression %d is not supported", out.compression)
	case u64(28) > maxCapacity || u64(36) > maxDescriptor/sector:
		return extentHeader{}, fmt.Errorf("disk: vmdk: a descriptor of %d sectors is not allowed", u64(36))
	}
	out.capacity, out.grain, out.descriptor, out.length = int64(u64(12)), int64(u64(20)), int64(u64(28)), int64(u64(36))
	return out, nil
}

// openVMDK validates the header and the descriptor of a VMware image.
func openVMDK(r io.ReaderAt, fileSize int64) (sparse, error) {
	h, err := parseExtentHeader(r, 0)
	if err != nil {
		return sparse{}, err
	}
	if h.descriptor == 0 || h.length == 0 {
		return sparse{}, errors.New("disk: vmdk: an extent without a descriptor is not supported: it is a part of an image")
	}
	text := make([]byte, h.length*sector)
	if err := readFull(r, text, h.descriptor*sector); err != nil {
		return sparse{}, fmt.Errorf("disk: vmdk: descriptor: %w", err)
	}
	switch kind, parent := parseDescriptor(text); {
	case !singleFileKinds[kind]:
		return sparse{}, fmt.Errorf("disk: vmdk: %s is not supported, want monolithicSparse or streamOptimized", shortened(kind))
	case parent != "ffffffff":
		return sparse{}, errors.New("disk: vmdk: the image needs a parent")
	}
	if h.directory == vmdkAtEnd {
		descriptor, capacity := h.descriptor, h.capacity
		if h, err = parseExtentHeader(r, fileSize-vmdkFooterFromEnd); err != nil {
			return sparse{}, fmt.Errorf("footer: %w", err)
		}
		if h.descriptor != descriptor || h.capacity != capacity {
			return sparse{}, errors.New("disk: vmdk: header and footer differ")
		}
	}
	grains := (h.capacity-1)/h.grain + 1
	tables := (grains-1)/h.entries + 1
	if h.directory > uint64(fileSize/sector) || int64(h.directory)*sector+4*tables > fileSize {
		return sparse{}, errors.New("disk: vmdk: the grain directory is not in the file")
	}
	b := &blocks{size: h.capacity * sector, unit: h.grain * sector}
	g := grainFile{r: r, size: fileSize, header: h}
	b.find = g.find
	b.load = func(_, at, off int64, p []byte) error { return readFull(r, p, at+off) }
	if h.flags&vmdkCompressed != 0 {
		b.packed = true
		b.load = func(i, at, off int64, p []byte) error {
			return g.unpack(i, at, p, off, min(b.unit, b.size-i*b.unit))
		}
	}
	return sparse{name: formatVMDK, size: b.size, unit: b.unit, ratio: deflateRatio, extent: b.extent, ReaderAt: b}, nil
}

// grainFile looks up grains in a file.
type grainFile struct {
	r      io.ReaderAt
	size   int64
	header extentHeader
}

// find reads the entry of the grain directory and then that of a grain table.
func (g *grainFile) find(i int64) (at int64, zero bool, err error) {
	table, err := g.entry(int64(g.header.directory)*sector, i/g.header.entries)
	if err != nil || table == 0 {
		return 0, err == nil, err
	}
	grain, err := g.entry(table*sector, i%g.header.entries)
	switch {
	case err != nil:
		return 0, false, err
	case grain == 0, grain == 1 && g.header.flags&vmdkZeroGrain != 0:
		return 0, true, nil
	case grain*sector >= g.size:
		return 0, false, fmt.Errorf("grain %d: %w", i, errOutside)
	}
	return grain * sector, false, nil
}

func (g *grainFile) entry(table, i int64) (int64, error) {
	var p [4]byte
	if err := readFull(g.r, p[:], table+4*i); err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint32(p[:])), nil
}

// grainMarker is the size of a compressed grain's header: its first sector and the
// size of its data.
const grainMarker = 12

// unpack reads a part of a compressed grain, of which whole bytes belong to the
// disk. The stream must contain them; its length, and what follows them, do not
// matter.
func (g *grainFile) unpack(i, at int64, p []byte, off, size int64) error {
	var m [grainMarker]byte
	if err := readFull(g.r, m[:], at); err != nil {
		return err
	}
	if first := binary.LittleEndian.Uint64(m[:]); first != uint64(i*g.header.grain) {
		return fmt.Errorf("grain %d: the marker before it is of sector %d", i, first)
	}
	packed := int64(binary.LittleEndian.Uint32(m[8:]))
	if packed > g.size-at-grainMarker {
		return fmt.Errorf("grain %d: %w", i, errOutside)
	}
	in := io.NewSectionReader(g.r, at+grainMarker, packed)
	z, _ := zlibs.Get().(io.ReadCloser)
	var err error
	if z == nil {
		z, err = zlib.NewReader(in)
	} else {
		err = z.(zlib.Resetter).Reset(in, nil)
	}
	if err != nil {
		return fmt.Errorf("grain %d: %w", i, err)
	}
	defer zlibs.Put(z)
	if _, err := io.CopyN(io.Discard, z, off); err != nil {
		return fmt.Errorf("grain %d: %w", i, err)
	}
	if _, err := io.ReadFull(z, p); err != nil {
		return fmt.Errorf("grain %d: it has less than %d bytes: %w", i, size, err)
	}
	return nil
}

// zlibs holds io.ReadClosers that are zlib.Resetters. For a stream-optimized image
// of 128 MiB BenchmarkWriteSparse allocates 25 MB per write with it, 124 MB
// without it.
var zlibs sync.Pool
