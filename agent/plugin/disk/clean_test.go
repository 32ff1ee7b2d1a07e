package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

const mib = 1 << 20

// recorder is a block device that records the erased ranges.
type recorder struct {
	*systest.Memory
	erased  int64
	failing error // error of Zero
}

func (r *recorder) Zero(off, n int64) error {
	if r.failing != nil {
		return r.failing
	}
	r.erased += n
	return r.Memory.Zero(off, n)
}

func put(t *testing.T, b sys.Block, off int64, text string) {
	t.Helper()
	if _, err := b.WriteAt([]byte(text), off); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, b sys.Block, off int64, n int) string {
	t.Helper()
	p := make([]byte, n)
	if _, err := b.ReadAt(p, off); err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// bootRecord returns an MBR or EBR with the entries kind, first sector, sectors.
func bootRecord(entries ...[3]uint32) string {
	p := make([]byte, sector)
	for i, e := range entries {
		p[446+16*i+4] = byte(e[0])
		binary.LittleEndian.PutUint32(p[446+16*i+8:], e[1])
		binary.LittleEndian.PutUint32(p[446+16*i+12:], e[2])
	}
	p[510], p[511] = 0x55, 0xaa
	return string(p)
}

// gptHeader returns a header with the sectors of its backup and its entries.
func gptHeader(other, entries uint64, count, size uint32) string {
	p := make([]byte, 92)
	copy(p, "EFI PART\x00\x00\x01\x00")
	binary.LittleEndian.PutUint64(p[32:], other)
	binary.LittleEndian.PutUint64(p[72:], entries)
	binary.LittleEndian.PutUint32(p[80:], count)
	binary.LittleEndian.PutUint32(p[84:], size)
	return string(p)
}

func gptEntry(first, last uint64) string {
	p := make([]byte, 128)
	copy(p, "LINUX-FILESYSTEM")
	binary.LittleEndian.PutUint64(p[32:], first)
	binary.LittleEndian.PutUint64(p[40:], last)
	return string(p)
}

func TestPartitions(t *testing.T) {
	const size = 64 * mib
	const sectors = size / sector
	for _, tt := range []struct {
		name string
		at   map[int64]string
		want []span
	}{
		{name: "blank"},
		{name: "MBR", at: map[int64]string{0: bootRecord([3]uint32{0x83, 2048, 4096}, [3]uint32{0, 9, 9}, [3]uint32{0x8e, 8192, 1 << 31})},
			want: []span{{2048 * sector, 4096 * sector}, {8192 * sector, size - 8192*sector}}},
		{name: "MBR beyond the disk", at: map[int64]string{0: bootRecord([3]uint32{0x83, sectors, 1}, [3]uint32{0x83, 0, 8}, [3]uint32{0x83, 8, 0})}},
		{name: "logical partitions", at: map[int64]string{
			0:             bootRecord([3]uint32{0x05, 1000, 5000}),
			1000 * sector: bootRecord([3]uint32{0x83, 63, 100}, [3]uint32{0x05, 2000, 200}),
			3000 * sector: bootRecord([3]uint32{0x83, 63, 137}),
		}, want: []span{
			{1000 * sector, 5000 * sector},
			{1000 * sector, sector}, {1063 * sector, 100 * sector},
			{3000 * sector, sector}, {3063 * sector, 137 * sector},
		}},
		{name: "logical partitions in a circle", at: map[int64]string{
			0:             bootRecord([3]uint32{0x0f, 1000, 5000}),
			1000 * sector: bootRecord([3]uint32{0x05, 2000, 9}),
			3000 * sector: bootRecord([3]uint32{0x05, 0, 9}),
		}, want: []span{{1000 * sector, 5000 * sector}, {1000 * sector, sector}, {3000 * sector, sector}}},
		{name: "GPT", at: map[int64]string{
			sector:     gptHeader(40000, 2, 128, 128),
			2 * sector: gptEntry(2048, 4095), 2*sector + 127*128: gptEntry(8192, 8192),
			40000 * sector: gptHeader(1, 39968, 128, 128), // at the end of an image smaller than the disk
		}, want: []span{
			{sector, sector}, {2 * sector, 32 * sector}, {2048 * sector, 2048 * sector}, {8192 * sector, sector},
			{40000 * sector, sector}, {39968 * sector, 32 * sector},
		}},
		{name: "only the backup GPT", at: map[int64]string{
			size - sector:    gptHeader(1, sectors-33, 4, 128),
			size - 33*sector: gptEntry(34, 99),
		}, want: []span{{size - sector, sector}, {size - 33*sector, sector}, {34 * sector, 66 * sector}}},
		{name: "GPT of 4 KiB sectors", at: map[int64]string{
			4096: gptHeader(0, 2, 1, 128), 8192: gptEntry(256, 511),
		}, want: []span{{4096, 4096}, {8192, 4096}, {1 * mib, 1 * mib}}},
		{name: "GPT of nonsense", at: map[int64]string{
			sector:     gptHeader(1<<63, 2, 1<<31, 128),
			2 * sector: gptEntry(4096, 2048), 2*sector + 128: gptEntry(0, 1<<64-1), 2*sector + 256: gptEntry(1<<60, 1<<61),
		}, want: []span{{sector, sector}, {2 * sector, 256 * sector}}},
		{name: "GPT with entries of no size", at: map[int64]string{sector: gptHeader(0, 2, 128, 0)}, want: []span{{sector, sector}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := systest.NewMemory(size)
			for off, text := range tt.at {
				put(t, m, off, text)
			}
			if diff := cmp.Diff(tt.want, partitions(m, size), cmp.AllowUnexported(span{})); diff != "" {
				t.Errorf("partitions (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzPartitions(f *testing.F) {
	f.Add([]byte(bootRecord([3]uint32{0x05, 1, 5000}) + bootRecord([3]uint32{0x05, 1, 5000}, [3]uint32{0x83, 1, 1})))
	f.Add([]byte(bootRecord() + gptHeader(3, 2, 4, 128) + strings.Repeat("\x00", 420) + gptEntry(2, 3)))
	f.Fuzz(func(t *testing.T, p []byte) {
		size := int64(len(p)) / sector * sector
		m := systest.NewMemory(size)
		put(t, m, 0, string(p[:size]))
		for _, s := range partitions(m, size) {
			if s.off <= 0 || s.n <= 0 || s.off+s.n > size || s.off%sector != 0 || s.n%sector != 0 {
				t.Errorf("partition at %d of %d bytes is not on a disk of %d", s.off, s.n, size)
			}
		}
	})
}

// metadata lists the places of metadata in a range of n bytes.
func metadata(n int64) map[string]int64 {
	return map[string]int64{
		"boot sector": 0, "GPT": 512, "LVM label": 512, "ext": 1024 + 56, "LUKS": 0, "MD 1.2": 4096, "MD 1.1": 0,
		"swap": 4096 - 10, "ISO 9660": 32769, "Btrfs": 64<<10 + 64, "ZFS label 1": 256 << 10,
		"MD 0.90": n&^0xffff - 0x10000, "MD 1.0": (n - 8192) &^ 4095, "ZFS label 3": n - 256<<10,
		"DDF": n - 512, "IMSM": n - 1024, "backup GPT": n - 512, "NTFS copy": n - 512,
	}
}

// clean erases metadata and returns the names of the disks.
func clean(ctx context.Context, s sys.System, disks []job.Disk, progress func(int)) ([]string, error) {
	erased, err := Erase(ctx, s, disks, job.EraseMetadata, progress)
	var names []string
	for _, e := range erased {
		names = append(names, e.Device)
	}
	return names, err
}

func TestClean(t *testing.T) {
	const size = 4 << 40
	const partition, length = 2048 * sector, 512 << 30 // at its end data must stay
	d := &recorder{Memory: systest.NewMemory(size)}
	for _, s := range []span{{0, size}, {partition, length}} {
		for _, at := range metadata(s.n) {
			put(t, d, s.off+at, "metadata")
		}
	}
	put(t, d, 0, bootRecord([3]uint32{0xee, 1, 1<<32 - 1}))
	put(t, d, sector, gptHeader(0, 2, 128, 128))
	put(t, d, 2*sector, gptEntry(partition/sector, (partition+length)/sector-1))
	inside := map[string]int64{"_BHRfS_M": partition + 256<<30 + 64, "SKUL\xba\xbe": partition + 4<<20}
	for magic, off := range inside {
		put(t, d, off, magic)
	}
	stays := []int64{partition + 2*mib, partition + 64*mib + 64, partition + length - mib - 16, partition + length, size - mib - 16}
	for _, off := range stays {
		put(t, d, off, "some data")
	}

	s, disks := machine(d)
	var percents []int
	got, err := clean(t.Context(), s, disks, func(p int) { percents = append(percents, p) })
	if err != nil || !slices.Equal(got, []string{"/dev/sda"}) {
		t.Fatalf("Clean() = %v, %v; want [/dev/sda]", got, err)
	}
	for _, s := range []span{{0, size}, {partition, length}} {
		for name, at := range metadata(s.n) {
			if have := get(t, d, s.off+at, 8); have != string(zeros[:8]) {
				t.Errorf("%s of the stretch at %d is still there: %q", name, s.off, have)
			}
		}
	}
	for magic, off := range inside {
		if have := get(t, d, off, len(magic)); have == magic {
			t.Errorf("%q at %d is still there", magic, off)
		}
	}
	for _, off := range stays {
		if have := get(t, d, off, 9); have != "some data" {
			t.Errorf("data at %d is gone: %q", off, have)
		}
	}
	if d.erased > 16*mib {
		t.Errorf("%d bytes were erased of a disk with one partition, want some MiB", d.erased)
	}
	if !slices.Equal(percents, []int{0}) {
		t.Errorf("progress = %v, want [0]", percents)
	}
	if b, err := s.OpenBlock("sda"); err != nil {
		t.Errorf("the disk was not closed: %v", err)
	} else {
		b.Close()
	}
}

// machine returns a machine with a SAS disk for each block device.
func machine(blocks ...sys.Block) (*systest.System, []job.Disk) {
	var m systest.Machine
	var disks []job.Disk
	for i, b := range blocks {
		name := "sd" + string(rune('a'+i))
		m.Disks = append(m.Disks, systest.Disk{Name: name, Kind: systest.SAS, Size: b.Size(), Open: func() (sys.Block, error) { return b, nil }})
		disks = append(disks, job.Disk{Name: "/dev/" + name, Type: "SSD", SizeBytes: b.Size()})
	}
	return systest.New(m), disks
}

func TestCleanContinuesAfterAFailure(t *testing.T) {
	broken := &recorder{Memory: systest.NewMemory(mib), failing: errors.New("input/output error")}
	small, good := systest.NewMemory(512), systest.NewMemory(10*mib)
	put(t, small, 0, strings.Repeat("x", 512))
	s, disks := machine(broken, small, good)
	disks = append(disks, job.Disk{Name: "/dev/sdx"})
	got, err := clean(t.Context(), s, disks, nil)
	if diff := cmp.Diff([]string{"/dev/sdb", "/dev/sdc"}, got); diff != "" {
		t.Errorf("Clean() erased (-want +got):\n%s", diff)
	}
	want := `disk: clean /dev/sda: input/output error; disk: clean /dev/sdx: sys: no such block device: "sdx"`
	if err == nil || err.Error() != want {
		t.Errorf("Clean() error = %v\nwant %s", err, want)
	}
	if !errors.Is(err, sys.ErrNoDevice) {
		t.Error("the error does not wrap ErrNoDevice")
	}
}

func TestCleanIsCancelled(t *testing.T) {
	s, disks := machine(systest.NewMemory(mib))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := clean(ctx, s, disks, nil); !errors.Is(err, context.Canceled) || len(got) != 0 {
		t.Errorf("Clean() = %v, %v; want context.Canceled", got, err)
	}
}

// deaf accepts Zero and does nothing.
type deaf struct{ *systest.Memory }

func (deaf) Zero(int64, int64) error { return nil }

func TestCleanVerifiesTheErasure(t *testing.T) {
	d := deaf{systest.NewMemory(mib)}
	put(t, d, 0, "still here")
	s, disks := machine(d)
	if got, err := clean(t.Context(), s, disks, nil); err == nil {
		t.Errorf("Clean() = %v on a disk that cannot be erased, want an error", got)
	}
}
