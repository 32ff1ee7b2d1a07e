package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// This file reads the data source of a server that boots from a disk, as cloud-init does,
// and applies it to the files of its operating system.

// base is what lies below the layer of a system that was installed, shared by all servers with the
// same os-release.
type base struct {
	tree sandbox.Tree
	root cloudinit.Root // its files and directories, as cloud-init sees them
}

var bases = struct {
	sync.Mutex
	by map[string]*base
}{by: map[string]*base{}}

// baseFor returns the base of systems with a text of os-release.
func baseFor(osRelease string) *base {
	bases.Lock()
	defer bases.Unlock()
	b := bases.by[osRelease]
	if b == nil {
		t := debian.Base(osRelease)
		b = &base{t, rootOf(t)}
		bases.by[osRelease] = b
	}
	return b
}

// rootOf returns the files and directories of a tree, with the names of their owners. Links are left
// out: cloud-init writes to where they lead.
func rootOf(t sandbox.Tree) cloudinit.Root {
	names := func(file string) map[int]string {
		out := map[int]string{}
		for name, id := range accountLines(string(t[file].Content)) {
			out[id] = name
		}
		return out
	}
	users, groups := names("etc/passwd"), names("etc/group")
	out := cloudinit.Root{}
	for name, n := range t {
		if n.Mode.IsDir() || n.Mode.IsRegular() {
			out[name] = cloudinit.File{Content: n.Content, Mode: n.Mode & (fs.ModeDir | fs.ModePerm), Owner: users[n.UID], Group: groups[n.GID]}
		}
	}
	return out
}

// treeOf returns the files of a root that differ from others, with the IDs of their
// owners.
func treeOf(root, others cloudinit.Root) sandbox.Tree {
	users, groups := idsOf(root, "etc/passwd"), idsOf(root, "etc/group")
	out := sandbox.Tree{}
	for name, f := range root {
		if old, ok := others[name]; ok && string(old.Content) == string(f.Content) && old.Mode == f.Mode && old.Owner == f.Owner && old.Group == f.Group {
			continue
		}
		out[name] = sandbox.Node{Mode: f.Mode & (fs.ModeDir | fs.ModePerm), UID: users[f.Owner], GID: groups[f.Group], Content: f.Content}
	}
	return out
}

// idsOf returns the IDs of the names in /etc/passwd or /etc/group.
func idsOf(root cloudinit.Root, file string) map[string]int {
	f, _ := root.Get(file)
	out := map[string]int{}
	for name, id := range accountLines(string(f.Content)) {
		out[name] = id
	}
	return out
}

// accountLines yields the names and IDs of a file such as /etc/passwd (passwd(5)).
func accountLines(text string) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 3 {
			continue
		}
		if id, err := strconv.Atoi(f[2]); err == nil {
			out[f[0]] = id
		}
	}
	return out
}

// findSource reads the data source of the first block device that has one, as cloud-init
// looks for it: by the label of the volume.
func findSource(s sys.System) (cloudinit.Instance, string, error) {
	devices, err := fs.ReadDir(s.FS(), "sys/class/block")
	if err != nil {
		return cloudinit.Instance{}, "", fmt.Errorf("block devices: %w", err)
	}
	for _, d := range devices {
		i, err := readSource(s, d.Name())
		if !errors.Is(err, cloudinit.ErrNoSource) {
			return i, d.Name(), err
		}
	}
	return cloudinit.Instance{}, "", cloudinit.ErrNoSource
}

// readSource reads the data source of one block device.
func readSource(s sys.System, name string) (cloudinit.Instance, error) {
	b, err := s.OpenBlock(name)
	if err != nil {
		return cloudinit.Instance{}, cloudinit.ErrNoSource // a CD drive, or a member of an array
	}
	defer b.Close()
	return readVolume(b, b.Size(), name)
}

// mediumSource reads the data source of the medium in the virtual CD drive of a server.
func mediumSource(h *rack.Host) (cloudinit.Instance, error) {
	for _, slot := range h.BMC().Slots {
		if media, ok := h.Media(slot.ID); ok {
			defer media.Close()
			return readVolume(media.File, media.Size, "sr0")
		}
	}
	return cloudinit.Instance{}, cloudinit.ErrNoSource
}

// readVolume reads the data source of a volume on a device.
func readVolume(r io.ReaderAt, size int64, name string) (_ cloudinit.Instance, err error) {
	defer func() {
		if p := recover(); p != nil { // go-diskfs, of a damaged volume
			err = fmt.Errorf("/dev/%s: damaged file system: %v", name, p)
		}
	}()
	read := volumeKind(r)
	if read == nil {
		return cloudinit.Instance{}, cloudinit.ErrNoSource
	}
	volume, err := read(file.New(volumeFile{io.NewSectionReader(r, 0, size)}, true), size)
	if err != nil {
		return cloudinit.Instance{}, fmt.Errorf("/dev/%s: %w", name, err)
	}
	i, err := cloudinit.Read(volume)
	if err != nil && !errors.Is(err, cloudinit.ErrNoSource) {
		err = fmt.Errorf("/dev/%s: %w", name, err)
	}
	return i, err
}

// volumeReader reads the file system of a volume.
type volumeReader func(b backend.Storage, size int64) (fs.FS, error)

// volumeKind returns the reader of a volume that has the label of a data source; nil for
// any other.
func volumeKind(r io.ReaderAt) volumeReader {
	text := func(at int64, n int) string {
		p := make([]byte, n)
		if k, _ := r.ReadAt(p, at); k < n {
			return ""
		}
		return strings.ToLower(strings.TrimRight(string(p), " \x00"))
	}
	const isoHead = 16 * 2048 // the primary volume descriptor (ECMA-119 §8.4)
	switch {
	case text(isoHead+1, 5) == "cd001" && cloudinit.Labels[text(isoHead+40, 32)] != "":
		return func(b backend.Storage, size int64) (fs.FS, error) { return iso9660.Read(b, size, 0, 0) }
	case text(82, 5) == "fat32" && cloudinit.Labels[text(71, 11)] != "":
		return func(b backend.Storage, size int64) (fs.FS, error) { return fat32.Read(b, size, 0, 512) }
	}
	return nil
}

// volumeFile is a volume as fs.File, which go-diskfs needs.
type volumeFile struct{ *io.SectionReader }

// Stat implements fs.File.
func (volumeFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Close implements fs.File.
func (volumeFile) Close() error { return nil }
