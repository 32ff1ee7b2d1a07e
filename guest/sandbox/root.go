package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Root is a root file system that systems have booted, unpacked in a directory of this machine.
// Nothing changes it: what systems write lies in their layers. It is safe for concurrent use.
type Root struct {
	// Dir is the directory, which another user of this machine must not reach: programs of the image
	// are in it.
	Dir string
	// Attributes returns the type, permissions and owner of a file where they are not those that it
	// has on disk: set-user-ID programs are none there. Names have no leading slash. nil: all are
	// those on disk.
	Attributes func(name string) (mode fs.FileMode, uid, gid int, ok bool)

	open sync.Once
	fs   fs.FS
	err  error
}

// machine has the files at the bottom of a system.
type machine struct {
	fs.FS       // nil: none
	root  *Root // nil: FS is this machine, of which machineDirs are seen
}

// bottom returns the files below all layers of a system that was opened.
func (s *System) bottom() (machine, error) {
	if s.root == nil {
		return machine{thisMachine(), nil}, nil
	}
	return s.root.machine()
}

func (r *Root) machine() (machine, error) {
	r.open.Do(func() {
		// A link of the image leads to a file of the image, never to one of this machine.
		d, err := os.OpenRoot(r.Dir)
		if err != nil {
			r.err = fmt.Errorf("root file system: %w", err)
			return
		}
		r.fs = d.FS()
	})
	return machine{r.fs, r}, r.err
}

// has reports whether a name can be a file of these.
func (m machine) has(name string) bool { return m.FS != nil && (m.root != nil || machineHas(name)) }

// node returns the node of a file without its content.
func (m machine) node(name string) (Node, bool) {
	if !m.has(name) {
		return Node{}, false
	}
	st, err := fs.Lstat(m.FS, name)
	if err != nil {
		return Node{}, false
	}
	n := Node{Mode: st.Mode(), Modified: st.ModTime()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && (m.root == nil || os.Getuid() == 0) {
		n.UID, n.GID = int(sys.Uid), int(sys.Gid)
	}
	if m.root != nil && m.root.Attributes != nil {
		if mode, uid, gid, ok := m.root.Attributes(name); ok {
			n.Mode, n.UID, n.GID = mode, uid, gid
		}
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		n.Link, _ = fs.ReadLink(m.FS, name)
	}
	return n, true
}

// dirs returns the directories that every system with these files has, with their permissions.
func (m machine) dirs() map[string]fs.FileMode {
	if m.root != nil {
		return mountPoints
	}
	return rootDirs
}

// mountPoints are the directories that a session mounts something on, or, of mnt, moves its old root
// to: a root file system may lack them.
var mountPoints = map[string]fs.FileMode{
	"dev": 0o755, "mnt": 0o755, "proc": 0o555, "run": 0o755, "sys": 0o555, "tmp": 0o777 | fs.ModeSticky,
}
