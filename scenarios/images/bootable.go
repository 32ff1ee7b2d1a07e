package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
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

const (
	gptSignature = "EFI PART"
	headerSize   = 92 // bytes of a header of revision 1.0
	// maxEntries bounds the partition entries that are read: 64 times what
	// everybody writes.
	maxEntries = 1 << 20 // bytes
)

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
		return "", false, fmt.Errorf("images: boot sector: %w", err)
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
		return "", false, fmt.Errorf("images: GPT: %w", err)
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
func findPartitions(r io.ReaderAt, size int64) (partitions, error) {
	for _, sector := range []int64{512, 4096} {
		for _, lba := range []int64{1, size/sector - 1} {
			if lba < 1 || (lba+1)*sector > size {
				continue
			}
			p, err := readGPT(r, sector, lba, size/sector)
			if err != nil || p.valid {
				return p, err
			}
		}
	}
	return partitions{}, nil
}

// readGPT checks a GPT as UEFI 2.10, §5.3.2 demands (signature, sizes, both
// checksums, the header's own address) and reads its entries. Sizes and
// addresses come from the disk: they are compared in a way that cannot
// overflow before they are used.
func readGPT(r io.ReaderAt, sector, lba, sectors int64) (partitions, error) {
	le := binary.LittleEndian
	h := make([]byte, sector)
	if err := readAt(r, h, lba*sector); err != nil {
		return partitions{}, err
	}
	length := le.Uint32(h[12:])
	if string(h[:8]) != gptSignature || length < headerSize || int64(length) > sector {
		return partitions{}, nil
	}
	sum := le.Uint32(h[16:])
	clear(h[16:20])
	at, count, each := le.Uint64(h[72:]), le.Uint32(h[80:]), le.Uint32(h[84:])
	total := uint64(count) * uint64(each)
	switch {
	case crc32.ChecksumIEEE(h[:length]) != sum,
		le.Uint64(h[24:]) != uint64(lba),
		each < entrySize || each%entrySize != 0,
		total > maxEntries,
		at >= uint64(sectors) || total > uint64(sectors-int64(at))*uint64(sector):
		return partitions{}, nil
	}
	entries := make([]byte, total)
	if err := readAt(r, entries, int64(at)*sector); err != nil {
		return partitions{}, err
	}
	if crc32.ChecksumIEEE(entries) != le.Uint32(h[88:]) {
		return partitions{}, nil
	}
	found := partitions{valid: true}
	for ; len(entries) > 0; entries = entries[each:] {
		first, last := le.Uint64(entries[32:]), le.Uint64(entries[40:])
		if first > last || last >= uint64(sectors) {
			continue // a disk that was cut short: firmware skips the partition
		}
		switch guid(entries[:16]) {
		case typeESP:
			found.esp, found.at = true, append(found.at, int64(first)*sector)
		case typeBIOSBoot:
			found.biosBoot = true
		}
	}
	return found, nil
}

// readAt fills b. A reader may return io.EOF with the last byte.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) && errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
