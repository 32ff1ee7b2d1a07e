package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// bmcFile lists the BMCs of a rack. What a BMC leaves open, the flags of the run
// say.
type bmcFile struct {
	BMCs []bmcEntry `json:"bmcs"`
}

type bmcEntry struct {
	Name         string `json:"name"`
	URL          string `json:"url"`
	Username     string `json:"username,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
	IPMI         string `json:"ipmi,omitempty"`
	Serial       string `json:"serial,omitempty"`
	CA           string `json:"ca,omitempty"`
	Insecure     bool   `json:"insecure,omitempty"`
}

// maxBMCs bounds a rack.
const maxBMCs = 1000

var bmcName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func loadBMCs(path string) ([]bmcEntry, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var f bmcFile
	if err := yaml.UnmarshalStrict(b, &f); err != nil {
		return nil, usage.New(fmt.Errorf("%s: %w", path, err))
	}
	if len(f.BMCs) == 0 || len(f.BMCs) > maxBMCs {
		return nil, usage.New(fmt.Errorf("%s: bmcs has %d entries, not 1 to %d", path, len(f.BMCs), maxBMCs))
	}
	seen := map[string]bool{}
	for i, e := range f.BMCs {
		switch {
		case !bmcName.MatchString(e.Name):
			return nil, usage.New(fmt.Errorf("%s: bmcs[%d]: name %q: use letters, digits, dots and dashes", path, i, e.Name))
		case seen[e.Name]:
			return nil, usage.New(fmt.Errorf("%s: bmcs[%d]: name %q is there twice", path, i, e.Name))
		case e.URL == "":
			return nil, usage.New(fmt.Errorf("%s: bmcs[%d]: url is missing", path, i))
		}
		seen[e.Name] = true
	}
	return f.BMCs, nil
}

// runRack runs the checks on all BMCs of a file, some at once, and prints a table.
func (r *conformanceRun) runRack(ctx context.Context, c *cobra.Command, o *options) error {
	if r.parallel < 1 || r.parallel > 64 {
		return usage.New(fmt.Errorf("--parallel %d is not 1 to 64", r.parallel))
	}
	entries, err := loadBMCs(r.rack)
	if err != nil {
		return err
	}
	if err := r.credentials(c.InOrStdin()); err != nil {
		return err
	}
	if r.user != "" {
		r.username = r.user
	}
	out := r.out
	if out == "" {
		out = "conformance"
	}
	disruptive := conformance.Level(r.level).Allows(conformance.Disruptive)
	if disruptive && !r.yes && !r.dryRun {
		return &conformance.Refusal{Text: "a rack has many servers to restart: confirm the run with --yes, and each server with its serial in the file"}
	}
	var (
		gates    chassisGates
		slots    = make(chan struct{}, r.parallel)
		progress = &prefixed{w: c.ErrOrStderr()}
		outcomes = make([]*checked, len(entries))
		failures = make([]error, len(entries))
		running  sync.WaitGroup
	)
	for i, e := range entries {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			one := r.of(e, filepath.Join(out, e.Name), filepath.Dir(r.rack))
			lines := progress.named(e.Name)
			host, err := one.resolve(strings.NewReader(""))
			if err == nil {
				outcomes[i], err = one.run(ctx, host, strings.NewReader(""), lines, lines, gates.hold)
			}
			failures[i] = err
		})
	}
	running.Wait()
	if r.dryRun {
		return errors.Join(failures...)
	}
	return r.rackSummary(c.OutOrStdout(), c.ErrOrStderr(), o, entries, outcomes, failures)
}

// of returns the run of one BMC. Paths of the file are relative to its folder.
func (r *conformanceRun) of(e bmcEntry, out, dir string) *conformanceRun {
	one := *r
	one.url, one.out, one.name, one.user = e.URL, out, e.Name, ""
	beside := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	if e.Username != "" {
		one.username = e.Username
	}
	one.passwordStdin, one.passwordFile = false, "" // read once, for all
	if e.PasswordFile != "" {
		one.passwordFile = beside(e.PasswordFile)
	}
	if e.CA != "" {
		one.ca = beside(e.CA)
	}
	one.ipmi, one.serial, one.insecure = e.IPMI, e.Serial, r.insecure || e.Insecure
	return &one
}

// rackSummary prints a table, and returns the gravest exit code: that of a BMC
// that is not ready before those of runs that failed.
func (r *conformanceRun) rackSummary(w, problems io.Writer, o *options, entries []bmcEntry, outcomes []*checked, failures []error) error {
	type row struct {
		Name     string                   `json:"name"`
		Title    string                   `json:"title,omitempty"`
		Profiles []conformance.Conclusion `json:"profiles,omitempty"`
		Error    string                   `json:"error,omitempty"`
		Report   string                   `json:"report,omitempty"`
	}
	codes := map[exitCode]bool{}
	note := func(err error) {
		refusal, code := new(conformance.Refusal), exitCode(0)
		switch {
		case err == nil:
		case errors.As(err, &code):
			codes[code] = true
		case errors.As(err, &refusal):
			codes[exitUnsafe] = true
		default:
			codes[exitTool] = true
		}
	}
	all, rows := []row{}, [][]string{{"BMC", "SERVER", "VERDICT", "FIRST BLOCKER OR QUIRKS", "=REPORT"}}
	for i, e := range entries {
		if failures[i] != nil {
			note(failures[i])
			all = append(all, row{Name: e.Name, Error: failures[i].Error()})
			rows = append(rows, []string{e.Name, "", "ERROR", failures[i].Error(), ""})
			fmt.Fprintf(problems, "labctl: %s: %v\n", e.Name, failures[i])
			continue
		}
		d := outcomes[i].document
		chosen := d.Profiles[:r.chosen()]
		note(conclude(chosen, r.strict))
		if len(d.Unrestored) > 0 {
			codes[exitTool] = true
		}
		file := outcomes[i].files[0]
		all = append(all, row{Name: e.Name, Title: d.Target.Title, Profiles: chosen, Report: file})
		for _, p := range chosen {
			why := strings.Join(append(p.Quirks, p.Errors...), ", ")
			if p.Blocker != nil {
				why = fmt.Sprintf("%s (%s): %s", p.Blocker.ID, p.Blocker.Step, p.Blocker.Reason)
			}
			rows = append(rows, []string{e.Name, d.Target.Title, string(p.Readiness), why, file})
		}
	}
	if err := o.output.print(w, all, rows); err != nil {
		return err
	}
	for _, code := range []exitCode{exitNotReady, exitUnsafe, exitTool, exitQuirks} {
		if codes[code] {
			return code
		}
	}
	return nil
}

// chassisGates lets one server of each chassis restart at a time.
type chassisGates struct {
	mu   sync.Mutex
	held map[string]*sync.Mutex
}

// hold waits for the chassis, and returns what releases it. Servers whose chassis is
// unknown wait for each other.
func (g *chassisGates) hold(chassis string) func() {
	g.mu.Lock()
	if g.held == nil {
		g.held = map[string]*sync.Mutex{}
	}
	gate := g.held[chassis]
	if gate == nil {
		gate = new(sync.Mutex)
		g.held[chassis] = gate
	}
	g.mu.Unlock()
	gate.Lock()
	return gate.Unlock
}

// prefixed writes the lines of several runs, each with a name.
type prefixed struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *prefixed) named(name string) io.Writer { return &prefixedLines{p: p, name: name} }

type prefixedLines struct {
	p    *prefixed
	name string
	rest []byte // start of a line that has not ended
}

// Write implements io.Writer.
func (l *prefixedLines) Write(b []byte) (int, error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		if _, err := fmt.Fprintf(l.p.w, "%s: %s\n", l.name, l.rest[:i]); err != nil {
			return 0, err
		}
		l.rest = l.rest[i+1:]
	}
}
