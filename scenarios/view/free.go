package view

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

// CheckFree returns an error when a recording, with snapshots in a directory unless that is
// empty, would replace something that is no earlier recording.
func CheckFree(file, snapshots string) error {
	const fix = "name another file, or move it away"
	to := outfile.File{Path: file, Fix: fix, Made: func(name string) bool {
		_, err := NewReplay(name, slog.New(slog.DiscardHandler))
		return err == nil
	}}
	if err := to.Check(); err != nil || snapshots == "" {
		return err
	}
	for _, name := range []string{startSnapshot, endSnapshot} {
		at := filepath.Join(snapshots, name)
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := snapshot.Open(at); err != nil {
			return fmt.Errorf("%s is there already, and no snapshot of a lab: %s", at, fix)
		}
	}
	return nil
}
