// Package images owns the lab's operating system images: it builds a small one
// that boots, serves a directory of them with their checksums over HTTP, and
// tells whether the bytes of a disk would boot. It does not know which server
// an image is for, nor how it gets onto a disk.
package images

import (
	"fmt"
	"io"

	"github.com/metalab-dev/metalab/agent/gpt"
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

	// The EFI system partition: aligned to 1 MiB as partitioning tools do, up
	// to the backup table.
	espFirst = megabyte / sectorSize
	espLast  = imageSectors - 2 - 16<<10/sectorSize
)

// The identities of the image are fixed: everyone builds the same bytes.
var (
	diskGUID = gpt.MustParse("6D6574C1-6C61-4B00-8000-64656D6F0001")
	espGUID  = gpt.MustParse("6D6574C1-6C61-4B00-8000-64656D6F0002")
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
		return nil, err
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
	copy(disk, sector)
	gpt.Protect(disk, imageSectors)
	copy(disk[espFirst*sectorSize:], esp)
	table := gpt.New(sectorSize, diskGUID)
	table.Add(gpt.Partition{Type: gpt.ESP, ID: espGUID, First: espFirst, Last: espLast, Name: "EFI system partition"})
	for _, p := range table.Parts(imageSectors) {
		copy(disk[p.Off:], p.Bytes)
	}
	return disk, nil
}

// IsBuilt reports whether a disk has an image from Build, by the identity in its GPT.
func IsBuilt(disk io.ReaderAt) (bool, error) {
	table, err := readTable(disk, sectorSize, 1, anySize)
	if err != nil {
		return false, fmt.Errorf("GPT: %w", err)
	}
	return table != nil && table.Disk() == diskGUID, nil
}
