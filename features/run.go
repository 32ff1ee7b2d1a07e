// Package features holds the feature files about hosts, which speak as an operator
// does, and runs them, or other feature files with the same steps, against live
// labs. It owns which files run and how results are reported; package steps knows
// what a step does. METALAB_LOG=1 shows the labs' logs.
package features

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/steps"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

// Files are the feature files of this package.
//
//go:embed *.feature state annotation kind hoc provider elemental machineconfig
var Files embed.FS

// Format is a format of results.
type Format string

// The formats.
const (
	Pretty Format = "pretty" // each step when it ends, for people
	JUnit  Format = "junit"  // XML, for CI systems
	HTML   Format = "html"   // one self-contained page
)

// Formats are all formats.
var Formats = []Format{Pretty, JUnit, HTML}

// formatters are the formatters of godog for each format. Pages are made of the output of
// theirs.
var formatters = map[Format]string{Pretty: prettyName, JUnit: cucumber, HTML: cucumber}

// cucumber is the formatter whose output writeHTML and writeJUnit read.
const cucumber = "cucumber"

// Options configure a run.
type Options struct {
	Paths    []string // files, optionally with :LINE, or directories; none: Files
	Tags     string   // tag expression: "@B-91 and not @network"; "": every scenario
	Format   Format
	Parallel int       // scenarios at the same time; 0 means 1
	Out      io.Writer // the results
	// Page is a file that gets the results as HTML, too; "" for none.
	Page string
	// Force lets Page replace a file that is no such page.
	Force  bool
	Colors bool // Out is a terminal
	// Recordings is a directory that gets a recording of each scenario that fails, which
	// labctl view shows; "" for none.
	Recordings string
	// RecordingSnapshots adds a snapshot of the lab to each recording.
	RecordingSnapshots bool
	Limit              time.Duration // how long, in the lab's time, a step waits; 0 means steps.DefaultLimit
	Progress           io.Writer     // a line for each scenario, unless Format is Pretty; nil: none
}

// ErrFailed is the error of Run when a scenario did not pass.
var ErrFailed = errors.New("not all scenarios passed")

// UsageError is an error in the Options.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Run runs scenarios. It returns a *UsageError for wrong Options, and ErrFailed when
// a scenario has failed or has an undefined step.
func Run(ctx context.Context, o Options) error {
	formatter, ok := formatters[o.Format]
	if !ok {
		return usage("format %q: use one of %s", o.Format, formats())
	}
	if o.Limit < 0 {
		return usage("a limit of %s: use a positive duration, such as 2h", o.Limit)
	}
	registerPretty()
	labs := steps.Labs{Recordings: o.Recordings, Snapshots: o.RecordingSnapshots, Pages: o.Format == HTML || o.Page != "", Limit: o.Limit}
	t := &progress{out: o.Progress, began: time.Now()}
	var raw bytes.Buffer
	files, err := selected(o)
	if err != nil {
		return err
	}
	if err := undefinedSteps(files); err != nil {
		return err
	}
	for _, f := range files {
		t.total += len(f.chosen())
	}
	options := godog.Options{
		Format: formatter, FeatureContents: featureContents(files), Strict: true, NoColors: !o.Colors, Concurrency: max(o.Parallel, 1),
		Output: o.Out, DefaultContext: ctx,
	}
	if o.Format != Pretty {
		options.Output = &raw
	}
	results, page := "", outfile.File{Path: o.Page, Made: isPage, Force: o.Force}
	if o.Page != "" {
		if err := os.MkdirAll(filepath.Dir(o.Page), 0o755); err != nil {
			return fmt.Errorf("the page: %w", err)
		}
		if err := page.Check(); err != nil { // before scenarios run for hours
			return usage("%w", err)
		}
		if results, err = temporary(); err != nil {
			return err
		}
		defer os.Remove(results) // nothing can be done about a file that stays
		options.Format += "," + cucumber + ":" + results
	}
	if o.Format == Pretty {
		t.out = nil
	}
	suite := godog.TestSuite{Name: "features", Options: &options, ScenarioInitializer: func(sc *godog.ScenarioContext) {
		sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
			return ctx, ctx.Err() // an interrupted run starts no lab
		})
		t.watch(sc)
		labs.Register(sc)
	}}
	status := suite.Run()
	err = labs.Close()
	switch o.Format {
	case HTML:
		err = errors.Join(err, writeHTML(o.Out, raw.Bytes(), labs.Recorded(), "."))
	case JUnit:
		err = errors.Join(err, writeJUnit(o.Out, raw.Bytes()))
	}
	if o.Page != "" {
		err = errors.Join(err, writePage(page, results, labs.Recorded()))
	}
	switch {
	case ctx.Err() != nil:
		return errors.Join(fmt.Errorf("interrupted after %d of %d scenarios", t.done, t.total), err)
	case status != 0:
		return errors.Join(ErrFailed, err)
	}
	return err
}

// temporary makes an empty file, and returns its name.
func temporary() (string, error) {
	f, err := os.CreateTemp("", "metalab-results-")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// writePage writes the results in a file of godog's cucumber formatter as a page.
func writePage(to outfile.File, results string, recorded []steps.Recorded) error {
	b, err := os.ReadFile(results)
	if err != nil {
		return err
	}
	return to.Write(0o644, func(f *os.File) error { return writeHTML(f, b, recorded, filepath.Dir(to.Path)) })
}

// isPage reports whether a file is the page of an earlier run.
func isPage(name string) bool {
	return outfile.Contains(name, `<meta name="generator" content="labctl features">`)
}

func formats() string {
	var all []string
	for _, f := range Formats {
		all = append(all, string(f))
	}
	return strings.Join(all, ", ")
}

// ours returns the names of Files.
func ours() (names []string) {
	err := fs.WalkDir(Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		panic(err) // they are built in
	}
	slices.Sort(names)
	return names
}

// progress reports how far a run is.
type progress struct {
	out   io.Writer
	total int
	began time.Time

	mu   sync.Mutex
	done int
}

// watch counts scenarios when they have ended.
func (t *progress) watch(sc *godog.ScenarioContext) {
	var began time.Time
	sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		began = time.Now()
		return ctx, nil
	})
	sc.After(func(ctx context.Context, s *godog.Scenario, err error) (context.Context, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.done++
		if t.out == nil {
			return ctx, nil
		}
		how := "passed"
		if err != nil {
			how = "FAILED"
		}
		_, _ = fmt.Fprintf(t.out, "%3d of %d  %s  %5.1fs  %s: %s\n", t.done, t.total, how, time.Since(began).Seconds(), s.Uri, s.Name)
		return ctx, nil
	})
}
