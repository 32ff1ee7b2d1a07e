package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Lowers are the directories of the lower layers that the roots of systems share. Files that
// systems have in common are written when the first of these runs a command: a session does not
// write them again. Overlays never change a lower layer. It is safe for concurrent use.
type Lowers struct {
	dir string

	mu      sync.Mutex
	cleared bool // of what a process that was killed has left
	made    map[lowerKey]*onDisk
	unused  []lowerKey // in the order in which their last session has ended
	number  int        // of the directory that was made last
}

// lowerKey identifies what a lower layer has: a Tree by its map, which is not changed while the
// layer exists, or programs by their names; and the root file system that it lies over, if any.
type lowerKey struct {
	files    uintptr
	programs string // "": it has files
	root     *Root
}

// onDisk is a lower layer in its directory.
type onDisk struct {
	files Tree // holds the map of the key
	dir   string
	users int
	write func() error
}

// maxUnused is how many layers stay that no session uses. A rollout over many systems has two
// images, beside the installation's files and the programs.
const maxUnused = 4

// NewLowers returns lower layers in a directory, which is made when it is needed and belongs to
// them alone.
func NewLowers(dir string) *Lowers { return &Lowers{dir: dir, made: map[lowerKey]*onDisk{}} }

// Close removes the directory. No session may use it any more.
func (l *Lowers) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.made)
	l.unused = nil
	return removeAll(l.dir)
}

// base returns the directory of files below the layer of a system, over what every root has.
func (l *Lowers) base(files Tree, root *Root) (dir string, done func() error, err error) {
	return l.use(lowerKey{files: reflect.ValueOf(files).Pointer(), root: root}, files, func() (Tree, error) {
		all, m, err := Tree{}, machine{}, error(nil)
		if root == nil {
			all = rootTree()
		} else {
			m, err = root.machine()
		}
		maps.Copy(all, files)
		all.addParents(view{Tree{}, Tree{}, m})
		return all, err
	})
}

// programs returns the directory of the programs that a system has over this machine's /usr.
func (l *Lowers) programs(names []string, root *Root) (dir string, done func() error, err error) {
	return l.use(lowerKey{programs: "\x00" + strings.Join(names, "\x00"), root: root}, nil, func() (Tree, error) {
		if root == nil {
			return programTree(names), nil
		}
		return root.programsOver(names)
	})
}

// sysctls returns the directory of the values under /proc/sys of a new namespace. The first process
// of a session makes it if it is not there.
func (l *Lowers) sysctls() string { return filepath.Join(l.dir, "sysctl") }

// use returns the directory of a layer, which stays until done is called. One that could not be
// written is written at the next call.
func (l *Lowers) use(key lowerKey, files Tree, tree func() (Tree, error)) (dir string, done func() error, err error) {
	l.mu.Lock()
	if !l.cleared {
		if err := removeAll(l.dir); err != nil {
			l.mu.Unlock()
			return "", nil, err
		}
		l.cleared = true
	}
	x := l.made[key]
	if x == nil {
		l.number++
		x = &onDisk{files: files, dir: filepath.Join(l.dir, fmt.Sprint(l.number))}
		x.write = sync.OnceValue(func() error {
			t, err := tree()
			if err == nil {
				err = os.MkdirAll(x.dir, 0o700) // that of l.dir: a set-user-ID file is one of this machine, too
			}
			if err == nil {
				err = t.write(func(name string) string { return filepath.Join(x.dir, name) })
			}
			if err == nil {
				addPackageLists(files, x.dir)
			}
			return err
		})
		l.made[key] = x
	}
	x.users++
	l.unused = slices.DeleteFunc(l.unused, func(k lowerKey) bool { return k == key })
	l.mu.Unlock()
	done = func() error { return l.leave(key, x) }
	if err := x.write(); err != nil {
		l.mu.Lock()
		if l.made[key] == x {
			delete(l.made, key)
		}
		l.mu.Unlock()
		return "", nil, errors.Join(err, done())
	}
	return x.dir, done, nil
}

// leave ends the use of a layer, and removes those that have been unused longest.
func (l *Lowers) leave(key lowerKey, x *onDisk) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.users--
	switch {
	case x.users > 0:
		return nil
	case l.made[key] != x: // it was not written
		return removeAll(x.dir)
	}
	l.unused = append(l.unused, key)
	var errs []error
	for len(l.unused) > maxUnused {
		oldest := l.unused[0]
		l.unused = l.unused[1:]
		errs = append(errs, removeAll(l.made[oldest].dir))
		delete(l.made, oldest)
	}
	return errors.Join(errs...)
}

// rootTree are the directories that every root has, and the links of a machine whose /usr is
// merged.
func rootTree() Tree {
	out := Tree{}
	for _, d := range realMachineDirs() {
		out[d] = Node{Mode: fs.ModeDir | 0o755}
	}
	for d, mode := range rootDirs {
		out[d] = Node{Mode: fs.ModeDir | mode}
	}
	for _, d := range machineDirs {
		if to, err := os.Readlink("/" + d); err == nil {
			out[d] = Node{Mode: fs.ModeSymlink | 0o777, Link: to}
		}
	}
	return out
}
