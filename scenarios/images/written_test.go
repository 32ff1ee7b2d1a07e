package images

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/metalab-dev/metalab/agent/gpt"
)

const (
	diskSectors = 100 * megabyte / sectorSize
	driveFirst  = 30 * megabyte / sectorSize
	driveLast   = 94*megabyte/sectorSize - 1
)

// addDrive puts a config drive's partition in an entry of the primary GPT, as the
// agent does on a disk of diskSectors.
func addDrive(entry int) change {
	return func(disk []byte) []byte {
		e := disk[2*sectorSize+entry*entrySize:][:entrySize]
		clear(e)
		copy(e, gpt.LinuxData[:])
		e[16] = 1 // any GUID
		binary.LittleEndian.PutUint64(e[32:], driveFirst)
		binary.LittleEndian.PutUint64(e[40:], driveLast)
		for i, u := range utf16.Encode([]rune(driveLabel)) {
			binary.LittleEndian.PutUint16(e[56+2*i:], u)
		}
		binary.LittleEndian.PutUint32(disk[tableOffset+12:], diskSectors-1)
		return header(func(h []byte) {
			binary.LittleEndian.PutUint64(h[32:], diskSectors-1)
			binary.LittleEndian.PutUint64(h[48:], diskSectors-2-entrySectors)
			binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(disk[2*sectorSize:][:entryCount*entrySize]))
		})(disk)
	}
}

// primary changes the entries of the primary GPT, with their checksum.
func primary(edit func(e []byte)) change {
	return func(disk []byte) []byte {
		e := disk[2*sectorSize:][:entryCount*entrySize]
		edit(e)
		return header(func(h []byte) { binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(e)) })(disk)
	}
}

// A disk that a config drive was added to holds the image; one that differs anywhere
// else does not.
func TestWritten(t *testing.T) {
	drive := addDrive(1)
	for _, tt := range []struct {
		name    string
		changes []change // to the image
		err     string   // a part of the error
	}{
		{"the image", nil, ""},
		{"on a larger disk", []change{grow(1 << 20)}, ""},
		{"with a config drive", []change{drive, grow(1 << 20)}, ""},
		{"with a config drive in the last entry", []change{addDrive(entryCount - 1)}, ""},
		{"cut", []change{cut(imageSize - 1)}, "read 4194304 bytes"},
		{"other boot code", []change{drive, set(100, 0xaa)}, "byte 100 "},
		{"another byte of a file", []change{drive, set(imageSize/2, 0xaa)}, "byte 2097152 "},
		{"another last byte", []change{drive, set(imageSize-1, 0xaa)}, "byte 4194303 "},
		{"another byte without a config drive", []change{set(imageSize/2, 0xaa)}, "no entry is a config-2 partition"},
		{"another disk GUID", []change{drive, header(func(h []byte) { h[56] ^= 1 })}, "byte 528 "},
		{"another first usable sector", []change{drive, header(func(h []byte) { h[40]++ })}, "byte 528 "},
		{"another protective partition", []change{drive, set(tableOffset+12, 1)}, "byte 458 "},
		{"in the place of the image's partition", []change{addDrive(0)}, "entry 0 is another partition's"},
		{"another partition beside it", []change{drive, primary(func(e []byte) { copy(e[2*entrySize:], e[:entrySize]) })}, "byte 528 "},
		{"the image's partition is gone", []change{drive, primary(func(e []byte) { clear(e[:entrySize]) })}, "byte 528 "},
		{"checksum of the header", []change{drive, set(sectorSize+16, 1, 2, 3, 4)}, "the GPT is not valid"},
		{"checksum of the entries", []change{drive, set(2*sectorSize+40, 1)}, "the GPT is not valid"},
		{"another label", []change{drive, primary(func(e []byte) { e[entrySize+56]++ })}, "no entry"},
		{"another type", []change{drive, primary(func(e []byte) { e[entrySize]++ })}, "no entry"},
		{"inside the image", []change{drive, primary(func(e []byte) { binary.LittleEndian.PutUint64(e[entrySize+32:], imageSectors-1) })}, "the config drive has sectors 8191 to"},
		{"backwards", []change{drive, primary(func(e []byte) { binary.LittleEndian.PutUint64(e[entrySize+40:], driveFirst-1) })}, "the config drive has sectors"},
		{"behind the usable sectors", []change{drive, header(func(h []byte) { binary.LittleEndian.PutUint64(h[48:], driveLast-1) })}, "the usable sectors end with"},
		{"backup within the usable sectors", []change{drive, header(func(h []byte) { binary.LittleEndian.PutUint64(h[32:], diskSectors-2-entrySectors) })}, "the backup header is sector"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			image := build(t)
			disk := bytes.Clone(image)
			for _, c := range tt.changes {
				disk = c(disk)
			}
			err := Written(bytes.NewReader(disk), image)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Written = %v, want an error with %q", err, tt.err)
			}
		})
	}
}
