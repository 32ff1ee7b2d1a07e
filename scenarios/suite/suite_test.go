package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// planted is a module whose tests do what a run must tell apart. A test that has run
// before finds the file that it left.
var planted = map[string]string{
	"go.mod": "module " + module + "\n\ngo 1.26\n",
	"again.go": `package metalab

import "os"

// Again reports whether it was called with the name before.
func Again(name string) bool {
	_, err := os.Stat(os.Getenv("LEFT") + "/" + name)
	if err != nil {
		os.WriteFile(os.Getenv("LEFT")+"/"+name, nil, 0o600)
	}
	return err == nil
}
`,
	"good/a_test.go":  testFile(`func TestGood(t *testing.T) {}`),
	"bad/a_test.go":   testFile(`func TestBad(t *testing.T) { t.Run("row", func(t *testing.T) { t.Error("always") }) }`),
	"flaky/a_test.go": testFile(`func TestFlaky(t *testing.T) { t.Run("a/b [c]", func(t *testing.T) { if !metalab.Again("flaky") { t.Error("red once") } }) }`),
	"gone/a_test.go": testFile(`func TestGone(t *testing.T) {
	name := "first"
	if metalab.Again("gone") {
		name = "second"
	}
	t.Run(name, func(t *testing.T) { t.Error(name) })
}`),
	"panics/a_test.go": testFile(`func TestPanics(t *testing.T) { if !metalab.Again("panics") { panic("once") } }`),
	"races/a_test.go":  testFile(`func TestRaces(t *testing.T) { if !metalab.Again("races") { println("WARNING: DATA RACE"); t.Error("race") } }`),
	"sleeps/a_test.go": testFile(`func TestSleeps(t *testing.T) { if !metalab.Again("sleeps") { select {} } }`),
	"ends/a_test.go": testFile(`func TestMain(m *testing.M) { m.Run(); os.Exit(3) }
func TestEnds(t *testing.T) {}`),
	"broken/a_test.go": "package x\n\nfunc TestBroken(t *testing.T) {}\n",
	"untested/a.go":    "package untested\n",
	"agent/sys/x_test.go": testFile(`func TestSkips(t *testing.T) { t.Skip("no such program") }
func TestExcused(t *testing.T) { t.Skip("this kernel has no md driver") }`),
}

// testFile is a file of tests.
func testFile(tests string) string {
	return "package x\n\nimport (\n\t\"os\"\n\t\"testing\"\n\n\tmetalab \"" + module + "\"\n)\n\nvar _, _ = metalab.Again, os.Exit\n\n" + tests + "\n"
}

// plant makes a module of the files and moves into it.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("LEFT", t.TempDir())
	return dir
}

// judged runs the tests of planted packages.
func judged(t *testing.T, timeout time.Duration, packages ...string) (*judgement, string) {
	t.Helper()
	var out strings.Builder
	r := &runner{out: &out, env: os.Environ()}
	for _, p := range packages {
		if err := r.group(t.Context(), group{packages: []testPackage{{path: p}}, timeout: timeout, parallel: 1}); err != nil {
			t.Fatal(err)
		}
	}
	j := r.judge(change{})
	j.print(&out)
	return j, out.String()
}

func TestRunSeparatesFailuresFromFlakes(t *testing.T) {
	plant(t, planted)
	j, out := judged(t, time.Minute, "good", "flaky", "bad", "gone", "panics", "races", "ends", "broken")
	var got []string
	for _, f := range j.failures {
		got = append(got, f.name+": "+f.why)
	}
	want := []string{
		"bad: TestBad/row: it failed twice",
		"broken: it has failed without a failed test",
		"ends: it has failed without a failed test",
		"gone: TestGone/first: the second run did not contain it",
		"panics: TestPanics: panic",
		"races: TestRaces: data race",
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("failures (-want +got):\n%s", d)
	}
	if len(j.flakes) != 1 || j.flakes[0].name != "flaky: TestFlaky/a/b_[c]" {
		t.Errorf("flakes: %v", j.flakes)
	}
	if j.err() == nil {
		t.Error("the run is green")
	}
	if n := strings.Count(out, "again: "); n != 3 { // flaky, bad and gone
		t.Errorf("%d tests ran again, want 3:\n%s", n, out)
	}
	for _, text := range []string{"always", "red once", "undefined: testing", "slowest packages, of ", "=== flake: flaky: TestFlaky/a/b_[c]: ", "DONE "} {
		if !strings.Contains(out, text) {
			t.Errorf("the output lacks %q:\n%s", text, out)
		}
	}
	if i := strings.Index(out, "=== flake"); i < strings.Index(out, "DONE ") || i < strings.Index(out, "=== failed") {
		t.Error("the flake is not last")
	}
}

func TestTimeoutIsNoFlake(t *testing.T) {
	plant(t, planted)
	j, _ := judged(t, time.Second, "sleeps")
	if len(j.failures) != 1 || j.failures[0].why != "time-out" || len(j.flakes) > 0 {
		t.Errorf("failures: %v, flakes: %v", j.failures, j.flakes)
	}
}

func TestFlakesAreGreenWithinLimits(t *testing.T) {
	plant(t, planted)
	j, _ := judged(t, time.Minute, "good", "flaky")
	if err := j.err(); err != nil {
		t.Errorf("one flake: %v", err)
	}
	j.change = change{base: "b", packages: []string{"flaky"}}
	if err := j.err(); err == nil || !strings.Contains(err.Error(), "a flake in a changed package") {
		t.Errorf("in a changed package: %v", err)
	}
	j.change = change{}
	j.known = []string{j.flakes[0].name}
	if err := j.err(); err == nil || !strings.Contains(err.Error(), "for the second time") || !strings.Contains(err.Error(), "remove the name") {
		t.Errorf("known: %v", err)
	}
	j.known = []string{"other: TestOther"}
	if err := j.err(); err == nil || !strings.Contains(err.Error(), `has "other: TestOther" since an earlier change`) {
		t.Errorf("another known: %v", err)
	}
	j.known = nil
	j.flakes = append(j.flakes, j.flakes[0], j.flakes[0])
	if err := j.err(); err == nil || !strings.Contains(err.Error(), "3 flakes") {
		t.Errorf("three flakes: %v", err)
	}
}

func TestSkipsCountWherePrerequisitesAreRequired(t *testing.T) {
	plant(t, planted)
	j, _ := judged(t, time.Minute, "agent/sys")
	if err := j.err(); err != nil {
		t.Errorf("not required: %v", err)
	}
	j.required = true
	err := j.err()
	if err == nil || !strings.Contains(err.Error(), "1 tests are skipped") || !strings.Contains(err.Error(), "not tested: agent/lcm, ") || strings.Contains(err.Error(), "agent/sys,") {
		t.Errorf("required: %v", err)
	}
}

func TestRunWithoutTestsIsRed(t *testing.T) {
	plant(t, planted)
	j, _ := judged(t, time.Minute)
	if err := j.err(); err == nil || err.Error() != "no test ran" {
		t.Errorf("no test: %v", err)
	}
}

func TestManyFailuresAreNotRunAgain(t *testing.T) {
	var tests strings.Builder
	for c := 'A'; c < 'A'+mostReruns+1; c++ {
		_, _ = tests.WriteString("func Test" + string(c) + "(t *testing.T) { if !metalab.Again(t.Name()) { t.Error() } }\n")
	}
	plant(t, map[string]string{"go.mod": planted["go.mod"], "again.go": planted["again.go"], "many/a_test.go": testFile(tests.String())})
	j, _ := judged(t, time.Minute, "many")
	if len(j.failures) != mostReruns+1 || len(j.flakes) > 0 {
		t.Errorf("%d failures, %d flakes", len(j.failures), len(j.flakes))
	}
}

func TestPackagesWithTestsAreListed(t *testing.T) {
	plant(t, map[string]string{
		"go.mod": planted["go.mod"], "again.go": planted["again.go"], "good/a_test.go": planted["good/a_test.go"], "untested/a.go": planted["untested/a.go"],
		"controller/kube/kube.go": "package kube\n", "controller/kube/kube_test.go": "package kube\n",
		"linked/a_test.go": "package x\n\nimport _ \"" + kubernetes + "\"\n",
	})
	got, err := list(t.Context(), []string{"./..."})
	want := []testPackage{{"controller/kube", true}, {"good", false}, {"linked", true}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(testPackage{})); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if got := withoutKubernetes(got); len(got) != 1 || got[0].path != "good" {
		t.Errorf("without Kubernetes: %v", got)
	}
}

func TestPackagesAreGrouped(t *testing.T) {
	var got []string
	for _, g := range split([]testPackage{{path: "a"}, {path: "agent/sys"}, {path: "b"}, {path: "emulator/rack"}, {path: "features"}}) {
		got = append(got, fmt.Sprintf("%s, at once %d, uncached %v", named(g.packages), g.parallel, g.uncached))
	}
	want := []string{
		"a, b, at once 2, uncached false", "agent/sys, at once 2, uncached true",
		"emulator/rack, at once 2, uncached true", "features, at once 2, uncached true",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("groups (-want +got):\n%s", d)
	}
}

func TestGroupShowsThePeakOfMemory(t *testing.T) {
	plant(t, map[string]string{"go.mod": planted["go.mod"], "again.go": planted["again.go"], "big/a_test.go": testFile(`func TestMain(m *testing.M) {
	code := m.Run()
	println("noise")
	_, _ = os.Stdout.WriteString("peak memory in MiB: 1234\n")
	os.Exit(code)
}

func TestGood(t *testing.T) {}`)})
	var out strings.Builder
	r := &runner{out: &out, env: os.Environ()}
	g := group{packages: []testPackage{{path: "big"}}, timeout: time.Minute, parallel: 1}
	if err := r.group(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "   big had at most 1234 MiB of memory\n") {
		t.Errorf("the group prints\n%s", &out)
	}
}

// The kernel and the programs of the machine may have changed since the cache's result.
func TestUncachedGroupRunsAgain(t *testing.T) {
	plant(t, planted)
	for _, uncached := range []bool{false, true} {
		g := group{packages: []testPackage{{path: "good"}}, timeout: time.Minute, parallel: 1, uncached: uncached}
		var cached bool
		for range 2 {
			r := &runner{out: io.Discard, env: os.Environ()}
			if err := r.group(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			cached = strings.Contains(output(r.exec.Package(module+"/good"), 0), "(cached)")
		}
		if cached == uncached {
			t.Errorf("uncached %v: the second result is the cache's: %v", uncached, cached)
		}
	}
}

// Every package that the tables name is there: a renamed one must not lose its place.
func TestTablesNamePackages(t *testing.T) {
	names := slices.Clone(unskippable)
	for _, s := range slow {
		names = append(names, s.paths...)
	}
	for _, p := range names {
		if tests, err := filepath.Glob(filepath.Join("../..", p, "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("%s has no tests", p)
		}
	}
}

func TestChangedPackages(t *testing.T) {
	prerequisites.Need(t, "git")
	body := strings.Repeat("// A line that stays.\n", 20)
	plant(t, map[string]string{
		"go.mod": planted["go.mod"], "README.md": "a",
		"same/a.go": "package same\n", "edited/a.go": "package edited\n", "imports/a.go": "package imports\n\nimport \"fmt\"\n" + body,
		"moved/a.go": "package moved\n" + body, "data/a.go": "package data\n", "data/testdata/deep/x.feature": "a", "gone/a.go": "package gone\n", "gone/b.go": "package gone\n",
		"untested/a.go": "package untested\n",
	})
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"}, args...)...)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, b)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all []testPackage
	for _, p := range []string{"data", "edited", "gone", "imports", "moved", "same"} {
		all = append(all, testPackage{path: p})
	}
	if c, err := changedPackages(t.Context(), "", all); err != nil || c.base != "" {
		t.Errorf("without a repository: %+v, %v", c, err)
	}
	run("init", "-q")
	run("add", "-A")
	run("commit", "-q", "-m", "base")
	write("edited/a.go", "package edited\n\nvar A = 1\n")
	write("imports/a.go", "package imports\n\nimport (\n\t\"fmt\"\n\tother \"os\"\n)\n"+body)
	write("data/testdata/deep/x.feature", "b")
	write("untested/a.go", "package untested\n\nvar A = 1\n")
	write("README.md", "b")
	run("mv", "moved/a.go", "same/moved.go")
	run("rm", "-q", "gone/b.go")
	c, err := changedPackages(t.Context(), "HEAD", all)
	if d := cmp.Diff([]string{"data", "edited", "gone"}, c.packages); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if c.complete() != "data,edited,gone" || !strings.Contains(c.String(), ": data, edited, gone") {
		t.Errorf("whole %q, %s", c.complete(), c)
	}
	if got := c.among(all); len(got) != 3 {
		t.Errorf("among: %v", got)
	}
	if _, err := changedPackages(t.Context(), "nowhere", all); err == nil || !strings.Contains(err.Error(), `METALAB_BASE "nowhere": name a commit`) {
		t.Errorf("a base that is no commit: %v", err)
	}
	many := change{base: "b", packages: slices.Repeat([]string{"a"}, mostChanged+1)}
	if many.complete() != "" || !strings.Contains(many.String(), "all are sampled") {
		t.Errorf("many: %q, %s", many.complete(), many)
	}
}

// A run of some packages says what has changed in others, too: with many changes it draws samples.
func TestRunOfSomePackagesCountsAllChanges(t *testing.T) {
	prerequisites.Need(t, "git")
	dir := plant(t, map[string]string{"go.mod": planted["go.mod"], "again.go": planted["again.go"], "good/a_test.go": planted["good/a_test.go"], "other/a_test.go": planted["good/a_test.go"]})
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a"}} {
		if b, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v: %s", err, b)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other/a_test.go"), []byte(planted["good/a_test.go"]+"\nvar changed = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), settings{patterns: []string{"./good"}, base: "HEAD"}, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if text := out.String(); !strings.Contains(text, ": other\n") || strings.Contains(text, "\t"+module+"/other\t") || !strings.Contains(text, "-- good in ") || !strings.Contains(text, " processors\n") {
		t.Errorf("the output is:\n%s", text)
	}
}

func TestFlakesOfAnEarlierChangeAreKnown(t *testing.T) {
	prerequisites.Need(t, "git")
	plant(t, map[string]string{flakesFile: "# mended by nobody\nold: TestOld\nmended: TestMended\n"})
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a"}} {
		if b, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v: %s", err, b)
		}
	}
	if err := os.WriteFile(flakesFile, []byte("old: TestOld\nnew: TestNew\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := knownFlakes(t.Context(), "HEAD")
	if d := cmp.Diff([]string{"old: TestOld"}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestSettingsAreRead(t *testing.T) {
	env := func(name string) string { return map[string]string{baseEnv: "main", budgetEnv: "90"}[name] }
	s, err := parse([]string{"-race", "-changed", "./emulator/..."}, env)
	want := settings{patterns: []string{"./emulator/..."}, race: true, changed: true, base: "main", budget: 90 * time.Second}
	if d := cmp.Diff(want, s, cmp.AllowUnexported(settings{})); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := parse(nil, func(string) string { return "soon" }); err == nil || !strings.Contains(err.Error(), `METALAB_BUDGET "soon": use a number of seconds`) {
		t.Errorf("a wrong budget: %v", err)
	}
}

// When the budget is spent, samples get smaller and no package runs complete.
func TestBudgetMakesSamplesSmall(t *testing.T) {
	test := testFile(`func TestShare(t *testing.T) { if os.Getenv("METALAB_SHARE") != "12" || os.Getenv("METALAB_COMPLETE") != "" { t.Error("whole") } }`)
	plant(t, map[string]string{"go.mod": planted["go.mod"], "again.go": planted["again.go"], "a/a_test.go": test})
	t.Setenv(sample.CompleteEnv, "a")
	t.Setenv(prerequisites.NeedEnv, "")
	var out strings.Builder
	if err := run(context.Background(), settings{patterns: []string{"./..."}, budget: time.Nanosecond}, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "samples are a quarter") {
		t.Errorf("the output does not say so:\n%s", &out)
	}
}
