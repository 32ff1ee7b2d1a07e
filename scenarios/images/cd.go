package images

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

// Descriptions of a medium that BootableCD returns.
const (
	bootsElTorito = "El Torito"

	noISO      = "no ISO 9660 volume"
	noElTorito = "ISO 9660 without a boot record"
	badCatalog = "a boot catalog that names nothing bootable"
)

const (
	cdBlock        = 2048 // bytes
	firstVolume    = 16   // block
	maxDescriptors = 32
	elTorito       = "EL TORITO SPECIFICATION"
)

// BootableCD reports whether firmware would boot a CD with these bytes, as Bootable
// does for a disk. It checks the boot record of El Torito 1.0 (§2.0), the validation
// entry of the catalog (§2.1) and its default entry (§2.2). Further sections of a
// catalog, which real media have for UEFI, follow a default entry.
func BootableCD(r io.ReaderAt, size int64) (what string, ok bool, err error) {
	b := make([]byte, cdBlock)
	catalog := int64(-1)
	for i := int64(firstVolume); i < firstVolume+maxDescriptors; i++ {
		if (i+1)*cdBlock > size {
			break
		}
		if err := readAt(r, b, i*cdBlock); err != nil {
			return "", false, fmt.Errorf("volume descriptor: %w", err)
		}
		if string(b[1:6]) != "CD001" {
			break
		}
		if catalog < 0 {
			catalog = 0 // a volume, at least
		}
		if b[0] == 0 && string(b[7:7+len(elTorito)]) == elTorito {
			catalog = int64(binary.LittleEndian.Uint32(b[0x47:]))
			break
		}
		if b[0] == 255 {
			break
		}
	}
	switch {
	case catalog < 0:
		return noISO, false, nil
	case catalog == 0:
		return noElTorito, false, nil
	case (catalog+1)*cdBlock > size:
		return badCatalog, false, nil
	}
	if err := readAt(r, b, catalog*cdBlock); err != nil {
		return "", false, fmt.Errorf("boot catalog: %w", err)
	}
	sum := uint16(0)
	for i := 0; i < 32; i += 2 {
		sum += binary.LittleEndian.Uint16(b[i:])
	}
	entry := b[32:]
	at, blocks := int64(binary.LittleEndian.Uint32(entry[8:])), binary.LittleEndian.Uint16(entry[6:])
	if b[0] != 1 || b[30] != 0x55 || b[31] != 0xaa || sum != 0 || entry[0] != 0x88 || at <= firstVolume || (at+1)*cdBlock > size || blocks == 0 {
		return badCatalog, false, nil
	}
	return bootsElTorito, true, nil
}

// BuildLiveISO returns a live ISO: a volume without files whose boot sector prints a
// line and waits. It always returns the same bytes.
func BuildLiveISO() ([]byte, error) { return buildCD("METALAB_LIVE", nil) }

// BuildSeedISO returns a live ISO that is a data source of cloud-init, too (NoCloud): the system
// that boots from it applies the user data.
func BuildSeedISO(metaData, userData []byte) ([]byte, error) {
	return buildCD("cidata", []cdFile{{"meta-data", metaData}, {"user-data", userData}})
}

// cdFile is a file in the root directory of a CD. Files are sorted by their names.
type cdFile struct {
	name    string
	content []byte
}

// buildCD returns a CD that boots.
func buildCD(label string, files []cdFile) ([]byte, error) {
	sector, err := stub.BootSector("Metalab live image: it boots.")
	if err != nil {
		return nil, err
	}
	const catalogAt, rootAt, bootAt, tablesAt, filesAt = 19, 20, 21, 22, 24
	blocks := uint32(filesAt)
	for _, f := range files {
		blocks += uint32((len(f.content) + cdBlock - 1) / cdBlock) //nolint:gosec // they fit into memory
	}
	iso := make([]byte, int(blocks)*cdBlock)
	block := func(i int) []byte { return iso[i*cdBlock:] }
	le, be := binary.LittleEndian, binary.BigEndian
	both := func(p []byte, n uint32) { le.PutUint32(p, n); be.PutUint32(p[4:], n) }

	root := make([]byte, 34) // ECMA-119 §9.1
	root[0], root[25], root[28], root[31], root[32] = 34, 2, 1, 1, 1
	both(root[2:], rootAt)
	both(root[10:], cdBlock)
	copy(root[18:], []byte{70, 1, 1})
	copy(block(rootAt), root)
	copy(block(rootAt)[34:], root)
	block(rootAt)[34+33] = 1 // the parent, which is itself
	entry, at := block(rootAt)[68:], uint32(filesAt)
	for _, f := range files {
		n := 33 + len(f.name)
		n += n & 1 // records have an even length
		entry[0], entry[28], entry[31], entry[32] = byte(n), 1, 1, byte(len(f.name))
		entry[25] = 0 // a file
		both(entry[2:], at)
		both(entry[10:], uint32(len(f.content))) //nolint:gosec // they fit into memory
		copy(entry[33:], f.name)
		copy(iso[int(at)*cdBlock:], f.content)
		entry = entry[n:]
		at += uint32((len(f.content) + cdBlock - 1) / cdBlock) //nolint:gosec // they fit into memory
	}

	p := block(firstVolume) // §8.4
	copy(p, "\x01CD001\x01")
	for i := 8; i < 813; i++ { // texts: blank
		p[i] = ' '
	}
	clear(p[72:190])
	for at := 813; at < 881; at += 17 { // dates: none
		copy(p[at:], "0000000000000000\x00")
	}
	copy(p[40:], label)
	both(p[80:], blocks)
	for at, n := range map[int]uint16{120: 1, 124: 1, 128: cdBlock} { // each at its own offset: the order cannot be seen
		le.PutUint16(p[at:], n)
		be.PutUint16(p[at+2:], n)
	}
	// The path tables have the root alone (§9.4), in both orders of bytes.
	const rootPath = 10 // bytes of its record
	both(p[132:], rootPath)
	le.PutUint32(p[140:], tablesAt)
	be.PutUint32(p[148:], tablesAt+1)
	for i, order := range []binary.ByteOrder{le, be} {
		t := block(tablesAt + i)
		t[0] = 1 // length of the name, which is zero
		order.PutUint32(t[2:], rootAt)
		order.PutUint16(t[6:], 1)
	}
	copy(p[156:], root)
	p[881] = 1

	p = block(firstVolume + 1)
	copy(p, "\x00CD001\x01"+elTorito)
	le.PutUint32(p[0x47:], catalogAt)
	copy(block(firstVolume+2), "\xffCD001\x01")

	p = block(catalogAt)
	p[0], p[30], p[31] = 1, 0x55, 0xaa
	le.PutUint16(p[28:], 0x55aa) // the words' sum is zero
	p[32] = 0x88
	le.PutUint16(p[38:], cdBlock/sectorSize)
	le.PutUint32(p[40:], bootAt)
	copy(block(bootAt), sector)
	return iso, nil
}
