package disk

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys/systest"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// qemu returns an image file of a disk's content, in a format by QEMU's name.
func qemu(t testing.TB, disk []byte, format, options string) []byte {
	t.Helper()
	tool := prerequisites.Need(t, "qemu-img")
	from, to := filepath.Join(t.TempDir(), "raw"), filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(from, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"convert", "-f", "raw", "-O", format}
	if options != "" {
		args = append(args, "-o", options)
	}
	if out, err := exec.CommandContext(t.Context(), tool, append(args, from, to)...).CombinedOutput(); err != nil {
		t.Fatalf("qemu-img: %v: %s", err, out)
	}
	file, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// B-153: images written by QEMU are read correctly.
func TestImagesWrittenByQEMU(t *testing.T) {
	for _, tt := range []struct{ format, options string }{
		{"vdi", ""}, {"vdi", "static=on"},
		{"vmdk", ""}, {"vmdk", "subformat=monolithicSparse"}, {"vmdk", "subformat=streamOptimized"},
		{"vmdk", "subformat=monolithicSparse,zeroed_grain=on"},
		{"qcow2", ""}, {"qcow2", "compat=0.10"}, {"qcow2", "extended_l2=on"},
	} {
		t.Run(tt.format+" "+tt.options, func(t *testing.T) {
			want := content(5*mib+512*7, 11)
			m, n, err := unpack(t.Context(), t, qemu(t, want, tt.format, tt.options), 8*mib)
			// A cluster or grain may extend beyond the disk.
			if err != nil || n < int64(len(want)) || n > int64(len(want))+64<<10 {
				t.Fatalf("unpack = %d, %v; want %d", n, err, len(want))
			}
			if got := get(t, m, 0, len(want)); got != string(want) {
				t.Errorf("the disk differs from the image at byte %d", differ([]byte(got), want))
			}
		})
	}
}

func TestUnsupportedVMDKKindsAreRefused(t *testing.T) {
	for _, kind := range []string{"monolithicFlat", "twoGbMaxExtentSparse", "twoGbMaxExtentFlat"} {
		err := checkVMDKKind(qemu(t, content(mib, 1), "vmdk", "subformat="+kind))
		if err == nil || !strings.Contains(err.Error(), "disk: vmdk: "+kind+" is not supported") {
			t.Errorf("%s: error = %v", kind, err)
		}
	}
}

// vdiFile returns a dynamic image of two blocks of 4 KiB, of which the second
// contains text.
func vdiFile() []byte {
	le := binary.LittleEndian
	p := make([]byte, 4096+2*4096)
	copy(p, "<<< made by a test >>>\n")
	le.PutUint32(p[0x40:], 0xbeda107f)
	le.PutUint32(p[0x44:], vdiVersion)
	le.PutUint32(p[0x48:], 0x190)
	le.PutUint32(p[0x4c:], vdiDynamic)
	le.PutUint32(p[0x154:], 0x200)
	le.PutUint32(p[0x158:], 4096)
	le.PutUint32(p[0x168:], sector)
	le.PutUint64(p[0x170:], 2*4096-512)
	le.PutUint32(p[0x178:], 4096)
	le.PutUint32(p[0x180:], 2)
	le.PutUint32(p[0x200:], vdiNoBlock)
	copy(p[4096:], "text")
	return p
}

// vmdkFile returns a stream-optimized image of two grains of 4 KiB, of which the
// second contains text; with footer the directory is at the end, as VMware writes
// it.
func vmdkFile(footer bool) []byte {
	le := binary.LittleEndian
	p := make([]byte, 4*sector)
	copy(p, "KDMV")
	le.PutUint32(p[4:], 3)
	le.PutUint32(p[8:], 1|vmdkCompressed|1<<17)
	le.PutUint64(p[12:], 15) // capacity
	le.PutUint64(p[20:], 8)  // grain
	le.PutUint64(p[28:], 1)
	le.PutUint64(p[36:], 1)
	le.PutUint32(p[44:], maxGrainTable)
	le.PutUint64(p[56:], 2)
	le.PutUint16(p[77:], deflate)
	copy(p[sector:], "# Disk DescriptorFile\nCID=1\nparentCID=ffffffff\ncreateType=\"streamOptimized\"\n")
	le.PutUint32(p[2*sector:], 3) // directory
	le.PutUint32(p[3*sector+4:], 4)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	z.Write(append([]byte("text"), make([]byte, 4092)...))
	z.Close()
	p = le.AppendUint64(p, 8)
	p = le.AppendUint32(p, uint32(packed.Len()))
	p = append(p, packed.Bytes()...)
	p = append(p, make([]byte, sector-len(p)%sector)...)
	if footer {
		p = append(p, bytes.Clone(p[:sector])...)
		p = append(p, make([]byte, sector)...)
		le.PutUint64(p[56:], vmdkAtEnd)
	}
	return p
}

func le32(off int, v uint32) func([]byte) []byte {
	return at(off, string(binary.LittleEndian.AppendUint32(nil, v)))
}

func le64(off int, v uint64) func([]byte) []byte {
	return at(off, string(binary.LittleEndian.AppendUint64(nil, v)))
}

func TestSparseImages(t *testing.T) {
	for name, file := range map[string][]byte{"vdi": vdiFile(), "vmdk": vmdkFile(false), "vmdk with a footer": vmdkFile(true)} {
		m, n, err := unpack(t.Context(), t, file, 4*mib)
		if err != nil || n != 2*4096-512 {
			t.Errorf("%s: unpack = %d, %v; want %d", name, n, err, 2*4096-512)
			continue
		}
		want := strings.Repeat("\x00", 4096) + "text" + strings.Repeat("\x00", 4092-512)
		if got := get(t, m, 0, len(want)); got != want {
			t.Errorf("%s: the disk differs at byte %d", name, differ([]byte(got), []byte(want)))
		}
	}
}

func TestSparseImagesRefused(t *testing.T) {
	vdi, vmdk := vdiFile(), vmdkFile(false)
	for _, tt := range []struct {
		name   string
		file   []byte
		change func(p []byte) []byte
		want   string
	}{
		{"vdi cut", vdi, func(p []byte) []byte { return p[:0x100] }, "vdi: header"},
		{"vdi version", vdi, le32(0x44, 1), "version 0.1"},
		{"vdi difference", vdi, le32(0x4c, 4), "kind 4"},
		{"vdi parent", vdi, le32(0x1a8, 1), "needs a parent"},
		{"vdi sectors", vdi, le32(0x168, 4096), "sectors of 4096"},
		{"vdi blocks of 0", vdi, le32(0x178, 0), "blocks of 0 bytes"},
		{"vdi blocks of 2 GiB", vdi, le32(0x178, 1<<31), "blocks of 2147483648 bytes"},
		{"vdi blocks of 5000", vdi, le32(0x178, 5000), "blocks of 5000 bytes"},
		{"vdi extra bytes", vdi, le32(0x17c, 8), "8 extra bytes"},
		{"vdi size 0", vdi, le64(0x170, 0), "too few for 0 bytes"},
		{"vdi size", vdi, le64(0x170, 1<<63), "too few for 9223372036854775808"},
		{"vdi larger than the disk", vdi, func(p []byte) []byte { return le64(0x170, 5*mib)(le32(0x180, 2000)(p)) }, "only 4194304"},
		{"vdi table outside", vdi, le32(0x180, 1<<32-1), "the table of blocks is not in the file"},
		{"vdi block outside", vdi, le32(0x204, 100), "tables for byte 4096: block 1: it would lie outside the file"},
		{"vdi block far outside", vdi, le32(0x204, 0xfffffffd), "outside the file"},
		{"vmdk cut", vmdk, func(p []byte) []byte { return p[:50] }, "vmdk: header"},
		{"vmdk version", vmdk, le32(4, 4), "version 4"},
		{"vmdk capacity 0", vmdk, le64(12, 0), "a capacity of 0 sectors"},
		{"vmdk capacity", vmdk, le64(12, 1<<63), "a capacity of 9223372036854775808 sectors"},
		{"vmdk larger than the disk", vmdk, le64(12, 9000), "only 4194304"},
		{"vmdk grain 0", vmdk, le64(20, 0), "grains of 0 sectors"},
		{"vmdk grain 2^63", vmdk, le64(20, 1<<63), "sectors are not allowed"},
		{"vmdk grain 100", vmdk, le64(20, 100), "grains of 100 sectors"},
		{"vmdk table of 0", vmdk, le32(44, 0), "tables of 0 entries"},
		{"vmdk table of 2^32", vmdk, le32(44, 1<<32-1), "tables of 4294967295 entries"},
		{"vmdk compression", vmdk, at(77, "\x02"), "compression 2"},
		{"vmdk descriptor of 2 GiB", vmdk, le64(36, 1<<22), "descriptor of 4194304 sectors"},
		{"vmdk descriptor outside", vmdk, le64(28, 1<<40), "descriptor: it would lie outside"},
		{"vmdk without descriptor", vmdk, le64(28, 0), "without a descriptor"},
		{"vmdk of another kind", vmdk, func(p []byte) []byte {
			return bytes.Replace(p, []byte("streamOptimized"), []byte("vmfsSparse\"    "), 1)
		}, "vmfsSparse"},
		{"vmdk parent", vmdk, func(p []byte) []byte {
			return bytes.Replace(p, []byte("parentCID=ffffffff"), []byte("parentCID=fffffffe"), 1)
		}, "needs a parent"},
		{"vmdk directory outside", vmdk, le64(56, 1<<40), "grain directory is not in the file"},
		{"vmdk footer without magic", vmdk, le64(56, vmdkAtEnd), "footer: disk: vmdk: no magic"},
		{"vmdk table outside", vmdk, le32(2*sector, 1<<31), "tables for byte 0"},
		{"vmdk grain outside", vmdk, le32(3*sector+4, 1<<31), "grain 1: it would lie outside"},
		{"vmdk another's grain", vmdk, le32(3*sector, 4), "grain 0: the marker before it is of sector 8"},
		{"vmdk grain too long", vmdk, le32(4*sector+8, 1<<30), "grain 1: it would lie outside"},
		{"vmdk grain cut", vmdk, le32(4*sector+8, 12), "grain 1: it has less than 3584 bytes"},
		{"vmdk grain of garbage", vmdk, at(4*sector+12, "garbage"), "grain 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _, err := unpack(t.Context(), t, tt.change(bytes.Clone(tt.file)), 4*mib)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("unpack error = %v, want %q", err, tt.want)
			}
			if have := get(t, m, 0, 512); strings.Trim(have, "\x00") != "" && have != strings.Repeat("\xdb", 512) {
				t.Errorf("the disk begins with %q, want what was there or zeros", have[:16])
			}
		})
	}
}

// fuzzUnpack expects errors of a format's reader, never a panic, a hang, much
// memory or a byte beyond the disk.
func fuzzUnpack(f *testing.F, format string) {
	f.Fuzz(func(t *testing.T, file []byte) {
		const size = 4 * mib
		m := systest.NewMemory(size)
		s := scratchSink{format: format, target: &target{block: m, name: "/dev/sda"}, scratch: scratch{bytes.NewReader(file)}, bar: &progress{}}
		n, err := s.finish(t.Context(), int64(len(file)))
		if err == nil && (n <= 0 || n > size) {
			t.Errorf("an image of %d bytes was accepted for a disk of %d", n, size)
		}
	})
}

func FuzzVDI(f *testing.F) {
	f.Add(vdiFile())
	f.Add(le32(0x204, 7)(vdiFile()))
	fuzzUnpack(f, formatVDI)
}

func FuzzVMDK(f *testing.F) {
	f.Add(vmdkFile(false))
	f.Add(vmdkFile(true))
	f.Add(le32(8, 1|vmdkZeroGrain)(vmdkFile(false))) // not compressed
	fuzzUnpack(f, formatVMDK)
}

// A VHD of a fixed size is a raw image but for its last sector.
func TestFixedVHDIsRefused(t *testing.T) {
	file := append(content(mib, 1), append([]byte(vhdCookie), make([]byte, sector-len(vhdCookie))...)...)
	file[0] = 0
	m := systest.NewMemory(4 * mib)
	s := serve(t, map[string]string{"/vhd": string(file)})
	_, _, err := write(t, m, job.WriteSpec{URL: s.URL + "/vhd", Format: "raw", Checksum: sha256Hex(file)})
	if err == nil || !strings.Contains(err.Error(), "the image is vhd, want raw") {
		t.Errorf("Write = %v, want that the image is vhd", err)
	}
	if !cannotBoot(t, m) {
		t.Error("the disk can boot")
	}
}
