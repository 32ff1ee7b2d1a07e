package steps

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/lab/control"
)

func (s *scenario) registerFiles(sc *stepRegistry) {
	sc.Step(`^the server's file "([^"]+)" contains "([^"]+)"$`, "reads the file of the running system as labctl host files does, and waits until it contains the text", s.fileContains)
	sc.NegativeStep(`^the server has no file "([^"]+)"$`, "asserts, once each controller has reconciled every object, that the running system has no such file", s.hasNoFile)
}

func (s *scenario) fileContains(ctx context.Context, path, text string) error {
	return eventually(ctx, "the file contains the text", func(ctx context.Context) (bool, string, error) {
		f, err := s.world.Control().Files(ctx, s.server.Name, path)
		if err != nil {
			return false, err.Error(), nil
		}
		return f.File && strings.Contains(string(f.Content), text), fmt.Sprintf("file %t, %q", f.File, f.Content), nil
	})
}

func (s *scenario) hasNoFile(ctx context.Context, path string) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	dir, err := s.world.Control().Files(ctx, s.server.Name, filepath.Dir(path))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(dir.Entries, func(e control.FileEntry) bool { return e.Name == filepath.Base(path) }) {
		return fmt.Errorf("%s is there", path)
	}
	return nil
}
