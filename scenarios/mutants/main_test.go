package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// module is a module whose tests see some mutations and not others. Package b
// checks functions of a that a's tests call and do not check.
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26\n",
	"a/a.go": `package a

import "errors"

// Checked is seen by a's tests.
func Checked(n int) bool {
	if n > 3 {
		return true
	}
	return false
}

// Count ends by what it counts.
func Count(n int) (sum int) {
	for n > 0 {
		sum++
		n--
	}
	return sum
}

// Far is seen by b's tests.
func Far(n int) error {
	if n > 3 {
		return errors.New("far")
	}
	return nil
}

// Unchecked is covered, and nobody looks.
func Unchecked(list []int) {
	list[0] = 1
}

// Untested is not covered.
func Untested(n int) {
	n++
}
`,
	"a/a_test.go": `package a

import "testing"

func TestChecked(t *testing.T) {
	if Checked(3) || !Checked(4) {
		t.Error("wrong")
	}
}

func TestCount(t *testing.T) {
	if Count(2) != 2 {
		t.Error("wrong")
	}
}

func TestAll(t *testing.T) {
	_ = Far(4)
	Unchecked(make([]int, 1))
}
`,
	"a/atest/suite.go": `package atest

import "testing"

// Suite checks a.
func Suite(t *testing.T) {
	if limit(3) {
		t.Error("wrong")
	}
}
`,
	"a/atest/fake.go": `package atest

import "example.com/m/a"

func limit(n int) bool {
	if n > 9 {
		return false
	}
	return a.Checked(n)
}
`,
	"a/atest/suite_test.go": `package atest

import "testing"

func TestSuite(t *testing.T) { Suite(t) }
`,
	"b/b.go": "package b\n",
	"b/b_test.go": `package b

import (
	"testing"

	"example.com/m/a"
)

func TestFar(t *testing.T) {
	if a.Far(3) != nil || a.Far(4) == nil {
		t.Error("wrong")
	}
}
`,
}

// write writes a module to a directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// limit is the time-out of a package in these tests: one that a loop without an
// end runs into.
const limit = 5 * time.Second

var familyA = Family{Name: "a", Packages: []string{"./a/..."}, Suites: []string{"./b"}}

func TestRunReportsWhichTestSeesEachMutation(t *testing.T) {
	dir := write(t, module)
	var out strings.Builder
	err := run(t.Context(), dir, config{families: []Family{familyA}, seed: "7", count: 40}, limit, &out)
	if err == nil || err.Error() != "1 of 6 mutations survived; 2 of 40 may" {
		t.Errorf("run: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, want := range []string{
		`family a: 6 mutations of covered code`,
		`seen      a/a.go:7: if n > 3 becomes !(n > 3) (by a: TestChecked)`,
		`seen      a/a.go:15: for n > 0 becomes !(n > 0) (by a: TestCount)`,
		`seen      a/a.go:16: sum++ is left out (by a: TestCount)`,
		`seen      a/a.go:17: n-- is left out (by a: time-out in TestCount)`,
		`seen      a/a.go:24: if n > 3 becomes !(n > 3) (by b: TestFar)`,
		`survived  a/a.go:32: list[0] = 1 is left out`,
		`seed 7: tests saw 5 of 6 mutations`,
	} {
		if n := strings.Count(out.String(), want+"\n"); n != 1 {
			t.Errorf("%q is printed %d times in:\n%s", want, n, &out)
		}
	}
	if len(lines) != 8 {
		t.Errorf("%d lines:\n%s", len(lines), &out)
	}
	for name, text := range module {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s is changed: %q, %v", name, got, err)
		}
	}
}

// TestRunCountsSurvivorsAgainstWhatIsAllowed has tests that see all but one of
// one mutation, and all of the other.
func TestRunCountsSurvivorsAgainstWhatIsAllowed(t *testing.T) {
	dir := write(t, module)
	for at, fails := range map[string]bool{"a/a.go:16": false, "a/a.go:32": true} {
		var out strings.Builder
		err := run(t.Context(), dir, config{families: []Family{familyA}, seed: "7", count: 1, at: at}, limit, &out)
		if (err != nil) != fails {
			t.Errorf("%s: error = %v, want one: %t\n%s", at, err, fails, &out)
		}
	}
}

func TestRunStopsAtTestsThatFailWithoutAMutation(t *testing.T) {
	files := map[string]string{}
	for name, text := range module {
		files[name] = strings.Replace(text, "Count(2) != 2", "Count(2) != 3", 1)
	}
	var out strings.Builder
	err := run(t.Context(), write(t, files), config{families: []Family{familyA}, seed: "7", count: 40}, limit, &out)
	if err == nil || !strings.Contains(err.Error(), "example.com/m/a TestCount fails without a mutation:") {
		t.Errorf("run: %v", err)
	}
}

// A test that failed once and passes the second time tells of mutations.
func TestRunRepeatsTestsThatFailOnceWithoutAMutation(t *testing.T) {
	files := maps.Clone(module)
	mark := filepath.Join(t.TempDir(), "ran")
	files["a/flaky_test.go"] = fmt.Sprintf("package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestFlaky(t *testing.T) {\n"+
		"\tif _, err := os.Stat(%[1]q); err != nil {\n\t\tos.WriteFile(%[1]q, nil, 0o666)\n\t\tt.Error(\"the first time\")\n\t}\n}\n", mark)
	var out strings.Builder
	if err := run(t.Context(), write(t, files), config{families: []Family{familyA}, seed: "7", count: 1, at: "a/a.go:16"}, limit, &out); err != nil {
		t.Errorf("run: %v\n%s", err, &out)
	}
}

func TestGuardsOfTheMachineAreMutatedInAFenceAlone(t *testing.T) {
	files := maps.Clone(module)
	for _, name := range []string{"a/a.go", "a/a_test.go"} {
		files["agent/sys/"+name], files["guest/sandbox/"+name] = module[name], module[name]
	}
	guarded := Family{Name: "guarded", Packages: []string{"./agent/sys/...", "./guest/sandbox/..."}}
	for fence, left := range map[string]bool{"": true, "partial": true, "complete": false} {
		t.Setenv(fencedEnv, fence)
		var out strings.Builder
		err := run(t.Context(), write(t, files), config{families: []Family{guarded}, seed: "7", count: 1}, limit, &out)
		if left != strings.Contains(out.String(), "mutations below agent/sys and guest/sandbox are left out") || left != (err != nil) {
			t.Errorf("fence %q: %v\n%s", fence, err, &out)
		}
	}
}

func TestRunWithNothingToMutateFails(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), write(t, module), config{families: []Family{familyA}, count: 40, at: "a/a.go:37"}, limit, &out)
	if err == nil || !strings.Contains(err.Error(), "nothing to mutate") {
		t.Errorf("run: %v\n%s", err, &out)
	}
}

func TestMutationThatDoesNotCompileIsSkipped(t *testing.T) {
	dir := write(t, module)
	te, err := newTester(t.Context(), dir, "7", limit)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(te.work)
	var out strings.Builder
	r := report{out: &out}
	broken := Mutation{File: "a/a.go", Line: 7, Change: "broken", edits: []edit{{at: 20, text: "?"}}}
	if err := te.try(t.Context(), candidate{broken, []string{"a"}}, &r); err != nil {
		t.Fatal(err)
	}
	if want := "skipped   a/a.go:7: broken (it does not compile)\n"; out.String() != want || r.seen != 0 || len(r.survivors) != 0 {
		t.Errorf("report = %q, %d seen, survivors %v; want %q", &out, r.seen, r.survivors, want)
	}
}

func TestSeedChoosesTheOrder(t *testing.T) {
	lines := func(seed string) (out []int) {
		var all []candidate
		for i := range 1000 {
			all = append(all, candidate{Mutation: Mutation{Line: i}})
		}
		for _, c := range shuffle(seed, all) {
			out = append(out, c.Line)
		}
		return out
	}
	same, other := lines("a"), lines("b")
	if again := lines("a"); !slices.Equal(same, again) {
		t.Error("one seed gives two orders")
	}
	if slices.Equal(same, other) {
		t.Error("two seeds give one order")
	}
}

func TestChooseRefusesAnUnknownFamily(t *testing.T) {
	for names, want := range map[string]int{"": len(families), "ipmi": 1, "ipmi,agent": 2} {
		if got, err := choose(families, names); err != nil || len(got) != want {
			t.Errorf("choose(%q) = %d families, %v; want %d", names, len(got), err, want)
		}
	}
	if _, err := choose(families, "ipmi,imap"); err == nil || !strings.Contains(err.Error(), `family "imap" is not one of emulator, ipmi, `) {
		t.Errorf("choose: %v", err)
	}
}

// TestFamiliesNamePackagesThatExist fails when a package is renamed, and when one
// is in two families.
func TestFamiliesNamePackagesThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	in := map[string]string{}
	for _, f := range families {
		for _, p := range slices.Concat(f.Packages, f.Suites, f.Rules, f.RuleSuites) {
			files, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(p, "/..."), "*"))
			if err != nil || len(files) == 0 {
				t.Errorf("family %s: there is no package %s", f.Name, p)
			}
		}
		for _, p := range f.Packages {
			if in[p] != "" {
				t.Errorf("%s is in the families %s and %s", p, in[p], f.Name)
			}
			in[p] = f.Name
		}
	}
}

// TestMakefileRunsTheProgram holds the target of the Makefile against the flags.
func TestMakefileRunsTheProgram(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\t.*\./scenarios/mutants.*$`).FindString(string(text))
	for _, flag := range []string{"-family", "-seed", "-count", "-at"} {
		if !strings.Contains(line, flag+" ") {
			t.Errorf("make mutants does not pass %s: %q", flag, line)
		}
	}
}
