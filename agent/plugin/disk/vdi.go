package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// VDI headers (VirtualBox, src/VBox/Storage/VDICore.h). All numbers are little
// endian.
const (
	vdiHeaderSize = 0x1d8
	vdiVersion    = 0x00010001
	vdiDynamic    = 1
	vdiStatic     = 2
	vdiNoBlock    = 0xffffffff // not allocated; reads the parent's block
	vdiZeroBlock  = 0xfffffffe // discarded
	minVDIBlock   = 4 << 10
	maxVDIBlock   = 2 << 20 // VirtualBox and QEMU write 1 MiB
)

// openVDI validates the header of a VirtualBox image.
func openVDI(r io.ReaderAt, fileSize int64) (sparse, error) {
	var h [vdiHeaderSize]byte
	if n, err := r.ReadAt(h[:], 0); n < len(h) {
		return sparse{}, fmt.Errorf("disk: vdi: header: %w", err)
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(h[at:]) }
	kind, block, count := u32(0x4c), int64(u32(0x178)), int64(u32(0x180))
	tableAt, dataAt, size := int64(u32(0x154)), int64(u32(0x158)), binary.LittleEndian.Uint64(h[0x170:])
	var nobody [16]byte
	switch {
	case u32(0x40) != 0xbeda107f:
		return sparse{}, errors.New("disk: vdi: no magic number")
	case u32(0x44) != vdiVersion:
		return sparse{}, fmt.Errorf("disk: vdi: version %d.%d is not supported, want 1.1", u32(0x44)>>16, u32(0x44)&0xffff)
	case kind != vdiDynamic && kind != vdiStatic:
		return sparse{}, fmt.Errorf("disk: vdi: images of kind %d are not supported, want dynamic or fixed ones", kind)
	case [16]byte(h[0x1a8:]) != nobody || [16]byte(h[0x1b8:]) != nobody: // the UUIDs of its link and of its parent
		return sparse{}, errors.New("disk: vdi: the image needs a parent")
	case u32(0x168) != sector:
		return sparse{}, fmt.Errorf("disk: vdi: sectors of %d bytes are not allowed", u32(0x168))
	case block < minVDIBlock || block > maxVDIBlock || block&(block-1) != 0:
		return sparse{}, fmt.Errorf("disk: vdi: blocks of %d bytes are not allowed", block)
	case u32(0x17c) != 0:
		return sparse{}, fmt.Errorf("disk: vdi: %d extra bytes in each block are not supported", u32(0x17c))
	case size == 0 || size > uint64(count*block):
		return sparse{}, fmt.Errorf("disk: vdi: %d blocks of %d bytes are too few for %d bytes", count, block, size)
	case tableAt < 0x48 || tableAt+4*count > fileSize:
		return sparse{}, errors.New("disk: vdi: the table of blocks is not in the file")
	}
	b := &blocks{size: int64(size), unit: block}
	b.find = func(i int64) (int64, bool, error) {
		var entry [4]byte
		if err := readFull(r, entry[:], tableAt+4*i); err != nil {
			return 0, false, err
		}
		place := binary.LittleEndian.Uint32(entry[:])
		if place == vdiNoBlock || place == vdiZeroBlock {
			return 0, true, nil
		}
		at := dataAt + int64(place)*block
		if at >= fileSize {
			return 0, false, fmt.Errorf("block %d: %w", i, errOutside)
		}
		return at, false, nil
	}
	b.load = func(_, at, off int64, p []byte) error { return readFull(r, p, at+off) }
	return sparse{name: formatVDI, size: b.size, unit: block, extent: b.extent, ReaderAt: b}, nil
}
