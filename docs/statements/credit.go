package statements

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	gherkin "github.com/cucumber/gherkin/go/v26"
	messages "github.com/cucumber/messages/go/v21"
)

// Credits lists the scenarios and tests that show each statement, by its number: a
// scenario names it in a tag or a comment, a Go test in a comment.
type Credits struct {
	Scenarios map[string][]string // "Title (file below features)", sorted
	Tests     map[string][]string // "directory TestName", sorted
}

// Shown reports whether a scenario or a test shows a statement.
func (c Credits) Shown(id string) bool { return len(c.Scenarios[id])+len(c.Tests[id]) > 0 }

// ReadCredits reads the feature files and the Go tests of a module. A range of
// numbers in one of them is an error.
func ReadCredits(tree fs.FS) (Credits, error) {
	c := newCredits()
	var errs []error
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(name, ".feature"):
			errs = append(errs, c.readFeature(tree, name))
		case strings.HasSuffix(name, "_test.go") && !aboutStatements(name):
			errs = append(errs, c.readTest(tree, name))
		}
		return nil
	})
	for _, by := range []map[string][]string{c.Scenarios, c.Tests} {
		for _, names := range by {
			slices.Sort(names)
		}
	}
	return c, errors.Join(append(errs, err)...)
}

func newCredits() Credits { return Credits{map[string][]string{}, map[string][]string{}} }

// aboutStatements reports whether the tests of a file are about the pages of
// statements and their readers. The numbers in them are sample text.
func aboutStatements(name string) bool {
	return path.Dir(name) == "features" || strings.HasPrefix(name, "docs/")
}

func add(to map[string][]string, id, who string) {
	if !slices.Contains(to[id], who) {
		to[id] = append(to[id], who)
	}
}

// Scenario is a scenario, or an outline of scenarios, of a feature file.
type Scenario struct {
	File  string
	Title string

	Tags []string // tags of the scenario, its feature and its tables of examples, without @

	// Cited are the numbers in comments: between the previous scenario and the end
	// of this one, and down to the end of the background, which all scenarios share.
	Cited []string
}

// Names returns the numbers of the statements that the scenario shows.
func (s Scenario) Names() []string {
	var out []string
	for _, tag := range s.Tags {
		if statementID.MatchString(tag) {
			out = append(out, tag)
		}
	}
	return append(out, s.Cited...)
}

var statementID = regexp.MustCompile(`^` + numbers + `$`)

// Scenarios returns the scenarios of a feature file, in order.
func Scenarios(tree fs.FS, name string) ([]Scenario, error) {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	if err := refuseRanges(name, src); err != nil {
		return nil, err
	}
	id := &messages.Incrementing{}
	doc, err := gherkin.ParseGherkinDocument(bytes.NewReader(src), id.NewId)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if doc.Feature == nil {
		return nil, nil
	}
	r := featureReader{file: name, sharedUntil: doc.Feature.Location.Line}
	for _, c := range doc.Feature.Children {
		switch {
		case c.Background != nil:
			r.sharedUntil = lastLine(c.Background.Location.Line, c.Background.Steps)
		case c.Scenario != nil:
			r.scenario(c.Scenario, doc.Feature.Tags)
		case c.Rule != nil:
			return nil, fmt.Errorf("%s:%d: a rule: list its scenarios in the feature", name, c.Rule.Location.Line)
		}
	}
	for _, c := range doc.Comments {
		r.comment(c.Location.Line, citedIn(strings.TrimLeft(c.Text, "\t #")))
	}
	return r.scenarios, nil
}

// featureReader collects the scenarios of a feature file.
type featureReader struct {
	file        string
	sharedUntil int64 // the last line of the header that all scenarios share
	scenarios   []Scenario
	ends        []int64 // the line of the last step, or row of examples, of each
}

func (r *featureReader) scenario(s *messages.Scenario, tags []*messages.Tag) {
	tags = append(slices.Clone(tags), s.Tags...)
	end := lastLine(s.Location.Line, s.Steps)
	for _, e := range s.Examples {
		tags = append(tags, e.Tags...)
		end = max(end, e.Location.Line)
		for _, row := range e.TableBody {
			end = max(end, row.Location.Line)
		}
	}
	out := Scenario{File: r.file, Title: s.Name}
	for _, tag := range tags {
		out.Tags = append(out.Tags, strings.TrimPrefix(tag.Name, "@"))
	}
	r.scenarios, r.ends = append(r.scenarios, out), append(r.ends, end)
}

func lastLine(from int64, steps []*messages.Step) int64 {
	if len(steps) > 0 {
		from = steps[len(steps)-1].Location.Line
	}
	return from
}

// comment adds the numbers that a comment cites to the scenario that it is in or
// above; below the last scenario it belongs to that one.
func (r *featureReader) comment(line int64, cited []string) {
	shared := line <= r.sharedUntil
	for i := range r.scenarios {
		if s := &r.scenarios[i]; shared || line <= r.ends[i] || i == len(r.scenarios)-1 {
			s.Cited = append(s.Cited, cited...)
			if !shared {
				return
			}
		}
	}
}

// readFeature adds the scenarios of a feature file to the statements that they
// name.
func (c Credits) readFeature(tree fs.FS, name string) error {
	all, err := Scenarios(tree, name)
	for _, s := range all {
		for _, id := range s.Names() {
			add(c.Scenarios, id, fmt.Sprintf("%s (%s)", s.Title, strings.TrimPrefix(s.File, "features/")))
		}
	}
	return err
}

// cited matches the numbers that sources cite: B-40 and E-13 anywhere, the numbers of
// the other pages after the word "statement". A comment may break the line in
// between.
var cited = regexp.MustCompile(`\b(B-\d{2,3}|E-\d{2})\b|\b[Ss]tatements?` + broken + `(` + numbers + `(?:(?:,|` + broken + `and)` + broken + numbers + `)*)\b`)

const broken = `\s+(?:(?://|#)\s*)?`

var number = regexp.MustCompile(numbers)

// citedIn returns the numbers that a text cites.
func citedIn(text string) []string {
	var out []string
	for _, m := range cited.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] != "":
			out = append(out, m[1])
		case m[2] != "":
			out = append(out, number.FindAllString(m[2], -1)...)
		}
	}
	return out
}

// sample matches a tag, @B-49, and a heading, # B-49: a test that has those in a
// string holds the text of a feature or of a page.
var sample = regexp.MustCompile(`@[BE]-\d+|#+ [BE]-\d+`)

// readTest adds the tests of a file to the statements that they name, each by its
// number, in a comment or in a string between double quotes: the name of a case
// or the text of a failure. Raw strings are sample text. A number outside of any
// test is credited to the file.
func (c Credits) readTest(tree fs.FS, name string) error {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	if err := refuseRanges(name, src); err != nil || !cited.Match(src) {
		return err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	credit := func(pos token.Pos, text string) {
		for _, id := range citedIn(sample.ReplaceAllString(text, "")) {
			add(c.Tests, id, path.Dir(name)+" "+testAt(f, pos, path.Base(name)))
		}
	}
	for _, group := range f.Comments {
		credit(group.Pos(), string(src[files.Position(group.Pos()).Offset:files.Position(group.End()).Offset]))
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
	for _, r := range Ranges(string(src)) {
		errs = append(errs, fmt.Errorf("%s:%d: %q is a range: name each statement that is shown by its number", name, r.Line, r.Text))
	}
	return errors.Join(errs...)
}
