// Package statedir tells the files that a lab makes in its state directory from all others
// there, and removes those of the lab alone. It knows the names of files, and not what they
// hold.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Owned are patterns of the names that a lab makes. A pattern is that of path.Match, for
// names relative to the state directory, with slashes. It matches files, links and sockets.
// One that ends with a slash matches a directory, and nothing in it. One that ends with /...
// matches a directory with everything below it. The directories on the way to what a pattern
// matches are the lab's, too.
type Owned []string

// Below returns the patterns for a lab whose state directory is below another one.
func (o Owned) Below(dir string) Owned {
	var out Owned
	for _, p := range o {
		out = append(out, dir+"/"+p)
	}
	return out
}

// Leftovers is what Remove has not removed.
type Leftovers struct {
	// Foreign are the paths of files and directories that the lab has not made. A directory
	// stands for everything below it.
	Foreign []string
	// Targets are the directories to which links led that stood in the place of directories of
	// the lab.
	Targets []string
	// Dir is why the state directory itself is still there: ErrLink, the error of its removal,
	// or nil, when it is gone or Foreign is in it.
	Dir error
}

// ErrLink means that the state directory is a symbolic link.
var ErrLink = errors.New("it is a link")

// Foreign returns the names in a directory, relative to it, that the lab has not made. A
// directory that has none of the lab's files stands for everything below it. One that does
// not exist has none.
func (o Owned) Foreign(dir string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := walk{owned: o, root: root}
	err = w.directory(".", nil)
	return w.foreign, err
}

// Remove removes what the lab has made in a state directory, and the directory itself when it
// is empty then. It follows no symbolic links: it removes those in place of the lab's files
// and directories, and leaves where they lead. A state directory that is a link stays, and the
// directory that it leads to: a user has made both. The names in last are removed when
// everything else is: as long as they are there, the directory is known as a lab's, and
// Remove can be tried again.
func (o Owned) Remove(dir string, last ...string) (l Leftovers, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("state directory: %w", err)
		}
	}()
	st, err := os.Lstat(dir)
	if err != nil {
		return l, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return l, err
	}
	defer root.Close()
	w := walk{owned: o, root: root, remove: true}
	if err := w.directory(".", last); err != nil {
		return l, err
	}
	for _, name := range last {
		if err := w.entry(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l, err
		}
	}
	for _, name := range w.foreign {
		l.Foreign = append(l.Foreign, filepath.Join(dir, filepath.FromSlash(name)))
	}
	for _, to := range w.targets {
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		l.Targets = append(l.Targets, to)
	}
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		l.Dir = ErrLink
	case len(w.foreign) == 0:
		l.Dir = os.Remove(dir) // a mounted file system, or a directory of others, refuses that
	}
	return l, nil
}

// walk looks at a state directory. It opens nothing outside of root.
type walk struct {
	owned  Owned
	root   *os.Root
	remove bool

	foreign []string // names, with slashes
	targets []string // targets of links, relative to root unless they are absolute
}

// directory looks at the entries of a directory, but for those in skip.
func (w *walk) directory(name string, skip []string) error {
	entries, err := fs.ReadDir(w.root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if at := path.Join(name, e.Name()); !slices.Contains(skip, at) {
			if err := w.entry(at); err != nil && !errors.Is(err, fs.ErrNotExist) { // the process of a lab that ends removes files, too
				return err
			}
		}
	}
	return nil
}

// entry looks at a file or a directory, and removes it if it is the lab's.
func (w *walk) entry(name string) error {
	st, err := w.root.Lstat(name)
	if err != nil {
		return err
	}
	is := w.owned.of(name, st.IsDir())
	switch link := st.Mode()&fs.ModeSymlink != 0; {
	case link && is != foreign:
		return w.link(name, is)
	case st.IsDir() && is == parent:
		return w.parent(name)
	case st.IsDir() && is == tree:
		if w.remove {
			return w.root.RemoveAll(name)
		}
	case !st.IsDir() && (is == file || is == tree):
		if w.remove {
			return w.root.Remove(name)
		}
	default:
		w.foreign = append(w.foreign, name)
	}
	return nil
}

// parent looks at a directory that the lab shares with others.
func (w *walk) parent(name string) error {
	before := len(w.foreign)
	if err := w.directory(name, nil); err != nil {
		return err
	}
	if w.remove && len(w.foreign) == before {
		return w.root.Remove(name)
	}
	return nil
}

// link removes a link in place of a file or a directory of the lab.
func (w *walk) link(name string, is kind) error {
	if !w.remove {
		return nil
	}
	if is != file {
		to, err := w.root.Readlink(name)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.FromSlash(path.Dir(name)), to)
		}
		w.targets = append(w.targets, to)
	}
	return w.root.Remove(name)
}

// kind is whose a name is.
type kind int

const (
	foreign kind = iota // not the lab's
	parent              // a directory of the lab, in which others may have files
	file                // a file, link or socket of the lab
	tree                // a directory of the lab with everything below it
)

// of returns whose the name of a directory, or of something else, is. Files that a process that was killed has left are of the file
// that they were to become.
func (o Owned) of(name string, dir bool) kind {
	is := foreign
	for _, p := range o {
		if by := kindBy(p, name); by != file || !dir {
			is = max(is, by)
		}
	}
	if ext := path.Ext(name); !dir && (ext == ".part" || ext == ".new" || ext == ".tmp") {
		if o.of(strings.TrimSuffix(name, ext), false) == file {
			return file
		}
	}
	return is
}

// kindBy returns whose a name is by one pattern.
func kindBy(pattern, name string) kind {
	is := file
	if p, ok := strings.CutSuffix(pattern, "/..."); ok {
		pattern, is = p, tree
	} else if p, ok := strings.CutSuffix(pattern, "/"); ok {
		pattern, is = p, parent
	}
	want, have := strings.Split(pattern, "/"), strings.Split(name, "/")
	if len(have) > len(want) {
		return foreign // a tree is removed at its top
	}
	if ok, err := path.Match(strings.Join(want[:len(have)], "/"), name); !ok || err != nil {
		return foreign
	}
	if len(have) < len(want) {
		return parent
	}
	return is
}
