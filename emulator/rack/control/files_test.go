package control_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

func TestPutFile(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	written := map[string]control.File{}
	refused := errors.New("the server is off")
	start(t, control.Config{Rack: l.Rack, PutFile: func(_ context.Context, h *rack.Host, f control.File) error {
		if f.Path == "/off" {
			return refused
		}
		written[h.Name()] = f
		return nil
	}})
	c, host := control.NewClient(l.Dir()), l.First().Name()
	want := control.File{Path: "/etc/a b&c", Mode: 0o640, Content: []byte("text\x00\n")}
	for _, want := range []control.File{want, {Path: "/d", Mode: fs.ModeDir | 0o750}, {Path: "/l", Mode: fs.ModeSymlink | 0o777, Link: "../a b"}} {
		if err := c.PutFile(t.Context(), host, want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]control.File{host: want}, written, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	}
	wantRefused(t, "PutFile of a link to nowhere", c.PutFile(t.Context(), host, control.File{Path: "/l", Mode: fs.ModeSymlink}), 400, "the target of a link has 1 to 4096 bytes, not 0")
	if err := c.PutFile(t.Context(), host, control.File{Path: "/p", Mode: fs.ModeNamedPipe}); err == nil || err.Error() != "/p: it is no file, directory or link" {
		t.Errorf("PutFile of a pipe error = %v", err)
	}
	wantRefused(t, "PutFile to a server that refuses", c.PutFile(t.Context(), host, control.File{Path: "/off"}), 400, refused.Error())
	wantRefused(t, "PutFile to no host", c.PutFile(t.Context(), "node-77", want), 404, "node-77")
}

func TestFilesOfALabWithoutSystems(t *testing.T) {
	l, c := serve(t)
	const text = "this lab runs no operating systems"
	host := l.First().Name()
	_, err := c.Files(t.Context(), host, "/")
	wantRefused(t, "Files", err, 400, text)
	_, err = c.FileChanges(t.Context(), host)
	wantRefused(t, "FileChanges", err, 400, text)
	wantRefused(t, "PutFile", c.PutFile(t.Context(), host, control.File{Path: "/a"}), 400, text)
}
