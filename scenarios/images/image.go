// Package images owns the lab's operating system images: it builds a small one
// that boots, serves a directory of them with their checksums over HTTP, and
// tells whether the bytes of a disk would boot. It does not know which server
// an image is for, nor how it gets onto a disk.
package images

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

// bootLine is what the image puts on the console, started either way.
const bootLine = "Metalab image: it boots."

const imageText = bootLine + `
It carries no operating system: a boot sector for legacy firmware and a UEFI
application for x86-64, both of which print the line above and wait.
`

const (
	sectorSize = 512 // bytes
	megabyte   = 1 << 20

	imageSectors = 4 * megabyte / sectorSize

	// entryCount and entrySize are the least that UEFI 2.10, §5.3.2 allows:
	// 16 KiB of entries.
	entryCount   = 128
	entrySize    = 128 // bytes
	entrySectors = entryCount * entrySize / sectorSize

	// The EFI system partition: aligned to 1 MiB as partitioning tools do, up
	// to the backup table.
	espFirst = megabyte / sectorSize
	espLast  = lastUsable
	// The sectors that partitions may take.
	firstUsable = 2 + entrySectors
	lastUsable  = imageSectors - 2 - entrySectors
)

// Partition types (UEFI 2.10, table 5.7; the second is GRUB's).
var (
	typeESP      = mustGUID("C12A7328-F81F-11D2-BA4B-00A0C93EC93B")
	typeBIOSBoot = mustGUID("21686148-6449-6E6F-744E-656564454649")
)

// The identities of the image are fixed: everyone builds the same bytes.
var (
	diskGUID = mustGUID("6D6574C1-6C61-4B00-8000-64656D6F0001")
	espGUID  = mustGUID("6D6574C1-6C61-4B00-8000-64656D6F0002")
)

// Build makes the image: a raw disk of 4 MiB with a boot sector for legacy
// firmware and, in a GPT, an EFI system partition for UEFI. It needs no
// operating system to make, and the bytes are the same each time.
//
// The file system is FAT16. UEFI 2.10, §13.3 wants FAT32 on fixed disks and
// allows FAT12 and FAT16 on removable ones; firmware reads all three on both,
// and FAT32 would make the image eight times as large.
func Build() ([]byte, error) {
	sector, err := stub.BootSector(bootLine)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	esp, err := newFAT16(espLast-espFirst+1, espFirst, "METALAB", []fatFile{
		{path: "EFI"},
		{path: "EFI/BOOT"},
		{path: "EFI/BOOT/BOOTX64.EFI", content: stub.EFI(bootLine)},
		{path: "metalab"},
		{path: "metalab/image.txt", content: []byte(imageText)},
	})
	if err != nil {
		return nil, err
	}
	disk := make([]byte, imageSectors*sectorSize)
	at := func(lba int) []byte { return disk[lba*sectorSize:] }
	copy(disk, sector)
	protect(disk)
	copy(at(espFirst), esp)

	entry := at(2)[:entryCount*entrySize]
	copy(entry, typeESP[:])
	copy(entry[16:], espGUID[:])
	binary.LittleEndian.PutUint64(entry[32:], espFirst)
	binary.LittleEndian.PutUint64(entry[40:], espLast)
	for i, u := range utf16.Encode([]rune("EFI system partition")) {
		binary.LittleEndian.PutUint16(entry[56+2*i:], u)
	}
	backup := imageSectors - 1 - entrySectors
	copy(at(backup), entry)
	sum := crc32.ChecksumIEEE(entry)
	putHeader(at(1), 1, imageSectors-1, 2, sum)
	putHeader(at(imageSectors-1), imageSectors-1, 1, uint64(backup), sum)
	return disk, nil
}

// IsBuilt reports whether a disk has an image from Build, by the identity in its GPT.
func IsBuilt(disk io.ReaderAt) (bool, error) {
	header := make([]byte, headerSize)
	if err := readAt(disk, header, sectorSize); err != nil {
		return false, fmt.Errorf("images: GPT: %w", err)
	}
	return string(header[:len(gptSignature)]) == gptSignature && [16]byte(header[56:72]) == diskGUID, nil
}

// protect writes the partition of a protective MBR, which covers the whole disk
// (UEFI 2.10, §5.2.3).
func protect(mbr []byte) {
	const heads, sectors = 255, 63 // geometry that CHS addresses are given in
	last := imageSectors - 1
	p := mbr[tableOffset:]
	p[2] = 2 // starting CHS: 0/0/2
	p[4] = typeProtective
	p[5], p[6], p[7] = byte(last/sectors%heads), byte(last%sectors+1), byte(last/sectors/heads)
	binary.LittleEndian.PutUint32(p[8:], 1)
	binary.LittleEndian.PutUint32(p[12:], uint32(last))
}

// putHeader writes a GPT header (UEFI 2.10, table 5.5).
func putHeader(b []byte, my, alternate, entries uint64, entriesCRC uint32) {
	le := binary.LittleEndian
	copy(b, gptSignature)
	le.PutUint32(b[8:], 0x00010000) // revision 1.0
	le.PutUint32(b[12:], headerSize)
	le.PutUint64(b[24:], my)
	le.PutUint64(b[32:], alternate)
	le.PutUint64(b[40:], firstUsable)
	le.PutUint64(b[48:], lastUsable)
	copy(b[56:], diskGUID[:])
	le.PutUint64(b[72:], entries)
	le.PutUint32(b[80:], entryCount)
	le.PutUint32(b[84:], entrySize)
	le.PutUint32(b[88:], entriesCRC)
	le.PutUint32(b[16:], crc32.ChecksumIEEE(b[:headerSize]))
}

// guid is a GUID as on disks: the first three fields are little-endian (UEFI 2.10,
// appendix A).
type guid [16]byte

// mustGUID parses the text form of a GUID that this package contains.
func mustGUID(text string) guid {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != len(guid{}) {
		panic(fmt.Sprintf("images: GUID %q: %v", text, err))
	}
	le := binary.LittleEndian
	le.PutUint32(b, binary.BigEndian.Uint32(b))
	le.PutUint16(b[4:], binary.BigEndian.Uint16(b[4:]))
	le.PutUint16(b[6:], binary.BigEndian.Uint16(b[6:]))
	return guid(b)
}
