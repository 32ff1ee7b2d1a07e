package datasource

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/diskfs/go-diskfs/backend"
	backendfile "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem"
	"github.com/diskfs/go-diskfs/filesystem/fat12"
	"github.com/diskfs/go-diskfs/filesystem/fat16"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/configdrive"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// seed is the files of a volume.
type seed map[string]string

// Seeds that volumes have.
var (
	full = seed{
		"meta-data": "instance-id: i-1\nlocal-hostname: node-7\n", "user-data": "#cloud-config\n" + strings.Repeat("# a line\n", 3000),
		"vendor-data": "#cloud-config\n{}\n", "network-config": "version: 2\n",
	}
	bare  = seed{"meta-data": full["meta-data"], "user-data": full["user-data"]}
	drive = seed{
		"openstack/latest/meta_data.json":     `{"uuid": "i-1", "hostname": "node-7"}`,
		"openstack/2012-08-10/meta_data.json": `{"uuid": "i-0", "hostname": "node-6"}`,
		"openstack/latest/user_data":          full["user-data"],
	}
)

// want returns the instance that a seed describes.
func (s seed) want() cloudinit.Instance {
	data := func(name string) []byte {
		if text, has := s[name]; has {
			return []byte(text)
		}
		return nil
	}
	if _, has := s["meta-data"]; !has {
		return cloudinit.Instance{
			Files: s.read("openstack/latest/meta_data.json", "openstack/latest/user_data", "openstack/latest/vendor_data.json", "openstack/latest/vendor_data2.json", "openstack/latest/network_data.json"),

			Source: cloudinit.ConfigDrive, ID: "i-1", Hostname: "node-7", UserData: data("openstack/latest/user_data"), VendorData2: data("openstack/latest/vendor_data2.json"),
			MetaData: map[string]any{"uuid": "i-1", "hostname": "node-7"},
		}
	}
	return cloudinit.Instance{
		Files:  s.read("meta-data", "user-data", "vendor-data", "network-config"),
		Source: cloudinit.NoCloud, ID: "i-1", Hostname: "node-7",
		UserData: data("user-data"), VendorData: data("vendor-data"), NetworkData: data("network-config"),
		MetaData: map[string]any{"instance-id": "i-1", "local-hostname": "node-7"},
	}
}

// read returns the files of a seed that are there.
func (s seed) read(names ...string) map[string][]byte {
	out := map[string][]byte{}
	for _, n := range names {
		if text, has := s[n]; has {
			out[n] = []byte(text)
		}
	}
	return out
}

// newFile returns an empty file of a size.
func newFile(t *testing.T, size int64) (string, backend.Storage) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "volume")
	f, err := os.Create(name)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // it is read by its name
	return name, backendfile.New(f, false)
}

// write writes the files of a seed.
func (s seed) write(t *testing.T, fsys filesystem.FileSystem) {
	t.Helper()
	for name, text := range s {
		if dir := path.Dir(name); dir != "." {
			if err := fsys.Mkdir(dir); err != nil {
				t.Fatal(err)
			}
		}
		f, err := fsys.OpenFile(name, os.O_CREATE|os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func contentOf(t *testing.T, name string) []byte {
	t.Helper()
	p, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sizes are sizes of volumes that have as few clusters as their format allows, about.
var sizes = map[string]int64{"12": 1 << 20, "16": 8 << 20, "32": 40 << 20}

// fatVolume returns a volume of FAT12, 16 or 32, which go-diskfs or mkfs.vfat has made.
func fatVolume(t *testing.T, bits, label string, s seed, mkfs string) []byte {
	t.Helper()
	size := sizes[bits]
	name, b := newFile(t, size)
	var (
		fsys filesystem.FileSystem
		err  error
	)
	if mkfs != "" {
		// mkfs.vfat(8): one sector in a cluster.
		out, err := exec.CommandContext(t.Context(), mkfs, "-F", bits, "-s", "1", "-n", label, name).CombinedOutput()
		if err != nil {
			t.Fatalf("mkfs.vfat: %v: %s", err, out)
		}
	}
	switch {
	case bits == "12" && mkfs != "":
		fsys, err = fat12.Read(b, size, 0, 0)
	case bits == "12":
		fsys, err = fat12.Create(b, size, 0, 0, label, true)
	case bits == "16" && mkfs != "":
		fsys, err = fat16.Read(b, size, 0, 0)
	case bits == "16":
		fsys, err = fat16.Create(b, size, 0, 0, label, true)
	case mkfs != "":
		fsys, err = fat32.Read(b, size, 0, 512)
	default:
		fsys, err = fat32.Create(b, size, 0, 512, label, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, fsys)
	return contentOf(t, name)
}

// isoVolume returns a volume of ISO 9660.
func isoVolume(t *testing.T, label string, s seed, names iso9660.FinalizeOptions) []byte {
	t.Helper()
	name, b := newFile(t, 8<<20)
	fsys, err := iso9660.Create(b, 8<<20, 0, 2048, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, fsys)
	names.VolumeIdentifier = label
	if err := fsys.Finalize(names); err != nil {
		t.Fatal(err)
	}
	return contentOf(t, name)
}

func checkRead(t *testing.T, p []byte, want cloudinit.Instance) {
	t.Helper()
	got, err := Read(bytes.NewReader(p), int64(len(p)))
	if err != nil {
		t.Fatalf("Read error = %v", err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Read (-want +got):\n%s", d)
	}
}

func TestReadFAT(t *testing.T) {
	for _, bits := range []string{"12", "16", "32"} {
		for name, tt := range map[string]struct {
			label string
			seed  seed
		}{"NoCloud": {"cidata", full}, "without optional files": {"CIDATA", bare}, "config drive": {"config-2", drive}, "upper case": {"CONFIG-2", drive}} {
			t.Run("FAT"+bits+" "+name, func(t *testing.T) {
				checkRead(t, fatVolume(t, bits, tt.label, tt.seed, ""), tt.seed.want())
			})
		}
	}
}

func TestReadFATOfMkfs(t *testing.T) {
	mkfs := prerequisites.Need(t, "mkfs.vfat")
	for _, bits := range []string{"12", "16", "32"} {
		t.Run("FAT"+bits, func(t *testing.T) {
			checkRead(t, fatVolume(t, bits, "CIDATA", full, mkfs), full.want())
		})
	}
}

// Drivers give a file without content no cluster.
func TestReadFATWithEmptyFile(t *testing.T) {
	s := seed{"meta-data": full["meta-data"], "user-data": full["user-data"], "vendor-data": ""}
	p := fatVolume(t, "12", "cidata", s, "")
	at := bytes.Index(p, []byte("VENDOR~1   "))
	copy(p[at+26:], []byte{0, 0})
	checkRead(t, p, s.want())
}

// Windows renames a volume in its root directory alone.
func TestReadFATWithLabelInRootDirectory(t *testing.T) {
	p := fatVolume(t, "16", "cidata", bare, "")
	copy(p[43:], "NO NAME    ")
	checkRead(t, p, bare.want())
}

func TestReadISO(t *testing.T) {
	for name, names := range map[string]iso9660.FinalizeOptions{
		"Rock Ridge": {RockRidge: true}, "Joliet": {Joliet: true}, "Rock Ridge and Joliet": {RockRidge: true, Joliet: true},
	} {
		t.Run(name, func(t *testing.T) {
			checkRead(t, isoVolume(t, "cidata", full, names), full.want())
			checkRead(t, isoVolume(t, "CIDATA", bare, names), bare.want())
			if names.RockRidge { // directories of go-diskfs's Joliet lead to those of ISO 9660
				more := maps.Clone(drive)
				more["openstack/latest/vendor_data2.json"] = `{"cloud-init": "x"}`
				checkRead(t, isoVolume(t, "CONFIG-2", more, names), more.want())
			}
		})
	}
	checkRead(t, builtDrive(t), drive.want())
	checkRead(t, withoutRockRidge(builtDrive(t)), drive.want())
}

// builtDrive returns a config drive as the agent writes it, with names of Rock Ridge and Joliet.
func builtDrive(t *testing.T) []byte {
	t.Helper()
	p, err := configdrive.Build(job.ConfigDrive{MetaData: []byte(drive["openstack/latest/meta_data.json"]), UserData: []byte(full["user-data"])})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// withoutRockRidge returns a volume without the field that says that it has names of Rock Ridge.
func withoutRockRidge(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte{'S', 'P', 7, 1, 0xbe, 0xef}, []byte{'X', 'X', 7, 1, 0xbe, 0xef})
}

func TestReadOfOtherVolumes(t *testing.T) {
	for name, p := range map[string][]byte{
		"nothing": nil, "zeros": make([]byte, 64<<10),
		"another label": fatVolume(t, "12", "EFI", full, ""), "another label of ISO": isoVolume(t, "debian", full, iso9660.FinalizeOptions{RockRidge: true}),
		"no seed": fatVolume(t, "12", "cidata", seed{"README": "text"}, ""),
	} {
		if _, err := Read(bytes.NewReader(p), int64(len(p))); !errors.Is(err, cloudinit.ErrNoSource) {
			t.Errorf("%s: Read error = %v, want ErrNoSource", name, err)
		}
	}
}

// A loop of clusters, a file of 4 GiB and a cut volume are refused, and cost neither memory nor time.
func TestReadOfDamagedVolumes(t *testing.T) {
	volume := fatVolume(t, "16", "cidata", full, "")
	table := 4 * 512 // after the reserved sectors of go-diskfs
	entry := bytes.Index(volume, []byte("USER-D~1   "))
	for name, tt := range map[string]struct {
		damage func(p []byte) []byte
		want   string
	}{
		"loop": {func(p []byte) []byte {
			for c := 2; c < 1000; c++ {
				copy(p[table+2*c:], []byte{byte(c), byte(c >> 8)})
			}
			return p
		}, ""}, // the file's size ends it
		"size":        {func(p []byte) []byte { copy(p[entry+28:], "\xff\xff\xff\xff"); return p }, "more than 67108864 bytes"},
		"short chain": {func(p []byte) []byte { copy(p[entry+28:], "\xff\xff\xff\x00"); return p }, "damaged file system"},
		"cluster":     {func(p []byte) []byte { copy(p[entry+26:], "\xf0\xff"); return p }, "damaged file system: cluster 65520 is none of its"},
		"cut":         {func(p []byte) []byte { return p[:32<<10] }, "damaged file system"},
		"sector size": {func(p []byte) []byte { p[12] = 0; return p }, "damaged file system: sectors of 0 bytes"},
	} {
		p := tt.damage(slices.Clone(volume))
		_, err := Read(bytes.NewReader(p), int64(len(p)))
		if tt.want == "" && err != nil && !errors.Is(err, errDamaged) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: Read error = %v, want %q", name, err, tt.want)
		}
	}
}

// A directory that is in itself, 65,536 times, is read until a bound is met.
func TestReadEndsInALoopOfDirectories(t *testing.T) {
	p := fatVolume(t, "16", "config-2", drive, "")
	f, err := openFAT(&device{bytes.NewReader(p), int64(len(p)), maxRead}, p)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := (volume{f}).find("open", "openstack")
	if err != nil {
		t.Fatal(err)
	}
	at := []byte{byte(dir.at), byte(dir.at >> 8)}
	copy(p[f.table+2*int64(dir.at):], at)
	for k := int64(0); k < f.cluster; k += dirEntrySize {
		e := p[f.data+int64(dir.at-2)*f.cluster+k:]
		copy(e, "AGAIN      \x10")
		copy(e[26:], at)
	}
	if _, err := Read(bytes.NewReader(p), int64(len(p))); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "its directories and files have over") {
		t.Errorf("Read error = %v, want that of the bound", err)
	}
}

// The file system of each format is what package fs asks for.
func TestVolumeIsAnFS(t *testing.T) {
	p := fatVolume(t, "12", "config-2", drive, "")
	f, err := openFAT(&device{bytes.NewReader(p), int64(len(p)), maxRead}, p)
	if err != nil {
		t.Fatal(err)
	}
	q := isoVolume(t, "config-2", drive, iso9660.FinalizeOptions{RockRidge: true})
	i, err := openISO(&device{bytes.NewReader(q), int64(len(q)), maxRead})
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range []tree{f, i} {
		if err := fstest.TestFS(volume{tr}, "openstack/latest/user_data", "openstack/2012-08-10/meta_data.json"); err != nil {
			t.Errorf("%T: %v", tr, err)
		}
	}
}

// serverWith returns a server with an empty disk and one with a content.
func serverWith(p []byte) sys.System {
	m := systest.Machine{VirtualCD: "Virtual CD"}
	for _, content := range [][]byte{make([]byte, 1<<20), p} {
		d := systest.NewMemory(int64(len(content)))
		if _, err := d.WriteAt(content, 0); err != nil {
			panic(err) // it has the size of the content
		}
		m.Disks = append(m.Disks, systest.Disk{Kind: systest.SATA, Size: d.Size(), Open: func() (sys.Block, error) { return d, nil }})
	}
	return systest.New(m)
}

func TestFindLooksAtDisksAndPartitions(t *testing.T) {
	volume := fatVolume(t, "12", "cidata", bare, "")
	name, b := newFile(t, 4<<20)
	w, err := b.Writable()
	if err != nil {
		t.Fatal(err)
	}
	table := &gpt.Table{LogicalSectorSize: 512, PhysicalSectorSize: 512, ProtectiveMBR: true, Partitions: []*gpt.Partition{
		{Index: 1, Start: 2048, End: 4095, Type: gpt.LinuxFilesystem, Name: "cidata"},
	}}
	if err := table.Write(w, 4<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteAt(volume, 1<<20); err != nil {
		t.Fatal(err)
	}
	old := make([]byte, 4<<20)
	copy(old[446+16:], []byte{0x80, 0, 0, 0, 0x0c, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0}) // sector 2048 of 2048, FAT32
	copy(old[510:], "\x55\xaa")
	copy(old[1<<20:], volume)
	for device, p := range map[string][]byte{"sdb": volume, "sdb1": contentOf(t, name), "sdb2": old} {
		got, from, err := Find(serverWith(p))
		if err != nil || from != device {
			t.Errorf("Find = %q, %v; want %q", from, err, device)
		} else if d := cmp.Diff(bare.want(), got); d != "" {
			t.Errorf("Find of %s (-want +got):\n%s", device, d)
		}
	}
	if _, _, err := Find(serverWith(make([]byte, 1<<20))); !errors.Is(err, cloudinit.ErrNoSource) {
		t.Errorf("Find of empty disks: error = %v, want ErrNoSource", err)
	}
	if _, _, err := Find(serverWith(volume[:8<<10])); err == nil || !strings.HasPrefix(err.Error(), "/dev/sdb: ") {
		t.Errorf("Find of a damaged volume: error = %v, want one that begins with /dev/sdb", err)
	}
}

// FuzzRead: whatever a server's users write to a disk, Read ends with an instance or an error. A
// word of the input is written at each place that one before it names, over a sound volume.
func FuzzRead(f *testing.F) {
	volumes := [][]byte{}
	f.Add(byte(0), []byte{})
	f.Add(byte(1), []byte{0, 0x80, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, kind byte, patches []byte) {
		if len(volumes) == 0 {
			for _, v := range [][]byte{
				fatVolume(t, "12", "cidata", full, ""), fatVolume(t, "16", "config-2", drive, ""), isoVolume(t, "cidata", full, iso9660.FinalizeOptions{RockRidge: true, Joliet: true}),
				withoutRockRidge(builtDrive(t)),
			} {
				volumes = append(volumes, v[:min(len(v), 256<<10)])
			}
		}
		p := slices.Clone(volumes[int(kind)%len(volumes)])
		for ; len(patches) >= 6; patches = patches[6:] {
			at := int(patches[0]) | int(patches[1])<<8
			copy(p[at:], patches[2:6])
		}
		i, err := Read(bytes.NewReader(p), int64(len(p)))
		if err == nil && i.Source == "" {
			t.Error("no data source and no error")
		}
	})
}
