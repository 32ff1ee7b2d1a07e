package rootfs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/rootfs"
)

func TestExt4IsReadWithAllOptions(t *testing.T) {
	dir := makeTree(t)
	for _, tt := range []struct {
		name, kind, size string
		options          []string
	}{
		{"usual, with blocks of 1024 bytes", "ext4", "64M", nil},
		{"blocks of 4096 bytes", "ext4", "64M", []string{"-b", "4096"}},
		{"blocks of 2048 bytes", "ext4", "64M", []string{"-b", "2048", "-I", "512"}},
		{"blocks of 64 KiB", "ext4", "128M", []string{"-b", "65536"}},
		{"without extents", "ext4", "64M", []string{"-b", "4096", "-O", "^extents,^64bit"}},
		{"without extents, blocks of 1024 bytes", "ext4", "64M", []string{"-b", "1024", "-O", "^extents,^64bit"}},
		{"data in inodes", "ext4", "64M", []string{"-b", "4096", "-O", "inline_data"}},
		{"data in inodes, blocks of 1024 bytes", "ext4", "64M", []string{"-b", "1024", "-I", "1024", "-O", "inline_data"}},
		{"without 64bit and checksums", "ext4", "64M", []string{"-O", "^64bit,^metadata_csum"}},
		{"meta_bg", "ext4", "64M", []string{"-b", "1024", "-O", "meta_bg,^resize_inode"}},
		{"meta_bg, many groups", "ext4", "600M", []string{"-b", "1024", "-g", "2048", "-N", "2400", "-O", "meta_bg,^resize_inode,^flex_bg"}},
		{"without flex_bg and sparse_super", "ext4", "64M", []string{"-O", "^flex_bg,^sparse_super,^resize_inode"}},
		{"sparse_super2", "ext4", "600M", []string{"-b", "1024", "-O", "sparse_super2,^resize_inode,meta_bg"}},
		{"bigalloc", "ext4", "64M", []string{"-O", "bigalloc"}},
		{"large attributes", "ext4", "64M", []string{"-O", "ea_inode"}},
		{"small inodes", "ext4", "64M", []string{"-I", "128"}},
		{"ext3", "ext3", "64M", []string{"-t", "ext3"}},
		{"ext2", "ext2", "64M", []string{"-t", "ext2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := find(t, makeExt(t, dir, tt.size, tt.options...))
			if found.Type != tt.kind || found.Label != "root" || found.UUID != "6f1c2d5e-9f53-4c5a-8d0e-0c9c5f0f8b11" ||
				found.Partition != 0 || found.NeedsRecovery || found.OSRelease != osRelease || found.Architecture != "arm64" {
				t.Errorf("Find() = %+v", found)
			}
			compare(t, found.Reader, dir)
		})
	}
}

// The parts of a file are read up to a MiB at once, and holes are not.
func TestExt4DataHasNoHoles(t *testing.T) {
	r := find(t, makeExt(t, makeTree(t), "64M")).Reader
	if _, data := content(t, r, at(t, r, "var/sparse")); data != 700*4096+3 {
		t.Errorf("var/sparse has %d bytes of data, want %d", data, 700*4096+3)
	}
	parts := 0
	if err := r.Data(at(t, r, "var/large"), func(int64, []byte) error { parts++; return nil }); err != nil || parts > 5 {
		t.Errorf("var/large of 3.2 MB is read in %d parts: %v", parts, err)
	}
}

// at returns a file by its name.
func at(t testing.TB, r rootfs.Reader, name string) rootfs.Inode {
	t.Helper()
	var out rootfs.Inode
	root, err := r.Root()
	if err != nil {
		t.Fatal(err)
	}
	walk(t, r, root, "", func(at string, in rootfs.Inode) {
		if at == name {
			out = in
		}
	})
	if out.Number == 0 {
		t.Fatalf("there is no %s", name)
	}
	return out
}

func TestExt4AttributesOwnersAndTimes(t *testing.T) {
	for _, options := range [][]string{nil, {"-O", "inline_data"}, {"-O", "ea_inode"}} {
		image := makeExt(t, makeTree(t), "64M", options...)
		value := filepath.Join(t.TempDir(), "value")
		long := strings.Repeat("v", 800) // which is in a block of its own
		if err := os.WriteFile(value, []byte(long), 0o600); err != nil {
			t.Fatal(err)
		}
		edit(t, image, "ea_set /etc/tiny security.capability cap\nea_set /etc/tiny user.overlay.whiteout y\nea_set -f "+value+" /etc/tiny user.long\n"+
			"ea_set /etc/small user.name short\n"+
			"sif /etc/tiny uid 70000\nsif /etc/tiny gid 7\nsif /etc/tiny mtime @5\nsif /etc/tiny mtime_extra 493827157\n"+
			"cd /etc\nmknod pipe p\nmknod null c 1 3\n")
		r := find(t, image).Reader
		tiny := at(t, r, "etc/tiny")
		attributes, err := r.Attributes(tiny)
		if err != nil || string(attributes["security.capability"]) != "cap" || string(attributes["user.overlay.whiteout"]) != "y" ||
			string(attributes["user.long"]) != long || len(attributes) != 3 {
			t.Errorf("%q: Attributes() = %q, %v", options, attributes, err)
		}
		if tiny.UID != 70000 || tiny.GID != 7 || !tiny.Modified.Equal(time.Unix(1<<32+5, 123456789)) {
			t.Errorf("%q: etc/tiny = %+v", options, tiny)
		}
		if b, _ := content(t, r, at(t, r, "etc/small")); string(b) != strings.Repeat("s", 100) {
			t.Errorf("%q: etc/small has %q", options, b)
		}
		if m := at(t, r, "etc/pipe").Mode.Type(); m != os.ModeNamedPipe {
			t.Errorf("%q: etc/pipe is %v", options, m)
		}
		if m := at(t, r, "etc/null").Mode.Type(); m != os.ModeDevice|os.ModeCharDevice {
			t.Errorf("%q: etc/null is %v", options, m)
		}
	}
}

// change writes bytes into the superblock of an image.
func change(t testing.TB, image string, off int64, set uint32) {
	t.Helper()
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [4]byte
	if _, err := f.ReadAt(b[:], 1024+off); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b[:], binary.LittleEndian.Uint32(b[:])|set)
	if _, err := f.WriteAt(b[:], 1024+off); err != nil {
		t.Fatal(err)
	}
}

func TestExt4RefusesWhatItDoesNotRead(t *testing.T) {
	dir := makeTree(t)
	for _, tt := range []struct {
		name string
		off  int64
		bits uint32
		want string
	}{
		{"an unknown feature", 96, 1 << 24, "incompatible feature 0x1000000 (not known)"},
		{"dirdata", 96, 0x1000, "incompatible feature 0x1000 (dirdata)"},
		{"more blocks than the disk", 4, 1 << 30, "and its partition"},
		{"huge blocks", 24, 1 << 20, "blocks of 2^"},
		{"too many inodes", 0, 1 << 31, "inodes in"},
	} {
		image := makeExt(t, dir, "64M")
		change(t, image, tt.off, tt.bits)
		f, size := openImage(t, image)
		_, err := rootfs.Find(f, size)
		var none *rootfs.NoRootError
		if !errors.As(err, &none) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Find() = %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestExt4TellsThatItsJournalIsNotReplayed(t *testing.T) {
	image := makeExt(t, makeTree(t), "64M")
	change(t, image, 96, 0x4)
	if found := find(t, image); !found.NeedsRecovery {
		t.Errorf("Find() = %+v", found)
	}
}

func TestExt4NamesEncryptedInodes(t *testing.T) {
	for _, tt := range []struct {
		flags, want string
	}{{"0x80800", "an encrypted inode"}, {"0x40080000", "folded case"}} {
		image := makeExt(t, makeTree(t), "64M")
		edit(t, image, "sif /usr/share/many flags "+tt.flags+"\n")
		r := find(t, image).Reader
		root, err := r.Root()
		if err != nil {
			t.Fatal(err)
		}
		usr := enter(t, r, enter(t, r, root, "usr"), "share")
		var refused *rootfs.UnsupportedError
		err = r.List(enter(t, r, usr, "many"), func(rootfs.Entry) error { return nil })
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("List() = %v, want %s", err, tt.want)
		}
	}
}

// enter returns the file that a directory has by a name.
func enter(t testing.TB, r rootfs.Reader, dir rootfs.Inode, name string) rootfs.Inode {
	t.Helper()
	var out rootfs.Inode
	err := r.List(dir, func(e rootfs.Entry) (err error) {
		if e.Name == name {
			out, err = r.Inode(e)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Blocks that are allocated and not written read as zeros, whatever the disk has there.
func TestExt4BlocksThatAreNotWrittenAreHoles(t *testing.T) {
	image := makeExt(t, makeTree(t), "64M")
	b := read(t, image)
	edit(t, image, "fallocate /etc/empty 0 3\nsif /etc/empty size 4096\n")
	now := read(t, image)
	for off := 0; off < len(now); off += 1024 { // all free blocks have something
		if bytes.Count(now[off:off+1024], []byte{0}) == 1024 && off > 16<<20 {
			copy(now[off:off+1024], "something")
		}
	}
	if bytes.Equal(b, now) {
		t.Fatal("nothing changed")
	}
	if err := os.WriteFile(image, now, 0o600); err != nil {
		t.Fatal(err)
	}
	r := find(t, image).Reader
	empty := at(t, r, "etc/empty")
	if got, data := content(t, r, empty); len(got) != 4096 || data != 0 {
		t.Errorf("etc/empty has %d bytes, of which %d are data", len(got), data)
	}
}

// A map may name the same block a million times. It is read until there cannot be more.
func TestExt4EndsInMapsThatNameTheirBlocksAgain(t *testing.T) {
	image := makeExt(t, makeTree(t), "64M", "-t", "ext2", "-b", "4096")
	edit(t, image, "sif /etc/empty block[TIND] 16001\nsif /etc/empty size 4000000000000\n")
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, block := range []uint32{16001, 16002} { // each names the next one; the last has zeros
		if _, err := f.WriteAt(bytes.Repeat(binary.LittleEndian.AppendUint32(nil, block+1), 1024), int64(block)*4096); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteAt(make([]byte, 4096), 16003*4096); err != nil {
		t.Fatal(err)
	}
	r := find(t, image).Reader
	var corrupt *rootfs.CorruptError
	err = r.Data(at(t, r, "etc/empty"), func(int64, []byte) error { return nil })
	if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "more blocks than it has") {
		t.Errorf("Data() = %v", err)
	}
}
