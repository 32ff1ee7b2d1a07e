package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/agent/cloudinit"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/control"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// This file shows the operating system of a server that has booted from a disk: the
// files that an image brings, configured by the data source on the disks. They follow
// from the bytes of the disks alone, so that they change, move and vanish with them.

// diskFiles returns the files of a system on a disk before its first boot.
func diskFiles() cloudinit.Root {
	r := cloudinit.Root{}
	for name, text := range map[string]string{
		"etc/os-release": "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n",
		"etc/hostname":   "localhost\n",
		"etc/hosts":      "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
		"etc/passwd":     "root:x:0:0:root:/root:/bin/bash\n",
		"etc/group":      "root:x:0:\nadm:x:4:\nsudo:x:27:\n",
	} {
		r[name] = cloudinit.File{Content: []byte(text), Mode: 0o644, Owner: "root", Group: "root"}
	}
	r["etc/shadow"] = cloudinit.File{Content: []byte("root:!:19000:0:99999:7:::\n"), Mode: 0o640, Owner: "root", Group: "shadow"}
	return r
}

// configured is a system after its first boot.
type configured struct {
	root   cloudinit.Root
	result cloudinit.Result
	source string // name of the data source; "" for none
	device string // kernel name of the volume
	err    error  // the data source cannot be read
}

// configure reads the data source on the disks of a running system, and applies it.
func configure(s sys.System) configured {
	c := configured{root: diskFiles()}
	i, device, err := findSource(s)
	if err != nil {
		if !errors.Is(err, cloudinit.ErrNoSource) {
			c.err = err
		}
		return c
	}
	c.source, c.device = i.Source, device
	c.result = cloudinit.Configure(i, c.root)
	return c
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
func readSource(s sys.System, name string) (_ cloudinit.Instance, err error) {
	b, err := s.OpenBlock(name)
	if err != nil {
		return cloudinit.Instance{}, cloudinit.ErrNoSource // a CD drive, or a member of an array
	}
	defer b.Close()
	defer func() {
		if p := recover(); p != nil { // go-diskfs, of a damaged volume
			err = fmt.Errorf("/dev/%s: damaged file system: %v", name, p)
		}
	}()
	read := volumeKind(b)
	if read == nil {
		return cloudinit.Instance{}, cloudinit.ErrNoSource
	}
	volume, err := read(file.New(volumeFile{io.NewSectionReader(b, 0, b.Size())}, true), b.Size())
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

// firstBoot shows on the console of a server that has booted from a disk what its system
// reads from its data source.
func (a *agents) firstBoot(h *lab.Host, os machine.OS) {
	defer a.clock.Enter()()
	c := configure(systemOf(h, os.Boot, ""))
	var lines []string
	switch {
	case c.err != nil:
		lines = []string{"cloud-init: no data source: " + c.err.Error()}
	case c.source != "":
		lines = c.result.Lines(c.source, c.device)
	}
	for _, line := range lines {
		_, err := fmt.Fprintln(consoleWriter{h, os.Boot}, line)
		if err != nil {
			a.log.Error("console not written", "machine", h.Name(), "error", err)
		}
	}
}

// files lists a directory of the system that a server runs, or returns a file.
func (w *World) files(_ context.Context, h *lab.Host, name string) (control.Files, error) {
	os := h.Machine().OS
	switch {
	case os == nil:
		return control.Files{}, fmt.Errorf("%w: %s runs no operating system: switch it on, or give it an image", machine.ErrPower, h.Name())
	case os.Name != DiskOS:
		return control.Files{}, fmt.Errorf("%w: %s runs the system %q from its boot medium: only the files of a system on a disk are shown", machine.ErrPower, h.Name(), os.Name)
	}
	c := configure(systemOf(h, os.Boot, ""))
	if c.err != nil {
		return control.Files{}, c.err
	}
	if f, ok := c.root.Get(name); ok {
		return control.Files{Path: name, File: true, Content: f.Content}, nil
	}
	entries, ok := c.root.List(name)
	if !ok {
		return control.Files{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	out := control.Files{Path: name, Entries: []control.FileEntry{}}
	for _, e := range entries {
		x := control.FileEntry{Name: e.Name, Dir: e.Dir}
		if !e.Dir {
			x.Mode, x.Owner, x.Group, x.Size = e.Mode.String(), e.Owner, e.Group, len(e.Content)
		}
		out.Entries = append(out.Entries, x)
	}
	return out, nil
}
