package features

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	gherkin "github.com/cucumber/gherkin/go/v26"
	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v21"

	"github.com/metalab-dev/metalab/emulator/suggest"
	"github.com/metalab-dev/metalab/features/steps"
)

// Scenario is a scenario that a run can choose, or one row of an outline.
type Scenario struct {
	File string   `json:"file"`
	Line int      `json:"line"` // line of its keyword, or of the row
	Name string   `json:"name"`
	Tags []string `json:"tags"` // with "@"
}

// file is a parsed feature file.
type file struct {
	name  string
	lines []string
	spans []span // lines of its scenarios, in order
	runs  []run
	steps map[string]int // line of each step, by its id
}

// span is the lines of a scenario, from its first tag to the line before whatever
// follows.
type span struct {
	id          string
	first, last int // counted from 1
	keyword     int // the line of "Scenario:"
	rule        int // the first line of the rule that it is in; 0: none
}

// run is a scenario, or an outline with one row of its Examples: Line is
// that of the keyword, or of the row.
type run struct {
	Scenario
	of     string // id of the scenario
	table  int    // line of the Examples; 0: none
	pickle *messages.Pickle
	skip   bool // nothing selects it
}

// read parses the files that paths name: files, optionally with :LINE, and
// directories. Without paths they are Files; so is a path that does not exist, if
// Files has it. Rows that no path names are skipped.
func read(paths []string) ([]*file, error) {
	if len(paths) == 0 {
		return readTree(Files, ".")
	}
	var out []*file
	chosen := map[*file][]int{} // lines; none: all
	for _, p := range paths {
		name, at := p, 0
		if m := lineOf.FindStringSubmatch(p); m != nil {
			name = strings.TrimSuffix(p, m[0])
			at, _ = strconv.Atoi(m[1]) // the pattern lets only digits pass
		}
		var files []*file
		var err error
		if _, missing := os.Stat(name); missing == nil {
			files, err = readTree(hostFS{}, name)
		} else if _, missing = fs.Stat(Files, path.Clean(name)); missing == nil {
			files, err = readTree(Files, path.Clean(name))
		} else {
			return nil, usage("%s: there is no such file or directory, and none of ours has this name%s: they are %s", p, suggest.DidYouMean(name, ours()), strings.Join(ours(), ", "))
		}
		switch {
		case err != nil:
			return nil, err
		case len(files) == 0:
			return nil, usage("%s has no file whose name ends in .feature", p)
		case at > 0 && (len(files) != 1 || files[0].name != name && files[0].name != path.Clean(name)):
			return nil, usage("%s: a line is of a file, and this is a directory", p)
		}
		for _, f := range files {
			i := slices.IndexFunc(out, func(o *file) bool { return o.name == f.name })
			if i < 0 {
				i, out = len(out), append(out, f)
			}
			f = out[i]
			if _, ok := chosen[f]; !ok || at == 0 {
				chosen[f] = nil
			}
			if at > 0 {
				if at > len(f.lines) {
					return nil, usage("%s: the file has %d lines", p, len(f.lines))
				}
				chosen[f] = append(chosen[f], at)
			}
		}
	}
	for _, f := range out {
		f.keepLines(chosen[f])
	}
	return out, nil
}

var lineOf = regexp.MustCompile(`:(\d+)$`)

// hostFS is the host's file system: unlike os.DirFS it takes any path.
type hostFS struct{}

func (hostFS) Open(name string) (fs.File, error)          { return os.Open(name) }
func (hostFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (hostFS) ReadFile(name string) ([]byte, error)       { return os.ReadFile(name) }
func (hostFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }

func readTree(tree fs.FS, root string) (out []*file, err error) {
	err = fs.WalkDir(tree, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".feature" && name != root {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		f, err := parse(name, text)
		if err != nil {
			return &UsageError{err}
		}
		out = append(out, f)
		return nil
	})
	return out, err
}

// parse reads a feature file.
func parse(name string, text []byte) (*file, error) {
	id := (&messages.Incrementing{}).NewId
	doc, err := gherkin.ParseGherkinDocument(bytes.NewReader(text), id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &file{name: name, lines: strings.Split(string(text), "\n"), steps: map[string]int{}}
	if doc.Feature == nil {
		return f, nil
	}
	rows, tables := map[string]int{}, map[string]int{}
	var starts []int // first lines of scenarios, rules and backgrounds
	scenario := func(s *messages.Scenario, rule int) {
		at := span{id: s.Id, first: firstLine(s.Tags, s.Location), keyword: int(s.Location.Line), rule: rule}
		f.spans, starts = append(f.spans, at), append(starts, at.first)
		f.addSteps(s.Steps)
		for _, e := range s.Examples {
			for _, r := range e.TableBody {
				rows[r.Id], tables[r.Id] = int(r.Location.Line), firstLine(e.Tags, e.Location)
			}
		}
	}
	background := func(b *messages.Background) {
		starts = append(starts, int(b.Location.Line))
		f.addSteps(b.Steps)
	}
	for _, c := range doc.Feature.Children {
		switch {
		case c.Background != nil:
			background(c.Background)
		case c.Scenario != nil:
			scenario(c.Scenario, 0)
		case c.Rule != nil:
			rule := firstLine(c.Rule.Tags, c.Rule.Location)
			starts = append(starts, rule)
			for _, r := range c.Rule.Children {
				if r.Background != nil {
					background(r.Background)
				} else {
					scenario(r.Scenario, rule)
				}
			}
		}
	}
	for i := range f.spans {
		s := &f.spans[i]
		s.last = len(f.lines)
		for _, n := range starts {
			if n > s.first {
				s.last = min(s.last, n-1)
			}
		}
	}
	for _, p := range gherkin.Pickles(*doc, name, id) {
		r := run{Scenario: Scenario{File: name, Name: p.Name}, of: p.AstNodeIds[0], pickle: p}
		if len(p.AstNodeIds) > 1 {
			r.Line, r.table = rows[p.AstNodeIds[1]], tables[p.AstNodeIds[1]]
		} else {
			r.Line = f.spanOf(r.of).keyword
		}
		for _, t := range p.Tags {
			r.Tags = append(r.Tags, t.Name)
		}
		f.runs = append(f.runs, r)
	}
	return f, nil
}

func (f *file) addSteps(list []*messages.Step) {
	for _, s := range list {
		f.steps[s.Id] = int(s.Location.Line)
	}
}

func (f *file) spanOf(id string) span {
	return f.spans[slices.IndexFunc(f.spans, func(s span) bool { return s.id == id })]
}

func firstLine(tags []*messages.Tag, at *messages.Location) int {
	first := int(at.Line)
	for _, t := range tags {
		first = min(first, int(t.Location.Line))
	}
	return first
}

// keepLines skips the rows that none of these lines selects; without lines it skips
// none. The line of a row selects the row, another line of Examples their rows,
// another line of a scenario all its rows, a line before the first scenario of a
// rule the rule, and one before the first scenario of the file the file.
func (f *file) keepLines(lines []int) {
	if len(lines) == 0 {
		return
	}
	for i := range f.runs {
		f.runs[i].skip = true
	}
	for _, at := range lines {
		for i := range f.runs {
			if f.selects(at, f.runs[i]) {
				f.runs[i].skip = false
			}
		}
	}
}

// selects reports whether a line selects a row.
func (f *file) selects(at int, r run) bool {
	s := f.spanOf(r.of)
	if at < s.first || at > s.last {
		inScenario := slices.ContainsFunc(f.spans, func(o span) bool { return at >= o.first && at <= o.last })
		rule := 0
		for _, o := range f.spans {
			if o.rule <= at {
				rule = max(rule, o.rule)
			}
		}
		return !inScenario && (rule == 0 || s.rule == rule)
	}
	isRow := slices.ContainsFunc(f.runs, func(o run) bool { return o.of == r.of && o.table > 0 && o.Line == at })
	if isRow {
		return r.Line == at
	}
	table := 0 // the Examples that the line is in
	for _, o := range f.runs {
		if o.of == r.of && o.table <= at {
			table = max(table, o.table)
		}
	}
	return table == 0 || r.table == table
}

// keepTags skips the rows that do not match a tag expression.
func (f *file) keepTags(selects tagExpression) {
	for i, r := range f.runs {
		f.runs[i].skip = r.skip || !selects(r.Tags)
	}
}

// text returns the file with blank lines for the rows that are skipped, so that the
// other lines keep their numbers.
func (f *file) text() []byte {
	lines := slices.Clone(f.lines)
	for _, s := range f.spans {
		if !slices.ContainsFunc(f.runs, func(r run) bool { return r.of == s.id && !r.skip }) {
			clear(lines[s.first-1 : s.last])
		}
	}
	for _, r := range f.runs {
		if r.skip && r.table > 0 {
			lines[r.Line-1] = ""
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// chosen returns the rows that are not skipped.
func (f *file) chosen() (out []Scenario) {
	for _, r := range f.runs {
		if !r.skip {
			out = append(out, r.Scenario)
		}
	}
	return out
}

// selected reads the files and chooses scenarios. It returns a *UsageError when
// there are none.
func selected(o Options) ([]*file, error) {
	files, err := read(o.Paths)
	if err != nil {
		return nil, err
	}
	if o.Tags != "" {
		e, err := parseTags(o.Tags)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			f.keepTags(e)
		}
	}
	if !slices.ContainsFunc(files, func(f *file) bool { return len(f.chosen()) > 0 }) {
		return nil, noScenario(files, o.Tags)
	}
	return files, nil
}

func noScenario(files []*file, tags string) error {
	if tags == "" {
		return usage("%s: there is no scenario", files[0].name)
	}
	var known []string
	for _, f := range files {
		for _, r := range f.runs {
			known = append(known, r.Tags...)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, t := range tagNames(tags) {
		if !slices.Contains(known, t) {
			return usage("there is no scenario with the tags %q: none has %s%s", tags, t, suggest.DidYouMean(t, known))
		}
	}
	return usage("there is no scenario with the tags %q", tags)
}

// List returns the scenarios that Run with the same Options would run.
func List(o Options) ([]Scenario, error) {
	files, err := selected(o)
	if err != nil {
		return nil, err
	}
	var out []Scenario
	for _, f := range files {
		out = append(out, f.chosen()...)
	}
	return out, nil
}

// undefinedSteps returns a *UsageError that names each step of the chosen scenarios
// that there is not, with the one that is most like it, and each that lacks a text.
func undefinedSteps(files []*file) error {
	definitions := steps.Definitions()
	var phrases []string
	for _, s := range steps.Catalogue() {
		phrases = append(phrases, s.Phrase)
	}
	var unknown []string
	seen := map[string]bool{}
	for _, f := range files {
		for _, r := range f.runs {
			for _, s := range r.pickle.Steps {
				_, defined := definitions.Find(s.Text)
				bad := definitions.Check(s)
				if r.skip || defined && bad == nil {
					continue
				}
				at := fmt.Sprintf("%s:%d", f.name, f.steps[s.AstNodeIds[0]])
				if seen[at] {
					continue
				}
				seen[at] = true
				if bad != nil {
					unknown = append(unknown, fmt.Sprintf("%s: %v", at, bad))
					continue
				}
				near := suggest.Closest(steps.Phrase(s.Text), phrases)
				unknown = append(unknown, fmt.Sprintf("%s: there is no step %q: the nearest is %q", at, s.Text, phrases[near]))
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return usage("%s\nlabctl features steps lists the steps", strings.Join(unknown, "\n"))
}

// featureContents returns the chosen scenarios as godog takes them.
func featureContents(files []*file) (out []godog.Feature) {
	for _, f := range files {
		if len(f.chosen()) > 0 {
			out = append(out, godog.Feature{Name: f.name, Contents: f.text()})
		}
	}
	return out
}
