package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"

	"github.com/metalab-dev/metalab/scenarios/leak"
)

// mostReruns is how many failed tests run once more: more of them have one cause, which is
// no chance.
const mostReruns = 10

// The runs of a test, as testjson.TestCase.RunID has them.
const (
	firstRun = 0
	rerun    = 1
)

// runner runs groups of packages.
type runner struct {
	settings
	out   io.Writer
	env   []string
	dir   string // directory of the go command; "" is the current one
	small bool   // the budget is spent

	exec   *testjson.Execution
	errs   []string // what go test said beside events: of failed builds
	again  []testjson.TestCase
	tooFew bool // more tests have failed than are run again
}

// group tests the packages of a group, and what has failed of them once more.
func (r *runner) group(ctx context.Context, g group) error {
	timeout := g.timeout
	if r.race {
		timeout *= raceSlowdown
	}
	args := []string{fmt.Sprintf("-timeout=%v", timeout), fmt.Sprintf("-p=%d", g.parallel)}
	if g.uncached {
		args = append(args, "-count=1")
	}
	var paths []string
	for _, p := range g.packages {
		paths = append(paths, "./"+p.path)
	}
	began := time.Now()
	busy, err := r.goTest(ctx, firstRun, append(args, paths...))
	if err != nil {
		return err
	}
	took := time.Since(began)
	_, _ = fmt.Fprintf(r.out, "-- %s in %s, on %.1f processors\n", named(g.packages), seconds(took), busy.Seconds()/took.Seconds())
	for _, p := range g.packages {
		if peak := peakOf(r.exec.Package(module + "/" + p.path)); peak != "" {
			_, _ = fmt.Fprintf(r.out, "   %s had at most %s MiB of memory\n", p.path, peak)
		}
	}
	failed := testjson.FilterFailedUnique(r.failed(g.packages))
	if len(r.again)+len(failed) > mostReruns {
		r.tooFew = r.tooFew || len(failed) > 0
		return nil
	}
	for _, tc := range failed {
		if broken(r.exec.Package(tc.Package)) != "" {
			continue
		}
		r.again = append(r.again, tc)
		if _, err := r.goTest(ctx, rerun, append(args, "-run="+pattern(tc.Test), "./"+strings.TrimPrefix(tc.Package, module+"/"))); err != nil {
			return err
		}
	}
	return nil
}

// peakOf returns the most memory that the tests of a package had, in MiB; "" if they do not say.
func peakOf(p *testjson.Package) string {
	if p == nil { // it was not built
		return ""
	}
	_, text, _ := strings.Cut("\n"+output(p, 0), "\n"+leak.PeakLine)
	peak, _, _ := strings.Cut(text, "\n")
	return peak
}

// named names a group: by its packages, or by their number.
func named(packages []testPackage) string {
	if len(packages) > 4 {
		return fmt.Sprintf("%d packages", len(packages))
	}
	var names []string
	for _, p := range packages {
		names = append(names, p.path)
	}
	return strings.Join(names, ", ")
}

// failed returns the tests of some packages that have failed in their first runs.
func (r *runner) failed(packages []testPackage) (out []testjson.TestCase) {
	for _, p := range packages {
		found := r.exec.Package(module + "/" + p.path)
		if found == nil { // it was not built
			continue
		}
		for _, tc := range found.Failed {
			if tc.RunID == firstRun {
				out = append(out, tc)
			}
		}
	}
	return out
}

// pattern returns the -run pattern of one test.
func pattern(name testjson.TestName) string {
	var parts []string
	for part := range strings.SplitSeq(string(name), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return strings.Join(parts, "/")
}

// goTest runs go test, and adds its events to the execution. It returns the processor time of the
// go command and of all that it has run.
func (r *runner) goTest(ctx context.Context, id int, args []string) (busy time.Duration, _ error) {
	base := []string{"test", "-json", "-vet=off"}
	if r.race {
		base = append(base, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(base, args...)...)
	cmd.Env, cmd.Dir = r.env, r.dir
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	r.exec, err = testjson.ScanTestOutput(testjson.ScanConfig{
		RunID: id, Stdout: stdout, Stderr: stderr, Handler: r, Execution: r.exec, IgnoreNonJSONOutputLines: true,
		Stop: func() { _ = cmd.Process.Kill() }, // it has ended already, or ends now
	})
	if err != nil {
		_ = cmd.Wait() // the first error is the cause
		return 0, fmt.Errorf("go test: %w", err)
	}
	exit := new(exec.ExitError)
	err = cmd.Wait()
	busy = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	switch {
	case ctx.Err() != nil:
		return busy, ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() > 0: // the events tell why
		if exit.ExitCode() > 1 {
			r.errs = append(r.errs, fmt.Sprintf("go test ended with exit code %d", exit.ExitCode()))
		}
		return busy, nil
	default:
		return busy, err
	}
}

// Event implements testjson.EventHandler: it prints a line for each package that has ended,
// and the samples that tests draw.
func (r *runner) Event(e testjson.TestEvent, x *testjson.Execution) error {
	if e.Action == testjson.ActionOutput && sampled.MatchString(e.Output) {
		_, _ = fmt.Fprintln(r.out, strings.TrimSpace(e.Output))
	}
	if e.Action == "build-output" { // what the compiler says, of no package
		_, _ = io.WriteString(r.out, e.Output)
	}
	if e.Package == "" || !e.PackageEvent() || !e.Action.IsTerminal() {
		return nil
	}
	word := map[testjson.Action]string{testjson.ActionPass: "ok  ", testjson.ActionFail: "FAIL", testjson.ActionSkip: "?   "}[e.Action]
	if e.RunID == rerun {
		word = "again: " + word
	}
	_, _ = fmt.Fprintf(r.out, "%s\t%s\t%.1fs\n", word, e.Package, e.Elapsed)
	if e.Action == testjson.ActionFail {
		r.printFailed(e.RunID, x.Package(e.Package))
	}
	return nil
}

// atOnce is how many lines of a failed test's log are printed when its package has ended: the
// run may be killed before its judgement.
const atOnce = 20

func (r *runner) printFailed(run int, p *testjson.Package) {
	failed := slices.DeleteFunc(slices.Clone(p.Failed), func(tc testjson.TestCase) bool { return tc.RunID != run })
	for _, tc := range testjson.FilterFailedUnique(failed) {
		_, _ = fmt.Fprintf(r.out, "--- FAIL: %s\n", tc.Test)
		printLog(r.out, last(p.OutputLines(tc), atOnce), 0)
	}
}

// sampled is the line with which package sample tells what it has drawn.
var sampled = regexp.MustCompile(`: sample: \d+ of `)

// Err implements testjson.EventHandler.
func (r *runner) Err(text string) error {
	r.errs = append(r.errs, text)
	_, _ = fmt.Fprintln(r.out, text)
	return nil
}

// broken tells what has ended a package's tests before all of them had run, or makes their
// results worthless; "" is nothing.
func broken(p *testjson.Package) string {
	var found string
	for line := range strings.Lines(allOutput(p)) {
		switch {
		case strings.HasPrefix(line, "panic: test timed out"):
			return "time-out"
		case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
			found = "panic"
		case strings.HasPrefix(line, "WARNING: DATA RACE"):
			if found == "" {
				found = "data race"
			}
		}
	}
	return found
}

// allOutput returns what a package and its failed tests have printed.
func allOutput(p *testjson.Package) string {
	ids := []int{0}
	for _, tc := range p.Failed {
		ids = append(ids, tc.ID)
	}
	return output(p, ids...)
}

// output returns what tests of a package have printed; 0 is the package itself.
func output(p *testjson.Package, ids ...int) string {
	var out strings.Builder
	for _, id := range ids {
		_ = p.WriteOutputTo(&out, id) // a Builder has no errors
	}
	return out.String()
}

// seconds formats a duration.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
