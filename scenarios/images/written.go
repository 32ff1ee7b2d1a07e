package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"unicode/utf16"
)

// driveLabel is the name of a config drive's partition, and driveType its type
// (Linux filesystem data, sgdisk's default).
const driveLabel = "config-2"

var driveType = mustGUID("0FC63DAF-8483-4772-8E79-3D69D8477DE4")

// Written returns nil if a disk begins with an image from Build, whole except for
// what a config drive changes in its partition table: one entry that was free, the
// fields of the primary header that count and locate (UEFI 2.10, §5.3.2), and the
// size of the protective partition (§5.2.3). The table must be valid.
func Written(disk io.ReaderAt, image []byte) error {
	got := make([]byte, len(image))
	if err := readAt(disk, got, 0); err != nil {
		return fmt.Errorf("images: read %d bytes of the disk: %w", len(image), err)
	}
	if bytes.Equal(got, image) {
		return nil
	}
	want := bytes.Clone(image)
	if err := adoptDrive(want, got); err != nil {
		return fmt.Errorf("images: the disk's partition table is not the image's with a config drive: %w", err)
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("images: byte %d of the disk is %#02x, the image has %#02x", i, got[i], want[i])
		}
	}
	return nil
}

// adoptDrive changes the image as the config drive on the disk has to change it.
func adoptDrive(image, disk []byte) error {
	le := binary.LittleEndian
	p, err := readGPT(bytes.NewReader(disk), sectorSize, 1, 1<<62/sectorSize)
	if err != nil {
		return err
	}
	if !p.valid {
		return errors.New("the GPT is not valid")
	}
	table := func(b []byte) (header, entries []byte) {
		return b[sectorSize:][:headerSize], b[2*sectorSize:][:entryCount*entrySize]
	}
	h, e := table(image)
	onDisk, after := table(disk)
	at := slices.IndexFunc(slices.Collect(slices.Chunk(after, entrySize)), isDriveEntry)
	if at < 0 {
		return fmt.Errorf("no entry is a %s partition", driveLabel)
	}
	entry, drive := e[at*entrySize:][:entrySize], after[at*entrySize:][:entrySize]
	if !bytes.Equal(entry, make([]byte, entrySize)) {
		return fmt.Errorf("entry %d is another partition's in the image", at)
	}
	alternate, usable := le.Uint64(onDisk[32:]), le.Uint64(onDisk[48:])
	if first, last := le.Uint64(drive[32:]), le.Uint64(drive[40:]); first < uint64(len(image)/sectorSize) || last < first || last > usable {
		return fmt.Errorf("the config drive has sectors %d to %d; the image ends before %d, the usable sectors end with %d", first, last, len(image)/sectorSize, usable)
	}
	if usable >= alternate {
		return fmt.Errorf("the backup header is sector %d, the last usable sector %d", alternate, usable)
	}
	copy(entry, drive)
	le.PutUint64(h[32:], alternate)
	le.PutUint64(h[48:], usable)
	le.PutUint32(h[88:], crc32.ChecksumIEEE(e))
	clear(h[16:20])
	le.PutUint32(h[16:], crc32.ChecksumIEEE(h))
	le.PutUint32(image[tableOffset+12:], uint32(min(alternate, 1<<32-1)))
	return nil
}

// isDriveEntry reports whether a partition entry is a config drive's, by its type
// and name.
func isDriveEntry(entry []byte) bool {
	var name []uint16
	for b := entry[56:]; len(b) > 1 && (b[0] != 0 || b[1] != 0); b = b[2:] {
		name = append(name, binary.LittleEndian.Uint16(b))
	}
	return guid(entry[:16]) == driveType && string(utf16.Decode(name)) == driveLabel
}
