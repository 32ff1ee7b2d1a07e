package features

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pages "github.com/metalab-dev/metalab/docs/statements"
	"github.com/metalab-dev/metalab/features/steps"
)

//go:generate go test . -run TestStatementsAreCurrent -update

var update = flag.Bool("update", false, "write the pages of shown")

// shown are the pages of statements that the scenarios and tests show, with the pages that
// are generated from them.
var shown = []struct {
	page, file string
	about      string
	prefix     string // prefix of the statements' numbers
}{
	{pages.Metal3, "STATEMENTS.md", "Metal³", "B-"},
	{pages.MOSK, "DAY2.md", "day-2 operations", "H"},
	{pages.Elemental, "ELEMENTAL.md", "Elemental", "E-"},
	{pages.MachineConfig, "MACHINECONFIG.md", "machine configuration", "M"},
}

// root is the module's root directory, from this package.
const root = ".."

// TestStatementsAreCurrent fails when no scenario and no test shows a statement
// that is not marked as not built, and when a page is not generated from the current
// sources.
func TestStatementsAreCurrent(t *testing.T) {
	found, err := pages.ReadCredits(os.DirFS(root))
	if err != nil {
		t.Fatal(err) // no page is written: its credits would be wrong
	}
	for _, of := range shown {
		current(t, found, of.page, of.file, of.about, of.prefix)
	}
}

func current(t *testing.T, found pages.Credits, page, file, about, prefix string) {
	known := map[string]bool{}
	for _, section := range pages.Read(page) {
		for _, s := range section.Statements {
			known[s.ID] = true
			if !found.Shown(s.ID) && s.NotBuilt == "" {
				t.Errorf("%s, %s: no scenario has the tag @%s, no test names it, and no paragraph of it begins with \"Not built: \"", s.ID, s.Title, s.ID)
			}
		}
	}
	for id, names := range found.Scenarios {
		if strings.HasPrefix(id, prefix) && !known[id] {
			t.Errorf("%q name %s, which is not a statement", names, id)
		}
	}
	want := statementsPage(found, page, about)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(is), "\n")); diff != "" {
		t.Errorf("%s is not current: run go generate ./features (-want +is):\n%s", file, diff)
	}
}

// statementsPage returns the text of each statement of a page, with the scenarios and
// tests that show it.
func statementsPage(found pages.Credits, page, about string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What shows the statements on %s\n\nMade by `go generate ./features`; do not edit. The texts are those of [docs/statements](../docs/statements/%s). Scenarios are below `features`; tests are named by their packages.\n", about, page)
	for _, section := range pages.Read(page) {
		fmt.Fprintf(&b, "\n## %s\n", section.Title)
		for _, st := range section.Statements {
			fmt.Fprintf(&b, "\n### [%s](../docs/statements/%s) %s\n\n%s\n\n", st.ID, st.Anchor(page), st.Title, st.Quote())
			for _, name := range found.Scenarios[st.ID] {
				fmt.Fprintf(&b, "- scenario: %s\n", name)
			}
			for _, name := range found.Tests[st.ID] {
				fmt.Fprintf(&b, "- test: `%s`\n", name)
			}
			if st.NotBuilt != "" {
				fmt.Fprintf(&b, "- not built: %s\n", st.NotBuilt)
			}
		}
	}
	return b.String()
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
