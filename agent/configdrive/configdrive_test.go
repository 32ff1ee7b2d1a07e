package configdrive

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	backend "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

func full() job.ConfigDrive {
	return job.ConfigDrive{
		MetaData: []byte(`{"uuid":"1","name":"node-0"}`), NetworkData: []byte(`{"links":[]}`),
		UserData: []byte("#cloud-config\n" + strings.Repeat("# nothing\n", 1000)),
	}
}

// save writes a drive to a file.
func save(t *testing.T, p []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "drive.iso")
	if err := os.WriteFile(name, p, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// B-155: another implementation reads the files, by the names that guests use.
func TestBuild(t *testing.T) {
	d := full()
	p, err := Build(d)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(save(t, p))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fs, err := iso9660.Read(backend.New(f, true), int64(len(p)), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimRight(fs.Label(), " \x00"); got != Label {
		t.Errorf("label %q, want %q", got, Label)
	}
	for _, dir := range []string{"/openstack/latest", "/openstack/2012-08-10"} {
		for name, want := range map[string][]byte{
			"meta_data.json": d.MetaData, "network_data.json": d.NetworkData, "user_data": d.UserData,
		} {
			g, err := fs.OpenFile(dir+"/"+name, os.O_RDONLY)
			if err != nil {
				t.Errorf("%s/%s: %v", dir, name, err)
				continue
			}
			got, err := io.ReadAll(g)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s/%s: %d bytes, %v; want %d", dir, name, len(got), err, len(want))
			}
		}
	}
	again, err := Build(d)
	if err != nil || !bytes.Equal(again, p) {
		t.Error("the same content made another drive")
	}
	if !Is(p) {
		t.Error("Is(the drive) = false")
	}
}

// Guests find the volume with util-linux.
func TestBlkidRecognizesTheDrive(t *testing.T) {
	tool := prerequisites.Need(t, "blkid")
	p, err := Build(full())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tool, "-p", "-o", "export", save(t, p)).CombinedOutput()
	if err != nil {
		t.Fatalf("blkid: %v: %s", err, out)
	}
	for _, want := range []string{"LABEL=" + Label, "TYPE=iso9660"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("blkid says %q, want %q", out, want)
		}
	}
}

func TestEmptyFilesAreLeftOut(t *testing.T) {
	p, err := Build(job.ConfigDrive{})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(p, []byte("user_data")) || bytes.Contains(p, []byte("network_data.json")) || !bytes.Contains(p, []byte("meta_data.json")) {
		t.Error("want meta_data.json alone")
	}
}

func TestBuildRefuses(t *testing.T) {
	for _, tt := range []struct {
		drive job.ConfigDrive
		want  string
	}{
		{job.ConfigDrive{MetaData: []byte("[]")}, "configdrive: metaData is no JSON object"},
		{job.ConfigDrive{NetworkData: []byte("links:")}, "configdrive: networkData is no JSON object"},
		{job.ConfigDrive{UserData: make([]byte, MaxSize)}, "configdrive: the contents have 67108866 bytes"},
	} {
		if _, err := Build(tt.drive); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Build error = %v, want %q", err, tt.want)
		}
	}
}

func TestIsRecognizesConfigDrives(t *testing.T) {
	fat := make([]byte, 512)
	copy(fat[43:], "CONFIG-2   FAT16   ")
	fat32 := make([]byte, 512)
	copy(fat32[71:], "CONFIG-2   FAT32   ")
	for name, tt := range map[string]struct {
		volume []byte
		want   bool
	}{
		"FAT16": {fat, true}, "FAT32": {fat32, true}, "nothing": {make([]byte, 36<<10), false}, "empty": {nil, false},
	} {
		if got := Is(tt.volume); got != tt.want {
			t.Errorf("Is(%s) = %v, want %v", name, got, tt.want)
		}
	}
}

// FuzzBuild: whatever a Secret contains, Build returns an ISO 9660 image of
// bounded size or an error.
func FuzzBuild(f *testing.F) {
	d := full()
	f.Add(d.MetaData, d.NetworkData, d.UserData)
	f.Add([]byte(nil), []byte("{}"), []byte{0})
	f.Fuzz(func(t *testing.T, meta, network, user []byte) {
		p, err := Build(job.ConfigDrive{MetaData: meta, NetworkData: network, UserData: user})
		if err != nil {
			return
		}
		if len(p) > MaxSize || len(p)%block != 0 || !Is(p) || !bytes.Contains(p, user) {
			t.Errorf("a drive of %d bytes is not what it should be", len(p))
		}
	})
}
