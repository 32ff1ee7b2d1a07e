package module

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Limits of an archive. A module is a playbook with templates; the largest that vendors
// publish have some hundred KiB.
const (
	MaxArchive  = 64 << 20  // bytes, compressed
	MaxUnpacked = 256 << 20 // bytes of the tar file
	MaxEntries  = 10000
	maxPath     = 1024 // bytes of a path; Linux takes 4096 with the directory that it is unpacked in
)

// Archive is a module's archive: a tar file compressed by gzip, with the module's files in
// its root.
type Archive struct {
	data    []byte
	entries []entry
	byName  map[string]int // index in entries
}

// entry is a file, directory or link of an archive.
type entry struct {
	name string // slash-separated, relative, clean
	kind byte   // tar.TypeReg, TypeDir, TypeSymlink or TypeLink
	link string // target of a link: of a hard link the name of an entry
	size int64
	mode fs.FileMode
}

// Read reads an archive of at most MaxArchive bytes and checks all of it. It refuses entries
// that could be written outside of the directory that the archive is unpacked in, device
// files, and archives that exceed the limits. It writes nothing.
func Read(r io.Reader) (*Archive, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxArchive+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxArchive {
		return nil, fmt.Errorf("archive has more than %d MiB", MaxArchive>>20)
	}
	a := &Archive{data: data, byName: map[string]int{}}
	err = a.each(func(h *tar.Header, _ io.Reader) error { return a.add(h) })
	if err != nil {
		return nil, err
	}
	for _, e := range a.entries {
		if err := a.check(e); err != nil {
			return nil, fmt.Errorf("archive: %q: %w", e.name, err)
		}
	}
	return a, nil
}

// each calls f for each entry of the tar file, and reads it to its end.
func (a *Archive) each(f func(*tar.Header, io.Reader) error) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(a.data))
	if err != nil {
		return fmt.Errorf("archive is not compressed by gzip: %w", err)
	}
	limited := &limitedReader{r: unzipped, left: MaxUnpacked}
	files := tar.NewReader(limited)
	for n := 0; ; n++ {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("archive is not a tar file: %w", err)
		}
		if n >= MaxEntries {
			return fmt.Errorf("archive has more than %d entries", MaxEntries)
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // git archive writes its commit there
			continue
		}
		if err := f(h, files); err != nil {
			return err
		}
	}
	// The checksum of gzip is after the last block.
	if _, err := io.Copy(io.Discard, limited); err != nil {
		return fmt.Errorf("archive is damaged: %w", err)
	}
	return nil
}

var errTooLarge = fmt.Errorf("it has more than %d MiB unpacked", MaxUnpacked>>20)

// limitedReader fails where io.LimitedReader ends.
type limitedReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// kinds are the types of entries that an archive may have.
var kinds = []byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink}

// add adds the entry of a header.
func (a *Archive) add(h *tar.Header) error {
	name, err := clean(h.Name)
	if err == nil && !slices.Contains(kinds, h.Typeflag) {
		err = errors.New("is a device file or of another type: only files, directories and links are allowed")
	}
	if err == nil && h.Size > MaxUnpacked {
		err = errTooLarge
	}
	if err != nil {
		return fmt.Errorf("archive: %q: %w", h.Name, err)
	}
	if name == "." { // the root, as tar writes it
		if h.Typeflag == tar.TypeDir {
			return nil
		}
		return fmt.Errorf("archive: %q: the root is not a directory", h.Name)
	}
	e := entry{name: name, kind: h.Typeflag, size: h.Size, mode: fs.FileMode(h.Mode) & 0o777}
	switch h.Typeflag {
	case tar.TypeSymlink:
		e.link = h.Linkname
	case tar.TypeLink:
		if e.link, err = clean(h.Linkname); err != nil {
			return fmt.Errorf("archive: %q: link to %q: %w", h.Name, h.Linkname, err)
		}
		if i, known := a.byName[e.link]; !known || a.entries[i].kind != tar.TypeReg {
			return fmt.Errorf("archive: %q: link to %q, which is no file before it", h.Name, h.Linkname)
		}
	}
	if i, twice := a.byName[name]; twice {
		if e.kind == tar.TypeDir && a.entries[i].kind == tar.TypeDir {
			return nil
		}
		return fmt.Errorf("archive: %q: is there twice", h.Name)
	}
	a.byName[name] = len(a.entries)
	a.entries = append(a.entries, e)
	return nil
}

// clean returns the path of an entry without "./" and a slash at its end.
func clean(name string) (string, error) {
	switch {
	case name == "" || len(name) > maxPath || strings.ContainsAny(name, "\x00\\"):
		return "", fmt.Errorf("path is empty, has more than %d bytes or a backslash", maxPath)
	case path.IsAbs(name):
		return "", errors.New("path is absolute: it must be relative to the root of the archive")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", errors.New("path has ..: it must be in the root of the archive")
	}
	return path.Clean(name), nil
}

// check refuses an entry below something that is no directory, and a symbolic link that
// leaves the root.
func (a *Archive) check(e entry) error {
	for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
		if i, known := a.byName[dir]; known && a.entries[i].kind != tar.TypeDir {
			return fmt.Errorf("is below %q, which is no directory", dir)
		}
	}
	if e.kind != tar.TypeSymlink {
		return nil
	}
	if e.link == "" || path.IsAbs(e.link) || strings.ContainsRune(e.link, 0) {
		return fmt.Errorf("link to %q: the target must be relative", e.link)
	}
	// A ".." after a link leads to another place than it reads.
	target, steps := path.Dir(e.name), strings.Split(e.link, "/")
	for i, step := range steps {
		target = path.Join(target, step)
		if target == ".." || strings.HasPrefix(target, "../") {
			return fmt.Errorf("link to %q leaves the root of the archive", e.link)
		}
		if j, known := a.byName[target]; known && a.entries[j].kind == tar.TypeSymlink && i < len(steps)-1 {
			return fmt.Errorf("link to %q leads through the link %q", e.link, target)
		}
	}
	return nil
}

// ReadFile returns the content of a file of at most limit bytes.
func (a *Archive) ReadFile(name string, limit int64) ([]byte, error) {
	i, known := a.byName[name]
	switch {
	case !known:
		return nil, fmt.Errorf("archive has no file %s", name)
	case a.entries[i].kind != tar.TypeReg:
		return nil, fmt.Errorf("archive: %s is not a file", name)
	case a.entries[i].size > limit:
		return nil, fmt.Errorf("archive: %s has more than %d KiB", name, limit>>10)
	}
	var out []byte
	err := a.each(func(h *tar.Header, r io.Reader) error {
		if at, err := clean(h.Name); err != nil || at != name {
			return err
		}
		var err error
		out, err = io.ReadAll(r)
		return err
	})
	return out, err
}
