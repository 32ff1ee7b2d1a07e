package control_test

import (
	"context"
	"io"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// The size of a terminal comes with the command: what it writes first has that width.
func TestExecStartsWithTheSizeOfTheTerminal(t *testing.T) {
	runtimeDir(t)
	r := rackfile.Default(1)
	l := racktest.Start(t, rack.Config{Rack: &r})
	got := make(chan control.Size, 1)
	start(t, control.Config{Rack: l.Rack, Exec: func(_ context.Context, _ *rack.Host, c control.Command) (int, error) {
		got <- c.Size
		return 0, nil
	}})
	want := control.Size{Rows: 33, Columns: 99}
	code, err := control.NewClient(l.Dir()).Exec(t.Context(), "node-0", control.Command{
		Args: []string{"top"}, Terminal: true, Size: want, Stdout: io.Discard, Stderr: io.Discard,
	})
	if size := <-got; size != want || code != 0 || err != nil {
		t.Errorf("the command starts with %+v, ends with %d, %v, want %+v", size, code, err, want)
	}
}
