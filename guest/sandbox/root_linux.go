package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// This file has what a session lays over a root file system.

// programDirs are where a root file system may have the programs that those of this program cover.
// One whose /usr is merged has links for some.
var programDirs = []string{"usr/bin", "usr/sbin", "bin", "sbin"}

// programsOver returns the files of the programs over a root file system, and what it lacks of the
// mount points, with the directories above them as they are there.
func (r *Root) programsOver(more []string) (Tree, error) {
	m, err := r.machine()
	if err != nil {
		return nil, err
	}
	v := view{Tree{}, Tree{}, m}
	if at, err := v.resolve(programFile); err != nil || at != programFile {
		return nil, errors.Join(fmt.Errorf("root file system: /%s is reached through a link", path.Dir(programFile)), err)
	}
	t := Tree{programFile: File(0o755, "")}
	for name, n := range programTree(more) {
		if _, there := v.lookup(path.Dir(name)); !there && n.Mode.IsRegular() && name != programFile { // of the kernel that runs
			t[name] = n
		}
		for _, dir := range programDirs {
			at, ok := v.lookup(dir)
			if dir == "usr/bin" && !ok {
				at.Mode = fs.ModeDir | 0o755
			}
			if n.Mode&fs.ModeSymlink == 0 || !at.Mode.IsDir() || path.Base(dir) != path.Base(path.Dir(name)) {
				continue
			}
			t[path.Join(dir, path.Base(name))] = Node{Mode: n.Mode, Link: "/" + programFile}
		}
	}
	for dir, mode := range mountPoints {
		n, ok := m.node(dir)
		if ok && !n.Mode.IsDir() {
			return nil, fmt.Errorf("root file system: /%s is no directory", dir)
		}
		if !ok {
			t[dir] = Node{Mode: fs.ModeDir | mode}
		}
	}
	t.addParents(v)
	return t, nil
}

// addParents adds the directories above the nodes of a tree, with the attributes that they have in a
// view: a directory of an upper layer covers those of the layers below.
func (t Tree) addParents(v view) {
	for name := range t {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := t[dir]; ok {
				continue
			}
			if n, ok := v.lookup(dir); ok {
				t[dir] = Node{Mode: n.Mode, UID: n.UID, GID: n.GID, Modified: n.Modified}
			} else {
				t[dir] = Node{Mode: fs.ModeDir | 0o755}
			}
		}
	}
}
