package statements

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

// root is the module's root directory, from this package.
const root = "../.."

func all() map[string]Statement {
	out := map[string]Statement{}
	for _, page := range Pages {
		for _, section := range Read(page) {
			for _, s := range section.Statements {
				out[s.ID] = s
			}
		}
	}
	return out
}

func TestEveryCitedNumberIsAStatement(t *testing.T) {
	known := all()
	kinds := []string{".go", ".feature", ".yaml", ".txtar", ".md", ".txt"}
	tree := os.DirFS(root)
	read, found := 0, 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if base := d.Name(); name == "bin" || len(base) > 1 && base[0] == '.' {
				return fs.SkipDir
			}
			return nil
		case !slices.Contains(kinds, path.Ext(name)) || aboutStatements(name):
			return nil // samples
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		read++
		if ext := path.Ext(name); ext == ".go" || ext == ".feature" {
			for _, r := range Ranges(string(text)) {
				t.Errorf("%s:%d: %q is a range: name each statement by its number", name, r.Line, r.Text)
			}
		}
		for _, id := range citedIn(string(text)) {
			found++
			if _, ok := known[id]; !ok {
				t.Errorf("%s cites %s, which is not a statement of docs/statements", name, id)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 1000 || found < 1000 {
		t.Errorf("%d numbers were found in %d files", found, read)
	}
}

func TestCitationsAreFound(t *testing.T) {
	for text, want := range map[string][]string{
		"the order within a pass (B-10)":          {"B-10"},
		"B-110, B-112":                            {"B-110", "B-112"},
		"E-13, statement E13 and 1E-13":           {"E-13", "E13"},
		"// statement I71":                        {"I71"},
		"statements I71, tool-19 and A7 say so":   {"I71", "tool-19", "A7"},
		"// of statements A4 and\n// A6, and B-4": {"A4", "A6"},
		"# statement\n  # Q17":                    {"Q17"},
		"ACPI state S0, D0; the board is an X11":  nil,
		"AB-12 and B-1":                           nil,
	} {
		if diff := cmp.Diff(want, citedIn(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestRangesAreFound(t *testing.T) {
	for text, want := range map[string][]Range{
		"B-110 to B-112":                         {{1, "B-110 to B-112"}},
		"a\n// B-20 to\n// B-32, B-40–49":        {{2, "B-20 to B-32"}, {3, "B-40–49"}},
		"B-20-22, B-30..B-32, B-40…B-42":         {{1, "B-20-22"}, {1, "B-30..B-32"}, {1, "B-40…B-42"}},
		"statements A1, A2 to A5":                {{1, "statements A1, A2 to A5"}},
		"statement fault-1 through fault-8":      {{1, "statement fault-1 through fault-8"}},
		"from S0 to S5; B-110, B-111 and B-112":  nil,
		"a wait (B-12) of 10 to 20 s, see B-13.": nil,
	} {
		if diff := cmp.Diff(want, Ranges(text)); diff != "" {
			t.Errorf("Ranges(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestPagesAreWellFormed(t *testing.T) {
	seen := map[string]string{}
	for _, page := range Pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		sections := Read(page)
		if len(sections) == 0 {
			t.Errorf("%s has no statement", page)
		}
		for _, section := range sections {
			for _, s := range section.Statements {
				if seen[s.ID] != "" {
					t.Errorf("%s is in %s and in %s", s.ID, seen[s.ID], page)
				}
				seen[s.ID] = page
				if len(s.Text) < 3 {
					t.Errorf("%s: %s has no text", page, s.ID)
				}
				if s.NotBuilt != "" && !strings.HasSuffix(s.NotBuilt, ".") {
					t.Errorf("%s: %s: %q is not a sentence that says why this is not built", page, s.ID, s.NotBuilt)
				}
				if !strings.Contains(string(text), fmt.Sprintf("<a id=%q></a>\n### %s ", s.ID, s.ID)) {
					t.Errorf("%s: %s has no anchor of its name on the line before", page, s.ID)
				}
			}
		}
		if anchors, want := strings.Count(string(text), "<a id="), strings.Count(string(text), "\n### ")-unnumbered(string(text)); anchors != want {
			t.Errorf("%s has %d anchors and %d numbered headings", page, anchors, want)
		}
	}
}

// Each page has all numbers of its kinds, built or not.
func TestPagesHaveEachNumber(t *testing.T) {
	known := all()
	for n := 1; n <= 39; n++ {
		id := fmt.Sprintf("E-%02d", n)
		if _, is := known[id]; is != (n <= 38) {
			t.Errorf("%s is a statement: %t", id, is)
		}
	}
	for kind, last := range map[string]int{
		"A": 27, "B": 11, "C": 11, "D": 6, "E": 19, "F": 10, "fault-": 8, "I": 80, "tool-": 27, "Q": 35, "H": 44,
	} {
		for n := 1; n <= last+1; n++ {
			id := fmt.Sprint(kind, n)
			if _, is := known[id]; is != (n <= last && id != "tool-25") {
				t.Errorf("%s is a statement: %t", id, is)
			}
		}
	}
}

// unnumbered counts the headings of the third level without a number.
func unnumbered(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "### ") && !heading.MatchString(strings.TrimSpace(line)) {
			n++
		}
	}
	return n
}

func TestEveryQuirkIsDescribed(t *testing.T) {
	text, err := os.ReadFile(Quirks)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range quirk.All {
		if !strings.Contains(string(text), "`"+q.ID+"`") {
			t.Errorf("%s does not name `%s`", Quirks, q.ID)
		}
	}
}

func TestParseReadsWhatIsNotBuilt(t *testing.T) {
	got := Parse("## One\n\n### D6 Swordfish\n\nNamespaces.\n\nNot built: no drive has\na namespace.\n\n### E15 Racks\n\nPDUs that are not built: none.\n")
	want := []Section{{Title: "One", Statements: []Statement{
		{ID: "D6", Title: "Swordfish", Text: "Namespaces.", NotBuilt: "no drive has a namespace."},
		{ID: "E15", Title: "Racks", Text: "PDUs that are not built: none."},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	got := Parse("# Title\n\nIntro.\n\n## One\n\n<a id=\"B-01\"></a>\n### B-01 First\n\nText.\n\n| a |\n|---|\n\n<a id=\"A7\"></a>\n### A7 `If-Match`\n\nMore.\n\n## Two\n\n### Not numbered\n\nNo.\n")
	want := []Section{{Title: "One", Statements: []Statement{
		{ID: "B-01", Title: "First", Text: "Text.\n\n| a |\n|---|"}, {ID: "A7", Title: "`If-Match`", Text: "More."},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
	if got, want := want[0].Statements[0].Quote(), "> Text.\n>\n> | a |\n> |---|"; got != want {
		t.Errorf("Quote() = %q, want %q", got, want)
	}
}
