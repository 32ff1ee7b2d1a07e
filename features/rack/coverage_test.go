package rack

import (
	"bufio"
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

// scenarios returns the scenarios of the feature files by their tags.
func scenarios(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.feature")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		var tags []string
		for in := bufio.NewScanner(f); in.Scan(); {
			line := strings.TrimSpace(in.Text())
			if strings.HasPrefix(line, "@") {
				tags = append(tags, strings.Fields(line)...)
				continue
			}
			_, name, ok := strings.Cut(line, ": ")
			if !ok || !strings.HasPrefix(line, "Scenario") {
				continue
			}
			if len(tags) == 0 {
				t.Errorf("%s: %q has no tag of a statement", file, name)
			}
			for _, tag := range tags {
				tag = strings.TrimPrefix(tag, "@")
				out[tag] = append(out[tag], fmt.Sprintf("%s (%s)", name, file))
			}
			tags = nil
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// pages are the pages whose statements scenarios of this directory name.
var pages = []string{statements.Redfish, statements.IPMI, statements.Quirks}

// ofDialects is the tag of scenarios about deviations of a single vendor;
// docs/vendors.md has the table.
const ofDialects = "dialect"

func TestCoverageIsCurrent(t *testing.T) {
	by := scenarios(t)
	var b strings.Builder
	b.WriteString("# What the scenarios of features/rack cover\n\nMade by `go generate ./features/rack`; do not edit. The texts are those of [docs/statements](../docs/statements).\n")
	known := map[string]bool{ofDialects: true}
	for _, page := range pages {
		for _, section := range statements.Read(page) {
			covered := 0
			for _, s := range section.Statements {
				if len(by[s.ID]) > 0 {
					covered++
				}
			}
			if covered == 0 {
				t.Errorf("%s: no scenario is of the section %q", page, section.Title)
			}
			fmt.Fprintf(&b, "\n## %s: %d of %d\n", section.Title, covered, len(section.Statements))
			for _, s := range section.Statements {
				known[s.ID] = true
				fmt.Fprintf(&b, "\n### [%s](../docs/statements/%s) %s\n\n%s\n\n", s.ID, s.Anchor(page), s.Title, s.Quote())
				list(&b, by[s.ID])
			}
		}
	}
	b.WriteString("\n## Dialects of vendors\n\nWhat a naive client meets, and how a good one copes; [docs/vendors.md](../docs/vendors.md) has the table.\n\n")
	list(&b, by[ofDialects])
	if len(by[ofDialects]) == 0 {
		t.Errorf("no scenario has the tag @%s", ofDialects)
	}
	for tag, names := range by {
		if !known[tag] {
			t.Errorf("%q has the tag @%s, which is not a statement", names, tag)
		}
	}
	if *update {
		if err := os.WriteFile(coverageFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(coverageFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(b.String(), "\n"), strings.Split(string(is), "\n")); diff != "" {
		t.Errorf("%s is not current: run go generate ./features/rack (-want +is):\n%s", coverageFile, diff)
	}
}

func list(b *strings.Builder, scenarios []string) {
	for _, name := range scenarios {
		fmt.Fprintf(b, "- scenario: %s\n", name)
	}
}

// TestEveryFaultOfOtherEmulatorsHasAScenario fails when no scenario has the tag of a
// statement whose number begins with "fault-".
func TestEveryFaultOfOtherEmulatorsHasAScenario(t *testing.T) {
	by := scenarios(t)
	found := 0
	for _, section := range statements.Read(statements.Redfish) {
		for _, s := range section.Statements {
			if !strings.HasPrefix(s.ID, "fault-") {
				continue
			}
			found++
			if len(by[s.ID]) == 0 {
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
