package ramdisk

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
)

// Fields of a PE32+ file that change when a section is added (Microsoft PE
// format), counted from the signature.
const (
	peSections    = 6  // number of them
	peOptional    = 24 // the optional header
	peSectionAt   = 32 // alignment in memory, of the optional header
	peFileAt      = 36 // alignment in the file
	peImageSize   = 56 // in memory
	peHeadersSize = 60 // in the file
	peSectionSize = 40 // size of an entry of the section table
	readOnlyData  = 0x40000040
)

var errStub = errors.New("the UEFI stub is none: want a PE32+ file with room for more sections")

// unified makes one program of UEFI out of a stub, a kernel, its first file
// system and its command line, in sections that the stub finds by their names
// (UAPI group, Unified Kernel Image).
func unified(stub, kernel, initrd []byte, cmdline string) ([]byte, error) {
	f, err := pe.NewFile(bytes.NewReader(stub))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStub, err)
	}
	h, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok || h.SectionAlignment == 0 || h.FileAlignment == 0 || len(f.Sections) == 0 {
		return nil, errStub
	}
	le := binary.LittleEndian
	out := bytes.Clone(stub)
	signature := int(le.Uint32(out[0x3c:]))
	table := signature + peOptional + int(f.SizeOfOptionalHeader)
	up := func(n, to uint32) uint32 { return (n + to - 1) / to * to }
	memory := uint32(0)
	for _, s := range f.Sections {
		memory = max(memory, up(s.VirtualAddress+s.VirtualSize, h.SectionAlignment))
	}
	n := len(f.Sections)
	for _, s := range []struct {
		name    string
		content []byte
	}{{".cmdline", append([]byte(cmdline), 0)}, {".linux", kernel}, {".initrd", initrd}} {
		at := table + n*peSectionSize
		if at+peSectionSize > int(h.SizeOfHeaders) || uint64(memory)+uint64(len(s.content)) > 1<<31 {
			return nil, errStub
		}
		for len(out)%int(h.FileAlignment) != 0 {
			out = append(out, 0)
		}
		size := up(uint32(len(s.content)), h.FileAlignment)
		entry := out[at:][:peSectionSize]
		clear(entry)
		copy(entry, s.name)
		le.PutUint32(entry[8:], uint32(len(s.content)))
		le.PutUint32(entry[12:], memory)
		le.PutUint32(entry[16:], size)
		le.PutUint32(entry[20:], uint32(len(out)))
		le.PutUint32(entry[36:], readOnlyData)
		out = append(append(out, s.content...), make([]byte, int(size)-len(s.content))...)
		memory = up(memory+uint32(len(s.content)), h.SectionAlignment)
		n++
	}
	le.PutUint16(out[signature+peSections:], uint16(n))
	le.PutUint32(out[signature+peOptional+peImageSize:], memory)
	return out, nil
}

// espImage is a FAT file system with a program where firmware looks for one on
// a medium that it does not know (UEFI 2.10, §3.5.1.1).
func espImage(app []byte) (_ []byte, err error) {
	const (
		slack = 4 << 20 // tables and directories
		// FAT32 has 65,525 clusters, here of a sector, or firmware takes it for
		// another FAT (Microsoft FAT specification 1.03, "FAT Type Determination").
		smallest = 36 << 20
	)
	dir, err := os.MkdirTemp("", "metalab-esp-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	size := max(smallest, (int64(len(app))+slack+1<<20-1)&^(1<<20-1))
	name := filepath.Join(dir, "efi.img")
	disk, err := file.CreateFromPath(name, size)
	if err != nil {
		return nil, err
	}
	defer disk.Close()
	fs, err := fat32.Create(disk, size, 0, 512, "METALAB", false)
	if err != nil {
		return nil, fmt.Errorf("FAT: %w", err)
	}
	if err := fs.Mkdir("/EFI/BOOT"); err != nil {
		return nil, fmt.Errorf("FAT: %w", err)
	}
	f, err := fs.OpenFile("/EFI/BOOT/BOOTX64.EFI", os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("FAT: %w", err)
	}
	if _, err := f.Write(app); err != nil {
		return nil, fmt.Errorf("FAT: %w", err)
	}
	if err := errors.Join(f.Close(), fs.Close()); err != nil {
		return nil, fmt.Errorf("FAT: %w", err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return b, nil
}
