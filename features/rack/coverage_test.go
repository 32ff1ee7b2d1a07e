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

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

//go:generate go test . -run TestCoverageIsCurrent -update

var update = flag.Bool("update", false, "write ../COVERAGE.md anew")

const coverageFile = "../COVERAGE.md"

// scenarios lists the scenarios of the feature files by their tags.
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
				t.Errorf("%s: %q has no tag of a requirement", file, name)
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

func TestCoverageIsCurrent(t *testing.T) {
	by := scenarios(t)
	var b strings.Builder
	b.WriteString("# What the scenarios of features/rack cover\n\nMade by `go generate ./features/rack`; do not edit.\n")
	known := map[string]bool{}
	for _, g := range groups {
		covered := 0
		for _, r := range g.rows {
			if len(by[r.id]) > 0 {
				covered++
			}
		}
		fmt.Fprintf(&b, "\n## %s: %d of %d\n\n| # | requirement | scenarios |\n| --- | --- | --- |\n", g.title, covered, len(g.rows))
		for _, r := range g.rows {
			known[r.id] = true
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.id, r.title, strings.Join(by[r.id], "<br>"))
		}
		if covered == 0 {
			t.Errorf("no scenario is of the group %q", g.title)
		}
	}
	for tag, names := range by {
		if !known[tag] {
			t.Errorf("%q has the tag @%s, which is no requirement's", names, tag)
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

// Each fault of other emulators has a scenario.
func TestEveryFaultHasAScenario(t *testing.T) {
	by := scenarios(t)
	for _, r := range groups[len(groups)-1].rows {
		if len(by[r.id]) == 0 {
			t.Errorf("no scenario shows that %s is not here: %s", r.id, r.title)
		}
	}
}

// What a naive client meets of each quirk is a scenario.
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

// cells are those of a row of examples.
func cells(row string) []string {
	all := strings.Split(row, "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}
