package rootfs

import "io"

// kinds lists what can be at the start of a disk or partition by its magic number, those
// that others may leave traces of last. The values are those of libblkid's names.
var kinds = []struct {
	name  string
	off   int
	magic string
}{
	{"LUKS-encrypted volume", 0, "LUKS\xba\xbe"},
	{"LVM2 physical volume", 512 + 24, "LVM2 001"}, // its label is usually in the second sector
	{"LVM2 physical volume", 24, "LVM2 001"},
	{"xfs", 0, "XFSB"},
	{"squashfs", 0, "hsqs"},
	{"btrfs", 0x10040, "_BHRfS_M"},
	{"f2fs", 1024, "\x10\x20\xf5\xf2"},
	{"erofs", 1024, "\xe2\xe1\xf5\xe0"},
	{"ext", extMagicAt, "\x53\xef"},
	{"swap", 4096 - 10, "SWAPSPACE2"},
	{"member of a Linux software RAID", 4096, "\xfc\x4e\x2b\xa9"}, // version 1.2
	{"member of a Linux software RAID", 0, "\xfc\x4e\x2b\xa9"},    // version 1.1
	{"ntfs", 3, "NTFS    "},
	{"exfat", 3, "EXFAT   "},
	{"BitLocker volume", 3, "-FVE-FS-"},
	{"vfat", 0x52, "FAT32   "},
	{"vfat", 0x36, "FAT16   "},
	{"vfat", 0x36, "FAT12   "},
	{"iso9660", 0x8001, "CD001"},
}

// maxKind is how many bytes of a disk kindOf reads.
const maxKind = 0x10040 + 8

// kindOf names the format at the start of a disk or partition; "": unknown.
func kindOf(r io.ReaderAt, size int64) (string, error) {
	head := make([]byte, min(size, maxKind))
	if err := readFull(r, head, 0); err != nil {
		return "", err
	}
	for _, k := range kinds {
		if end := k.off + len(k.magic); end <= len(head) && string(head[k.off:end]) == k.magic {
			return k.name, nil
		}
	}
	return "", nil
}
