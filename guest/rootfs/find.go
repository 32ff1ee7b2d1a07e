package rootfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
)

// Files that make a file system a root, of which it has one of each kind. The links of
// /sbin and /lib to /usr are followed.
var (
	releases = []string{"etc/os-release", "usr/lib/os-release"} // os-release(5)
	inits    = []string{"sbin/init", "usr/sbin/init", "lib/systemd/systemd", "usr/lib/systemd/systemd", "bin/sh"}
	programs = []string{"bin/sh", "sbin/init", "usr/lib/systemd/systemd"} // that tell the architecture
)

// maxRelease is how many bytes of an os-release are read; usual are 400.
const maxRelease = 64 << 10

// Find returns the root file system of an installation of Linux on a disk of so many bytes:
// in a partition of a GPT or MBR, or on the whole disk. Where several fit, it takes the one
// whose partition has the type of a root, else the first. Its error is a *NoRootError, or
// one of the disk.
func Find(disk io.ReaderAt, size int64) (*FileSystem, error) {
	regions, err := partitions(disk, size)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(regions, func(a, b region) int { return b.rank - a.rank })
	refused := &NoRootError{}
	for _, p := range append(regions, region{size: size}) {
		part := io.NewSectionReader(disk, p.off, p.size)
		kind, err := kindOf(part, p.size)
		if err != nil {
			return nil, err
		}
		if p.number == 0 && (kind == "" || kind == "vfat" && len(regions) > 0) {
			break // what a boot loader left in front of partitions
		}
		found, reason := open(kind, part, p.size)
		if found != nil {
			found.Partition = p.number
			return found, nil
		}
		if found := (Partition{Number: p.number, Type: kind, Reason: reason}); kind != "ext" {
			refused.Found = append(refused.Found, found)
		} else {
			found.Type = extType(part)
			refused.Found = append(refused.Found, found)
		}
	}
	slices.SortFunc(refused.Found, func(a, b Partition) int { return a.Number - b.Number })
	return nil, refused
}

// open opens a file system of a kind that is read, and returns nil and a reason if it is
// none, or has no root.
func open(kind string, r io.ReaderAt, size int64) (*FileSystem, string) {
	var found *FileSystem
	var err error
	switch kind {
	case "":
		return nil, ""
	case "ext":
		found, err = openExt(r, size)
	case "squashfs":
		found, err = openSquash(r, size)
	case "vfat", "swap":
		return nil, "which is not a root"
	default:
		return nil, "which is not read"
	}
	if err != nil {
		return nil, err.Error()
	}
	return found.asRoot()
}

// asRoot returns the file system if it has what a root has, else a reason.
func (f *FileSystem) asRoot() (*FileSystem, string) {
	release, err := firstOf(f.Reader, releases)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "which has no /etc/os-release"
	}
	if err != nil {
		return nil, err.Error()
	}
	if _, err := firstOf(f.Reader, inits); errors.Is(err, fs.ErrNotExist) {
		return nil, "which has /etc/os-release, but neither /sbin/init nor /bin/sh"
	} else if err != nil {
		return nil, err.Error()
	}
	text, err := readStart(f.Reader, release, maxRelease)
	if err != nil {
		return nil, "/etc/os-release: " + err.Error()
	}
	f.OSRelease = string(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	for _, name := range programs {
		if f.Architecture = architecture(f.Reader, name); f.Architecture != "" {
			break
		}
	}
	return f, ""
}

// firstOf returns the first of several paths that is a regular file.
func firstOf(r Reader, names []string) (Inode, error) {
	for _, name := range names {
		in, err := resolve(r, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return Inode{}, err
		case in.Mode.IsRegular():
			return in, nil
		}
	}
	return Inode{}, fs.ErrNotExist
}
