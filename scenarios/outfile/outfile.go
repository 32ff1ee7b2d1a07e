// Package outfile writes the files that a user names to a command. A file that is there already
// and that the product has not made is not replaced, and a command that fails leaves what was
// there before. It does not know what the files contain.
package outfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// File is a file that a command writes.
type File struct {
	Path string
	// Made reports whether the product has made the file at a path, so that a new one may replace
	// it; nil: no file is replaced.
	Made func(path string) bool
	// Force replaces every file.
	Force bool
	// Fix says what helps when the file is somebody else's; "" is to name another file or --force.
	Fix string
}

// Contains reports whether a file has a text, for Made: the file may be as large as a disk.
func Contains(path, text string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	buf, kept := make([]byte, 1<<16), 0 // kept bytes of the last read may begin the text
	for {
		n, err := f.Read(buf[kept:])
		if bytes.Contains(buf[:kept+n], []byte(text)) {
			return true
		}
		if err != nil {
			return false
		}
		from := max(0, kept+n-(len(text)-1))
		kept = copy(buf, buf[from:kept+n])
	}
}

// Check returns an error when something is there that Write does not replace. Commands call it
// before they begin.
func (f File) Check() error {
	at, st, err := f.target()
	if err != nil {
		return err
	}
	if st == nil {
		return writable(filepath.Dir(at))
	}
	switch {
	case st.IsDir():
		return fmt.Errorf("%s is a directory: name a file", f.Path)
	case !st.Mode().IsRegular(), // a device or a pipe holds nothing that is lost
		st.Size() == 0, f.Force, f.Made != nil && f.Made(at):
		if st.Mode().IsRegular() {
			return writable(filepath.Dir(at))
		}
		return nil
	}
	fix, whose := f.Fix, ""
	if f.Made != nil {
		whose = ", and not labctl's"
	}
	if fix == "" {
		fix = "name another file, or replace it with --force"
	}
	return fmt.Errorf("%s is there already%s: %s", f.Path, whose, fix)
}

// writable returns an error when no file can be made in a directory. It makes one: permissions do
// not tell of a file system that is read-only or full.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, "metalab-*.part")
	if err != nil {
		return of(dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// of names the path that the user has given in an error of another path beside or below it.
func of(path string, err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// target returns the path without links, and the file there; nil for none.
func (f File) target() (string, fs.FileInfo, error) {
	if _, err := os.Lstat(f.Path); errors.Is(err, fs.ErrNotExist) {
		return f.Path, nil, nil
	} else if err != nil {
		return "", nil, err
	}
	at, err := filepath.EvalSymlinks(f.Path) // a link stays, and the file behind it is replaced
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("%s is a link to a file that is not there: remove the link, or name another file", f.Path)
	}
	if err != nil {
		return "", nil, err
	}
	st, err := os.Stat(at)
	return at, st, err
}

// Write writes the file at once: until content has returned without an error, what was there
// stays. A device or a pipe gets the content as it is.
func (f File) Write(mode fs.FileMode, content func(*os.File) error) error {
	if err := f.Check(); err != nil {
		return err
	}
	at, st, err := f.target()
	if err != nil {
		return err
	}
	if st != nil && !st.Mode().IsRegular() {
		return pass(at, content)
	}
	part, err := begin(at, mode, content)
	if err != nil {
		return err
	}
	if err := os.Rename(part, at); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// begin writes a new file beside a path, and returns its name.
func begin(at string, mode fs.FileMode, content func(*os.File) error) (part string, err error) {
	f, err := os.CreateTemp(filepath.Dir(at), filepath.Base(at)+".*.part")
	if err != nil {
		return "", of(at, err)
	}
	if err = errors.Join(content(f), f.Chmod(mode), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// pass writes content, which may seek, to something that is no regular file.
func pass(at string, content func(*os.File) error) (err error) {
	f, err := os.CreateTemp("", "metalab-*.part")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := content(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, err := os.OpenFile(at, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return errors.Join(err, to.Close())
}

// Bytes is a content for Write.
func Bytes(b []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(b)
		return err
	}
}

// Tree is files that belong together, below a directory that is made when it is not there.
type Tree struct {
	Dir   string
	Files map[string][]byte // by name, with slashes
	// Made, Force and Fix are those of each File.
	Made  func(path string) bool
	Force bool
	Fix   string
}

// Check returns the error of the first file that Write does not replace.
func (t Tree) Check() error {
	if st, err := os.Stat(t.Dir); err == nil && !st.IsDir() {
		return fmt.Errorf("%s is a file: name a directory", t.Dir)
	}
	for _, name := range t.names() {
		f := t.file(name)
		if _, err := os.Lstat(f.Path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := f.Check(); err != nil {
			return err
		}
	}
	above := t.Dir
	for {
		if _, err := os.Stat(above); !errors.Is(err, fs.ErrNotExist) {
			return writable(above)
		}
		above = filepath.Dir(above)
	}
}

func (t Tree) file(name string) File {
	return File{Path: filepath.Join(t.Dir, filepath.FromSlash(name)), Made: t.Made, Force: t.Force, Fix: t.Fix}
}

func (t Tree) names() []string {
	names := make([]string, 0, len(t.Files))
	for name := range t.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Write writes all files or none of them. It replaces none before all are complete.
func (t Tree) Write(dirMode, mode fs.FileMode) (err error) {
	if err := t.Check(); err != nil {
		return err
	}
	var undo []string // what did not exist before
	defer func() {
		if err != nil {
			for _, name := range slices.Backward(undo) {
				_ = os.Remove(name) // one that has something else in it stays
			}
		}
	}()
	type part struct{ from, to string }
	var parts []part
	for _, name := range t.names() {
		at, st, err := t.file(name).target()
		if err != nil {
			return err
		}
		made, err := makeDirs(filepath.Dir(at), dirMode)
		if undo = append(undo, made...); err != nil {
			return err
		}
		from, err := begin(at, mode, Bytes(t.Files[name]))
		if err != nil {
			return err
		}
		if undo = append(undo, from); st == nil {
			undo = append(undo, at)
		}
		parts = append(parts, part{from, at})
	}
	for _, p := range parts {
		if err := os.Rename(p.from, p.to); err != nil {
			return err
		}
	}
	return nil
}

// makeDirs makes a directory and those above it, and returns the new ones.
func makeDirs(dir string, mode fs.FileMode) (made []string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, at)
	}
	slices.Reverse(made)
	return made, os.MkdirAll(dir, mode)
}
