package rootfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/gpt"
	"github.com/metalab-dev/metalab/guest/rootfs"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// disk is a disk in memory.
type disk []byte

func newDisk(mib int) disk { return make(disk, mib<<20) }

// put writes a file at an offset.
func (d disk) put(t testing.TB, off int64, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copy(d[off:], b)
}

// partition makes a GPT. Each partition has 8 MiB from the MiB that its number tells on.
func (d disk) partition(block int64, types ...gpt.GUID) {
	table := gpt.New(block, gpt.GUID{1})
	for i, kind := range types {
		first := uint64(i*8+1) << 20 / uint64(block)
		table.Add(gpt.Partition{Type: kind, ID: gpt.GUID{byte(i + 1)}, First: first, Last: first + 8<<20/uint64(block) - 1})
	}
	blocks := int64(len(d)) / block
	gpt.Protect(d[:512], blocks)
	for _, p := range table.Parts(blocks) {
		copy(d[p.Off:], p.Bytes)
	}
}

// smallExt makes a file system of 8 MiB with a few files.
func smallExt(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return makeExt(t, dir, "8M")
}

// smallRoot makes one that is a root.
func smallRoot(t testing.TB, id string) string {
	t.Helper()
	return smallExt(t, map[string]string{"etc/os-release": "ID=" + id + "\n", "sbin/init": string(program)})
}

func TestFindReadsPartitionTables(t *testing.T) {
	root := smallRoot(t, "debian")
	other := smallExt(t, map[string]string{"etc/fstab": ""})
	rootAMD64 := gpt.MustParse("4f68bce3-e8cd-4db1-96e7-fbcaf984b709")
	for _, block := range []int64{512, 4096} {
		d := newDisk(40)
		d.partition(block, gpt.ESP, gpt.LinuxData, gpt.LinuxData)
		d.put(t, 9<<20, other)
		d.put(t, 17<<20, root)
		expect(t, fmt.Sprintf("a GPT of blocks of %d bytes", block), d, 3, "debian")

		clear(d[block : 2*block]) // the first header
		expect(t, fmt.Sprintf("the backup of a GPT of blocks of %d bytes", block), d, 3, "debian")

		d = newDisk(40)
		d.partition(block, gpt.LinuxData, rootAMD64)
		d.put(t, 1<<20, smallRoot(t, "rescue"))
		d.put(t, 9<<20, root)
		expect(t, "a partition with the type of a root", d, 2, "debian")
	}
	d := newDisk(10)
	d.put(t, 0, root)
	expect(t, "a whole disk", d, 0, "debian")

	sfdisk := prerequisites.Need(t, "sfdisk")
	for _, tt := range []struct {
		name, script string
		off          int64
		number       int
	}{
		{"the second primary partition", "label: dos\n2048,2048,c\n4096,16384,83\n", 2 << 20, 2},
		{"the second logical partition", "label: dos\n2048,2048,c\n4096,,5\n6144,2048,83\n10240,16384,83\n", 5 << 20, 6},
	} {
		image := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(image, newDisk(20), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(sfdisk, "-q", image)
		cmd.Stdin = strings.NewReader(tt.script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("sfdisk: %v: %s", err, out)
		}
		d := newDisk(20)
		d.put(t, 0, image)
		d.put(t, tt.off, root)
		expect(t, tt.name, d, tt.number, "debian")
	}
}

func expect(t *testing.T, name string, d disk, number int, id string) {
	t.Helper()
	found, err := rootfs.Find(bytes.NewReader(d), int64(len(d)))
	if err != nil || found.Partition != number || found.OSRelease != "ID="+id+"\n" {
		t.Errorf("%s: Find() = %+v, %v, want %s in partition %d", name, found, err, id, number)
	}
}

func TestFindNamesWhatItDoesNotTake(t *testing.T) {
	d := newDisk(60)
	d.partition(512, gpt.ESP, gpt.LinuxData, gpt.LinuxData, gpt.LinuxData, gpt.LinuxData, gpt.LinuxData)
	copy(d[1<<20+0x52:], "FAT32   ")
	copy(d[9<<20:], "XFSB")
	copy(d[17<<20+512:], "LABELONE")
	copy(d[17<<20+512+24:], "LVM2 001")
	d.put(t, 25<<20, smallExt(t, map[string]string{"vmlinuz": ""}))
	d.put(t, 33<<20, smallExt(t, map[string]string{"etc/os-release": "ID=x\n"}))
	_, err := rootfs.Find(bytes.NewReader(d), int64(len(d)))
	const want = "the disk has no root file system that can be read: " +
		"partition 1: vfat, which is not a root; partition 2: xfs, which is not read; " +
		"partition 3: LVM2 physical volume, which is not read; partition 4: ext4, which has no /etc/os-release; " +
		"partition 5: ext4, which has /etc/os-release, but neither /sbin/init nor /bin/sh; partition 6: nothing that is known"
	var none *rootfs.NoRootError
	if !errors.As(err, &none) || err.Error() != want {
		t.Errorf("Find() = %v\nwant %s", err, want)
	}
	d = newDisk(1)
	if _, err := rootfs.Find(bytes.NewReader(d), int64(len(d))); !errors.As(err, &none) || !strings.Contains(err.Error(), "no partition table") {
		t.Errorf("Find() of an empty disk = %v", err)
	}
}

func TestFindFollowsLinksThatStayInside(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"etc": "../../real", "sbin": "/usr/./bin", "bin": "bin"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"real/os-release": "ID=links\n", "usr/bin/init": string(program)} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if found := find(t, makeExt(t, dir, "8M")); found.OSRelease != "ID=links\n" {
		t.Errorf("Find() = %+v", found)
	}
}

// An error of the disk is not one of its content.
func TestFindReturnsErrorsOfTheDisk(t *testing.T) {
	var none *rootfs.NoRootError
	_, err := rootfs.Find(broken{}, 1<<20)
	if !errors.Is(err, os.ErrPermission) || errors.As(err, &none) {
		t.Errorf("Find() = %v", err)
	}
}

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, os.ErrPermission }

// A chain of logical partitions that leads back ends.
func TestFindEndsInChainsOfPartitions(t *testing.T) {
	d := newDisk(2)
	entry := func(off, kind, first int) {
		b := d[off:]
		b[446+4], b[446+8], b[446+9], b[446+12] = byte(kind), byte(first), byte(first>>8), 100
		b[510], b[511] = 0x55, 0xaa
	}
	entry(0, 5, 8)
	entry(8*512, 0x83, 1)
	d[8*512+446+16+4] = 5 // the next one is the first one
	if _, err := rootfs.Find(bytes.NewReader(d), int64(len(d))); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("Find() = %v", err)
	}
}
