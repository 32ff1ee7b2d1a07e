package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// Files lists the entries of a directory of a fakeServer, or returns a file.
func (s *fakeServer) Files(_ context.Context, _, name string) (control.Files, error) {
	f, there := s.files[name]
	if !there && name != "/" {
		return control.Files{}, fs.ErrNotExist
	}
	if there && f.Mode.IsRegular() {
		return control.Files{File: true, Content: f.Content}, nil
	}
	out := control.Files{}
	for _, e := range s.files {
		if path.Dir(e.Path) == path.Clean(name) && e.Path != "/" {
			out.Entries = append(out.Entries, control.FileEntry{Name: strings.TrimPrefix(e.Path, path.Join(name, "/")+"/"), Dir: e.Mode.IsDir(), Link: e.Link, Mode: e.Mode.String()})
		}
	}
	return out, nil
}

// tree describes the content of a directory: modes, contents and links.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch info.Mode().Type() {
		case 0:
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text += " " + string(b)
		case fs.ModeSymlink:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			text += " " + to
		}
		out[strings.TrimPrefix(name, dir+"/")] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A directory goes to a server and back with modes, links and empty directories.
func TestDirectoriesAreCopiedBothWays(t *testing.T) {
	from := filepath.Join(t.TempDir(), "roles")
	for _, do := range []error{
		os.MkdirAll(filepath.Join(from, "a/empty"), 0o755), os.WriteFile(filepath.Join(from, "a/run"), []byte("#!/bin/sh\n"), 0o755),
		os.WriteFile(filepath.Join(from, "secret"), []byte("s"), 0o600), os.Chmod(filepath.Join(from, "a/run"), 0o751),
		os.Symlink("../secret", filepath.Join(from, "a/link")), os.Symlink("/no/where", filepath.Join(from, "dangling")),
		os.Chmod(filepath.Join(from, "a"), 0o510), syscall.Mkfifo(filepath.Join(from, "pipe"), 0o600),
	} {
		if do != nil {
			t.Fatal(do)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(from, "a"), 0o700) })
	want := tree(t, from)
	delete(want, "pipe")
	s := &fakeServer{files: map[string]control.File{"/root": {Path: "/root", Mode: fs.ModeDir | 0o700}}}
	var warnings strings.Builder
	c := newTreeCopy(s, &warnings)
	for target, at := range map[string]string{"/root": "/root/roles", "/new": "/new", "/srv/": "/srv/roles"} {
		if err := c.to(t.Context(), from, "node-0", target); err != nil {
			t.Fatalf("to %s: %v", target, err)
		}
		for dir, name := range map[string]string{t.TempDir(): path.Base(at), filepath.Join(t.TempDir(), "other"): ""} {
			for range 2 { // the second time over the first, whose a cannot be written to
				if err := c.from(t.Context(), "node-0", at, dir, false); err != nil {
					t.Fatalf("from %s: %v", at, err)
				}
				got := tree(t, filepath.Join(dir, name))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, to %s and back (-want +got):\n%s", from, at, diff)
				}
				if os.Getuid() != 0 || name == "" {
					break
				}
			}
			_ = os.Chmod(filepath.Join(dir, name, "a"), 0o700) // so that the directory can be removed
		}
	}
	if got := strings.Count(warnings.String(), "left out: "+from+"/pipe is no file, directory or link\n"); got != 3 {
		t.Errorf("warnings:\n%s", &warnings)
	}
}

// What a server has does not lead out of the target, and a mistake names its file.
func TestCopiesOfDirectoriesAreRefused(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	big := filepath.Join(t.TempDir(), "big")
	err := errors.Join(
		os.Mkdir(filepath.Join(dir, "x"), 0o700), os.Symlink(outside, filepath.Join(dir, "x", "d")),
		os.Mkdir(big, 0o700), os.WriteFile(filepath.Join(big, "file"), nil, 0o600), os.Truncate(filepath.Join(big, "file"), maxFile+1))
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{files: map[string]control.File{
		"/x": {Path: "/x", Mode: fs.ModeDir | 0o755}, "/x/d": {Path: "/x/d", Mode: fs.ModeDir | 0o755}, "/x/d/f": {Path: "/x/d/f", Mode: 0o644},
	}}
	c := newTreeCopy(s, os.Stderr)
	for want, err := range map[string]error{
		"path escapes":           c.from(t.Context(), "node-0", "/x", dir, true),
		"which is no name":       newTreeCopy(badNames{s}, os.Stderr).from(t.Context(), "node-0", "/x", filepath.Join(dir, "y"), false),
		"a file may have 64 MiB": c.to(t.Context(), big, "node-0", "/big"),
		"no such file":           c.to(t.Context(), big+"-none", "node-0", "/big"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("files outside of the target: %v, %v", entries, err)
	}
}

// A file of this machine that is not as on the server stays, with all others, unless force is set.
func TestCopiesReplaceNoFilesOfOthers(t *testing.T) {
	s := &fakeServer{files: map[string]control.File{
		"/x": {Path: "/x", Mode: fs.ModeDir | 0o755}, "/x/a": {Path: "/x/a", Mode: 0o644, Content: []byte("server")},
		"/x/l": {Path: "/x/l", Mode: fs.ModeSymlink | 0o777, Link: "a"}, "/x/z": {Path: "/x/z", Mode: 0o644, Content: []byte("server")},
	}}
	for name, prepare := range map[string]func(dir string) error{
		"z": func(dir string) error { return os.WriteFile(filepath.Join(dir, "z"), []byte("mine"), 0o600) },
		"l": func(dir string) error { return os.Symlink("mine", filepath.Join(dir, "l")) },
	} {
		dir := filepath.Join(t.TempDir(), "x")
		if err := errors.Join(os.Mkdir(dir, 0o700), prepare(dir)); err != nil {
			t.Fatal(err)
		}
		want := tree(t, dir)
		c := newTreeCopy(s, os.Stderr)
		err := c.from(t.Context(), "node-0", "/x", filepath.Dir(dir), false)
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, name)+" is there already") || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: from() = %v", name, err)
		}
		if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
			t.Errorf("%s: a refused copy has changed (-before +after):\n%s", name, diff)
		}
		for _, force := range []bool{true, false} { // and again over the same content
			if err := c.from(t.Context(), "node-0", "/x", filepath.Dir(dir), force); err != nil {
				t.Errorf("%s: from() with force %t = %v", name, force, err)
			}
		}
		if got := tree(t, dir); got["z"] != "-rw-r--r-- server" || len(got) != 3 {
			t.Errorf("%s: copied by force: %v", name, got)
		}
	}
}

// badNames lists entries that lead out of a directory.
type badNames struct{ *fakeServer }

func (badNames) Files(context.Context, string, string) (control.Files, error) {
	return control.Files{Entries: []control.FileEntry{{Name: "../f", Mode: "-rw-r--r--"}}}, nil
}

func TestPermissionsOfAListing(t *testing.T) {
	for _, mode := range []fs.FileMode{0, 0o644, 0o751, fs.ModeDir | 0o700, fs.ModeDir | fs.ModeSticky | 0o777, fs.ModeSetuid | 0o755} {
		if got := permissions(mode.String()); got != mode.Perm() {
			t.Errorf("permissions(%s) = %v, want %v", mode, got, mode.Perm())
		}
	}
}
