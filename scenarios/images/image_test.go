package images

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat16"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

func build(t testing.TB) []byte {
	t.Helper()
	b, err := Build()
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return b
}

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuildAlwaysReturnsTheSameBytes(t *testing.T) {
	if a, b := build(t), build(t); !bytes.Equal(a, b) {
		t.Error("Build twice: the bytes differ")
	}
	if got := len(build(t)); got != 4<<20 {
		t.Errorf("image has %d bytes, want 4 MiB", got)
	}
}

func TestImageIsReadByGoDiskfs(t *testing.T) {
	disk, err := file.OpenFromPath(writeFile(t, "a.img", build(t)), true)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	table, err := gpt.Read(disk, sectorSize, sectorSize)
	if err != nil {
		t.Fatalf("gpt.Read: %v", err)
	}
	if err := table.Verify(disk, imageSectors*sectorSize); err != nil {
		t.Errorf("gpt.Verify: %v", err)
	}
	p := table.Partitions[0]
	if p.Type != gpt.EFISystemPartition || p.Start != espFirst || p.End != espLast || !table.ProtectiveMBR {
		t.Fatalf("table %+v, first partition %+v: want an EFI system partition behind a protective MBR", table, p)
	}
	if table.GUID != "6D6574C1-6C61-4B00-8000-64656D6F0001" {
		t.Errorf("disk GUID = %s", table.GUID)
	}

	fs, err := fat16.Read(disk, p.GetSize(), p.GetStart(), sectorSize)
	if err != nil {
		t.Fatalf("fat16.Read: %v", err)
	}
	if got := strings.TrimSpace(fs.Label()); got != "METALAB" {
		t.Errorf("label = %q, want METALAB", got)
	}
	for path, want := range map[string]string{
		"/EFI/BOOT/BOOTX64.EFI": string(stub.EFI(bootLine)),
		"/metalab/image.txt":    imageText,
	} {
		f, err := fs.OpenFile(path, os.O_RDONLY)
		if err != nil {
			t.Errorf("open %s: %v", path, err)
			continue
		}
		got, err := io.ReadAll(f)
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: error %v, want to got:\n%s", path, err, diff)
		}
	}
}

func TestFAT16(t *testing.T) {
	for _, tt := range []struct {
		name    string
		sectors int
		files   []fatFile
		err     string // empty when it works
	}{
		{name: "no files", sectors: 5000},
		{name: "smallest", sectors: 1 + 32 + 2*17 + 4085},
		{name: "too small", sectors: 1 + 32 + 2*17 + 4084, err: "have 4084 clusters"},
		{name: "too large", sectors: 70000, err: "clusters, want"},
		{name: "no parent", sectors: 5000, files: []fatFile{{path: "a/b", content: []byte("x")}}, err: "no directory a"},
		{name: "long name", sectors: 5000, files: []fatFile{{path: "ninechars", content: []byte("x")}}, err: "8.3"},
		{name: "two dots", sectors: 5000, files: []fatFile{{path: "a.b.c", content: []byte("x")}}, err: "8.3"},
		{name: "mixed case", sectors: 5000, files: []fatFile{{path: "Ab", content: []byte("x")}}, err: "mixes cases"},
		{name: "large file", sectors: 5000, files: []fatFile{{path: "a", content: make([]byte, 3<<20)}}, err: "do not fit"},
		{name: "full directory", sectors: 5000, files: manyFiles(15), err: "directory d is full"},
		{name: "directory", sectors: 5000, files: manyFiles(14)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := volume(tt.sectors, tt.files)
			if tt.err == "" {
				if err != nil || len(b) != tt.sectors*sectorSize {
					t.Fatalf("newFAT16(%d) = %d bytes, %v", tt.sectors, len(b), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("newFAT16(%d) error = %v, want one that says %q", tt.sectors, err, tt.err)
			}
		})
	}
}

func volume(sectors int, files []fatFile) ([]byte, error) {
	return newFAT16(sectors, 0, "TEST", files)
}

// manyFiles returns a directory with n files.
func manyFiles(n int) []fatFile {
	files := []fatFile{{path: "d"}}
	for i := range n {
		files = append(files, fatFile{path: "d/" + string(rune('a'+i)), content: []byte("x")})
	}
	return files
}

// TestFilesSpanClusters reads back files of more than one cluster.
func TestFilesSpanClusters(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	b, err := volume(5000, []fatFile{{path: "one", content: long}, {path: "two", content: []byte("2")}})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := file.OpenFromPath(writeFile(t, "fat.img", b), true)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	fs, err := fat16.Read(disk, int64(len(b)), 0, sectorSize)
	if err != nil {
		t.Fatalf("fat16.Read: %v", err)
	}
	for path, want := range map[string][]byte{"/one": long, "/two": []byte("2")} {
		f, err := fs.OpenFile(path, os.O_RDONLY)
		if err != nil {
			t.Fatalf("open %s: %v", path, err)
		}
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s = %d bytes, %v; want %d", path, len(got), err, len(want))
		}
	}
}
