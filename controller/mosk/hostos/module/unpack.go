package module

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Unpack writes the archive's files to a directory, which must be empty or absent. Files lose
// their set-ID bits and owners. Read has refused unsafe entries already; an os.Root is the
// second barrier that keeps paths in the directory.
func (a *Archive) Unpack(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
		return fmt.Errorf("%s must be an empty directory: %w", dir, errors.Join(err, fs.ErrExist))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, e := range a.entries {
		if e.kind == tar.TypeDir {
			err = errors.Join(err, root.MkdirAll(e.name, 0o755))
		}
	}
	if err != nil {
		return err
	}
	err = a.each(func(h *tar.Header, r io.Reader) error {
		name, err := clean(h.Name)
		if err != nil || h.Typeflag != tar.TypeReg {
			return err
		}
		return writeFile(root, name, fs.FileMode(h.Mode), r)
	})
	if err != nil {
		return err
	}
	// Links last: no file is ever written through one.
	for _, kind := range []byte{tar.TypeLink, tar.TypeSymlink} {
		for _, e := range a.entries {
			if e.kind != kind {
				continue
			}
			if err := link(root, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFile writes a file that only its owner may change.
func writeFile(root *os.Root, name string, mode fs.FileMode, r io.Reader) (err error) {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode&0o755|0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, r)
	return err
}

func link(root *os.Root, e entry) error {
	if err := root.MkdirAll(path.Dir(e.name), 0o755); err != nil {
		return err
	}
	if e.kind == tar.TypeLink {
		return root.Link(e.link, e.name)
	}
	return root.Symlink(e.link, e.name)
}

// Files returns the names of the archive's files, sorted.
func (a *Archive) Files() []string {
	var out []string
	for _, e := range a.entries {
		if e.kind == tar.TypeReg {
			out = append(out, e.name)
		}
	}
	slices.Sort(out)
	return out
}

// File is a file, directory or symbolic link of an archive.
type File struct {
	Name    string      // slash-separated, relative, clean
	Mode    fs.FileMode // type and permission bits
	Link    string      // target of a link, relative to its directory
	Content io.Reader   // content of a file, until the call of Each returns
}

// Each calls f for the archive's directories, files and links, in an order in which no file is
// written through a link. Modes are those that Unpack gives; a hard link becomes a symbolic
// one. It serves systems whose files this process does not see, such as those of emulated
// servers.
func (a *Archive) Each(f func(File) error) error {
	for _, e := range a.entries {
		if e.kind == tar.TypeDir {
			if err := f(File{Name: e.name, Mode: fs.ModeDir | 0o755}); err != nil {
				return err
			}
		}
	}
	err := a.each(func(h *tar.Header, r io.Reader) error {
		name, err := clean(h.Name)
		if err != nil || h.Typeflag != tar.TypeReg {
			return err
		}
		return f(File{Name: name, Mode: fs.FileMode(h.Mode)&0o755 | 0o600, Content: r})
	})
	if err != nil {
		return err
	}
	for _, e := range a.entries {
		target := e.link
		switch e.kind {
		case tar.TypeLink: // the target is relative to the root of the archive
			target = strings.Repeat("../", strings.Count(e.name, "/")) + target
		case tar.TypeSymlink:
		default:
			continue
		}
		if err := f(File{Name: e.name, Mode: fs.ModeSymlink | 0o777, Link: target}); err != nil {
			return err
		}
	}
	return nil
}
