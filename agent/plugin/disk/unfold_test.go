package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zlib"

	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// foldedQcow2 returns an image of a few clusters whose L1 entries all map the same L2
// table, the entries of which are all the same: it declares a disk of size bytes.
func foldedQcow2(t *testing.T, s qcow2Spec, size int64) []byte {
	t.Helper()
	cluster := int64(1) << s.bits
	perL1 := cluster / 8 * cluster
	l1 := (size-1)/perL1 + 1
	one := bytes.Repeat([]byte{'x'}, int(cluster))
	s.compress = s.compress || s.zstd
	p := writeQcow2(t, s, one) // one L1 entry, one L2 entry
	be := binary.BigEndian
	table, entry := be.Uint64(p[2*cluster:]), be.Uint64(p[3*cluster:])
	at := int64(len(p)) // a longer L1 table and a full L2 table follow
	p = append(p, make([]byte, (l1*8+cluster-1)/cluster*cluster)...)
	for i := range l1 {
		be.PutUint64(p[at+8*i:], table)
	}
	for i := range cluster / 8 {
		be.PutUint64(p[3*cluster+8*i:], entry)
	}
	be.PutUint64(p[24:], uint64(size))
	be.PutUint32(p[36:], uint32(l1))
	be.PutUint64(p[40:], uint64(at))
	return p
}

// foldedSubclusters returns an image with extended L2 entries, which all map the same
// cluster, for a disk of size bytes.
func foldedSubclusters(t *testing.T, size int64) []byte {
	t.Helper()
	s := qcow2Spec{version: 3, bits: 14}
	p := foldedQcow2(t, s, size)
	cluster := int64(1) << s.bits
	be := binary.BigEndian
	entry := be.Uint64(p[3*cluster:])
	for i := range cluster / 16 {
		be.PutUint64(p[3*cluster+16*i:], entry)
		be.PutUint64(p[3*cluster+16*i+8:], 1<<32-1) // the bitmap: all subclusters have data
	}
	table, l1 := be.Uint64(p[2*cluster:]), (size-1)/(cluster/16*cluster)+1
	at := int64(len(p))
	p = append(p, make([]byte, (l1*8+cluster-1)/cluster*cluster)...)
	for i := range l1 {
		be.PutUint64(p[at+8*i:], table)
	}
	be.PutUint32(p[36:], uint32(l1))
	be.PutUint64(p[40:], uint64(at))
	be.PutUint64(p[72:], featureExtendedL2)
	return p
}

// foldedVDI returns an image of which all blocks are the same.
func foldedVDI(blocks int) []byte {
	le := binary.LittleEndian
	p := vdiFile()
	end := len(p)
	p = append(p, make([]byte, 4*blocks)...) // the table: every entry is block 0
	le.PutUint32(p[0x154:], uint32(end))
	le.PutUint64(p[0x170:], uint64(blocks)*4096)
	le.PutUint32(p[0x180:], uint32(blocks))
	return p
}

// foldedVMDK returns an image of size bytes whose grain directory has one grain table for
// all of it, the entries of which are all the same grain of text. The marker of a
// compressed grain names its first sector, which is that of the disk's grain of the same
// number.
func foldedVMDK(size int64, compressed bool, number uint64) []byte {
	le := binary.LittleEndian
	const grain = 8 // sectors
	tables := (size-1)/(grain*sector*maxGrainTable) + 1
	directory := (4*tables-1)/sector + 1 // sectors
	table := 2 + directory
	at := table + 4*maxGrainTable/sector
	p := make([]byte, at*sector)
	kind := "monolithicSparse"
	copy(p, "KDMV")
	le.PutUint32(p[4:], 1)
	le.PutUint32(p[8:], 1)
	le.PutUint64(p[12:], uint64(size/sector))
	le.PutUint64(p[20:], grain)
	le.PutUint64(p[28:], 1) // the descriptor
	le.PutUint64(p[36:], 1)
	le.PutUint32(p[44:], maxGrainTable)
	le.PutUint64(p[56:], 2)
	data := bytes.Repeat([]byte{'x'}, grain*sector)
	if compressed {
		kind = "streamOptimized"
		le.PutUint32(p[4:], 3)
		le.PutUint32(p[8:], 1|vmdkCompressed|1<<17)
		le.PutUint16(p[77:], deflate)
		var packed bytes.Buffer
		z := zlib.NewWriter(&packed)
		z.Write(data)
		z.Close()
		data = append(le.AppendUint32(le.AppendUint64(nil, number*grain), uint32(packed.Len())), packed.Bytes()...)
	}
	copy(p[sector:], "# Disk DescriptorFile\nCID=1\nparentCID=ffffffff\ncreateType=\""+kind+"\"\n")
	for i := range tables {
		le.PutUint32(p[2*sector+4*i:], uint32(table))
	}
	for i := range int64(maxGrainTable) {
		le.PutUint32(p[table*sector+4*i:], uint32(at))
	}
	p = append(p, data...)
	return append(p, make([]byte, -len(p)&(sector-1))...)
}

// A compressed grain belongs to one place of the disk: a small image that maps another grain
// to it ends at the first such place.
func TestCompressedGrainOfAnotherPlaceIsRefused(t *testing.T) {
	file := foldedVMDK(2*mib, true, 3)
	m, _, err := unpack(t.Context(), t, file, 8*mib)
	if err == nil || !strings.Contains(err.Error(), "the marker before it is of sector 24") {
		t.Errorf("error = %v, want that of the marker", err)
	}
	if head := get(t, m, 0, 512); strings.Trim(head, "\x00") != "" {
		t.Error("the disk can boot")
	}
}

// An image whose tables map one cluster to the whole disk is refused before the disk is
// touched, with the sizes of the data, the declared disk and the file.
func TestFoldedImagesAreRefused(t *testing.T) {
	for name, file := range map[string][]byte{
		"qcow2":              foldedQcow2(t, qcow2Spec{version: 3, bits: 12}, 64*mib),
		"qcow2, 512 bytes":   foldedQcow2(t, qcow2Spec{version: 2, bits: 9}, 64*mib),
		"qcow2, deflate":     foldedQcow2(t, qcow2Spec{version: 3, bits: 12, compress: true}, 64*mib),
		"qcow2, zstd":        foldedQcow2(t, qcow2Spec{version: 3, bits: 12, zstd: true}, 4096*mib),
		"qcow2 of version 2": foldedQcow2(t, qcow2Spec{version: 2, bits: 16, compress: true}, 4096*mib),
		"vdi":                foldedVDI(16 << 10),
		"vmdk":               foldedVMDK(64*mib, false, 0),
		"vmdk, one table":    foldedVMDK(4096*mib, false, 0),
		"vmdk, deflate":      foldedVMDK(4096*mib, true, 0),
	} {
		t.Run(name, func(t *testing.T) {
			m := systest.NewMemory(4096 * mib)
			if _, err := m.WriteAt([]byte("old data"), 0); err != nil {
				t.Fatal(err)
			}
			s := scratchSink{format: detect(file), target: &target{block: m, name: "/dev/sda"}, scratch: scratch{bytes.NewReader(file)}, bar: &progress{}}
			_, err := s.finish(t.Context(), int64(len(file)))
			img, openErr := unpackers[detect(file)](bytes.NewReader(file), int64(len(file)))
			if openErr != nil {
				t.Fatal(openErr)
			}
			if err == nil || !strings.Contains(err.Error(), "of data or more for a disk of ") {
				t.Fatalf("finish() error = %v, want that the file cannot contain its data", err)
			}
			for _, n := range []string{fmt.Sprintf("disk of %d bytes", img.size), fmt.Sprintf("file of %d bytes", len(file))} {
				if !strings.Contains(err.Error(), n) {
					t.Errorf("finish() error = %v, want the %s", err, n)
				}
			}
			if got := get(t, m, 0, 8); got != "old data" || m.Held() > mib {
				t.Errorf("the disk begins with %q and %d bytes were written, want it as it was", got, m.Held())
			}
		})
	}
}

// Of subclusters only the data tells: an image that folds them ends when it has written
// as much as its file has.
func TestFoldedSubclustersEndAtTheSizeOfTheFile(t *testing.T) {
	file := foldedSubclusters(t, 64*mib)
	m := systest.NewMemory(64 * mib)
	s := scratchSink{format: formatQcow2, target: &target{block: m, name: "/dev/sda"}, scratch: scratch{bytes.NewReader(file)}, bar: &progress{}}
	_, err := s.finish(t.Context(), int64(len(file)))
	if want := fmt.Sprintf("for a disk of 67108864 bytes, but the file of %d bytes cannot contain them", len(file)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("finish() error = %v, want %q", err, want)
	}
	if m.Held() > 8*mib {
		t.Errorf("%d bytes were written from a file of %d", m.Held(), len(file))
	}
	if head := get(t, m, 0, 512); strings.Trim(head, "\x00") != "" {
		t.Error("the disk can boot")
	}
}

// What an image declares must fit the disk, whatever its tables say.
func TestDeclaredSizeMustFitTheDisk(t *testing.T) {
	for name, file := range map[string][]byte{
		"qcow2":       foldedQcow2(t, qcow2Spec{version: 3, bits: 12}, 16*mib),
		"qcow2, zstd": foldedQcow2(t, qcow2Spec{version: 3, bits: 12, zstd: true}, 16*mib),
		"vdi":         foldedVDI(4096),
		"vmdk":        foldedVMDK(16*mib, false, 0),
	} {
		m, _, err := unpack(t.Context(), t, file, 8*mib)
		if want := "the image has 16777216 bytes, /dev/sda only 8388608"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error = %v, want %q", name, err, want)
		}
		if !isUntouched(t, m) {
			t.Errorf("%s: the disk was written", name)
		}
	}
}

// Images that compress as well as a format allows are written.
func TestDensestImagesAreWritten(t *testing.T) {
	for _, s := range []qcow2Spec{{version: 3, bits: 21, compress: true}, {version: 3, bits: 21, compress: true, zstd: true}} {
		want := bytes.Repeat([]byte{0xff}, 6*mib)
		m, n, err := unpack(t.Context(), t, writeQcow2(t, s, want), 8*mib)
		if err != nil || n != int64(len(want)) || get(t, m, 5*mib, 512) != string(want[:512]) {
			t.Errorf("%+v: unpack = %d, %v, want %d bytes", s, n, err, len(want))
		}
	}
}
