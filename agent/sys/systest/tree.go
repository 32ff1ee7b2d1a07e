package systest

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// tree is a read-only file system of small files, like sysfs and procfs. In
// contrast to fstest.MapFS a directory costs only its entries, content can be
// rendered when it is read, and a file can exist and fail to be read.
type tree struct{ root *node }

type node struct {
	name     string
	children []*node // entries of a directory by name, non-nil; a map would take more memory
	link     string  // target of a symbolic link
	text     func() ([]byte, error)
}

func newTree() *tree { return &tree{root: newDir(".")} }

func newDir(name string) *node { return &node{name: name, children: []*node{}} }

// child returns the entry of a directory with this name; nil if there is none.
func (n *node) child(name string) *node {
	if i, ok := n.search(name); ok {
		return n.children[i]
	}
	return nil
}

func (n *node) search(name string) (int, bool) {
	return slices.BinarySearchFunc(n.children, name, func(c *node, name string) int { return strings.Compare(c.name, name) })
}

// put adds an entry, replacing one with its name.
func (n *node) put(c *node) {
	i, ok := n.search(c.name)
	if ok {
		n.children[i] = c
		return
	}
	n.children = slices.Insert(n.children, i, c)
}

// dir creates a directory and its parents.
func (t *tree) dir(name string) *node {
	n := t.root
	for part := range strings.SplitSeq(name, "/") {
		child := n.child(part)
		if child == nil {
			child = newDir(part)
			n.put(child)
		}
		n = child
	}
	return n
}

func (t *tree) add(name string, n *node) {
	dir, base := path.Split(name)
	n.name = base
	t.dir(path.Clean(dir)).put(n)
}

// file adds a file that holds text.
func (t *tree) file(name, text string) {
	t.lazy(name, func() []byte { return []byte(text) })
}

// line adds a sysfs attribute: its value and a line feed.
func (t *tree) line(name, value string) { t.file(name, value+"\n") }

// lazy adds a file that is rendered when it is opened.
func (t *tree) lazy(name string, render func() []byte) {
	t.add(name, &node{text: func() ([]byte, error) { return render(), nil }})
}

// broken adds a file that cannot be read, like the carrier attribute of an
// interface that is down.
func (t *tree) broken(name string, err error) {
	t.add(name, &node{text: func() ([]byte, error) { return nil, err }})
}

// link adds a symbolic link to a path in the tree, relative like the kernel's.
func (t *tree) link(name, to string) {
	up := strings.Split(path.Dir(name), "/")
	down := strings.Split(to, "/")
	for len(up) > 0 && len(down) > 1 && up[0] == down[0] {
		up, down = up[1:], down[1:]
	}
	t.add(name, &node{link: strings.Repeat("../", len(up)) + strings.Join(down, "/")})
}

// maxLinks bounds the symbolic links in one path, as in Linux.
const maxLinks = 40

// find returns the node of a path; it follows a link in the last element only if
// follow is true.
func (t *tree) find(name string, follow bool) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	nodes := []*node{t.root}
	todo := strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			nodes = nodes[:max(1, len(nodes)-1)]
			continue
		}
		child := nodes[len(nodes)-1].child(part)
		if child == nil {
			return nil, fs.ErrNotExist
		}
		if child.link == "" || (len(todo) == 0 && !follow) {
			nodes = append(nodes, child)
			continue
		}
		if links++; links > maxLinks {
			return nil, fs.ErrNotExist
		}
		if strings.HasPrefix(child.link, "/") {
			nodes = nodes[:1]
		}
		todo = append(strings.Split(child.link, "/"), todo...)
	}
	return nodes[len(nodes)-1], nil
}

func (t *tree) Open(name string) (fs.File, error) {
	n, err := t.find(name, true)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if n.children != nil {
		return &openDir{node: n, path: name, left: n.entries()}, nil
	}
	text, err := n.text()
	if err != nil {
		// the kernel fails the read instead, which no caller distinguishes
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return &openFile{node: n, Reader: bytes.NewReader(text)}, nil
}

func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find(name, true)
	if err == nil && n.children == nil {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return n.entries(), nil
}

func (t *tree) ReadLink(name string) (string, error) {
	n, err := t.find(name, false)
	if err == nil && n.link == "" {
		err = fs.ErrInvalid
	}
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return n.link, nil
}

func (t *tree) Lstat(name string) (fs.FileInfo, error) { return t.stat("lstat", name, false) }
func (t *tree) Stat(name string) (fs.FileInfo, error)  { return t.stat("stat", name, true) }

func (t *tree) stat(op, name string, follow bool) (fs.FileInfo, error) {
	n, err := t.find(name, follow)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// entries returns the entries of a directory by name.
func (n *node) entries() []fs.DirEntry {
	out := make([]fs.DirEntry, 0, len(n.children))
	for _, c := range n.children {
		out = append(out, fs.FileInfoToDirEntry(c))
	}
	return out
}

// A node is its own fs.FileInfo. Sizes are zero, as procfs reports them.
func (n *node) Name() string       { return n.name }
func (n *node) Size() int64        { return 0 }
func (n *node) ModTime() time.Time { return time.Time{} }
func (n *node) IsDir() bool        { return n.children != nil }
func (n *node) Sys() any           { return nil }
func (n *node) Mode() fs.FileMode {
	switch {
	case n.children != nil:
		return fs.ModeDir | 0o555
	case n.link != "":
		return fs.ModeSymlink | 0o777
	}
	return 0o444
}

type openFile struct {
	*bytes.Reader
	node *node
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	node *node
	path string
	left []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.node, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.path, Err: fs.ErrInvalid}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 || n >= len(d.left) {
		if n > 0 && len(d.left) == 0 {
			return nil, io.EOF
		}
		out := d.left
		d.left = nil
		return out, nil
	}
	out := d.left[:n]
	d.left = d.left[n:]
	return out, nil
}
