package main

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// fakeServer is a lab with one server.
type fakeServer struct {
	files map[string]control.File
	full  bool // no file can be written
	play  func(ctx context.Context, c control.Command) (int, error)
	ran   []control.Command
}

func (s *fakeServer) PutFile(_ context.Context, _ string, f control.File) error {
	if s.full && f.Mode.IsRegular() {
		return errors.New("no space left on device")
	}
	s.files[f.Path] = f
	return nil
}

func (s *fakeServer) Exec(ctx context.Context, _ string, c control.Command) (int, error) {
	s.ran = append(s.ran, c)
	if c.Args[0] != "rm" {
		return s.play(ctx, c)
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	for name := range s.files {
		if dir := c.Args[len(c.Args)-1]; name == dir || strings.HasPrefix(name, dir+"/") {
			delete(s.files, name)
		}
	}
	return 0, nil
}

// A play gets the module's files, values and callback, in a directory that is removed whatever
// happens.
func TestModuleRun(t *testing.T) {
	archive, _, err := module.Build(fstest.MapFS{
		"metadata.yaml":   {Data: []byte("name: greeting\nversion: 1.0.0\nplaybook: plays/main.yaml\n")},
		"plays/main.yaml": {Data: []byte("[]\n")},
		"files/tool":      {Data: []byte("#!/bin/sh\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := module.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]fs.FileMode{}
	for _, tt := range []struct {
		name  string
		full  bool
		check bool
		play  func(s *fakeServer, cancel func(), ctx context.Context, c control.Command) (int, error)
		code  int
		err   string
	}{
		{name: "it succeeds", check: true, play: func(s *fakeServer, _ func(), _ context.Context, c control.Command) (int, error) {
			for name, f := range s.files {
				seen[strings.TrimPrefix(name, path.Dir(c.Dir))] = f.Mode
			}
			if got := string(s.files[path.Dir(c.Dir)+"/play/values.yaml"].Content); got != `{"values": {"to": "world"}}`+"\n" {
				t.Errorf("variables = %s", got)
			}
			if !slices.Contains(c.Args, "--check") || c.Args[len(c.Args)-1] != "plays/main.yaml" || !slices.Contains(c.Env, "ANSIBLE_LOG_PATH=/dev/null") {
				t.Errorf("command = %q, %q", c.Args, c.Env)
			}
			return 0, nil
		}},
		{name: "it fails", code: 2, play: func(_ *fakeServer, _ func(), _ context.Context, c control.Command) (int, error) {
			if slices.Contains(c.Args, "--check") {
				t.Error("--check was not asked for")
			}
			return 2, nil
		}},
		{name: "Ctrl-C", err: "context canceled", play: func(_ *fakeServer, cancel func(), ctx context.Context, _ control.Command) (int, error) {
			cancel()
			return 0, ctx.Err()
		}},
		{name: "no Ansible", code: 127, err: "/usr/bin/ansible-playbook is not on node-0: install the package ansible", play: func(*fakeServer, func(), context.Context, control.Command) (int, error) {
			return 127, nil
		}},
		{name: "a full disk", full: true, err: "no space left on device"},
	} {
		s := &fakeServer{files: map[string]control.File{}, full: tt.full}
		ctx, cancel := context.WithCancel(t.Context())
		s.play = func(ctx context.Context, c control.Command) (int, error) { return tt.play(s, cancel, ctx, c) }
		code, err := runModule(ctx, s, "node-0", m, map[string]any{"to": "world"}, tt.check, nil, nil)
		cancel()
		if code != tt.code || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: runModule = %d, %v, want %d, %q", tt.name, code, err, tt.code, tt.err)
		}
		if len(s.files) > 0 {
			t.Errorf("%s: files are left: %q", tt.name, slices.Sorted(maps.Keys(s.files)))
		}
	}
	want := map[string]fs.FileMode{
		"": fs.ModeDir | 0o700, "/greeting-1.0.0/files/tool": 0o600, "/greeting-1.0.0/metadata.yaml": 0o600, "/greeting-1.0.0/plays/main.yaml": 0o600,
		"/play": fs.ModeDir | 0o700, "/play/ansible": fs.ModeDir | 0o700, "/play/callback": fs.ModeDir | 0o700, "/play/callback/lcm_failure.py": 0o600, "/play/values.yaml": 0o600,
	}
	for name := range seen { // directories of an archive need no entry
		if seen[name] == fs.ModeDir|0o755 {
			delete(seen, name)
		}
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("files on the server (-want +got):\n%s", diff)
	}
}
