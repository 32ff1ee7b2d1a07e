package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// This file writes layers as the kernel's overlay file system has them, and reads them
// (Linux, Documentation/filesystems/overlayfs.rst, "whiteouts and opaque directories",
// "User xattr").

const opaqueAttr = "user.overlay.opaque"

// write writes the nodes to a directory, parents first. Owners are set where this user may.
func (t Tree) write(place func(name string) string) error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if err := writeFile(place(name), t[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func writeFile(at string, n Node) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if st, err := os.Lstat(at); err == nil && !(st.IsDir() && n.Mode.IsDir()) {
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	var err error
	switch {
	case n.Removed:
		return unix.Mknod(at, unix.S_IFCHR, 0)
	case n.Mode.IsDir():
		if err = os.Mkdir(at, 0o755); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	case n.Mode&fs.ModeSymlink != 0:
		if err = os.Symlink(n.Link, at); err != nil {
			return err
		}
		return setOwner(at, n)
	case n.Mode&fs.ModeNamedPipe != 0:
		err = unix.Mkfifo(at, 0o600)
	default:
		err = os.WriteFile(at, n.Content, 0o600)
	}
	if err == nil && n.Opaque {
		err = unix.Lsetxattr(at, opaqueAttr, []byte("y"), 0)
	}
	if err == nil {
		err = setOwner(at, n)
	}
	if err == nil {
		err = os.Chmod(at, n.Mode.Perm()|n.Mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	}
	if err == nil && !n.Modified.IsZero() {
		err = os.Chtimes(at, n.Modified, n.Modified)
	}
	return err
}

// setOwner sets the owner where this process may: only the superuser may give files away.
func setOwner(at string, n Node) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Lchown(at, n.UID, n.GID)
}

// read adds the nodes of a directory, which is that of a name in the root.
func (t Tree) read(at, dir string) error {
	size := int64(0)
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == dir {
			return nil
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a running process has removed it
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		n, ok, err := nodeOf(name, st)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if size += int64(len(n.Content)); size > maxLayer {
			return fmt.Errorf("the files of the system have more than %d bytes", maxLayer)
		}
		if ok {
			t[path.Join(at, filepath.ToSlash(rel))] = n
		}
		return err
	})
}

// nodeOf reads a file of a layer. ok is false for what a layer cannot store.
func nodeOf(name string, st fs.FileInfo) (n Node, ok bool, err error) {
	sys := st.Sys().(*syscall.Stat_t)
	n = Node{Mode: st.Mode(), Modified: st.ModTime()}
	if os.Getuid() == 0 {
		n.UID, n.GID = int(sys.Uid), int(sys.Gid)
	}
	switch kind := st.Mode().Type(); {
	case kind == fs.ModeDevice|fs.ModeCharDevice:
		return Node{Removed: true}, sys.Rdev == 0, nil
	case kind.IsDir():
		value := make([]byte, 1)
		if k, err := unix.Lgetxattr(name, opaqueAttr, value); err == nil && k == 1 && value[0] == 'y' {
			n.Opaque = true
		}
		return n, true, nil
	case kind == fs.ModeSymlink:
		n.Link, err = os.Readlink(name)
		return n, true, err
	case kind == fs.ModeNamedPipe:
		return n, true, nil
	case kind == 0:
		n.Content, err = os.ReadFile(name)
		return n, true, err
	}
	return n, false, nil
}

// split returns the first element of a path and the rest.
func split(name string) (first, rest string) {
	first, rest, _ = strings.Cut(name, "/")
	return first, rest
}
