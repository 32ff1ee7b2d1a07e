package sample

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sampled is the tag of a Scenario Outline, or of one of its Examples, of whose
// rows a sample of so many is enough: @sample-3.
var sampled = regexp.MustCompile(`@sample-(\d+)\b`)

// fullOnly is the tag of a Scenario that a full run alone has.
const fullOnly = "@full"

// Features returns the text of every feature file below the root of a file
// system, by its path. Rows of Examples and scenarios that this run does not test
// are blank lines, so that the other lines keep their numbers.
func Features(t testing.TB, files fs.FS) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".feature" {
			return err
		}
		text, err := fs.ReadFile(files, name)
		out[name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if Full() {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		lines := strings.Split(string(out[name]), "\n")
		for _, scenario := range drop(lines, func(s scenario) bool { return slices.Contains(s.tags, fullOnly) }) {
			t.Logf("sample: %s: not in this run: %s", name, scenario)
		}
		if share() > 1 {
			var all []string
			for _, s := range scenarios(lines) {
				all = append(all, s.name)
			}
			drawn := Share(t, "the scenarios of "+name, all)
			drop(lines, func(s scenario) bool { return !slices.Contains(drawn, s.name) })
		}
		for _, m := range matrices(lines) {
			var rows []string
			for _, at := range m.rows {
				rows = append(rows, row(lines[at]))
			}
			label := fmt.Sprintf("%s:%d", name, m.line)
			drawn := Rows(t, label, m.take, rows)
			for i, at := range m.rows {
				if !slices.Contains(drawn, rows[i]) {
					lines[at] = ""
				}
			}
		}
		out[name] = []byte(strings.Join(lines, "\n"))
	}
	return out
}

// row is a table row as a log shows it: its cells, with single blanks.
func row(line string) string {
	return strings.Join(strings.Fields(strings.Trim(strings.TrimSpace(line), "|")), " ")
}

// matrix is the rows of Examples that one tag is about.
type matrix struct {
	line int   // line of the tag, counted from 1
	take int   // how many rows are enough
	rows []int // indexes of their lines
}

// matrices finds the tagged Examples of a feature file.
func matrices(lines []string) (out []*matrix) {
	var pending, outline, examples *matrix // matrices of the tags just read, the outline and its Examples
	var inTable, header, docString bool
	take := func() *matrix {
		m := pending
		if pending = nil; m != nil {
			out = append(out, m)
		}
		return m
	}
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, `"""`) {
			docString = !docString
		}
		if docString {
			continue
		}
		switch keyword, _, _ := strings.Cut(line, ":"); {
		case strings.HasPrefix(line, "@"):
			if m := sampled.FindStringSubmatch(line); m != nil {
				n, _ := strconv.Atoi(m[1]) // the pattern lets only digits pass
				pending = &matrix{line: i + 1, take: n}
			}
		case keyword == "Scenario" || keyword == "Scenario Outline":
			outline, inTable = take(), false
		case keyword == "Examples":
			if examples = take(); examples == nil {
				examples = outline
			}
			inTable, header = true, true
		case !strings.HasPrefix(line, "|") || !inTable:
		case header:
			header = false
		case examples != nil:
			examples.rows = append(examples.rows, i)
		}
	}
	return out
}

// scenario is a Scenario or a Scenario Outline in the lines of a feature file.
type scenario struct {
	name       string
	tags       []string
	start, end int // range of its lines, with its tags
}

// scenarios finds the scenarios of a feature file.
func scenarios(lines []string) (out []scenario) {
	docString := false
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, `"""`) {
			docString = !docString
		}
		keyword, name, _ := strings.Cut(line, ":")
		if docString || keyword != "Scenario" && keyword != "Scenario Outline" {
			continue
		}
		s := scenario{name: strings.TrimSpace(name), start: i}
		for s.start > 0 && strings.HasPrefix(strings.TrimSpace(lines[s.start-1]), "@") {
			s.start--
		}
		s.tags = strings.Fields(strings.Join(lines[s.start:i], " "))
		if n := len(out); n > 0 {
			out[n-1].end = s.start
		}
		s.end = len(lines)
		out = append(out, s)
	}
	return out
}

// drop blanks the scenarios that leave chooses, and returns their names.
func drop(lines []string, leave func(scenario) bool) (names []string) {
	for _, s := range scenarios(lines) {
		if leave(s) {
			names = append(names, s.name)
			clear(lines[s.start:s.end])
		}
	}
	return names
}
