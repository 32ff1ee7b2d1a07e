package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// maxLinks is how many symbolic links one path may lead through, as Linux has it
// (path_resolution(7)).
const maxLinks = 40

// errFound ends a listing.
var errFound = errors.New("found")

// resolve returns the file of a path. It follows symbolic links, also the last, and never
// leaves the root.
func resolve(r Reader, name string) (Inode, error) {
	root, err := r.Root()
	if err != nil {
		return Inode{}, err
	}
	rest := strings.Split(path.Clean("/" + name)[1:], "/")
	above := []Inode{root} // the directories from the root to the last that was reached
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		dir := above[len(above)-1]
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			above = above[:max(1, len(above)-1)]
			continue
		case !dir.Mode.IsDir():
			return Inode{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		in, err := child(r, dir, part)
		if err != nil {
			return Inode{}, fmt.Errorf("%s: %w", name, err)
		}
		if in.Mode&fs.ModeSymlink == 0 {
			above = append(above, in)
			continue
		}
		if links++; links > maxLinks {
			return Inode{}, fmt.Errorf("%s: more than %d symbolic links", name, maxLinks)
		}
		to, err := r.Link(in)
		if err != nil {
			return Inode{}, fmt.Errorf("%s: %w", name, err)
		}
		if path.IsAbs(to) {
			above = above[:1]
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return above[len(above)-1], nil
}

// child returns the file that a directory has by a name.
func child(r Reader, dir Inode, name string) (Inode, error) {
	var at Entry
	err := r.List(dir, func(e Entry) error {
		if e.Name != name {
			return nil
		}
		at = e
		return errFound
	})
	if err == nil {
		return Inode{}, fs.ErrNotExist
	}
	if !errors.Is(err, errFound) {
		return Inode{}, err
	}
	return r.Inode(at)
}

// readStart returns the bytes of a regular file, at most limit.
func readStart(r Reader, in Inode, limit int64) ([]byte, error) {
	if !in.Mode.IsRegular() {
		return nil, fmt.Errorf("not a regular file: %v", in.Mode)
	}
	out := make([]byte, min(in.Size, limit))
	err := r.Data(in, func(off int64, b []byte) error {
		if off >= int64(len(out)) {
			return errFound
		}
		copy(out[off:], b)
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return out, nil
}
