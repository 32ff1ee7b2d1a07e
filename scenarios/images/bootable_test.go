package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/metalab-dev/metalab/agent/gpt"
	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

// The layout of a GPT with 128 entries, on sectors of 512 bytes.
const (
	headerSize   = 92 // bytes
	entrySize    = 128
	entryCount   = 128
	entrySectors = entryCount * entrySize / sectorSize
)

// change changes the bytes of a disk.
type change func(disk []byte) []byte

func set(at int, bytes ...byte) change {
	return func(disk []byte) []byte {
		copy(disk[at:], bytes)
		return disk
	}
}

// wipe clears n bytes, counted from the end of the disk when at is negative.
func wipe(at, n int) change {
	return func(disk []byte) []byte {
		if at < 0 {
			at += len(disk)
		}
		clear(disk[at : at+n])
		return disk
	}
}

// grow appends zeros, as on a disk that is larger than the image.
func grow(n int) change {
	return func(disk []byte) []byte { return append(disk, make([]byte, n)...) }
}

func cut(n int) change {
	return func(disk []byte) []byte { return disk[:n] }
}

// header changes the primary header and its checksum.
func header(edit func(h []byte)) change {
	return func(disk []byte) []byte {
		h := disk[sectorSize : sectorSize+headerSize]
		edit(h)
		clear(h[16:20])
		binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h))
		return disk
	}
}

// entries changes the entries of both copies, with their checksums.
func entries(edit func(e []byte)) change {
	return func(disk []byte) []byte {
		for _, lba := range []struct{ header, entries int }{{1, 2}, {imageSectors - 1, imageSectors - 1 - entrySectors}} {
			e := disk[lba.entries*sectorSize:][:entryCount*entrySize]
			edit(e)
			h := disk[lba.header*sectorSize:][:headerSize]
			binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(e))
			clear(h[16:20])
			binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h))
		}
		return disk
	}
}

var biosBoot = entries(func(e []byte) { copy(e, typeBIOSBoot[:]) })

var noEntries = entries(func(e []byte) { clear(e) })

const imageSize = imageSectors * sectorSize

var bootableTests = []struct {
	name    string
	changes []change // to the image
	what    string
	ok      bool
}{
	{"the image", nil, bootsGPT, true},
	{"on a larger disk", []change{grow(1 << 20)}, bootsGPT, true},
	{"primary header wiped", []change{wipe(512, 512)}, bootsGPT, true},
	{"primary header's checksum wrong", []change{set(512+60, 0xff)}, bootsGPT, true},
	{"primary entries damaged", []change{wipe(2*512, 1)}, bootsGPT, true},
	{"both headers wiped", []change{wipe(512, 512), wipe(-512, 512)}, damagedGPT, false},
	{"both entries damaged", []change{wipe(2*512, 1), wipe(-33*512, 1)}, damagedGPT, false},
	{"backup alone on a larger disk", []change{wipe(512, 512), grow(1 << 20)}, damagedGPT, false},
	{"MBR wiped", []change{wipe(0, 512)}, emptyDisk, false},
	{"first megabyte wiped", []change{wipe(0, 1<<20)}, emptyDisk, false},
	{"signature damaged", []change{set(511, 0)}, noSignature, false},
	{"no boot code", []change{wipe(0, codeSize)}, bootsGPT, true},
	{"no partitions", []change{noEntries}, noESP, false},
	{"EFI system partition that holds nothing", []change{wipe(espFirst*sectorSize, 1<<20)}, emptyESP, false},
	{"BIOS boot partition", []change{biosBoot}, bootsSector, true},
	{"BIOS boot partition without code", []change{biosBoot, wipe(0, codeSize)}, noESP, false},
	{"cut within the partition", []change{cut(2 << 20)}, noESP, false},
	{"protective entry at another sector", []change{set(tableOffset+8, 2)}, bootsSector, true},
	{"hybrid MBR", []change{set(tableOffset+partitionSize+4, 0x83)}, bootsGPT, true},

	{"header too short", []change{header(func(h []byte) { h[12] = 91 })}, bootsGPT, true},
	{"header too long", []change{header(func(h []byte) { h[15] = 0xff })}, bootsGPT, true},
	{"entries at the end of the world", []change{header(func(h []byte) { copy(h[72:], bytes.Repeat([]byte{0xff}, 8)) }), wipe(-512, 512)}, damagedGPT, false},
	{"entries beyond the disk", []change{header(func(h []byte) { binary.LittleEndian.PutUint64(h[72:], imageSectors-1) }), wipe(-512, 512)}, damagedGPT, false},
	{"four billion entries", []change{header(func(h []byte) { copy(h[80:], []byte{0xff, 0xff, 0xff, 0xff}) }), wipe(-512, 512)}, damagedGPT, false},
	{"entries of no size", []change{header(func(h []byte) { clear(h[84:88]) }), wipe(-512, 512)}, damagedGPT, false},
	{"no entries at all", []change{header(func(h []byte) { clear(h[80:84]); clear(h[88:92]) })}, noESP, false},
	{"partition backwards", []change{entries(func(e []byte) { e[40] = 0; e[41] = 0 })}, noESP, false},

	{"boot sector alone", []change{cut(512), wipe(tableOffset, 64)}, bootsSector, true},
	{"boot sector without code", []change{cut(512), wipe(tableOffset, 64), wipe(0, codeSize)}, noCode, false},
	{"protective MBR alone", []change{cut(512)}, damagedGPT, false},
	{"less than a sector", []change{cut(511)}, emptyDisk, false},
	{"nothing", []change{cut(0)}, emptyDisk, false},
}

func TestBootable(t *testing.T) {
	image := build(t)
	for _, tt := range bootableTests {
		t.Run(tt.name, func(t *testing.T) {
			disk := slices.Clone(image)
			for _, c := range tt.changes {
				disk = c(disk)
			}
			what, ok, err := Bootable(bytes.NewReader(disk), int64(len(disk)))
			if err != nil || what != tt.what || ok != tt.ok {
				t.Errorf("Bootable = %q, %v, %v; want %q, %v", what, ok, err, tt.what, tt.ok)
			}
		})
	}
}

// TestBootableWithLargeSectors has a GPT for sectors of 4096 bytes.
func TestBootableWithLargeSectors(t *testing.T) {
	const sector, sectors = 4096, 64
	disk := make([]byte, sector*sectors)
	code, err := stub.BootSector("x")
	if err != nil {
		t.Fatal(err)
	}
	copy(disk, code)
	gpt.Protect(disk, sectors)
	table := gpt.New(sector, diskGUID)
	table.Add(gpt.Partition{Type: gpt.ESP, First: 10, Last: 20})
	for _, p := range table.Parts(sectors) {
		copy(disk[p.Off:], p.Bytes)
	}
	disk[10*sector+signatureOffset], disk[10*sector+signatureOffset+1] = 0x55, 0xaa // boot signature of the file system
	if what, ok, err := Bootable(bytes.NewReader(disk), int64(len(disk))); what != bootsGPT || !ok || err != nil {
		t.Errorf("Bootable = %q, %v, %v; want %q, true", what, ok, err, bootsGPT)
	}
}

// brokenDisk cannot be read from one offset on.
type brokenDisk struct {
	disk []byte
	from int64
}

var errMedium = errors.New("medium error")

func (b brokenDisk) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.from {
		return 0, errMedium
	}
	return copy(p, b.disk[off:]), nil
}

func TestBootableReturnsReadErrors(t *testing.T) {
	for _, from := range []int64{0, 512, 1024} {
		_, ok, err := Bootable(brokenDisk{build(t), from}, imageSize)
		if !errors.Is(err, errMedium) || ok {
			t.Errorf("Bootable, broken from byte %d = %v, %v; want the medium's error", from, ok, err)
		}
	}
	if _, _, err := Bootable(bytes.NewReader(nil), 1<<20); !errors.Is(err, io.EOF) {
		t.Errorf("Bootable of a disk shorter than said = %v, want io.EOF", err)
	}
}

// FuzzBootable checks random disks, with and without valid checksums. Its seeds are
// a boot sector and the smallest GPT.
func FuzzBootable(f *testing.F) {
	small := make([]byte, 4*sectorSize)
	gpt.Protect(small, 4)
	table := gpt.New(sectorSize, diskGUID)
	table.Add(gpt.Partition{Type: gpt.ESP, First: 3, Last: 3})
	for _, p := range table.Parts(4 + 2*entrySectors)[2:] { // of the primary; the disk has the first entries
		copy(small[p.Off:], p.Bytes)
	}
	binary.LittleEndian.PutUint32(small[sectorSize+80:], 4) // entries
	f.Add(small, false)
	f.Add(small, true)
	f.Add(build(f)[:sectorSize], false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, disk []byte, fix bool) {
		if fix && len(disk) >= 2*sectorSize {
			disk = slices.Clone(disk)
			fixChecksums(disk)
		}
		what, ok, err := Bootable(bytes.NewReader(disk), int64(len(disk)))
		if err != nil {
			t.Fatalf("Bootable(%d bytes) error = %v", len(disk), err)
		}
		if again, _, _ := Bootable(bytes.NewReader(disk), int64(len(disk))); what == "" || again != what {
			t.Fatalf("Bootable = %q, %v, then %q", what, ok, again)
		}
	})
}

// fixChecksums computes the checksums of a primary header and of the entries that
// it names, if they are on the disk.
func fixChecksums(disk []byte) {
	le := binary.LittleEndian
	h := disk[sectorSize : 2*sectorSize]
	copy(h, "EFI PART")
	at, total := le.Uint64(h[72:]), uint64(le.Uint32(h[80:]))*uint64(le.Uint32(h[84:]))
	if at < uint64(len(disk)/sectorSize) && total <= uint64(len(disk))-at*sectorSize {
		le.PutUint32(h[88:], crc32.ChecksumIEEE(disk[at*sectorSize:][:total]))
	}
	if length := le.Uint32(h[12:]); length <= sectorSize {
		clear(h[16:20])
		le.PutUint32(h[16:], crc32.ChecksumIEEE(h[:length]))
	}
}
