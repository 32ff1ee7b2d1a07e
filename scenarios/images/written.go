package images

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/metalab-dev/metalab/agent/gpt"
)

// driveLabel is the name of a config drive's partition, whose type is that of Linux data.
const driveLabel = "config-2"

// Written returns nil if a disk begins with an image from Build, whole except for
// what a config drive changes in its partition table: one entry that was free, the
// fields of the primary header that count and locate (UEFI 2.10, §5.3.2), and the
// size of the protective partition (§5.2.3). The table must be valid.
func Written(disk io.ReaderAt, image []byte) error {
	got := make([]byte, len(image))
	if err := readAt(disk, got, 0); err != nil {
		return fmt.Errorf("read %d bytes of the disk: %w", len(image), err)
	}
	if bytes.Equal(got, image) {
		return nil
	}
	want := bytes.Clone(image)
	if err := adoptDrive(want, got); err != nil {
		return fmt.Errorf("the disk's partition table is not the image's with a config drive: %w", err)
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("byte %d of the disk is %#02x, the image has %#02x", i, got[i], want[i])
		}
	}
	return nil
}

// adoptDrive changes the image as the config drive on the disk has to change it.
func adoptDrive(image, disk []byte) error {
	onDisk, err := readTable(bytes.NewReader(disk), sectorSize, 1, anySize)
	if err != nil {
		return err
	}
	table, err := readTable(bytes.NewReader(image), sectorSize, 1, anySize)
	if err != nil {
		return err
	}
	if onDisk == nil || table == nil {
		return errors.New("the GPT is not valid")
	}
	at, drive := -1, gpt.Partition{}
	for i, p := range onDisk.All() {
		if at < 0 && p.Type == gpt.LinuxData && p.Name == driveLabel {
			at, drive = i, p
		}
	}
	if at < 0 {
		return fmt.Errorf("no entry is a %s partition", driveLabel)
	}
	if !table.Put(at, drive) {
		return fmt.Errorf("entry %d is another partition's in the image", at)
	}
	alternate, usable := onDisk.Alternate(), onDisk.LastUsable()
	if drive.First < uint64(len(image)/sectorSize) || drive.Last < drive.First || drive.Last > usable {
		return fmt.Errorf("the config drive has sectors %d to %d; the image ends before %d, the usable sectors end with %d", drive.First, drive.Last, len(image)/sectorSize, usable)
	}
	if usable >= alternate || alternate >= anySize {
		return fmt.Errorf("the backup header is sector %d, the last usable sector %d", alternate, usable)
	}
	sectors := int64(alternate) + 1
	gpt.Resize(image, sectors)
	for _, p := range table.Parts(sectors) {
		if p.Off < int64(len(image)) {
			copy(image[p.Off:], p.Bytes)
		}
	}
	return nil
}
