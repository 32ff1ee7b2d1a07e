package sys_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
	"github.com/metalab-dev/metalab/scenarios/loopdisk"
)

const blockSize = 3<<20 + 512

// TestBlock checks that every implementation follows the contract of Block: the
// in-memory one is useful only if it behaves like the real ones.
func TestBlock(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) sys.Block{
		"file":   openFile,
		"loop":   openLoop,
		"memory": func(*testing.T) sys.Block { return systest.NewMemory(blockSize) },
		"system": func(t *testing.T) sys.Block {
			m := systest.NewMemory(blockSize)
			s := systest.New(systest.Machine{Disks: []systest.Disk{{
				Kind: systest.SATA, Size: blockSize, Open: func() (sys.Block, error) { return m, nil },
			}}})
			b, err := s.OpenBlock("sda")
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			checkBlock(t, b)
			if err := b.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
}

func checkBlock(t *testing.T, b sys.Block) {
	t.Helper()
	if b.Size() != blockSize {
		t.Fatalf("Size() = %d, want %d", b.Size(), blockSize)
	}
	want := make([]byte, blockSize)
	same := func(after string) {
		t.Helper()
		got := make([]byte, blockSize)
		if n, err := b.ReadAt(got, 0); n != blockSize || (err != nil && !errors.Is(err, io.EOF)) {
			t.Fatalf("after %s: ReadAt(all, 0) = %d, %v", after, n, err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("after %s: the content is not what it should be", after)
		}
	}
	same("nothing")
	for _, w := range []struct{ off, n int }{
		{0, 512}, {100, 3}, {65530, 12}, {1 << 20, 1 << 20}, {blockSize - 1, 1},
	} {
		p := bytes.Repeat([]byte{0xa5}, w.n)
		copy(want[w.off:], p)
		if n, err := b.WriteAt(p, int64(w.off)); n != w.n || err != nil {
			t.Fatalf("WriteAt(%d bytes, %d) = %d, %v", w.n, w.off, n, err)
		}
		same(fmt.Sprintf("WriteAt(%d bytes, %d)", w.n, w.off))
	}
	for _, z := range []struct{ off, n int64 }{
		{0, 512}, {1<<20 + 512, 1 << 19}, {65536, 65536}, {512, 0}, {blockSize - 512, 512}, {0, blockSize},
	} {
		clear(want[z.off : z.off+z.n])
		if err := b.Zero(z.off, z.n); err != nil {
			t.Fatalf("Zero(%d, %d) = %v", z.off, z.n, err)
		}
		same(fmt.Sprintf("Zero(%d, %d)", z.off, z.n))
	}
	for _, z := range []struct{ off, n int64 }{{1, 512}, {0, 511}, {blockSize, 512}, {-512, 512}, {512, -512}, {512, 1<<62 + 512}} {
		if err := b.Zero(z.off, z.n); err == nil {
			t.Errorf("Zero(%d, %d) succeeded", z.off, z.n)
		}
	}
	if n, err := b.WriteAt([]byte{1, 2}, blockSize-1); n != 0 || err == nil {
		t.Errorf("WriteAt(2 bytes, size-1) = %d, %v; want an error and nothing written", n, err)
	}
	if n, err := b.ReadAt(make([]byte, 4), blockSize-2); n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt(4 bytes, size-2) = %d, %v; want 2, EOF", n, err)
	}
	if n, err := b.ReadAt(make([]byte, 4), blockSize); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt(4 bytes, size) = %d, %v; want 0, EOF", n, err)
	}
	if err := b.Sync(); err != nil {
		t.Errorf("Sync() = %v", err)
	}
	same("refused calls")
}

func sparse(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(blockSize); err != nil {
		t.Fatal(err)
	}
	return f
}

func openFile(t *testing.T) sys.Block {
	b, err := sys.NewFileBlock(sparse(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// openLoop opens a loop device by its name, like a disk.
func openLoop(t *testing.T) sys.Block {
	name := attachLoop(t)
	b, err := sys.Linux{}.OpenBlock(name)
	if err != nil {
		t.Fatalf("OpenBlock(%q) = %v", name, err)
	}
	if again, err := (sys.Linux{}).OpenBlock(name); err == nil {
		again.Close()
		t.Errorf("OpenBlock(%q) a second time succeeded, want exclusive use", name)
	}
	return b
}

// attachLoop needs root and a kernel with loop devices; elsewhere the test uses a
// file.
func attachLoop(t *testing.T) string {
	t.Helper()
	name, err := loopdisk.Attach(t, blockSize, nil)
	if err != nil {
		t.Skipf("no loop devices here: %v", err)
	}
	return name
}

func TestOpenBlockRefusesOtherFiles(t *testing.T) {
	for _, name := range []string{"", "null", "no-such-disk", "../dev/null", ".", "..", "/dev/null"} {
		b, err := sys.Linux{}.OpenBlock(name)
		if !errors.Is(err, sys.ErrNoDevice) {
			t.Errorf("OpenBlock(%q) = %v, %v; want ErrNoDevice", name, b, err)
		}
	}
}

func TestLinux(t *testing.T) {
	var s sys.System = sys.Linux{ScratchDir: t.TempDir()}
	if b, err := fs.ReadFile(s.FS(), "proc/meminfo"); err != nil || !bytes.Contains(b, []byte("MemTotal:")) {
		t.Errorf("/proc/meminfo = %.40q, %v", b, err)
	}
	if s.Arch() == "" {
		t.Error("Arch() is empty")
	}
	if want, _ := os.Hostname(); s.Hostname() != want {
		t.Errorf("Hostname() = %q, want %q", s.Hostname(), want)
	}
	if got := s.Addresses("no-such-interface"); got != nil {
		t.Errorf("Addresses(no-such-interface) = %v, want none", got)
	}
}

func TestScratchLeavesNoName(t *testing.T) {
	dir := t.TempDir()
	f, err := sys.Linux{ScratchDir: dir}.TempFile()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("scratch directory holds %v, %v; want nothing", names, err)
	}
	if _, err := f.WriteAt([]byte("abc"), 1<<20); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := f.ReadAt(got, 1<<20); err != nil || string(got) != "abc" {
		t.Errorf("ReadAt = %q, %v; want abc", got, err)
	}
	if _, ok := f.(interface{ Name() string }); ok {
		t.Error("the scratch file tells a name")
	}
	if _, err := (sys.Linux{ScratchDir: filepath.Join(dir, "none")}).TempFile(); err == nil {
		t.Error("TempFile() in a directory that does not exist succeeded")
	}
}
