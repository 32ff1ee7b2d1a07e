package disk

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/diskfs/go-diskfs/partition"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/diskfs/go-diskfs/partition/mbr"

	"github.com/metalab-dev/metalab/agent/configdrive"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys/systest"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

var drive = job.ConfigDrive{MetaData: []byte(`{"name":"node-0"}`), UserData: []byte("#cloud-config\n")}

// partitioned returns a disk image of size bytes with a table of another
// implementation, and data in its first partition.
func partitioned(t testing.TB, table partition.Table, size int64) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "image")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte("data"), mib/4), mib); err != nil {
		t.Fatal(err)
	}
	w, err := file.New(f, false).Writable()
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Write(w, size); err != nil {
		t.Fatal(err)
	}
	p, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func gptOf(lastMiB uint64) *gpt.Table {
	return &gpt.Table{LogicalSectorSize: 512, PhysicalSectorSize: 512, ProtectiveMBR: true, GUID: "5b0c2c5a-8b4e-4a52-9a1c-2f3d0f4a9c01", Partitions: []*gpt.Partition{
		{Index: 1, Start: 2048, End: lastMiB*2048 - 1, Type: gpt.LinuxFilesystem, Name: "root", GUID: "5b0c2c5a-8b4e-4a52-9a1c-2f3d0f4a9c02"},
	}}
}

func mbrOf(sizes ...uint32) *mbr.Table {
	m := &mbr.Table{LogicalSectorSize: 512, PhysicalSectorSize: 512}
	start := uint32(2048)
	for i, s := range sizes {
		m.Partitions = append(m.Partitions, &mbr.Partition{Index: i + 1, Bootable: i == 0, Type: mbr.Linux, Start: start, Size: s})
		start += s
	}
	return m
}

// saved writes a disk to a file.
func saved(t *testing.T, r io.ReaderAt, size int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := io.Copy(f, io.NewSectionReader(r, 0, size)); err != nil {
		t.Fatal(err)
	}
	return f
}

// deploy writes an image with a config drive.
func deploy(t *testing.T, m *systest.Memory, image []byte) (job.Written, error) {
	t.Helper()
	s := serve(t, map[string]string{"/disk.img": string(image)})
	got, _, err := write(t, m, job.WriteSpec{URL: s.URL + "/disk.img", Checksum: sha256Hex(image), ConfigDrive: &drive})
	return got, err
}

// B-155: the drive is on a partition at the disk's end, and another implementation
// finds both.
func TestWriteConfigDrive(t *testing.T) {
	const size = 100 * mib
	for _, tt := range []struct {
		name   string
		image  []byte
		format string
	}{
		{"GPT, image smaller than the disk", partitioned(t, gptOf(4), 8*mib), "raw"},
		{"GPT, image as large as the disk", partitioned(t, gptOf(20), size), "raw"},
		{"GPT in qcow2", qemu(t, partitioned(t, gptOf(20), size), "qcow2", ""), "qcow2"},
		{"MBR", partitioned(t, mbrOf(8192, 2048), 8*mib), "raw"},
		{"MBR, image as large as the disk", partitioned(t, mbrOf(8192, 2048, 2048), size), "raw"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := systest.NewMemory(size)
			got, err := deploy(t, m, tt.image)
			if err != nil {
				t.Fatal(err)
			}
			if got.ConfigDrive < size-66*mib || got.ConfigDrive%mib != 0 {
				t.Errorf("the drive begins at %d", got.ConfigDrive)
			}
			f := saved(t, m, size)
			table, err := partition.Read(file.New(f, true), 512, 512)
			if err != nil {
				t.Fatal(err)
			}
			if err := table.Verify(file.New(f, true), size); err != nil {
				t.Errorf("the table does not verify: %v", err)
			}
			found := 0
			for _, p := range table.GetPartitions() {
				if p.GetStart() == got.ConfigDrive && p.GetSize() <= drivePart+mib && p.GetSize() >= drivePart-mib {
					found++
				}
			}
			if found != 1 {
				t.Errorf("%d partitions of 64 MiB at %d, want 1", found, got.ConfigDrive)
			}
			verifyTable(t, f.Name())
			volume := saved(t, io.NewSectionReader(m, got.ConfigDrive, mib), mib)
			fs, err := iso9660.Read(file.New(volume, true), mib, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string][]byte{"/openstack/latest/meta_data.json": drive.MetaData, "/openstack/latest/user_data": drive.UserData} {
				g, err := fs.OpenFile(path, os.O_RDONLY)
				if err != nil {
					t.Fatal(err)
				}
				if have, err := io.ReadAll(g); err != nil || !bytes.Equal(have, want) {
					t.Errorf("%s = %q, %v; want %q", path, have, err, want)
				}
			}
			if have := get(t, m, mib, mib); have != strings.Repeat("data", mib/4) {
				t.Error("the image's first partition has changed")
			}
		})
	}
}

// verifyTable checks the table with util-linux.
func verifyTable(t *testing.T, name string) {
	t.Helper()
	t.Run("sfdisk", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), prerequisites.Need(t, "sfdisk"), "--verify", name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "No errors detected") {
			t.Errorf("sfdisk --verify: %v: %s", err, out)
		}
	})
}

func TestConfigDriveUsesThePartitionOfTheImage(t *testing.T) {
	table := gptOf(4)
	table.Partitions = append(table.Partitions, &gpt.Partition{Index: 2, Start: 5 * 2048, End: 7*2048 - 1, Type: gpt.LinuxFilesystem, Name: "cidata"})
	image := partitioned(t, table, 8*mib)
	old, err := configdrive.Build(job.ConfigDrive{UserData: []byte("of another server")})
	if err != nil {
		t.Fatal(err)
	}
	copy(image[5*mib:], old)
	m := systest.NewMemory(100 * mib)
	got, err := deploy(t, m, image)
	if err != nil || got.ConfigDrive != 5*mib {
		t.Fatalf("Write = %+v, %v; want the drive at %d", got, err, 5*mib)
	}
	want, err := configdrive.Build(drive)
	if err != nil {
		t.Fatal(err)
	}
	if have := get(t, m, 5*mib, len(want)); have != string(want) {
		t.Error("the drive is not on the image's partition")
	}
	verifyTable(t, saved(t, m, m.Size()).Name())
}

func TestConfigDriveIsRefused(t *testing.T) {
	damaged := partitioned(t, gptOf(4), 8*mib)
	damaged[1024]++
	for _, tt := range []struct {
		name  string
		image []byte
		size  int64
		want  string
	}{
		{"no table", append([]byte{0}, content(4*mib, 5)[1:]...), 100 * mib, "the image has no partition table"},
		{"damaged GPT", damaged, 100 * mib, "the image's GPT is damaged"},
		{"small disk", partitioned(t, gptOf(4), 8*mib), 60 * mib, "/dev/sda is too small"},
		{"full disk", partitioned(t, gptOf(40), 100*mib), 100 * mib, "no room behind the image's partitions"},
		{"four partitions", partitioned(t, mbrOf(2048, 2048, 2048, 2048), 8*mib), 100 * mib, "four primary partitions are used"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := systest.NewMemory(tt.size)
			_, err := deploy(t, m, tt.image)
			if err == nil || !strings.HasPrefix(err.Error(), "disk: config drive: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Write error = %v, want %q", err, tt.want)
			}
			if !cannotBoot(t, m) {
				t.Error("a disk without its config drive can boot")
			}

			optional := drive
			optional.Optional = true
			s := serve(t, map[string]string{"/disk.img": string(tt.image)})
			m = systest.NewMemory(tt.size)
			got, _, err := write(t, m, job.WriteSpec{URL: s.URL + "/disk.img", Checksum: sha256Hex(tt.image), ConfigDrive: &optional})
			if err != nil || got.ConfigDrive != 0 {
				t.Fatalf("with a drive that is optional: Write = %+v, %v; want no drive", got, err)
			}
			if get(t, m, 0, len(tt.image)) != string(tt.image) {
				t.Error("without the drive, the disk holds something else than the image")
			}
		})
	}
}

func TestInvalidConfigDriveTouchesNoDisk(t *testing.T) {
	image := partitioned(t, gptOf(4), 8*mib)
	s := serve(t, map[string]string{"/disk.img": string(image)})
	m := used(t, 8*mib)
	_, _, err := write(t, m, job.WriteSpec{URL: s.URL + "/disk.img", Checksum: sha256Hex(image), ConfigDrive: &job.ConfigDrive{MetaData: []byte("name: x")}})
	if err == nil || !strings.Contains(err.Error(), "metaData is no JSON object") || !isUntouched(t, m) {
		t.Errorf("Write = %v, or the disk was touched", err)
	}
}

// The rest of a run is verified when a part of it is overwritten.
func TestUnverify(t *testing.T) {
	m := systest.NewMemory(16 * mib)
	target := &target{block: m, name: "/dev/sda", head: make([]byte, headSize)}
	p := content(2*mib, 3)
	for off := 0; off < len(p); off += mib / 2 {
		if err := target.put(int64(2*mib+off), p[off:off+mib/2]); err != nil {
			t.Fatal(err)
		}
	}
	if err := target.zero(4*mib, 4*mib); err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{2*mib + 512, 3*mib - 512, 4*mib - 512, 5 * mib, 8*mib - 512} {
		if err := target.replace(off, bytes.Repeat([]byte("new!"), 256)); err != nil {
			t.Fatal(err)
		}
	}
	check := func() error { return target.verify(t.Context(), func(int64, int64) {}) }
	if err := check(); err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{2 * mib, 2*mib + 600, 3*mib + 512, 4 * mib, 5*mib + 1024, 5*mib - 1, 8 * mib} {
		var old [1]byte
		if _, err := m.ReadAt(old[:], off); err != nil {
			t.Fatal(err)
		}
		put(t, m, off, string(old[0]^0xff))
		if err := check(); err == nil {
			t.Errorf("a changed byte at %d is not noticed", off)
		}
		if _, err := m.WriteAt(old[:], off); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzConfigDriveTables: whatever an image's tables contain, the drive is written
// within the disk or not at all.
func FuzzConfigDriveTables(f *testing.F) {
	for _, image := range [][]byte{
		partitioned(f, gptOf(4), 8*mib), partitioned(f, mbrOf(8192), 8*mib), partitioned(f, mbrOf(2048, 2048, 2048, 2048), 8*mib),
	} {
		f.Add(image[:4096])
	}
	iso, err := configdrive.Build(drive)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		const size = 100 * mib
		m := systest.NewMemory(size)
		target := &target{block: m, name: "/dev/sda", head: make([]byte, headSize), drive: iso}
		copy(target.head, head)
		err := target.finish(headSize)
		if err == nil && (target.driveAt < 0 || target.driveAt+int64(len(iso)) > size) {
			t.Errorf("the drive lies at %d", target.driveAt)
		}
		if err == nil && target.verify(t.Context(), func(int64, int64) {}) != nil {
			t.Error("what was written is not what is there")
		}
		if err != nil && !strings.HasPrefix(err.Error(), "disk: ") {
			t.Errorf("error without our name: %v", err)
		}
	})
}
