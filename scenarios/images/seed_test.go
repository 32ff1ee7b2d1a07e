package images

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

// A seed boots, and is a volume with the label and the files that cloud-init looks for.
func TestSeedISOIsADataSource(t *testing.T) {
	user := bytes.Repeat([]byte("x"), 5000)
	iso, err := BuildSeedISO([]byte("instance-id: a\n"), user)
	if err != nil {
		t.Fatal(err)
	}
	if what, ok, err := BootableCD(bytes.NewReader(iso), int64(len(iso))); !ok || err != nil {
		t.Errorf("BootableCD() = %q, %v, %v", what, ok, err)
	}
	volume, err := iso9660.Read(file.New(seedFile{bytes.NewReader(iso)}, true), int64(len(iso)), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(volume.Label()) != "cidata" {
		t.Errorf("label = %q, want cidata", volume.Label())
	}
	for name, want := range map[string][]byte{"meta-data": []byte("instance-id: a\n"), "user-data": user} {
		if got, err := fs.ReadFile(volume, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s = %.20q, %v", name, got, err)
		}
	}
}

type seedFile struct{ *bytes.Reader }

// Stat implements fs.File.
func (seedFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// Close implements fs.File.
func (seedFile) Close() error { return nil }
