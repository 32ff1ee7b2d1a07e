package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Host is a system as agents configure it, by absolute paths: it does for a server of the
// lab what sys.Host does for this machine.
type Host struct{ s *System }

// Host returns the system as agents configure it.
func (s *System) Host() Host { return Host{s} }

// relative returns an absolute path as Tree has it.
func relative(name string) (string, error) {
	if !path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%q: give an absolute path", name)
	}
	return Clean(name), nil
}

// Path returns the path by which commands see a file: the same.
func (Host) Path(name string) string { return name }

// ReadFile returns the content of a file, following links.
func (h Host) ReadFile(name string) ([]byte, error) {
	at, err := relative(name)
	if err != nil {
		return nil, err
	}
	return h.s.ReadFile(at)
}

// Stat describes a file, following links.
func (h Host) Stat(name string) (sys.FileInfo, error) {
	at, err := relative(name)
	if err != nil {
		return sys.FileInfo{}, err
	}
	n, err := h.s.Stat(at)
	return sys.FileInfo{Mode: n.Mode, UID: n.UID, GID: n.GID}, err
}

// Readlink returns the target of a symbolic link.
func (h Host) Readlink(name string) (string, error) {
	file, err := relative(name)
	if err != nil {
		return "", err
	}
	entries, err := h.s.ReadDir(path.Dir(file))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == path.Base(file) })
	switch {
	case i < 0:
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrNotExist}
	case entries[i].Mode&fs.ModeSymlink == 0:
		return "", &fs.PathError{Op: "readlink", Path: name, Err: syscall.EINVAL}
	}
	return entries[i].Link, nil
}

// ReadDir returns the names in a directory, sorted.
func (h Host) ReadDir(name string) (names []string, err error) {
	at, err := relative(name)
	if err != nil {
		return nil, err
	}
	entries, err := h.s.ReadDir(at)
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, err
}

// Put writes files, and creates the directories above them. A reader sees the old or the
// new content of each.
func (h Host) Put(files ...sys.File) error {
	for _, f := range files { // in their order: a later one may be below an earlier
		at, err := relative(f.Name)
		if err == nil {
			err = h.s.Put(Tree{at: {Mode: f.Mode, Content: f.Content, Link: f.Link, UID: f.UID, GID: f.GID}})
		}
		if err != nil {
			return err
		}
	}
	return h.s.CheckPaths()
}

// Remove removes files, and directories recursively.
func (h Host) Remove(names ...string) error {
	var errs []error
	for _, name := range names {
		at, err := relative(name)
		if err == nil {
			err = h.s.Remove(at)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, h.s.CheckPaths())...)
}

// Exec runs a command and returns its exit code. ctx ends it with all processes that it
// has started.
func (h Host) Exec(ctx context.Context, c sys.Command) (int, error) {
	code, err := h.s.Exec(ctx, Command{Args: c.Args, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr})
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return code, errors.Join(err, h.s.CheckPaths())
}

// Boot returns the boot of the system.
func (h Host) Boot() (sys.Boot, error) { return h.s.c.Boot, nil }

// Reboot shuts the system down in order and boots it again. It returns before that has
// happened.
func (h Host) Reboot(context.Context) error { return asError(reboot(h.s, nil)) }

// PowerOff shuts the system down in order and switches the server off. It returns before that
// has happened.
func (h Host) PowerOff(context.Context) error { return asError(powerOff(h.s, nil)) }

func asError(text string, code int) error {
	if code != 0 {
		_, text = streamsOf(text)
		return errors.New(strings.TrimSpace(text))
	}
	return nil
}
