package systest

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/metalab-dev/metalab/agent/gpt"
	"github.com/metalab-dev/metalab/agent/sys"
)

// part is a partition, or a whole disk that is a member of an array.
type part struct {
	disk   string // kernel name
	name   string // sda1, or the disk's name for a whole disk
	number int    // 0 for a whole disk
	off    int64  // bytes
	size   int64
	scheme string                    // gpt or dos, as udev calls the partition table
	kind   string                    // type GUID in lower case, or 0x and the type of an MBR
	id     string                    // partition GUID, or the disk's signature and the number
	member *superblock               // nil if it is no member of an array
	free   bool                      // removed from its array by StopArray
	open   func() (sys.Block, error) // opens the disk
}

// readParts finds the partitions of a disk's GPT or MBR, and members of arrays among
// them, like the kernel and udev. A broken table has none.
func readParts(disk string, b sys.Block, open func() (sys.Block, error)) []part {
	device := part{disk: disk, name: disk, size: b.Size(), open: open}
	parts := readGPT(device, b)
	if len(parts) == 0 {
		parts = readMBR(device, b)
	}
	if len(parts) == 0 {
		parts = []part{device}
	}
	out := parts[:0]
	for _, p := range parts {
		p.member = readSuperblock(b, p.off, p.size)
		if p.number > 0 || p.member != nil {
			out = append(out, p)
		}
	}
	return out
}

// readGPT reads the primary table, or the backup if that is broken (UEFI 2.10,
// §5.3).
func readGPT(device part, r io.ReaderAt) []part {
	const block = 512
	blocks := device.size / block
	var mbr [block]byte
	if _, err := r.ReadAt(mbr[:], 0); err != nil || mbr[510] != 0x55 || mbr[511] != 0xaa || mbr[450] != 0xee {
		return nil
	}
	for _, at := range []int64{1, blocks - 1} {
		table, err := gpt.Read(r, block, at, blocks)
		if table == nil || err != nil {
			continue
		}
		var out []part
		for i, e := range table.All() {
			if e.First <= e.Last && e.Last < uint64(blocks) {
				p := device
				p.scheme, p.number, p.name, p.kind, p.id = "gpt", i+1, partName(device.disk, i+1), e.Type.String(), e.ID.String()
				p.off, p.size = int64(e.First)*block, int64(e.Last-e.First+1)*block
				out = append(out, p)
			}
		}
		return out
	}
	return nil
}

// readMBR reads the primary partitions of an MBR (UEFI 2.10 §5.2.1). The boot sector of a file
// system is none: its bytes there are no boot indicators.
func readMBR(device part, r io.ReaderAt) []part {
	const block = 512
	blocks := device.size / block
	var mbr [block]byte
	if _, err := r.ReadAt(mbr[:], 0); err != nil || mbr[510] != 0x55 || mbr[511] != 0xaa {
		return nil
	}
	var out []part
	for i := range 4 {
		e := mbr[446+16*i:][:16]
		first, count := int64(binary.LittleEndian.Uint32(e[8:])), int64(binary.LittleEndian.Uint32(e[12:]))
		switch kind := e[4]; {
		case e[0]&0x7f != 0:
			return nil
		case kind == 0 || kind == 0x05 || kind == 0x0f || kind == 0x85 || kind == 0xee || first == 0 || count == 0 || first+count > blocks:
			continue // unused, extended, protecting a GPT that is broken, or not on the disk
		}
		p := device
		p.scheme, p.number, p.name, p.kind = "dos", i+1, partName(device.disk, i+1), fmt.Sprintf("0x%x", e[4])
		p.id = fmt.Sprintf("%08x-%02d", binary.LittleEndian.Uint32(mbr[440:]), i+1)
		p.off, p.size = first*block, count*block
		out = append(out, p)
	}
	return out
}

// partName returns the kernel's name: with a p between two digits (disk_name in
// block/genhd.c).
func partName(disk string, n int) string {
	if last := disk[len(disk)-1]; last >= '0' && last <= '9' {
		return fmt.Sprintf("%sp%d", disk, n)
	}
	return fmt.Sprintf("%s%d", disk, n)
}

// window is a part of a disk as a device.
type window struct {
	sys.Block
	off, size int64
}

func (w *window) Size() int64 { return w.size }

func (w *window) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= w.size {
		return 0, io.EOF
	}
	if int64(len(p)) > w.size-off {
		n, err := w.Block.ReadAt(p[:w.size-off], w.off+off)
		if err == nil {
			err = io.EOF
		}
		return n, err
	}
	return w.Block.ReadAt(p, w.off+off)
}

func (w *window) WriteAt(p []byte, off int64) (int, error) {
	if err := w.within(off, int64(len(p))); err != nil {
		return 0, err
	}
	return w.Block.WriteAt(p, w.off+off)
}

func (w *window) Zero(off, n int64) error {
	if err := w.within(off, n); err != nil {
		return err
	}
	return w.Block.Zero(w.off+off, n)
}

func (w *window) within(off, n int64) error {
	if off < 0 || n < 0 || off > w.size-n {
		return fmt.Errorf("systest: %d bytes at %d are beyond the end at %d: %w", n, off, w.size, io.ErrShortWrite)
	}
	return nil
}
