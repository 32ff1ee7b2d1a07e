package mdraid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/plugin/mdraid"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

const gib = 1 << 30

// server is a server with disks of these sizes, in GiB.
type server struct {
	t     *testing.T
	disks []*systest.Memory
	gone  map[int]bool
	*systest.System
}

func newServer(t *testing.T, sizes ...int64) *server {
	s := &server{t: t, gone: map[int]bool{}}
	for _, n := range sizes {
		s.disks = append(s.disks, systest.NewMemory(n*gib))
	}
	s.boot()
	return s
}

// boot restarts the system with the same disks.
func (s *server) boot() {
	var m systest.Machine
	for i, d := range s.disks {
		if !s.gone[i] {
			m.Disks = append(m.Disks, systest.Disk{Name: diskName(i), Kind: systest.SATA, Size: d.Size(), Open: func() (sys.Block, error) { return d, nil }})
		}
	}
	s.System = systest.New(m)
}

func diskName(i int) string { return "sd" + string(rune('a'+i)) }

func (s *server) members(which ...int) []job.Disk {
	var out []job.Disk
	for _, i := range which {
		out = append(out, job.Disk{Name: "/dev/" + diskName(i), SizeBytes: s.disks[i].Size()})
	}
	return out
}

func (s *server) value(name string) string {
	s.t.Helper()
	b, err := fs.ReadFile(s.FS(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (s *server) create(spec job.RAIDSpec, volumes ...mdraid.Volume) []job.Array {
	s.t.Helper()
	made, err := mdraid.Create(context.Background(), s, spec, volumes)
	if err != nil {
		s.t.Fatalf("Create: %v", err)
	}
	return made
}

var spec = job.RAIDSpec{ID: "preparing-1", Made: 1_800_000_000}

func volume(name, level string, sizeGiB int, members []job.Disk) mdraid.Volume {
	return mdraid.Volume{ArraySpec: job.ArraySpec{Name: name, Level: level, SizeGiB: sizeGiB}, Members: members}
}

// The expected layout of data on members is written out here from the manual,
// md(4): mirrors have all data, stripes have chunks in turn, and in the near
// layout of level 10 neighbours have the same chunk.
var places = []struct {
	level    string
	disks    []int
	size     int64 // size of the array, in GiB, for a request of 4 GiB
	chunks   map[int64][]int
	rowOf    func(chunk int64) int64
	examine  []string
	capacity int64
}{
	{level: "1", disks: []int{0, 1}, chunks: map[int64][]int{0: {0, 1}, 1: {0, 1}, 7: {0, 1}}, rowOf: func(c int64) int64 { return c },
		examine: []string{"Raid Level : raid1", "Raid Devices : 2", "Array Size : 4194304"}},
	{level: "0", disks: []int{0, 1, 2}, chunks: map[int64][]int{0: {0}, 1: {1}, 2: {2}, 3: {0}, 7: {1}}, rowOf: func(c int64) int64 { return c / 3 },
		examine: []string{"Raid Level : raid0", "Raid Devices : 3", "Chunk Size : 512K"}},
	{level: "1+0", disks: []int{0, 1, 2, 3}, chunks: map[int64][]int{0: {0, 1}, 1: {2, 3}, 2: {0, 1}, 7: {2, 3}}, rowOf: func(c int64) int64 { return c / 2 },
		examine: []string{"Raid Level : raid10", "Raid Devices : 4", "Layout : near=2", "Chunk Size : 512K", "Array Size : 4194304"}},
}

func TestArrayLayoutMatchesMd(t *testing.T) {
	for _, tt := range places {
		t.Run("level "+tt.level, func(t *testing.T) {
			s := newServer(t, 8, 8, 8, 8)
			made := s.create(spec, volume("root", tt.level, 4, s.members(tt.disks...)))
			if got := s.value("sys/block/md127/size"); got != fmt.Sprint(made[0].SizeBytes/512) || made[0].SizeBytes < 4*gib {
				t.Errorf("the system shows an array of %s sectors, the report says %d bytes", got, made[0].SizeBytes)
			}
			if got := s.value("run/udev/data/b9:127"); !strings.Contains(got, "E:MD_NAME=root\n") || !strings.Contains(got, "E:MD_UUID="+made[0].UUID+"\n") {
				t.Errorf("udev knows of it: %s, want the name and %s", got, made[0].UUID)
			}
			b, err := s.OpenBlock("md127")
			if err != nil {
				t.Fatal(err)
			}
			for c := range int64(8) {
				if _, err := b.WriteAt(bytes.Repeat([]byte{byte('A' + c)}, 512<<10), c*512<<10); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			// 1 MiB before the first partition, 550 for the boot partition, 1
			// before the data.
			const data = 552 << 20
			for c, holders := range tt.chunks {
				for _, d := range holders {
					got := make([]byte, 512<<10)
					if _, err := s.disks[d].ReadAt(got, data+tt.rowOf(c)*512<<10); err != nil {
						t.Fatal(err)
					}
					if want := bytes.Repeat([]byte{byte('A' + c)}, 512<<10); !bytes.Equal(got, want) {
						t.Errorf("chunk %d on disk %d is %q…, want %q", c, d, got[:4], want[:4])
					}
				}
			}
			for _, d := range tt.disks {
				examined(t, s.disks[d], 551<<20, tt.examine...)
			}
		})
	}
}

// examined reads a member's superblock with mdadm.
func examined(t *testing.T, disk *systest.Memory, off int64, want ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "member")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 1<<20)
	if _, err := disk.ReadAt(head, off); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(head); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(disk.Size() - off - 1<<20); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(prerequisites.Need(t, "mdadm"), "--examine", file).CombinedOutput()
	if err != nil {
		t.Fatalf("mdadm --examine: %v: %s", err, out)
	}
	for _, text := range append(want, "Version : 1.2", "Data Offset : 2048 sectors", "Super Offset : 8 sectors", "State : ", "- correct") {
		if !strings.Contains(string(out), text) {
			t.Errorf("mdadm --examine does not say %q:\n%s", text, out)
		}
	}
}

func TestTwoArraysShareDisks(t *testing.T) {
	s := newServer(t, 8, 8, 10, 8)
	made := s.create(spec, volume("root", "1", 2, s.members(0, 1)), volume("data", "1+0", 0, s.members(0, 1, 2, 3)))
	want := []job.Array{
		{Name: "root", UUID: made[0].UUID, Level: "1", SizeBytes: 2 * gib, Disks: []string{"/dev/sda", "/dev/sdb"}},
		// The smallest disk has 8 GiB less its share of the first array, 550 MiB,
		// and one MiB each at the beginning, at the end and before each array's
		// data.
		{Name: "data", UUID: made[1].UUID, Level: "1+0", SizeBytes: 2 * (8*gib - 2*gib - (550+4)<<20), Disks: []string{"/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/sdd"}},
	}
	if d := cmp.Diff(want, made); d != "" {
		t.Errorf("made (-want +got):\n%s", d)
	}
	if a, b := s.value("sys/block/md127/md/level"), s.value("sys/block/md126/md/level"); a != "raid1" || b != "raid10" {
		t.Errorf("arrays are %s and %s", a, b)
	}
	if _, err := s.OpenBlock("sda"); err == nil {
		t.Error("a disk of an array can be opened")
	}
	if err := mdraid.Stop(s); err != nil {
		t.Fatal(err)
	}
	if got := mdraid.Running(s); len(got) > 0 {
		t.Errorf("%v run after Stop", got)
	}
	s.boot()
	if got := mdraid.Running(s); len(got) != 2 {
		t.Errorf("%v run after a boot, want both", got)
	}
}

func TestMirrorSurvivesAFailedDisk(t *testing.T) {
	for _, tt := range []struct {
		level string
		lost  []int
		runs  bool
	}{
		{"1", []int{0}, true}, {"1", []int{1}, true}, {"1", []int{0, 1, 2, 3}, false},
		{"1+0", []int{0, 2}, true}, {"1+0", []int{0, 1}, false}, {"0", []int{3}, false},
	} {
		t.Run(fmt.Sprint(tt.level, tt.lost), func(t *testing.T) {
			s := newServer(t, 8, 8, 8, 8)
			s.create(spec, volume("root", tt.level, 0, s.members(0, 1, 2, 3)))
			write(t, s, "the books", 5<<20)
			for _, i := range tt.lost {
				s.gone[i] = true
			}
			s.boot()
			if got := len(mdraid.Running(s)) > 0; got != tt.runs {
				t.Fatalf("the array runs: %v, want %v", got, tt.runs)
			}
			if !tt.runs {
				return
			}
			read(t, s, "the books", 5<<20)
			write(t, s, "new books", 5<<20)
			// The data of the missing member is ignored.
			clear(s.gone)
			s.boot()
			read(t, s, "new books", 5<<20)
		})
	}
}

func write(t *testing.T, s *server, text string, off int64) {
	t.Helper()
	b, err := s.OpenBlock("md127")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.WriteAt([]byte(text), off); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s *server, want string, off int64) {
	t.Helper()
	b, err := s.OpenBlock("md127")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	got := make([]byte, len(want))
	if _, err := b.ReadAt(got, off); err != nil && !errors.Is(err, io.EOF) || string(got) != want {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
}

func TestImpossibleArraysAreRefused(t *testing.T) {
	s := newServer(t, 8, 8, 8, 1, 200, 200)
	small := s.members(0, 1)
	small[1].SizeBytes = 400 << 20
	full := make([]mdraid.Volume, 128) // one more than a table has entries beside that of the EFI system partition
	for i := range full {
		full[i] = volume(fmt.Sprintf("data%d", i), "1", 1, s.members(4, 5))
	}
	for name, tt := range map[string]struct {
		spec    job.RAIDSpec
		volumes []mdraid.Volume
		want    string
	}{
		"level":       {spec, []mdraid.Volume{volume("root", "5", 0, s.members(0, 1, 2))}, `array root: level "5": use 0, 1 or 1+0`},
		"one disk":    {spec, []mdraid.Volume{volume("root", "1", 0, s.members(0))}, "array root: 1 disks: level 1 needs 2"},
		"three of 10": {spec, []mdraid.Volume{volume("root", "1+0", 0, s.members(0, 1, 2))}, "array root: 3 disks: level 1+0 needs 4"},
		"too large":   {spec, []mdraid.Volume{volume("root", "1", 9, s.members(0, 1))}, "array root: 9217 MiB on each of 2 disks: the smallest has 7640 MiB left"},
		"too small":   {spec, []mdraid.Volume{volume("root", "1", 0, s.members(0, 3)), volume("data", "1", 0, s.members(0, 3))}, "array data: 0 MiB on each of 2 disks: the smallest has 0 MiB left"},
		"no boot partition": {spec, []mdraid.Volume{volume("root", "1", 0, small)},
			"array root: EFI system partition: disk /dev/sdb: a partition of 550 MiB does not fit: 398 MiB are left after 0 partitions"},
		"same disk": {spec, []mdraid.Volume{volume("root", "1", 0, s.members(0, 0))},
			"array root: disk /dev/sda: a partition of 7090 MiB does not fit: 0 MiB are left after 3 partitions"},
		"full table": {spec, full, "array data127: disk /dev/sde: its partition table is full: all 128 entries are in use"},
		"same name":  {spec, []mdraid.Volume{volume("root", "1", 1, s.members(0, 1)), volume("root", "1", 1, s.members(0, 1))}, `array 1: name "root": use one that no other array has`},
		"no ID":      {job.RAIDSpec{}, nil, "the specification has no ID"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mdraid.Create(context.Background(), s, tt.spec, tt.volumes)
			if err == nil || err.Error() != tt.want {
				t.Errorf("Create = %v, want %s", err, tt.want)
			}
		})
	}
	if d := s.disks[0].Held(); d != 0 {
		t.Errorf("%d bytes were written", d)
	}
}
