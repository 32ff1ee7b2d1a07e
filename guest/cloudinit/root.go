package cloudinit

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// File is a regular file of a Root, a directory, or a symbolic link, whose target is its content.
type File struct {
	Content []byte
	Mode    fs.FileMode // permission bits, and fs.ModeDir or fs.ModeSymlink
	Owner   string      // name of the user
	Group   string
}

// Root holds the files of a system by their paths, without the leading slash
// ("etc/hostname"). Directories exist by the files in them, too.
type Root map[string]File

// write creates or replaces a file of the superuser.
func (r Root) write(name string, mode fs.FileMode, content string) {
	r[name] = File{Content: []byte(content), Mode: mode, Owner: "root", Group: "root"}
}

// append adds text to a file, which it creates with this mode if there is none.
func (r Root) append(name string, mode fs.FileMode, text string) {
	f, ok := r[name]
	if !ok {
		f = File{Mode: mode, Owner: "root", Group: "root"}
	}
	f.Content = append(slices.Clip(f.Content), text...)
	r[name] = f
}

// Entry is an entry of a directory. Of a directory only Name and Dir are set.
type Entry struct {
	Name string
	Dir  bool
	File
}

// List returns the entries of a directory by name; ok is false if there is no such
// directory. The root is "".
func (r Root) List(dir string) (out []Entry, ok bool) {
	dir = rel(dir)
	is := r[dir].Mode.IsDir()
	seen := map[string]bool{}
	for name, f := range r {
		rest := name
		if dir != "" {
			var in bool
			if rest, in = strings.CutPrefix(name, dir+"/"); !in {
				continue
			}
		}
		first, _, below := strings.Cut(rest, "/")
		if seen[first] {
			continue
		}
		seen[first] = true
		e := Entry{Name: first, Dir: below || f.Mode.IsDir()}
		if !e.Dir {
			e.File = f
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, len(out) > 0 || is || dir == ""
}

// Get returns a file by its path, with or without the leading slash.
func (r Root) Get(name string) (File, bool) {
	f, ok := r[rel(name)]
	return f, ok
}

// rel returns a cleaned path without the leading slash; "" for the root.
func rel(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
