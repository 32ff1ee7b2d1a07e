package features

import (
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
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/features/steps"
)

//go:generate go test . -run TestStatementsAreCurrent -update

var update = flag.Bool("update", false, "write STATEMENTS.md anew")

const statementsFile = "STATEMENTS.md"

// root is the module's, as its tests see it.
const root = ".."

// sources says who names each statement: scenarios by their tags, Go tests by
// their source.
type sources struct{ scenarios, tests map[string][]string }

// TestStatementsAreCurrent fails when a statement of the reference is neither
// shown by a scenario or a test nor explained away, and when the page that says
// so is not what the sources say.
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
		case strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "features/statements"):
			return found.readTest(tree, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, g := range statements {
		for _, s := range g.rows {
			known[s.id] = true
			shown := len(found.scenarios[s.id])+len(found.tests[s.id]) > 0
			if !shown && s.why == "" {
				t.Errorf("%s, %s: no scenario has the tag @%s, no test names it, and the table does not say why", s.id, s.title, s.id)
			}
		}
	}
	for tag, names := range found.scenarios {
		if !known[tag] {
			t.Errorf("%q has the tag @%s, which is no statement's", names, tag)
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

// readFeature takes in the tags of a feature and of its scenarios.
func (s sources) readFeature(tree fs.FS, name string) error {
	b, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	var whole, own []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		kind, title, _ := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "@"):
			for _, m := range tag.FindAllStringSubmatch(line, -1) {
				own = append(own, m[1])
			}
		case kind == "Feature":
			whole, own = own, nil
		case kind == "Scenario", kind == "Scenario Outline":
			for _, id := range slices.Concat(whole, own) {
				add(s.scenarios, id, fmt.Sprintf("%s (%s)", strings.TrimSpace(title), strings.TrimPrefix(name, "features/")))
			}
			own = nil
		case kind == "Examples": // their tags are of the scenario before
			own = nil
		}
	}
	return nil
}

// named finds statements in comments and texts: B-49, and B-110 to B-112.
var named = regexp.MustCompile(`\bB-(\d{2,3})(?: to B-(\d{2,3}))?\b`)

// readTest takes in what the tests of a file name. What stands outside of any
// function is the file's.
func (s sources) readTest(tree fs.FS, name string) error {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	if !named.Match(src) {
		return nil
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	within := func(offset int) string {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, "Fuzz") && !strings.HasPrefix(fn.Name.Name, "Benchmark") {
				continue
			}
			from := fn.Pos()
			if fn.Doc != nil {
				from = fn.Doc.Pos()
			}
			if files.Position(from).Offset <= offset && offset < files.Position(fn.End()).Offset {
				return fn.Name.Name
			}
		}
		return path.Base(name)
	}
	for _, m := range named.FindAllSubmatchIndex(src, -1) {
		who := path.Dir(name) + " " + within(m[0])
		from, _ := strconv.Atoi(string(src[m[2]:m[3]]))
		to := from
		if m[4] >= 0 {
			to, _ = strconv.Atoi(string(src[m[4]:m[5]]))
		}
		for n := from; n <= to; n++ {
			add(s.tests, fmt.Sprintf("B-%02d", n), who)
		}
	}
	return nil
}

// page is what the sources say, for people.
func (s sources) page() string {
	var b strings.Builder
	b.WriteString("# What shows the statements of the Metal3 reference\n\nMade by `go generate ./features`; do not edit. Scenarios are below `features`, tests are named by their packages.\n")
	for _, g := range statements {
		fmt.Fprintf(&b, "\n## %s\n\n| # | statement | scenarios | Go tests |\n| --- | --- | --- | --- |\n", g.title)
		for _, r := range g.rows {
			scenarios, tests := s.scenarios[r.id], s.tests[r.id]
			slices.Sort(scenarios)
			slices.Sort(tests)
			cell := strings.Join(scenarios, "<br>")
			switch {
			case r.why != "":
				cell = r.why
			case len(scenarios)+len(tests) == 0:
				cell = "not yet"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.id, r.title, cell, strings.Join(tests, "<br>"))
		}
	}
	return b.String()
}

func TestNamesOfStatementsAreFound(t *testing.T) {
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
			"B-13": {". TestOne"}, "B-110": {". TestOne"}, "B-111": {". TestOne"}, "B-112": {". TestOne"}, "B-20": {". some_test.go.txt"},
		},
	}
	if diff := cmp.Diff(want.scenarios, got.scenarios); diff != "" {
		t.Errorf("scenarios (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.tests, got.tests); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
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
