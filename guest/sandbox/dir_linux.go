package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// This file writes layers as the kernel's overlay file system has them, and reads them
// (Linux, Documentation/filesystems/overlayfs.rst, "whiteouts and opaque directories",
// "User xattr").

const opaqueAttr = "user.overlay.opaque"

// write writes the nodes to a directory, parents first. Owners are set where this user may.
// The attributes of directories come last: some forbid their owner to write.
func (t Tree) write(place func(name string) string) error {
	names := slices.Sorted(maps.Keys(t))
	for _, name := range names {
		err := writeFile(place(name), t[name])
		if err == nil && !t[name].Mode.IsDir() {
			err = setAttributes(place(name), t[name])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range slices.Backward(names) {
		if !t[name].Mode.IsDir() {
			continue
		}
		if err := setAttributes(place(name), t[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func writeFile(file string, n Node) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if st, err := os.Lstat(file); err == nil && !(st.IsDir() && n.Mode.IsDir()) {
		if err := os.RemoveAll(file); err != nil {
			return err
		}
	}
	var err error
	switch {
	case n.Removed:
		return unix.Mknod(file, unix.S_IFCHR, 0)
	case n.Mode.IsDir():
		if err = os.Mkdir(file, 0o755); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	case n.Mode&fs.ModeSymlink != 0:
		return os.Symlink(n.Link, file)
	case n.Mode&fs.ModeNamedPipe != 0:
		err = unix.Mkfifo(file, 0o600)
	default:
		err = os.WriteFile(file, n.Content, 0o600)
	}
	if err == nil && n.Opaque {
		err = unix.Lsetxattr(file, opaqueAttr, []byte("y"), 0)
	}
	return err
}

// setAttributes sets the owner, permissions and time of a file that writeFile has written.
func setAttributes(file string, n Node) error {
	if n.Removed {
		return nil
	}
	err := setOwner(file, n)
	if n.Mode&fs.ModeSymlink != 0 {
		return err
	}
	for name, value := range n.special() {
		if err == nil {
			err = unix.Lsetxattr(file, name, []byte(value), 0)
		}
	}
	if err == nil {
		err = os.Chmod(file, plainMode(n.Mode))
	}
	if err == nil && !n.Modified.IsZero() {
		err = os.Chtimes(file, n.Modified, n.Modified)
	}
	return err
}

// setOwner sets the owner where this process may: only the superuser may give files away.
func setOwner(file string, n Node) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Lchown(file, n.UID, n.GID)
}

// read adds the nodes of a directory, which is that of a name in the root.
func (t Tree) read(at, dir string) error {
	size := int64(0)
	return walk(dir, func(in *os.File, name, below string, st *unix.Stat_t) error {
		n, ok, err := nodeOf(in, name, st)
		if err != nil || !ok {
			return err
		}
		if size += int64(len(n.Content)); size > maxLayer {
			return fmt.Errorf("the files of the system have more than %d bytes", maxLayer)
		}
		t[path.Join(at, below)] = n
		return nil
	})
}

// walk calls visit for each file below a directory, parents first.
// Processes of the system may change the files meanwhile, so no path is followed: each
// name is looked up in its open directory, and a symbolic link never leads to a file of
// this machine. What has changed between two looks is left out. It returns a nestedError for files
// beyond the bounds.
func walk(dir string, visit func(in *os.File, name, below string, st *unix.Stat_t) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return walkIn(f, "", maxDepth, visit)
}

func walkIn(in *os.File, below string, depth int, visit func(in *os.File, name, below string, st *unix.Stat_t) error) error {
	names, err := in.Readdirnames(-1)
	if err != nil && !changed(err) {
		return err
	}
	for _, name := range names {
		file := path.Join(below, name)
		if depth == 0 || len(file) > maxPath {
			return &nestedError{file}
		}
		var st unix.Stat_t
		err := unix.Fstatat(int(in.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			err = visit(in, name, file, &st)
		}
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = walkDir(in, name, file, depth-1, visit)
		}
		if err != nil && !changed(err) {
			return err
		}
	}
	return nil
}

func walkDir(in *os.File, name, below string, depth int, visit func(in *os.File, name, below string, st *unix.Stat_t) error) error {
	d, restore, err := openIn(in, name, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer d.Close()
	defer restore()
	return walkIn(d, below, depth, visit)
}

// removeAll removes a directory with all that processes, which have ended, have left in it. It
// opens few directories at a time, however deep they are nested: those that are deeper move up
// first.
func removeAll(dir string) error {
	top, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()
	r := remover{top: top}
	for more := true; more; {
		r.moved = 0
		if _, err := top.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := r.empty(top, maxDepth); err != nil {
			return err
		}
		more = r.moved > 0
	}
	return os.Remove(dir)
}

type remover struct {
	top   *os.File
	moved int // directories that were moved up in this round
	names int
}

// empty removes what is in a directory, but for what it moves up.
func (r *remover) empty(in *os.File, depth int) error {
	names, err := in.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := unix.Unlinkat(int(in.Fd()), name, 0)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			continue
		case !errors.Is(err, unix.EISDIR):
			return &fs.PathError{Op: "remove", Path: name, Err: err}
		}
		if depth == 0 {
			r.names++
			if err := unix.Renameat(int(in.Fd()), name, int(r.top.Fd()), fmt.Sprintf("moved-%s-%d", rand.Text(), r.names)); err != nil {
				return &fs.PathError{Op: "rename", Path: name, Err: err}
			}
			r.moved++
			continue
		}
		d, _, err := openIn(in, name, unix.O_DIRECTORY) // it is removed: its mode needs no restoring
		if err != nil {
			return err
		}
		_ = d.Chmod(0o700) // else the removal fails
		err = r.empty(d, depth-1)
		if err := errors.Join(err, d.Close()); err != nil {
			return err
		}
		if err := unix.Unlinkat(int(in.Fd()), name, unix.AT_REMOVEDIR); err != nil {
			return &fs.PathError{Op: "remove", Path: name, Err: err}
		}
	}
	return nil
}

// openIn opens a file of a directory for reading. It follows no link and waits for no
// writer. The caller calls restore when it has read the file.
func openIn(in *os.File, name string, flags int) (f *os.File, restore func(), err error) {
	const always = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	restore = func() {}
	fd, err := unix.Openat(int(in.Fd()), name, always|flags, 0)
	if errors.Is(err, unix.EACCES) {
		fd, restore, err = openForbidden(in, name, always|flags)
	}
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), restore, nil
}

// openForbidden opens a file whose mode denies reading to its owner, an ordinary user. It
// sets the owner's permissions until the caller calls restore: every lookup in a directory
// needs them.
func openForbidden(in *os.File, name string, flags int) (fd int, restore func(), err error) {
	at, err := unix.Openat(int(in.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return 0, nil, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return 0, nil, unix.ELOOP
	}
	this, mode := fmt.Sprintf("/proc/self/fd/%d", at), st.Mode&^unix.S_IFMT
	if err := unix.Chmod(this, mode|unix.S_IRWXU); err != nil {
		return 0, nil, err
	}
	if fd, err = unix.Open(this, flags&^unix.O_NOFOLLOW, 0); err != nil {
		return 0, nil, errors.Join(err, unix.Chmod(this, mode))
	}
	return fd, func() { _ = unix.Fchmod(fd, mode) }, nil // the owner may
}

// changed reports whether an error means that a process has removed or replaced a file.
func changed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENXIO)
}

// nodeOf reads a file of a layer. ok is false for a type that a layer cannot store.
func nodeOf(in *os.File, name string, st *unix.Stat_t) (n Node, ok bool, err error) {
	n = Node{Mode: modeOf(st.Mode), Modified: time.Unix(st.Mtim.Unix())}
	if os.Getuid() == 0 {
		n.UID, n.GID = int(st.Uid), int(st.Gid)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		return Node{Removed: true}, st.Rdev == 0, nil
	case unix.S_IFDIR:
		d, restore, err := openIn(in, name, unix.O_DIRECTORY)
		if err != nil {
			return n, false, err
		}
		defer d.Close()
		defer restore()
		value := make([]byte, 1)
		if k, err := unix.Fgetxattr(int(d.Fd()), opaqueAttr, value); err == nil && k == 1 && value[0] == 'y' {
			n.Opaque = true
		}
		return n, true, nil
	case unix.S_IFLNK:
		to := make([]byte, unix.PathMax)
		k, err := unix.Readlinkat(int(in.Fd()), name, to)
		if errors.Is(err, unix.EINVAL) { // it is no link any more
			return n, false, nil
		}
		n.Link = string(to[:max(k, 0)])
		return n, err == nil, err
	case unix.S_IFIFO:
		return n, true, nil
	case unix.S_IFREG:
		f, restore, err := openIn(in, name, 0)
		if err != nil {
			return n, false, err
		}
		defer f.Close()
		defer restore()
		var opened unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &opened); err != nil || opened.Mode&unix.S_IFMT != unix.S_IFREG {
			return n, false, err
		}
		n.readSpecial(f)
		n.Content, err = io.ReadAll(io.LimitReader(f, maxLayer+1))
		return n, err == nil, err
	}
	return n, false, nil
}

// modeOf returns the type and permissions of a file (inode(7)).
func modeOf(mode uint32) fs.FileMode {
	m := fs.FileMode(mode).Perm()
	for bit, special := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= special
		}
	}
	return m | map[uint32]fs.FileMode{unix.S_IFDIR: fs.ModeDir, unix.S_IFLNK: fs.ModeSymlink, unix.S_IFIFO: fs.ModeNamedPipe}[mode&unix.S_IFMT]
}

// split returns the first element of a path and the rest.
func split(name string) (first, rest string) {
	first, rest, _ = strings.Cut(name, "/")
	return first, rest
}
