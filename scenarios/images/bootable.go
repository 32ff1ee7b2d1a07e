package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/metalab-dev/metalab/agent/gpt"
)

// Descriptions of a disk that Bootable returns.
const (
	bootsGPT    = "GPT, EFI system partition"
	bootsSector = "boot sector"

	emptyDisk   = "empty"
	noSignature = "no boot signature"
	noCode      = "boot sector without code"
	noESP       = "GPT without EFI system partition"
	emptyESP    = "EFI system partition without a file system"
	damagedGPT  = "protective MBR without a valid GPT"
)

// Offsets in a master boot record and its one partition type that matters.
const (
	codeSize        = 440 // bytes of boot code; the disk's signature follows
	tableOffset     = 446
	partitionSize   = 16
	signatureOffset = 510
	typeProtective  = 0xee
)

// typeBIOSBoot is the type of the partition in which GRUB's boot sector goes on.
var typeBIOSBoot = gpt.MustParse("21686148-6449-6E6F-744E-656564454649")

// Bootable reports whether firmware would boot a disk with these size bytes, and
// what it would boot; if not, what says why. It checks what firmware checks before
// it runs anything: the boot sector or, for UEFI, the GPT. The backup GPT counts
// when the primary one is damaged, and a GPT counts only behind a protective MBR
// (UEFI 2.10, §5.3.1, as EDK II does). Of a file system only the boot sector is
// read. The error is that of r.
func Bootable(r io.ReaderAt, size int64) (what string, ok bool, err error) {
	if size < sectorSize {
		return emptyDisk, false, nil
	}
	mbr := make([]byte, sectorSize)
	if err := readAt(r, mbr, 0); err != nil {
		return "", false, fmt.Errorf("boot sector: %w", err)
	}
	if mbr[signatureOffset] != 0x55 || mbr[signatureOffset+1] != 0xaa {
		if bytes.Equal(mbr, make([]byte, sectorSize)) {
			return emptyDisk, false, nil
		}
		return noSignature, false, nil
	}
	hasCode := !bytes.Equal(mbr[:codeSize], make([]byte, codeSize))
	if !isProtectiveMBR(mbr) {
		if !hasCode {
			return noCode, false, nil
		}
		return bootsSector, true, nil
	}
	found, err := findPartitions(r, size)
	if err == nil && found.esp {
		found.esp, err = hasFAT(r, found.at)
	}
	switch {
	case err != nil:
		return "", false, fmt.Errorf("GPT: %w", err)
	case !found.valid:
		return damagedGPT, false, nil
	case found.esp:
		return bootsGPT, true, nil
	case found.biosBoot && hasCode:
		return bootsSector, true, nil // it goes on in the BIOS boot partition
	case found.at != nil:
		return emptyESP, false, nil
	}
	return noESP, false, nil
}

// hasFAT reports whether one of the partitions has the boot sector of a FAT file
// system, which ends with a signature.
func hasFAT(r io.ReaderAt, at []int64) (bool, error) {
	for _, off := range at {
		boot := make([]byte, sectorSize)
		if err := readAt(r, boot, off); err != nil {
			return false, err
		}
		if boot[signatureOffset] == 0x55 && boot[signatureOffset+1] == 0xaa {
			return true, nil
		}
	}
	return false, nil
}

// isProtectiveMBR reports whether an MBR protects a GPT (UEFI 2.10, §5.2.3). So does
// a hybrid one, which has other partitions as well.
func isProtectiveMBR(mbr []byte) bool {
	for at := tableOffset; at < signatureOffset; at += partitionSize {
		p := mbr[at : at+partitionSize]
		if p[4] == typeProtective && binary.LittleEndian.Uint32(p[8:]) == 1 {
			return true
		}
	}
	return false
}

// partitions is what a GPT lists.
type partitions struct {
	valid, esp, biosBoot bool
	at                   []int64 // where EFI system partitions begin
}

// findPartitions reads the primary GPT or else the backup, with sectors of 512 bytes
// or else of 4096: the content does not tell the sector size of the disk.
func findPartitions(r io.ReaderAt, size int64) (found partitions, err error) {
	for _, sector := range []int64{512, 4096} {
		for _, lba := range []int64{1, size/sector - 1} {
			if lba < 1 || (lba+1)*sector > size {
				continue
			}
			table, err := readTable(r, sector, lba, size/sector)
			if err != nil {
				return partitions{}, err
			}
			if table == nil {
				continue
			}
			found.valid = true
			for _, p := range table.All() {
				switch {
				case p.First > p.Last || p.Last >= uint64(size/sector): // a disk that was cut short: firmware skips the partition
				case p.Type == gpt.ESP:
					found.esp, found.at = true, append(found.at, int64(p.First)*sector)
				case p.Type == typeBIOSBoot:
					found.biosBoot = true
				}
			}
			return found, nil
		}
	}
	return partitions{}, nil
}

// anySize is the number of sectors of a disk whose size is not known.
const anySize = 1 << 62 / sectorSize

// readTable reads a copy of a GPT; nil if there is no valid one.
func readTable(r io.ReaderAt, sector, lba, sectors int64) (*gpt.Table, error) {
	table, err := gpt.Read(r, sector, lba, sectors)
	if err != nil && !errors.Is(err, gpt.ErrDamaged) {
		return nil, err
	}
	return table, nil
}

// readAt fills b. A reader may return io.EOF with the last byte.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) && errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
