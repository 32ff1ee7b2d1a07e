package configdrive

import (
	"bytes"
)

// Format is a format of file systems of which a volume's label is read.
type Format string

// Formats of volumes.
const (
	ISO9660 Format = "ISO 9660"
	FAT     Format = "FAT" // FAT12, FAT16 or FAT32
)

// HeadSize is how many bytes of a volume, from its beginning, VolumeLabel needs at most.
const HeadSize = 36 << 10

// VolumeLabel returns the format of a volume and its label in lower case, from its first
// HeadSize bytes or fewer: the volume identifier of ISO 9660 (ECMA-119 §8.4.7), or what the boot
// sector of FAT has, where its root directory may have another. It returns "" for other volumes.
func VolumeLabel(head []byte) (format Format, label string) {
	text := func(at, n int) string {
		if len(head) < at+n {
			return ""
		}
		return string(bytes.ToLower(bytes.TrimRight(head[at:at+n], " \x00")))
	}
	switch {
	case text(16*block+1, 5) == "cd001":
		return ISO9660, text(16*block+40, 32)
	case text(54, 3) == "fat": // FAT12 and FAT16
		return FAT, text(43, 11)
	case text(82, 5) == "fat32":
		return FAT, text(71, 11)
	}
	return "", ""
}
