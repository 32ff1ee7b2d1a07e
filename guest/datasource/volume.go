package datasource

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// tree is a file system. Its root is the entry that root returns.
type tree interface {
	root() entry
	list(dir entry) ([]entry, error) // without "." and ".."
	content(file entry) ([]byte, error)
	same(name, wanted string) bool // whether a name is that of a path
}

// entry is a file or directory of a tree. It is its own fs.FileInfo and fs.DirEntry.
type entry struct {
	name string
	dir  bool
	size int64  // bytes
	at   uint32 // the first cluster of FAT, the first block of ISO 9660
}

func (e entry) Name() string               { return e.name }
func (e entry) Size() int64                { return e.size }
func (e entry) IsDir() bool                { return e.dir }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return nil }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }

// Mode returns the mode that a mounted seed has: it is read only.
func (e entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// volume is a tree as fs.FS. The error for a name that is absent is fs.ErrNotExist.
type volume struct{ tree tree }

// find returns the entry of a path.
func (v volume) find(op, name string) (entry, error) {
	if !fs.ValidPath(name) {
		return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	at := v.tree.root()
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !at.dir {
			return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		all, err := v.tree.list(at)
		if err != nil {
			return entry{}, &fs.PathError{Op: op, Path: name, Err: err}
		}
		k := slices.IndexFunc(all, func(e entry) bool { return v.tree.same(e.name, part) })
		if k < 0 {
			return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		at = all[k]
	}
	return at, nil
}

// ReadDir implements fs.ReadDirFS.
func (v volume) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := v.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !dir.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	all, err := v.tree.list(dir)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	out := make([]fs.DirEntry, len(all))
	for k, e := range all {
		out[k] = e
	}
	return out, nil
}

// Open implements fs.FS. A file is read at once: seeds are small.
func (v volume) Open(name string) (fs.File, error) {
	e, err := v.find("open", name)
	if err != nil {
		return nil, err
	}
	if e.dir {
		all, err := v.ReadDir(name)
		return &openDir{entry: e, rest: all}, err
	}
	if e.size > maxFile {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("it has more than %d bytes", maxFile)}
	}
	content, err := v.tree.content(e)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return openFile{bytes.NewReader(content), e}, nil
}

// openFile is a file of a volume.
type openFile struct {
	*bytes.Reader
	entry entry
}

// Stat implements fs.File.
func (f openFile) Stat() (fs.FileInfo, error) { return f.entry, nil }

// Close implements fs.File.
func (openFile) Close() error { return nil }

// openDir is a directory of a volume.
type openDir struct {
	entry entry
	rest  []fs.DirEntry
}

// Stat implements fs.File.
func (d *openDir) Stat() (fs.FileInfo, error) { return d.entry, nil }

// Read implements fs.File.
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.entry.name, Err: fs.ErrInvalid}
}

// Close implements fs.File.
func (*openDir) Close() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out, nil
}
