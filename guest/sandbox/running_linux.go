package sandbox

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// This file reads and writes the files of a root in which processes run: paths are
// resolved by the kernel as the processes see them (openat2(2), RESOLVE_IN_ROOT).

func (r *session) open(name string, flags int, mode fs.FileMode) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Mode: uint64(mode.Perm()), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if flags&unix.O_CREAT == 0 {
		how.Mode = 0
	}
	fd, err := unix.Openat2(int(r.root.Fd()), Clean(name), &how)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/" + Clean(name), Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// readFile reads a regular file of at most a size. It opens no other: a device may be without an
// end, or act when it is opened.
func (r *session) readFile(name string, most int64) ([]byte, error) {
	n, err := r.stat(name)
	if err != nil {
		return nil, err
	}
	if !n.Mode.IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: "/" + Clean(name), Err: notRegular(n)}
	}
	f, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f, name, most) // a process may have replaced it
}

func (r *session) stat(name string) (Node, error) {
	f, err := r.open(name, unix.O_PATH, 0)
	if err != nil {
		return Node{}, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Node{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return Node{}, err
	}
	n := Node{Mode: info.Mode(), UID: int(st.Uid), GID: int(st.Gid), Modified: info.ModTime()}
	n.specialOf(f)
	return n, nil
}

func (r *session) readDir(name string) ([]Entry, error) {
	f, err := r.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, e := range entries {
		var st unix.Stat_t
		if err := unix.Fstatat(int(f.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			continue // a process has removed it
		}
		x := Entry{Name: e.Name(), Size: st.Size, Node: Node{UID: int(st.Uid), GID: int(st.Gid), Mode: fs.FileMode(st.Mode).Perm() | e.Type()}}
		if e.Type() == fs.ModeSymlink {
			to := make([]byte, unix.PathMax)
			if n, err := unix.Readlinkat(int(f.Fd()), e.Name(), to); err == nil {
				x.Link = string(to[:n])
			}
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (r *session) put(nodes Tree) error {
	for name, n := range nodes {
		if err := r.putNode(name, n); err != nil {
			return err
		}
	}
	return nil
}

// mkdirs makes the directories of a path, and opens the last.
func (r *session) mkdirs(name string) (*os.File, error) {
	dir, err := r.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	above, err := r.mkdirs(path.Dir(name))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := unix.Mkdirat(int(above.Fd()), path.Base(name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, &fs.PathError{Op: "mkdir", Path: "/" + name, Err: err}
	}
	return r.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

func (r *session) putNode(name string, n Node) error {
	dir, err := r.mkdirs(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	fail := func(err error) error { return &fs.PathError{Op: "open", Path: "/" + name, Err: err} }
	switch {
	case n.Mode.IsDir():
		made, err := r.mkdirs(name)
		if err != nil {
			return err
		}
		defer made.Close()
		return errors.Join(made.Chmod(n.Mode.Perm()), r.chown(made, n))
	case n.Mode&fs.ModeSymlink != 0:
		if err := unix.Unlinkat(int(dir.Fd()), path.Base(name), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(err)
		}
		if err := unix.Symlinkat(n.Link, int(dir.Fd()), path.Base(name)); err != nil {
			return fail(err)
		}
		return nil
	}
	var st unix.Stat_t
	at, base := int(dir.Fd()), path.Base(name)
	switch err := unix.Fstatat(at, base, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return fail(unix.EISDIR)
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK: // through it, as open(2) does
		f, err := r.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return err
		}
		return r.fill(f, n)
	}
	temporary := "." + base + "." + rand.Text()
	fd, err := unix.Openat(at, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fail(err)
	}
	err = r.fill(os.NewFile(uintptr(fd), temporary), n)
	if err == nil {
		err = unix.Renameat(at, temporary, at, base) // others see the old or the new file
	}
	if err != nil {
		return errors.Join(fail(err), unix.Unlinkat(at, temporary, 0))
	}
	return nil
}

// fill writes a file and closes it.
func (r *session) fill(f *os.File, n Node) error {
	_, err := f.Write(n.Content)
	for name, value := range n.special() {
		if err == nil {
			err = unix.Fsetxattr(int(f.Fd()), name, []byte(value), 0)
		}
	}
	return errors.Join(err, r.chown(f, n), f.Chmod(plainMode(n.Mode)), f.Close())
}

func (r *session) chown(f *os.File, n Node) error {
	if os.Getuid() != 0 {
		return nil
	}
	return f.Chown(n.UID, n.GID)
}

func (r *session) remove(names []string) error {
	for _, name := range names {
		name = Clean(name)
		dir, err := r.open(path.Dir(name), unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if errors.Is(err, fs.ErrNotExist) || name == "." {
			continue
		}
		if err != nil {
			return err
		}
		err = removeAt(int(dir.Fd()), path.Base(name))
		if err := errors.Join(err, dir.Close()); err != nil {
			return &fs.PathError{Op: "remove", Path: "/" + name, Err: err}
		}
	}
	return nil
}

// removeAt removes a file, or a directory recursively, without following links.
func removeAt(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, unix.EISDIR):
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	entries, err := f.ReadDir(-1)
	for _, e := range entries {
		err = errors.Join(err, removeAt(fd, e.Name()))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// names returns the names in a directory, in no order.
func (r *session) names(dir string) ([]string, error) {
	f, err := r.open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxNames)
	if errors.Is(err, io.EOF) { // it is empty
		return nil, nil
	}
	return names, err
}

// link returns the target of a symbolic link.
func (r *session) link(name string) (string, bool) {
	dir, err := r.open(path.Dir(Clean(name)), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", false
	}
	defer dir.Close()
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), path.Base(name), to)
	return string(to[:max(n, 0)]), err == nil
}

// kernelRelease returns the release of the kernel, which servers share with this machine (uname(2)).
func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
