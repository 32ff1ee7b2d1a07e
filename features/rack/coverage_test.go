package rack

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/docs/statements"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

//go:generate go test . -run TestCoverageIsCurrent -update

var update = flag.Bool("update", false, "write ../COVERAGE.md")

const coverageFile = "../COVERAGE.md"

// root is the module's root directory, from this package.
const root = "../.."

// pages are the pages whose statements COVERAGE.md lists.
var pages = []string{statements.Redfish, statements.IPMI, statements.Quirks}

// ofDialects is the tag of scenarios about deviations of a single vendor;
// docs/vendors.md has the table.
const ofDialects = "dialect"

// kinds are the kinds of the statements by the beginnings of their numbers.
var kinds = []struct{ numbers, title string }{
	{"ABCDEF", "Redfish, A1 to F10"},
	{"fault-", "Faults of other emulators, fault-1 to fault-8"},
	{"I", "IPMI, I1 to I80"},
	{"tool-", "What ipmitool and FreeIPMI see, tool-1 to tool-27"},
	{"Q", "Quirks of real BMCs, Q1 to Q35"},
}

// kindOf returns the index of the kind of a statement.
func kindOf(id string) int {
	return slices.IndexFunc(kinds, func(k struct{ numbers, title string }) bool {
		return strings.HasPrefix(id, k.numbers) || strings.HasSuffix(k.numbers, "F") && strings.Contains(k.numbers, id[:1])
	})
}

// count counts statements by whether they are shown.
type count struct{ shown, inPart, notBuilt, all int }

func (c *count) add(s statements.Statement, shown bool) {
	c.all++
	switch {
	case s.NotBuilt == "":
		c.shown++
	case shown:
		c.inPart++
	default:
		c.notBuilt++
	}
}

func (c count) String() string {
	out := fmt.Sprintf("%d of %d shown", c.shown, c.all)
	if c.inPart > 0 {
		out += fmt.Sprintf(", %d in part", c.inPart)
	}
	if c.notBuilt > 0 {
		out += fmt.Sprintf(", %d not built", c.notBuilt)
	}
	return out
}

// TestCoverageIsCurrent fails when no scenario and no test shows a statement that
// is not marked as not built, and when COVERAGE.md is not generated from the current
// sources.
func TestCoverageIsCurrent(t *testing.T) {
	credits, err := statements.ReadCredits(os.DirFS(root))
	if err != nil {
		t.Fatal(err) // COVERAGE.md is not written: its credits would be wrong
	}
	var body strings.Builder
	known := map[string]bool{}
	totals := make([]count, len(kinds))
	for _, page := range pages {
		for _, section := range statements.Read(page) {
			var of count
			var b strings.Builder
			for _, s := range section.Statements {
				known[s.ID] = true
				if !credits.Shown(s.ID) && s.NotBuilt == "" {
					t.Errorf("%s, %s: no scenario has the tag @%s, no test names it, and no paragraph of it begins with \"Not built: \"", s.ID, s.Title, s.ID)
				}
				of.add(s, credits.Shown(s.ID))
				totals[kindOf(s.ID)].add(s, credits.Shown(s.ID))
				fmt.Fprintf(&b, "\n### [%s](../docs/statements/%s) %s\n\n%s\n\n", s.ID, s.Anchor(page), s.Title, s.Quote())
				for _, name := range credits.Scenarios[s.ID] {
					fmt.Fprintf(&b, "- scenario: %s\n", name)
				}
				for _, name := range credits.Tests[s.ID] {
					fmt.Fprintf(&b, "- test: `%s`\n", name)
				}
				if s.NotBuilt != "" {
					fmt.Fprintf(&b, "- not built: %s\n", s.NotBuilt)
				}
			}
			fmt.Fprintf(&body, "\n## %s: %s\n%s", section.Title, of, &b)
		}
	}
	for id, names := range credits.Scenarios {
		if !strings.HasPrefix(id, "B-") && !strings.HasPrefix(id, "E-") && kindOf(id) >= 0 && !known[id] {
			t.Errorf("%q name %s, which is not a statement", names, id)
		}
	}
	body.WriteString("\n## Dialects of vendors\n\nWhat a naive client meets, and how a good one copes; [docs/vendors.md](../docs/vendors.md) has the table.\n\n")
	for _, s := range scenarios(t) {
		if slices.Contains(s.Tags, ofDialects) {
			fmt.Fprintf(&body, "- scenario: %s (rack/%s)\n", s.Title, s.File)
		}
	}
	want := "# What shows the statements on Redfish, IPMI and quirks\n\nMade by `go generate ./features/rack`; do not edit. The texts are those of [docs/statements](../docs/statements). Scenarios are below `features`; tests are named by their packages.\n\n"
	for i, k := range kinds {
		want += fmt.Sprintf("- %s: %s\n", k.title, totals[i])
	}
	want += body.String()
	if *update {
		if err := os.WriteFile(coverageFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(coverageFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s is not current: run go generate ./features/rack (-want +got):\n%s", coverageFile, diff)
	}
}

// scenarios returns the scenarios of this directory.
func scenarios(t *testing.T) []statements.Scenario {
	t.Helper()
	files, err := filepath.Glob("*.feature")
	if err != nil {
		t.Fatal(err)
	}
	var out []statements.Scenario
	for _, file := range files {
		all, err := statements.Scenarios(os.DirFS("."), file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, all...)
	}
	if len(out) == 0 {
		t.Fatal("no scenario was found")
	}
	return out
}

// TestEveryScenarioNamesAStatementOrADialect fails when a scenario of this
// directory has no tag of a statement.
func TestEveryScenarioNamesAStatementOrADialect(t *testing.T) {
	dialects := 0
	for _, s := range scenarios(t) {
		switch {
		case slices.Contains(s.Tags, ofDialects):
			dialects++
		case len(s.Names()) == 0:
			t.Errorf("%s: %q has no tag of a statement", s.File, s.Title)
		}
		for _, tag := range s.Tags {
			if tag != ofDialects && !slices.Contains(s.Names(), tag) {
				t.Errorf("%s: the tag @%s of %q is not the number of a statement", s.File, tag, s.Title)
			}
		}
	}
	if dialects == 0 {
		t.Errorf("no scenario has the tag @%s", ofDialects)
	}
}

// TestEveryFaultOfOtherEmulatorsHasAScenario fails when no scenario names a
// statement whose number begins with "fault-".
func TestEveryFaultOfOtherEmulatorsHasAScenario(t *testing.T) {
	named := map[string]bool{}
	for _, s := range scenarios(t) {
		for _, id := range s.Names() {
			named[id] = true
		}
	}
	found := 0
	for _, section := range statements.Read(statements.Redfish) {
		for _, s := range section.Statements {
			if !strings.HasPrefix(s.ID, "fault-") {
				continue
			}
			found++
			if !named[s.ID] {
				t.Errorf("no scenario has the tag @%s (%s)", s.ID, s.Title)
			}
		}
	}
	if found == 0 {
		t.Error("redfish.md has no faults of other emulators")
	}
}

// TestEveryQuirkHasAScenario fails when no scenario switches a quirk on.
func TestEveryQuirkHasAScenario(t *testing.T) {
	files, err := filepath.Glob("*.feature")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range strings.Split(string(text), "Scenario") {
			for _, step := range quirkStep.FindAllStringSubmatch(s, -1) {
				before, variable, outline := strings.Cut(step[1], "<")
				if !outline {
					shown[strings.Fields(step[1])[0]] = true
					continue
				}
				_, table, _ := strings.Cut(s, "Examples:")
				rows := strings.Split(strings.TrimSpace(table), "\n")
				at := slices.Index(cells(rows[0]), strings.TrimSuffix(variable, ">"))
				for _, row := range rows[1:] {
					if all := cells(row); at >= 0 && at < len(all) {
						name, _, _ := strings.Cut(all[at], " ")
						shown[before+name] = true
					}
				}
			}
		}
	}
	for _, q := range quirk.All {
		if !shown[q.ID] {
			t.Errorf("no scenario shows %s", q.ID)
		}
	}
}

var quirkStep = regexp.MustCompile(`the BMC has the quirk "([^"]+)"`)

// cells splits a row of a table of examples.
func cells(row string) []string {
	all := strings.Split(row, "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}
