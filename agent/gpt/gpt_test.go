package gpt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	diskfs "github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/google/go-cmp/cmp"
)

var (
	diskID = MustParse("6d6574c1-6c61-4b00-8000-64656d6f0003")
	partID = MustParse("6d6574c1-6c61-4b00-8000-64656d6f0004")
)

// disk returns a disk of 1 MiB with two partitions.
func disk(t testing.TB, block int64) []byte {
	t.Helper()
	b := make([]byte, 1<<20)
	blocks := int64(len(b)) / block
	Protect(b, blocks)
	table := New(block, diskID)
	for _, p := range []Partition{{Type: ESP, ID: partID, First: 40, Last: 49, Name: "Ä boot"}, {Type: LinuxData, ID: diskID, First: 50, Last: 99, Attributes: 4}} {
		if !table.Add(p) {
			t.Fatal("no entry is free")
		}
	}
	for _, p := range table.Parts(blocks) {
		copy(b[p.Off:], p.Bytes)
	}
	return b
}

func TestAnotherImplementationReadsTheTable(t *testing.T) {
	for _, block := range []int{512, 4096} {
		t.Run(fmt.Sprint(block), func(t *testing.T) {
			b := disk(t, int64(block))
			name := filepath.Join(t.TempDir(), "disk.img")
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := file.OpenFromPath(name, true)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			table, err := diskfs.Read(f, block, block)
			if err != nil {
				t.Fatal(err)
			}
			protected := table.ProtectiveMBR || block != 512 // go-diskfs looks for the signature at the block's end
			if err := table.Verify(f, uint64(len(b))); err != nil || !protected || !strings.EqualFold(table.GUID, diskID.String()) {
				t.Errorf("table %+v, %v: want disk %s behind a protective MBR", table, err, diskID)
			}
			var got []string
			for _, p := range table.Partitions {
				got = append(got, fmt.Sprintf("%d: %s %s %d-%d %q %d", p.Index, strings.ToLower(string(p.Type)), strings.ToLower(p.GUID), p.Start, p.End, p.Name, p.Attributes))
			}
			want := []string{fmt.Sprintf(`1: %s %s 40-49 "Ä boot" 0`, ESP, partID), fmt.Sprintf(`2: %s %s 50-99 "" 4`, LinuxData, diskID)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("partitions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBothCopiesSurviveAMoveToALargerDisk(t *testing.T) {
	table, err := Read(bytes.NewReader(disk(t, 512)), 512, 1, 2048)
	if err != nil {
		t.Fatal(err)
	}
	larger := make([]byte, 2<<20)
	for _, p := range table.Parts(4096) {
		copy(larger[p.Off:], p.Bytes)
	}
	for _, at := range []int64{1, 4095} {
		moved, err := Read(bytes.NewReader(larger), 512, at, 4096)
		if err != nil || moved == nil || moved.Disk() != diskID || moved.LastUsable() != 4096-34 || moved.Alternate() != uint64(4096-at) {
			t.Fatalf("Read(block %d) = %+v, %v", at, moved, err)
		}
		for i, p := range moved.All() {
			if (p.Name == "Ä boot") != (i == 0) || i > 1 {
				t.Errorf("entry %d is %+v", i, p)
			}
		}
	}
}

func TestEntriesAreNotOverwritten(t *testing.T) {
	table := New(512, diskID)
	p := Partition{Type: ESP, Name: strings.Repeat("n", 40)}
	for i := range 128 {
		if !table.Put(127-i, p) || table.Put(127-i, p) {
			t.Fatalf("entry %d is used, or was overwritten", 127-i)
		}
	}
	if table.Add(p) || table.Put(128, p) {
		t.Error("a partition was added to a full table")
	}
	for i, q := range table.All() {
		if q.Name != p.Name[:36] {
			t.Fatalf("entry %d has the name %q", i, q.Name)
		}
	}
}

func TestReadRefusesDamagedTables(t *testing.T) {
	for name, off := range map[string]int{"header": 512 + 60, "its size": 512 + 12, "its size, huge": 512 + 15, "entries": 1024 + 40, "another place": 512 + 24} {
		b := disk(t, 512)
		b[off] ^= 0xff
		if _, err := Read(bytes.NewReader(b), 512, 1, 2048); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Read error = %v, want %v", name, err, ErrDamaged)
		}
	}
	b := disk(t, 512)
	copy(b[512:], "no table")
	if table, err := Read(bytes.NewReader(b), 512, 1, 2048); table != nil || err != nil {
		t.Errorf("Read = %v, %v, want neither", table, err)
	}
	if _, err := Read(bytes.NewReader(b), 512, 4096, 8192); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("Read beyond the end: error = %v, want the reader's", err)
	}
}

// FuzzRead: what Read accepts is written again as it was.
func FuzzRead(f *testing.F) {
	b := disk(f, 512)
	f.Add(b[512:1024], b[1024:1024+16<<10])
	f.Fuzz(func(t *testing.T, header, entries []byte) {
		const blocks = 2048
		b := make([]byte, blocks*512)
		copy(b[512:1024], header)
		copy(b[1024:], entries)
		table, err := Read(bytes.NewReader(b), 512, 1, blocks)
		if table == nil || err != nil || table.End(blocks) <= 0 {
			return
		}
		for i, p := range table.All() {
			if p.Type == (GUID{}) {
				t.Errorf("entry %d is not used", i)
			}
		}
		again := bytes.Clone(b)
		for _, p := range table.Parts(blocks)[2:] {
			copy(again[p.Off:], p.Bytes)
		}
		other, err := Read(bytes.NewReader(again), 512, 1, blocks)
		if err != nil || !bytes.Equal(other.entries, table.entries) {
			t.Errorf("what was read is written as something else: %v", err)
		}
	})
}
