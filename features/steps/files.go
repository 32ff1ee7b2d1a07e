package steps

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

func (s *scenario) registerFiles(sc *stepRegistry) {
	sc.Step(`^this machine has "([^"]+)"$`, "skips the scenario, or fails it where METALAB_NEED_PROGRAMS is set, if a prerequisite of tests is missing", needs)
	sc.Step(`^the server's file "([^"]+)" contains "([^"]+)"$`, "reads the file of the running system as labctl host files does, and waits until it contains the text", s.fileContains)
	sc.Step(`^the server's file "([^"]+)" is "([^"]*)"$`, "waits until the words of the file are these", s.fileIs)
	sc.Step(`^the command "([^"]+)" runs on the server$`, "runs a line of a shell in the running system as labctl host exec does; it ends with code 0, or the system with it", s.runCommand)
	sc.Step(`^the operator resets the server's system$`, "makes the running system new, as labctl host reset-os does", func(ctx context.Context) error {
		s.commandBoots = s.machine().Boots
		_, err := s.lab.Control().ResetSystem(ctx, s.server.Name)
		return err
	})
	sc.Step(`^the server boots again$`, "waits until the server has booted from its first disk since the last command", s.bootsAgain)
	sc.NegativeStep(`^these commands on the server end with an error:$`, "runs lines of a shell in the running system, which end with another code than 0", s.commandsFail)
	sc.NegativeStep(`^the server has no file "([^"]+)"$`, "asserts, once each controller has reconciled every object, that the running system has no such file", s.hasNoFile)
}

func (s *scenario) fileContains(ctx context.Context, path, text string) error {
	return s.fileOfContains(ctx, s.server.Name, path, text)
}

// fileOfContains waits until a file of a server contains a text.
func (s *scenario) fileOfContains(ctx context.Context, server, path, text string) error {
	return eventually(ctx, "the file contains the text", func(ctx context.Context) (bool, string, error) {
		f, err := s.lab.Control().Files(ctx, server, path)
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
	dir, err := s.lab.Control().Files(ctx, s.server.Name, filepath.Dir(path))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(dir.Entries, func(e control.FileEntry) bool { return e.Name == filepath.Base(path) }) {
		return fmt.Errorf("%s is there", path)
	}
	return nil
}

func (s *scenario) fileIs(ctx context.Context, path, text string) error {
	return eventually(ctx, "the file is the text", func(ctx context.Context) (bool, string, error) {
		f, err := s.lab.Control().Files(ctx, s.server.Name, path)
		if err != nil {
			return false, err.Error(), nil
		}
		return f.File && strings.Join(strings.Fields(string(f.Content)), " ") == text, fmt.Sprintf("file %t, %q", f.File, f.Content), nil
	})
}

// shell runs a line of a shell in the system that the server runs.
func (s *scenario) shell(ctx context.Context, line string) (code int, output string, err error) {
	return s.shellOn(ctx, s.server.Name, line)
}

// shellOn runs a line of a shell in the system that a server runs.
func (s *scenario) shellOn(ctx context.Context, server, line string) (code int, output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience.Limit())
	defer cancel()
	var out strings.Builder
	code, err = s.lab.Control().Exec(ctx, server, control.Command{Args: []string{"/bin/sh", "-c", line}, Stdout: &out, Stderr: &out})
	return code, out.String(), err
}

func (s *scenario) runCommand(ctx context.Context, line string) error {
	s.commandBoots = s.machine().Boots
	code, out, err := s.shell(ctx, line)
	if err != nil && strings.Contains(err.Error(), "has stopped") {
		return nil
	}
	if err == nil && code != 0 {
		err = fmt.Errorf("code %d: %s", code, out)
	}
	return err
}

func (s *scenario) bootsAgain(ctx context.Context) error {
	return eventually(ctx, "the server has booted again", func(context.Context) (bool, string, error) {
		v := s.machine()
		return v.Boots > s.commandBoots && v.Phase == machine.Running, fmt.Sprintf("boot %d, %s", v.Boots, v.Phase), nil
	})
}

func (s *scenario) commandsFail(ctx context.Context, table *godog.Table) error {
	for _, row := range table.Rows {
		line := row.Cells[0].Value
		code, out, err := s.shell(ctx, line)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if code == 0 {
			return fmt.Errorf("%s ended with code 0: %s", line, out)
		}
	}
	return nil
}

// needs skips the scenario if a prerequisite is missing, or fails it where that is a failure.
func needs(name string) error {
	p, ok := prerequisites.Lookup(name)
	if !ok {
		return fmt.Errorf("%q is not in the table of package prerequisites", name)
	}
	_, err := prerequisites.Find(name)
	if err != nil && (p.Optional || !prerequisites.Required()) {
		return godog.ErrSkip
	}
	return err
}
