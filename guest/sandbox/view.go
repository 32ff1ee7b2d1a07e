package sandbox

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// view is the file tree of a system in which no process runs: the layer over the base over
// this machine's /usr or a root file system.
type view struct {
	layer   Tree
	base    lower
	machine machine
}

// lower has the files below the layer of a system.
type lower interface {
	node(name string) (Node, bool)
	below(dir string) iter.Seq[string] // names of the nodes below a directory, in any order
}

func (t Tree) node(name string) (Node, bool) {
	n, ok := t[name]
	return n, ok
}

func (t Tree) below(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range t {
			if (dir == "." || strings.HasPrefix(name, dir+"/")) && !yield(name) {
				return
			}
		}
	}
}

// machineDirs are the directories of this machine that a system shows, below its layer.
var machineDirs = []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// rootDirs are the directories that every root has (Filesystem Hierarchy Standard 3.0,
// §3.2), with their permissions.
var rootDirs = map[string]fs.FileMode{
	"boot": 0o755, "dev": 0o755, "etc": 0o755, "home": 0o755, "media": 0o755, "mnt": 0o755, "opt": 0o755, "proc": 0o555,
	"root": 0o700, "run": 0o755, "srv": 0o755, "sys": 0o555, "tmp": 0o777 | fs.ModeSticky, "var": 0o755,
}

func machineHas(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains(machineDirs, first)
}

// hidden reports whether a whiteout of the layer hides a name of the layers below.
func (v view) hidden(name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		n, ok := v.layer[at]
		if ok && (n.Removed || at != name && (n.Opaque || !n.Mode.IsDir())) {
			return true
		}
	}
	return false
}

// lookup returns a node without following a link at its end. The content of a file of
// this machine is not read.
func (v view) lookup(name string) (Node, bool) {
	if name == "." {
		return Node{Mode: fs.ModeDir | 0o755}, true
	}
	if n, ok := v.layer[name]; ok && !n.Removed {
		return n, true
	}
	if !v.hidden(name) {
		if n, ok := v.base.node(name); ok {
			return n, true
		}
		if n, ok := v.machine.node(name); ok {
			return n, true
		}
	}
	if mode, ok := v.machine.dirs()[name]; ok && !v.hidden(name) {
		return Node{Mode: fs.ModeDir | mode}, true
	}
	// Else it is a directory if a file is below it.
	for below, n := range v.layer {
		if strings.HasPrefix(below, name+"/") && !n.Removed {
			return Node{Mode: fs.ModeDir | 0o755}, true
		}
	}
	for below := range v.base.below(name) {
		if !v.hidden(below) {
			return Node{Mode: fs.ModeDir | 0o755}, true
		}
	}
	return Node{}, false
}

// maxLinks is how many symbolic links a path may lead through (Linux, path_resolution(7)).
const maxLinks = 40

// resolve follows the links of a path. The last element need not exist.
func (v view) resolve(name string) (string, error) {
	rest := strings.Split(Clean(name), "/")
	resolved := "."
	for links := 0; len(rest) > 0; {
		next := rest[0]
		rest = rest[1:]
		switch next {
		case ".", "":
			continue
		case "..":
			resolved = path.Dir(resolved)
			continue
		}
		here := path.Join(resolved, next)
		n, ok := v.lookup(here)
		if !ok || n.Mode&fs.ModeSymlink == 0 {
			resolved = here
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: "/" + name, Err: syscall.ELOOP}
		}
		if strings.HasPrefix(n.Link, "/") {
			resolved = "."
		}
		rest = slices.Concat(strings.Split(n.Link, "/"), rest)
	}
	return resolved, nil
}

// stat returns a node after following links.
func (v view) stat(name string) (Node, string, error) {
	at, err := v.resolve(name)
	if err != nil {
		return Node{}, "", err
	}
	n, ok := v.lookup(at)
	if !ok {
		return Node{}, at, &fs.PathError{Op: "open", Path: "/" + Clean(name), Err: fs.ErrNotExist}
	}
	return n, at, nil
}

func (v view) readFile(name string, most int64) ([]byte, error) {
	n, file, err := v.stat(name)
	if err != nil {
		return nil, err
	}
	if !n.Mode.IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: "/" + file, Err: notRegular(n)}
	}
	_, inLayer := v.layer[file]
	if _, inBase := v.base.node(file); inLayer || inBase {
		if int64(len(n.Content)) > most {
			return nil, tooLarge(name, most)
		}
		return slices.Clone(n.Content), nil
	}
	st, err := fs.Stat(v.machine.FS, file)
	if err == nil && st.Size() > most {
		return nil, tooLarge(name, most)
	}
	return fs.ReadFile(v.machine.FS, file)
}

func notRegular(n Node) error {
	if n.Mode.IsDir() {
		return syscall.EISDIR
	}
	return fmt.Errorf("it is a %s, not a file", n.Mode.Type())
}

// Entry is an entry of a directory.
type Entry struct {
	Name string
	Size int64 // bytes, of a regular file
	Node
}

// readDir returns the entries of a directory, by name. Of files no content is read.
func (v view) readDir(name string) ([]Entry, error) {
	n, dir, err := v.stat(name)
	switch {
	case err != nil:
		return nil, err
	case !n.Mode.IsDir():
		return nil, &fs.PathError{Op: "readdir", Path: "/" + dir, Err: syscall.ENOTDIR}
	}
	names := map[string]bool{}
	for _, t := range []lower{v.layer, v.base} {
		for below := range t.below(dir) {
			rest := below
			if dir != "." {
				rest = below[len(dir)+1:]
			}
			first, _, _ := strings.Cut(rest, "/")
			names[first] = true
		}
	}
	if dir == "." {
		for d := range v.machine.dirs() {
			names[d] = true
		}
	}
	switch {
	case v.machine.FS == nil:
	case dir == "." && v.machine.root == nil:
		for _, d := range machineDirs {
			names[d] = true
		}
	case v.machine.has(dir) && !v.hidden(dir):
		entries, _ := fs.ReadDir(v.machine.FS, dir) // else it has none
		for _, e := range entries {
			names[e.Name()] = true
		}
	}
	var out []Entry
	for name := range names {
		n, ok := v.lookup(path.Join(dir, name))
		if !ok {
			continue
		}
		e := Entry{Name: name, Node: n, Size: int64(len(n.Content))}
		if n.Content == nil && n.Mode.IsRegular() && v.machine.FS != nil {
			if st, err := fs.Lstat(v.machine.FS, path.Join(dir, name)); err == nil {
				e.Size = st.Size()
			}
		}
		e.Content = nil
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// thisMachine is the root of this machine, for /usr below a system's layer.
func thisMachine() fs.FS {
	if _, err := os.Stat("/usr/bin"); err != nil {
		return nil
	}
	return os.DirFS("/")
}
