package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// tester runs tests of packages, with a mutation or without.
type tester struct {
	root    string        // root directory of the module
	module  string        // its path
	work    string        // a directory for files of tests and of this program
	env     []string      // environment of the go command
	minimum time.Duration // the shortest time-out of a package
	// clean has the duration of each package's tests without a mutation, by its
	// import path.
	clean map[string]time.Duration
	runs  int // how many runs there were
	// unfenced is how many mutations of guards are left out.
	unfenced int
}

// verdict is the result of one package's tests with a mutation.
type verdict struct {
	Broken bool   // the mutated package does not compile
	Failed string // the test that failed, or how the package did; "" when all pass
}

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output, FailedBuild string
	Elapsed                                    float64 // seconds
}

// timedOut finds the test that a time-out ends, in the output of package testing.
var timedOut = regexp.MustCompile(`panic: test timed out after [^\n]*\n\s*running tests:\n\s*(\S+)`)

// cover runs the tests of a family and returns their coverage profile of it. It
// records the duration of each package's tests.
func (t *tester) cover(ctx context.Context, f Family) (profile string, err error) {
	profile = filepath.Join(t.work, "cover-"+f.Name)
	args := append([]string{"-count=1", "-timeout=30m", "-coverprofile=" + profile, "-coverpkg=" + strings.Join(f.Packages, ",")}, f.Packages...)
	err = t.unmutated(ctx, args...)
	return profile, err
}

// unmutated runs tests without a mutation, and remembers their durations. It runs
// them again when one fails: on a busy machine a run may take too long.
func (t *tester) unmutated(ctx context.Context, args ...string) error {
	var failed error
	for range 2 {
		events, err := t.run(ctx, nil, args...)
		if err != nil {
			return err
		}
		if failed = t.remember(events); failed == nil {
			return nil
		}
	}
	return failed
}

// remember keeps the durations of packages whose tests pass. A package that fails
// without a mutation tells nothing about mutations.
func (t *tester) remember(events []event) error {
	for _, e := range events {
		switch {
		case e.Action == "fail":
			return fmt.Errorf("%s %s fails without a mutation:\n%s", e.Package, e.Test, outputOf(events, e))
		case e.Action == "pass" && e.Test == "":
			t.clean[e.Package] = time.Duration(e.Elapsed * float64(time.Second))
		}
	}
	return nil
}

// judge runs the tests of a package with a mutation.
func (t *tester) judge(ctx context.Context, pkg string, m Mutation) (verdict, error) {
	if _, known := t.clean[pkg]; !known {
		if err := t.unmutated(ctx, "-count=1", "-timeout=30m", pkg); err != nil {
			return verdict{}, err
		}
	}
	overlay, err := t.overlay(m)
	if err != nil {
		return verdict{}, err
	}
	limit := max(t.minimum, 2*t.clean[pkg])
	events, err := t.run(ctx, []string{"GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay)}, "-failfast", fmt.Sprint("-timeout=", limit), pkg)
	if err != nil {
		return verdict{}, err
	}
	var v verdict
	for _, e := range events {
		switch {
		case e.Action != "fail":
		case e.FailedBuild != "":
			return verdict{Broken: true}, nil
		case v.Failed == "":
			if v.Failed = e.Test; e.Test == "" {
				v.Failed = "its process fails"
			}
			if running := timedOut.FindStringSubmatch(outputOf(events, e)); running != nil {
				v.Failed = "time-out in " + running[1]
			}
		}
	}
	return v, nil
}

// overlay writes the mutated file and the file that tells the go command of it.
func (t *tester) overlay(m Mutation) (string, error) {
	at := filepath.Join(t.root, m.File)
	src, err := os.ReadFile(at)
	if err != nil {
		return "", err
	}
	mutated, overlay := filepath.Join(t.work, "mutated.go"), filepath.Join(t.work, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {at: mutated}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(mutated, m.Apply(src), 0o600), os.WriteFile(overlay, replace, 0o600))
}

// run runs `go test -json` with arguments in a process group of its own, which it
// kills when ctx ends. That tests fail is not an error.
func (t *tester) run(ctx context.Context, env []string, args ...string) ([]event, error) {
	t.runs++
	temp := filepath.Join(t.work, fmt.Sprint(t.runs)) // short, as t.work is
	if err := errors.Join(os.Mkdir(temp, 0o700), os.Chmod(temp, searchable)); err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp) // a test that a time-out ends leaves its files behind
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-vet=off"}, args...)...)
	cmd.Dir = t.root
	cmd.Env = append(append(os.Environ(), "TMPDIR="+temp), append(t.env, env...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second // a process that a test started may keep the pipe
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	events, bad := decode(&stdout)
	if exit := (*exec.ExitError)(nil); bad != nil || err != nil && (!errors.As(err, &exit) || len(events) == 0) {
		return nil, fmt.Errorf("go test %s: %w\n%s", strings.Join(args, " "), errors.Join(err, bad), &stderr)
	}
	return events, nil
}

func decode(r io.Reader) (events []event, err error) {
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return events, nil
		} else if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
}

// outputOf is the output of the test or package of an event.
func outputOf(events []event, of event) string {
	var out strings.Builder
	for _, e := range events {
		if e.Package == of.Package && (of.Test == "" || e.Test == of.Test) {
			out.WriteString(e.Output)
		}
	}
	return out.String()
}
