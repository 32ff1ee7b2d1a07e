package features

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	pages "github.com/metalab-dev/metalab/docs/statements"
	"github.com/metalab-dev/metalab/features/steps"
)

//go:generate go test . -run TestStatementsAreCurrent -update

var update = flag.Bool("update", false, "write STATEMENTS.md")

const statementsFile = "STATEMENTS.md"

// root is the module's root directory, from this package.
const root = ".."

const later = "out of scope until upstream's types that have it can be imported"

// outOfScope names the statements that need neither a scenario nor a test, with
// the reason.
var outOfScope = map[string]string{
	"B-57":  later,
	"B-251": later,
	"B-285": "out of scope: optional and unfinished upstream, and not among the nine kinds that are the target",
}

// sources lists what names each statement: scenarios by their tags, Go tests by
// their source.
type sources struct{ scenarios, tests map[string][]string }

// TestStatementsAreCurrent fails when no scenario and no test shows a statement
// of docs/statements/metal3.md that is in scope, and when STATEMENTS.md differs
// from what the sources say.
func TestStatementsAreCurrent(t *testing.T) {
	found := sources{map[string][]string{}, map[string][]string{}}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(name, ".feature"):
			return found.readFeature(tree, name)
		case strings.HasSuffix(name, "_test.go") && !aboutStatements(name):
			return found.readTest(tree, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err) // STATEMENTS.md is not written: its credits would be wrong
	}
	known := map[string]bool{}
	for _, section := range pages.Read(pages.Metal3) {
		for _, s := range section.Statements {
			known[s.ID] = true
			shown := len(found.scenarios[s.ID])+len(found.tests[s.ID]) > 0
			if !shown && outOfScope[s.ID] == "" {
				t.Errorf("%s, %s: no scenario has the tag @%s, no test names it, and outOfScope does not say why", s.ID, s.Title, s.ID)
			}
		}
	}
	for id := range outOfScope {
		if !known[id] {
			t.Errorf("outOfScope names %s, which is not a statement", id)
		}
	}
	for tag, names := range found.scenarios {
		if !known[tag] {
			t.Errorf("%q has the tag @%s, which is not a statement", names, tag)
		}
	}
	want := found.page()
	if *update {
		if err := os.WriteFile(statementsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(statementsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(is), "\n")); diff != "" {
		t.Errorf("%s is not current: run go generate ./features (-want +is):\n%s", statementsFile, diff)
	}
}

func add(to map[string][]string, id, who string) {
	if !slices.Contains(to[id], who) {
		to[id] = append(to[id], who)
	}
}

var tag = regexp.MustCompile(`@(B-\d+)\b`)

// readFeature adds the scenarios of a feature file to the statements that their
// tags, and the tags of the feature, name.
func (s sources) readFeature(tree fs.FS, name string) error {
	b, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	if err := refuseRanges(name, b); err != nil {
		return err
	}
	var ofFeature, ofScenario []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		kind, title, _ := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "@"):
			for _, m := range tag.FindAllStringSubmatch(line, -1) {
				ofScenario = append(ofScenario, m[1])
			}
		case kind == "Feature":
			ofFeature, ofScenario = ofScenario, nil
		case kind == "Scenario", kind == "Scenario Outline":
			for _, id := range slices.Concat(ofFeature, ofScenario) {
				add(s.scenarios, id, fmt.Sprintf("%s (%s)", strings.TrimSpace(title), strings.TrimPrefix(name, "features/")))
			}
			ofScenario = nil
		case kind == "Examples": // their tags belong to the outline above
			ofScenario = nil
		}
	}
	return nil
}

// aboutStatements reports whether the tests of a file are about the pages of
// statements and their readers. The numbers in them are sample text.
func aboutStatements(name string) bool {
	return path.Dir(name) == "features" || strings.HasPrefix(name, "docs/")
}

// named matches the number of a statement in a comment or a string, but not a
// tag, @B-49, nor a heading, # B-49: a test that has those in a string holds the
// text of a feature or of a page.
var named = regexp.MustCompile(`(?:^|[^@\w-])B-(\d{2,3})\b`)

var heading = regexp.MustCompile(`#+ B-\d+`)

// readTest adds the tests of a file to the statements that they name, each by its
// number, in a comment or in a string between double quotes: the name of a case
// or the text of a failure. Raw strings are sample text. A number outside of any
// test is credited to the file. A range of numbers is an error.
func (s sources) readTest(tree fs.FS, name string) error {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	if err := refuseRanges(name, src); err != nil || !named.Match(src) {
		return err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	credit := func(pos token.Pos, text string) {
		for _, m := range named.FindAllStringSubmatch(heading.ReplaceAllString(text, ""), -1) {
			add(s.tests, "B-"+m[1], path.Dir(name)+" "+testAt(f, pos, path.Base(name)))
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			credit(c.Pos(), c.Text)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && lit.Value[0] == '"' {
			credit(lit.Pos(), lit.Value)
		}
		return true
	})
	return nil
}

// testAt returns the name of the test, benchmark or fuzz target of the file that
// contains a position, in its doc comment or its body, else otherwise.
func testAt(f *ast.File, pos token.Pos, otherwise string) string {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, "Fuzz") && !strings.HasPrefix(fn.Name.Name, "Benchmark") {
			continue
		}
		from := fn.Pos()
		if fn.Doc != nil {
			from = fn.Doc.Pos()
		}
		if from <= pos && pos < fn.End() {
			return fn.Name.Name
		}
	}
	return otherwise
}

// refuseRanges returns an error with file and line for each range of numbers: it
// would credit a test with statements that it does not show.
func refuseRanges(name string, src []byte) error {
	var errs []error
	for _, r := range pages.Ranges(string(src)) {
		errs = append(errs, fmt.Errorf("%s:%d: %q is a range: name each statement that is shown by its number", name, r.Line, r.Text))
	}
	return errors.Join(errs...)
}

// page returns STATEMENTS.md: the text of each statement, with the scenarios and
// tests that show it.
func (s sources) page() string {
	var b strings.Builder
	b.WriteString("# What shows the statements on Metal³\n\nMade by `go generate ./features`; do not edit. The texts are those of [docs/statements](../docs/statements/metal3.md). Scenarios are below `features`; tests are named by their packages.\n")
	for _, section := range pages.Read(pages.Metal3) {
		fmt.Fprintf(&b, "\n## %s\n", section.Title)
		for _, st := range section.Statements {
			fmt.Fprintf(&b, "\n### [%s](../docs/statements/%s) %s\n\n%s\n\n", st.ID, st.Anchor(pages.Metal3), st.Title, st.Quote())
			scenarios, tests := s.scenarios[st.ID], s.tests[st.ID]
			slices.Sort(scenarios)
			slices.Sort(tests)
			for _, name := range scenarios {
				fmt.Fprintf(&b, "- scenario: %s\n", name)
			}
			for _, name := range tests {
				fmt.Fprintf(&b, "- test: `%s`\n", name)
			}
			if why := outOfScope[st.ID]; why != "" {
				fmt.Fprintf(&b, "- %s\n", why)
			}
		}
	}
	return b.String()
}

func TestStatementNumbersAreFoundInFeaturesAndTests(t *testing.T) {
	got := sources{map[string][]string{}, map[string][]string{}}
	tree := os.DirFS("testdata/statements")
	for _, read := range []func() error{
		func() error { return got.readFeature(tree, "some.feature") },
		func() error { return got.readTest(tree, "some_test.go.txt") },
	} {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	want := sources{
		scenarios: map[string][]string{"B-01": {"First (some.feature)", "Second (some.feature)"}, "B-49": {"Second (some.feature)"}},
		tests: map[string][]string{
			"B-13": {". TestOne"}, "B-110": {". TestOne"}, "B-112": {". TestOne"}, "B-20": {". some_test.go.txt"},
		},
	}
	if diff := cmp.Diff(want.scenarios, got.scenarios); diff != "" {
		t.Errorf("scenarios (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.tests, got.tests); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
}

func TestRangeOfStatementsIsRefusedWithFileAndLine(t *testing.T) {
	tree := fstest.MapFS{
		"a_test.go": {Data: []byte("package a\n\n// B-20 and B-21, but not B-30 to\n// B-32 nor B-40–49.\n")},
		"a.feature": {Data: []byte("Feature: B-20 to 25\n")},
	}
	got := sources{map[string][]string{}, map[string][]string{}}
	for name, tt := range map[string]struct {
		read func(fs.FS, string) error
		want string
	}{
		"a_test.go": {got.readTest, "a_test.go:3: \"B-30 to B-32\" is a range: name each statement that is shown by its number\n" +
			"a_test.go:4: \"B-40–49\" is a range: name each statement that is shown by its number"},
		"a.feature": {got.readFeature, `a.feature:1: "B-20 to 25" is a range: name each statement that is shown by its number`},
	} {
		if err := tt.read(tree, name); err == nil || err.Error() != tt.want {
			t.Errorf("%s: error = %v\nwant %s", name, err, tt.want)
		}
	}
	if len(got.tests)+len(got.scenarios) > 0 {
		t.Errorf("credits %v, want none", got)
	}
}

func TestStepsAreDocumentedAndDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range steps.Catalogue() {
		if s.Doc == "" || strings.ContainsAny(s.Doc, "\n") || s.About == "" {
			t.Errorf("%s (about %q): its doc is %q, want a line", s.Phrase, s.About, s.Doc)
		}
		if seen[s.Pattern] {
			t.Errorf("%s is there twice", s.Pattern)
		}
		if _, err := regexp.Compile(s.Pattern); err != nil || s.Pattern[0] != '^' || s.Pattern[len(s.Pattern)-1] != '$' {
			t.Errorf("%s: must be a pattern of the whole phrase", s.Pattern)
		}
		seen[s.Pattern] = true
	}
}
