package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"
)

// mostFlakes is how many flakes a green run has at most.
const mostFlakes = 2

// flakesFile has the names of tests that were flakes once, a line each. A name lasts for one
// change: the next one mends the test and removes the name.
const flakesFile = ".ci/flakes"

// unskippable are the packages whose tests must all run where prerequisites are required:
// what they need is installed, and a skip would mean that nobody tests it.
var unskippable = []string{
	"agent/lcm", "agent/plugin/mdraid", "agent/sys", "controller/mosk/hostos/module", "controller/netboot/cpio", "controller/netboot/ramdisk",
	"emulator/rack", "emulator/rack/space", "emulator/rack/ssdp", "emulator/rack/store", "scenarios/images", "scenarios/loopdisk",
}

// withSchemas is a package that skips nothing where DMTF's schemas are, beside the repository.
const (
	withSchemas = "emulator/redfish"
	schemas     = "../shared/data/dmtf-2025.4.zip"
)

// mustRun returns the packages that may skip nothing on this machine.
func mustRun() []string {
	if _, err := os.Stat(schemas); err != nil {
		return unskippable
	}
	return append(slices.Clone(unskippable), withSchemas)
}

// excused is the reason of skips that no package of Debian helps against.
const excused = "this kernel has no md driver"

// failure is a test that has failed for good, or the end of a package.
type failure struct {
	name string // "emulator/rack: TestX"
	why  string
	log  []string
}

// judgement is what a run has shown.
type judgement struct {
	failures []failure
	flakes   []failure // red, then green
	errs     []string  // errors of go test
	skips    []string  // in packages that must not skip
	untested []string  // packages of unskippable that were not tested
	total    int
	packages []timed
	tests    []timed
	took     time.Duration
	cases    *testjson.Execution

	change   change
	required bool     // skips in unskippable packages are failures
	known    []string // flakes of an earlier change, which must be mended
}

// timed is how long something took.
type timed struct {
	name string
	took time.Duration
}

// judge says what the run has shown.
func (r *runner) judge(c change) *judgement {
	j := &judgement{change: c, cases: r.exec, errs: r.errs}
	if r.exec == nil {
		return j
	}
	j.took, j.total = r.exec.Elapsed(), r.exec.Total()
	for _, path := range r.exec.Packages() {
		if path == "" { // events of the compiler
			continue
		}
		j.add(r, strings.TrimPrefix(path, module+"/"), r.exec.Package(path))
	}
	for _, p := range mustRun() {
		if r.exec.Package(module+"/"+p) == nil {
			j.untested = append(j.untested, p)
		}
	}
	bySpent := func(a, b timed) int { return cmp.Or(cmp.Compare(b.took, a.took), strings.Compare(a.name, b.name)) }
	slices.SortFunc(j.packages, bySpent)
	slices.SortFunc(j.tests, bySpent)
	return j
}

// add judges a package.
func (j *judgement) add(r *runner, name string, p *testjson.Package) {
	var spent time.Duration
	for _, tc := range p.TestCases() {
		if !tc.Test.IsSubTest() && tc.RunID == firstRun {
			j.tests = append(j.tests, timed{name + ": " + string(tc.Test), tc.Elapsed})
			spent += tc.Elapsed
		}
	}
	j.packages = append(j.packages, timed{name, max(p.Elapsed(), 0)})
	j.addSkips(name, p)

	why := broken(p)
	first := slices.DeleteFunc(slices.Clone(p.Failed), func(tc testjson.TestCase) bool { return tc.RunID != firstRun })
	for _, tc := range testjson.FilterFailedUnique(first) {
		f := failure{name: name + ": " + string(tc.Test), why: why, log: p.OutputLines(tc)}
		switch {
		case why != "":
		case !slices.ContainsFunc(r.again, func(a testjson.TestCase) bool { return a.ID == tc.ID && a.Package == tc.Package }):
			f.why = "it was not run again: too many have failed"
		default:
			f.why = verdictOfRerun(p, tc.Test)
		}
		if f.why == "" {
			j.flakes = append(j.flakes, f)
		} else {
			j.failures = append(j.failures, f)
		}
	}
	if len(first) == 0 && p.Result() == testjson.ActionFail {
		j.failures = append(j.failures, failure{name: name, why: cmp.Or(why, "it has failed without a failed test"), log: strings.SplitAfter(output(p, 0), "\n")})
	}
}

// verdictOfRerun says why a failed test is not a flake: it failed again, or the second run did not
// contain it, which go test does not take for a failure. It is "" for a flake.
func verdictOfRerun(p *testjson.Package, name testjson.TestName) string {
	again := func(tc testjson.TestCase) bool { return tc.RunID == rerun && tc.Test == name }
	switch {
	case slices.ContainsFunc(p.Failed, again):
		return "it failed twice"
	case !slices.ContainsFunc(p.Passed, again):
		return "the second run did not contain it"
	}
	return ""
}

// addSkips collects the skipped tests of a package that must not skip.
func (j *judgement) addSkips(name string, p *testjson.Package) {
	if !slices.Contains(mustRun(), name) {
		return
	}
	for _, tc := range p.Skipped {
		if lines := p.OutputLines(tc); !strings.Contains(strings.Join(lines, ""), excused) {
			j.skips = append(j.skips, fmt.Sprintf("%s: %s: %s", name, tc.Test, strings.TrimSpace(strings.Join(last(lines, 3), ""))))
		}
	}
}

// err returns what makes the run red, and nil for a green one.
func (j *judgement) err() error {
	var errs []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(len(j.failures) > 0, "%d failed", len(j.failures))
	add(len(j.failures) == 0 && len(j.errs) > 0 && j.cases != nil && len(j.cases.Errors()) > 0, "go test: %s", strings.Join(last(j.errs, 5), "; "))
	add(j.total == 0, "no test ran")
	add(len(j.flakes) > mostFlakes, "%d flakes: at most %d are passed over", len(j.flakes), mostFlakes)
	for _, f := range j.flakes {
		p, _, _ := strings.Cut(f.name, ": ")
		add(j.change.has(p) && len(j.change.packages) <= mostChanged, "%s: a flake in a changed package", f.name)
		add(slices.Contains(j.known, f.name), "%s: a flake for the second time: mend it", f.name)
	}
	for _, name := range j.known {
		add(true, "%s has %q since an earlier change: mend the test, and remove the name", flakesFile, name)
	}
	if j.required {
		add(len(j.skips) > 0, "%d tests are skipped in packages that may skip none", len(j.skips))
		add(len(j.untested) > 0, "not tested: %s", strings.Join(j.untested, ", "))
	}
	return errors.Join(errs...)
}

// How much of a failed test's log is shown.
const (
	firstLines = 40
	lastLines  = 120
	longest    = 2000 // characters of a line
)

// print writes what the run has shown, flakes last.
func (j *judgement) print(out io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	j.printSlowest(out)
	for _, f := range j.failures {
		p("\n=== failed: %s (%s)", f.name, f.why)
		printLog(out, f.log, firstLines)
	}
	if j.required {
		for _, s := range j.skips {
			p("skipped: %s", s)
		}
	}
	if j.cases != nil {
		testjson.PrintSummary(out, j.cases, testjson.SummarizeNone)
	}
	for _, f := range j.flakes {
		p("\n=== flake: %s: it failed, and passed when it ran again by itself; add the name to %s", f.name, flakesFile)
		printLog(out, f.log, 0)
	}
}

// shown is how many of the slowest packages and tests are shown.
const shown = 10

func (j *judgement) printSlowest(out io.Writer) {
	for _, of := range []struct {
		name string
		all  []timed
	}{{"packages", j.packages}, {"tests", j.tests}} {
		var total time.Duration
		for _, t := range of.all {
			total += t.took
		}
		if total <= 0 {
			continue
		}
		_, _ = fmt.Fprintf(out, "\nslowest %s, of %s:\n", of.name, seconds(total))
		for _, t := range of.all[:min(shown, len(of.all))] {
			_, _ = fmt.Fprintf(out, "%8s %4.0f %%  %s\n", seconds(t.took), 100*t.took.Seconds()/total.Seconds(), t.name)
		}
	}
}

// printLog prints the beginning and the end of a log.
func printLog(out io.Writer, lines []string, first int) {
	for i, line := range lines {
		if i >= first && i < len(lines)-lastLines {
			if i == first {
				_, _ = fmt.Fprintf(out, "[%d lines are left out]\n", len(lines)-lastLines-first)
			}
			continue
		}
		if len(line) > longest {
			line = line[:longest] + " [cut]\n"
		}
		_, _ = io.WriteString(out, strings.TrimSuffix(line, "\n")+"\n")
	}
}

func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }

// knownFlakes returns the names that stood in the file of flakes before this change, and
// still stand there.
func knownFlakes(ctx context.Context, base string) ([]string, error) {
	b, err := os.ReadFile(flakesFile)
	if errors.Is(err, os.ErrNotExist) || base == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	before, err := git(ctx, "show", base+":"+flakesFile)
	if err != nil {
		return nil, nil // the base has no such file
	}
	old := flakeNames(before)
	return slices.DeleteFunc(flakeNames(string(b)), func(name string) bool { return !slices.Contains(old, name) }), nil
}

// flakeNames returns the names in a file of flakes: a line each, but for empty ones and comments.
func flakeNames(text string) (out []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}
