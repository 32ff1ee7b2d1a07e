package images

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/controller/netboot"
)

func TestBootableCD(t *testing.T) {
	live, err := BuildLiveISO()
	if err != nil {
		t.Fatal(err)
	}
	agent, err := netboot.BuildISO(map[string][]byte{"/a": []byte("b")})
	if err != nil {
		t.Fatal(err)
	}
	change := func(at int, text string) []byte {
		p := bytes.Clone(live)
		copy(p[at:], text)
		return p
	}
	const catalog = 19 * cdBlock
	for _, tt := range []struct {
		name string
		iso  []byte
		what string
		ok   bool
	}{
		{"live", live, bootsElTorito, true},
		{"the agent's", agent, bootsElTorito, true},
		{"nothing", nil, noISO, false},
		{"zeros", make([]byte, 64<<10), noISO, false},
		{"no boot record", change(17*cdBlock, "\xff"), noElTorito, false},
		{"catalog outside", change(17*cdBlock+0x47, "\xff\xff\xff\xff"), badCatalog, false},
		{"validation entry", change(catalog+4, "x"), badCatalog, false},
		{"not bootable", change(catalog+32, "\x00"), badCatalog, false},
		{"boot image outside", change(catalog+40, "\xff\xff\xff\x7f"), badCatalog, false},
		{"nothing to load", change(catalog+38, "\x00\x00"), badCatalog, false},
		{"cut", live[:20*cdBlock], badCatalog, false},
	} {
		what, ok, err := BootableCD(bytes.NewReader(tt.iso), int64(len(tt.iso)))
		if what != tt.what || ok != tt.ok || err != nil {
			t.Errorf("%s: BootableCD = %q, %v, %v; want %q, %v", tt.name, what, ok, err, tt.what, tt.ok)
		}
	}
}

func TestLiveISOIsAVolumeForGoDiskfs(t *testing.T) {
	live, err := BuildLiveISO()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "live.iso")
	if err := os.WriteFile(name, live, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fs, err := iso9660.Read(file.New(f, true), int64(len(live)), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimRight(fs.Label(), " \x00"); got != "METALAB_LIVE" {
		t.Errorf("the volume is called %q", got)
	}
}

func FuzzBootableCD(f *testing.F) {
	live, err := BuildLiveISO()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(live)
	f.Fuzz(func(t *testing.T, iso []byte) {
		if what, _, err := BootableCD(bytes.NewReader(iso), int64(len(iso))); err != nil || what == "" {
			t.Errorf("BootableCD = %q, %v", what, err)
		}
	})
}
