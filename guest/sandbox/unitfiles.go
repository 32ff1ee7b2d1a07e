package sandbox

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// files are the files of a system, in which processes run or not. All follow links, but at the
// end of link's name.
type files interface {
	readFile(name string, most int64) ([]byte, error)
	stat(name string) (Node, error)
	names(dir string) ([]string, error) // in no order
	link(name string) (target string, ok bool)
}

// storedFiles are those of a system in which no process runs.
type storedFiles struct{ view }

func (f storedFiles) stat(name string) (Node, error) {
	n, _, err := f.view.stat(name)
	n.Content = nil
	return n, err
}

// names does not look at the entries, as readDir does: the units of this machine are many. Names
// that the layer hides may be among them.
func (f storedFiles) names(dir string) ([]string, error) {
	n, at, err := f.view.stat(dir)
	if err != nil {
		return nil, err
	}
	if !n.Mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: "/" + at, Err: fs.ErrInvalid}
	}
	found := map[string]bool{}
	for _, t := range []lower{f.layer, f.base} {
		for name := range t.below(at) {
			if n, _ := t.node(name); !n.Removed {
				first, _, _ := strings.Cut(strings.TrimPrefix(name, at+"/"), "/")
				found[first] = true
			}
		}
	}
	if f.machine.has(at) && !f.hidden(at) {
		entries, _ := fs.ReadDir(f.machine.FS, at) // else it has none
		for _, e := range entries {
			found[e.Name()] = true
		}
	}
	out := make([]string, 0, len(found))
	for name := range found {
		out = append(out, name)
	}
	return out, nil
}

func (f storedFiles) link(name string) (string, bool) {
	dir, err := f.resolve(path.Dir(Clean(name)))
	if err != nil {
		return "", false
	}
	n, ok := f.lookup(path.Join(dir, path.Base(name)))
	return n.Link, ok && n.Mode&fs.ModeSymlink != 0
}

// maxNames is how many names of a directory are looked at.
const maxNames = 1 << 16

// files calls do with the files of the system, which it locks: do must not use the system.
func (s *System) files(do func(files) error) error {
	return s.use(func(r *session) error { return do(r) }, func(v view) error { return do(storedFiles{v}) })
}

// maxGlob is how many names a pattern may stand for.
const maxGlob = 256

// glob returns the names that match a pattern (glob(7)), sorted.
func glob(f files, pattern string) []string {
	found := []string{"."}
	for element := range strings.SplitSeq(Clean(pattern), "/") {
		var next []string
		for _, dir := range found {
			if !strings.ContainsAny(element, `*?[\`) {
				if at := path.Join(dir, element); exists(f, at) {
					next = append(next, at)
				}
				continue
			}
			names, err := f.names(dir)
			if err != nil {
				continue
			}
			slices.Sort(names)
			for _, n := range names {
				if ok, _ := path.Match(element, n); ok && (n[0] != '.' || element[0] == '.') && exists(f, path.Join(dir, n)) {
					next = append(next, path.Join(dir, n))
				}
			}
		}
		found = next[:min(len(next), maxGlob)]
	}
	return found
}

func exists(f files, name string) bool {
	_, err := f.stat(name)
	return err == nil
}

// readIf reads a configuration file; one that is not there, or that cannot be read, is empty.
func readIf(f files, name string) string {
	b, err := f.readFile(name, maxConfig)
	if err != nil {
		return ""
	}
	return string(b)
}

// notThere reports whether a name has no file.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
