package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// treeServer is the part of a lab that directories are copied by.
type treeServer interface {
	Files(ctx context.Context, host, path string) (control.Files, error)
	PutFile(ctx context.Context, host string, f control.File) error
}

// treeCopy copies directories between this machine and servers, with the modes of files and with
// links as they are. One file is in memory at a time, of several hosts a few.
type treeCopy struct {
	lab     treeServer
	warn    io.Writer     // lines about devices, pipes and sockets, which stay behind
	largest chan struct{} // has room for as many large files as may be in memory
}

const (
	largeFile = 1 << 20  // bytes
	maxFile   = 64 << 20 // bytes that a copied file may have
)

func newTreeCopy(lab treeServer, warn io.Writer) *treeCopy {
	return &treeCopy{lab, warn, make(chan struct{}, 2)}
}

// to copies a directory of this machine to a server. A target that is a directory there, or ends in
// a slash, gets it under its name.
func (t *treeCopy) to(ctx context.Context, from, host, target string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	under := strings.HasSuffix(target, "/")
	if there, err := t.lab.Files(ctx, host, target); err == nil && !there.File { // another error shows when it is written to
		under = true
	}
	if under {
		whole, err := filepath.Abs(from)
		if err != nil {
			return err
		}
		target = path.Join(target, filepath.Base(whole))
	}
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := control.File{Path: path.Join(target, name), Mode: info.Mode().Type() | info.Mode().Perm()}
		switch info.Mode().Type() {
		case fs.ModeDir:
		case fs.ModeSymlink:
			if f.Link, err = root.Readlink(name); err != nil {
				return err
			}
		case 0:
			return t.putFile(ctx, root, name, info.Size(), host, f)
		default:
			fmt.Fprintf(t.warn, "left out: %s is no file, directory or link\n", filepath.Join(from, name))
			return nil
		}
		return t.lab.PutFile(ctx, host, f)
	})
}

// putFile copies a file below a directory of this machine.
func (t *treeCopy) putFile(ctx context.Context, root *os.Root, name string, size int64, host string, f control.File) error {
	if size > largeFile {
		t.largest <- struct{}{}
		defer func() { <-t.largest }()
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.Content, err = io.ReadAll(io.LimitReader(file, maxFile+1)); err != nil {
		return err
	}
	if len(f.Content) > maxFile {
		return fmt.Errorf("%s: a file may have %d MiB", filepath.Join(root.Name(), name), maxFile>>20)
	}
	return t.lab.PutFile(ctx, host, f)
}

// from copies a directory of a server to this machine. A target that is a directory here gets it
// under its name. Nothing is written outside of the target, whatever names and links the server has.
// Before anything is written, a file or link that is there with another content is refused, unless
// force is set.
func (t *treeCopy) from(ctx context.Context, host, name, target string, force bool) error {
	if st, err := os.Stat(target); err == nil && st.IsDir() {
		target = filepath.Join(target, path.Base(name))
	}
	all, err := t.list(ctx, host, name)
	if err != nil {
		return err
	}
	if st, err := os.Stat(target); err == nil && !st.IsDir() {
		return fmt.Errorf("%s is a file, and %s:%s a directory: name a directory", target, host, name)
	} else if err == nil && !force {
		if err := t.differing(ctx, host, name, target, all); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range all {
		switch {
		case e.Dir:
			if err := root.Mkdir(e.Name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		case e.Link != "":
			if err := replaceLink(root, e.Link, e.Name); err != nil {
				return err
			}
		default:
			if err := t.fetch(ctx, host, path.Join(name, e.Name), root, e.Name, permissions(e.Mode)); err != nil {
				return err
			}
		}
	}
	for _, e := range slices.Backward(all) { // at the end, since a mode may forbid to write
		if e.Dir {
			if err := root.Chmod(e.Name, permissions(e.Mode)); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the entries of a directory of a server and of all directories below it, each
// directory before its entries, with names relative to it.
func (t *treeCopy) list(ctx context.Context, host, name string) (all []control.FileEntry, err error) {
	for left := []string{"."}; len(left) > 0; {
		at := left[len(left)-1]
		left = left[:len(left)-1]
		list, err := t.lab.Files(ctx, host, path.Join(name, at))
		if err != nil {
			return nil, err
		}
		for _, e := range list.Entries {
			if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") {
				return nil, fmt.Errorf("%s:%s has an entry %q, which is no name", host, path.Join(name, at), e.Name)
			}
			e.Name = path.Join(at, e.Name)
			switch {
			case e.Dir:
				left = append(left, e.Name)
			case e.Link == "" && strings.ContainsAny(e.Mode, "DpSc"):
				fmt.Fprintf(t.warn, "left out: %s:%s is no file, directory or link\n", host, path.Join(name, e.Name))
				continue
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// differing returns an error that names a file or link in the target that is not as on the server.
func (t *treeCopy) differing(ctx context.Context, host, name, target string, all []control.FileEntry) error {
	root, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range all {
		st, err := root.Lstat(e.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case e.Dir && st.Mode().Type() != fs.ModeSymlink: // a directory is not replaced, and a link may not lead out
			continue
		case e.Dir:
		case e.Link != "":
			if to, err := root.Readlink(e.Name); err == nil && to == e.Link {
				continue
			}
		case st.Mode().IsRegular():
			f, err := t.lab.Files(ctx, host, path.Join(name, e.Name))
			if err != nil {
				return err
			}
			if is, err := root.ReadFile(e.Name); err == nil && bytes.Equal(is, f.Content) {
				continue
			}
		}
		return fmt.Errorf("%s is there already, with another content: name another directory, or replace it with --force", filepath.Join(target, e.Name))
	}
	return nil
}

// permissions returns the permission bits of a mode as a listing has it: -rw-r--r--.
func permissions(text string) (mode fs.FileMode) {
	const bits = "rwxrwxrwx"
	for i := range bits {
		if at := len(text) - len(bits) + i; at >= 0 && text[at] != '-' {
			mode |= 1 << (len(bits) - 1 - i)
		}
	}
	return mode
}

// replaceLink writes a link in the place of an earlier one.
func replaceLink(root *os.Root, to, name string) error {
	if st, err := root.Lstat(name); err == nil && st.Mode().Type() == fs.ModeSymlink {
		if err := root.Remove(name); err != nil {
			return err
		}
	}
	return root.Symlink(to, name)
}

// fetch copies a file of a server.
func (t *treeCopy) fetch(ctx context.Context, host, name string, root *os.Root, to string, mode fs.FileMode) error {
	f, err := t.lab.Files(ctx, host, name)
	if err != nil {
		return err
	}
	if !f.File {
		return fmt.Errorf("%s:%s has become a directory: copy again", host, name)
	}
	part := to + "." + rand.Text() + ".part"
	file, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Content)
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err == nil {
		err = root.Rename(part, to)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(part))
	}
	return err
}
