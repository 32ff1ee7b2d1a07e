package features

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const several = `@all
Feature: Several
  A description.

  Background:
    Given a lab with 1 server

  # About the first.
  @a @slow
  Scenario: One
    Then the server is off

  @b
  Scenario Outline: Two
    Then the server is <power>

    Examples: first
      | power |
      | off   |
      | on    |

    @c
    Examples: second
      | power |
      | off   |

  Rule: Of three
    Background:
      Given a lab with 3 servers

    @a @b
    Scenario: Three
      Then the server is off
`

// write writes a feature file to a directory of its own and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "several.feature")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// lines returns the lines of the selected scenarios.
func lines(all []Scenario) (out []int) {
	for _, s := range all {
		out = append(out, s.Line)
	}
	return out
}

func TestTagExpressionsSelectScenarios(t *testing.T) {
	name := write(t, several)
	for tags, want := range map[string][]int{
		"":                       {10, 19, 20, 25, 32},
		"@a":                     {10, 32},
		"@a and not @b":          {10},
		"@a && ~@b":              {10},
		"@a && !@b":              {10},
		"@slow or @c":            {10, 25},
		"@slow || @c":            {10, 25},
		"@slow,@c":               {10, 25},
		"@b && @a , @c":          {25, 32}, // the comma binds tighter
		"not (@a or @c)":         {19, 20},
		"~@a && ~@c":             {19, 20},
		"@b and ~@all,@c":        {25}, // an operand of the comma may be negated
		"@a and not @all":        nil,
		"@a and\n(@slow or @c) ": {10},
	} {
		got, err := List(Options{Paths: []string{name}, Tags: tags})
		if want == nil {
			if bad := new(UsageError); !errors.As(err, &bad) {
				t.Errorf("List(%q) = %v, %v, want a UsageError", tags, got, err)
			}
		} else if err != nil || !slices.Equal(lines(got), want) {
			t.Errorf("List(%q) = lines %v, %v, want %v", tags, lines(got), err, want)
		}
	}
	for tags, want := range map[string]string{
		"@a and":   `tags "@a and": `,
		"(@a":      `tags "(@a": `,
		"a":        `"a" stands where a tag is expected, which begins with @`,
		"@a @b":    `"@b" is one too many`,
		"@a & @b":  `"&" is one too many`,
		"(@a))":    `")" is one too many`,
		"@a,":      "a tag is missing at the end",
		"@slwo":    "none has @slwo. Did you mean @slow?",
		"@a && @c": `there is no scenario with the tags "@a && @c"`,
	} {
		_, err := List(Options{Paths: []string{name}, Tags: tags})
		if bad := new(UsageError); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("List(%q): %v, want a UsageError with %q", tags, err, want)
		}
	}
}

func TestLinesSelectTheScenarioTheyAreIn(t *testing.T) {
	name := write(t, several)
	all := []int{10, 19, 20, 25, 32}
	for line, want := range map[int][]int{
		1: all, 3: all, 6: all, // before the first scenario
		9: {10}, 10: {10}, 11: {10}, 12: {10},
		14: {19, 20, 25}, 15: {19, 20, 25}, // the outline
		17: {19, 20}, 18: {19, 20}, 19: {19}, 20: {20},
		22: {25}, 23: {25}, 25: {25},
		27: {32}, 29: {32}, 33: {32},
	} {
		got, err := List(Options{Paths: []string{fmt.Sprintf("%s:%d", name, line)}})
		if err != nil || !slices.Equal(lines(got), want) {
			t.Errorf("line %d selects %v, %v, want %v", line, lines(got), err, want)
		}
	}
	for _, path := range []string{name + ":99", filepath.Dir(name) + ":1"} {
		if _, err := List(Options{Paths: []string{path}}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("List(%s): %v, want an error that names the path", path, err)
		}
	}
	got, err := List(Options{Paths: []string{name + ":20", name + ":11", name + ":11"}, Tags: "@all"})
	if err != nil || !slices.Equal(lines(got), []int{10, 20}) {
		t.Errorf("two lines select %v, %v", lines(got), err)
	}
	if got, err = List(Options{Paths: []string{name + ":20", name}}); err != nil || !slices.Equal(lines(got), all) {
		t.Errorf("a line and the whole file select %v, %v", lines(got), err)
	}
}

func TestWhatIsNotSelectedBecomesBlankLines(t *testing.T) {
	f, err := parse("several.feature", []byte(several))
	if err != nil {
		t.Fatal(err)
	}
	f.keepLines([]int{20})
	before, after := strings.Split(several, "\n"), strings.Split(string(f.text()), "\n")
	var gone []int
	for i := range before {
		if before[i] != after[i] {
			gone = append(gone, i+1)
		}
	}
	if diff := cmp.Diff([]int{9, 10, 11, 19, 25, 31, 32, 33}, gone); diff != "" {
		t.Errorf("lines that are blank now (-want +got):\n%s", diff)
	}
	again, err := parse(f.name, f.text())
	if err != nil || len(again.runs) != 1 || again.runs[0].Line != 20 {
		t.Errorf("what is left has the scenarios %v, %v", again.runs, err)
	}
}

func TestBuiltInFeaturesAreListedByName(t *testing.T) {
	all, err := List(Options{})
	if err != nil || len(all) < 200 {
		t.Fatalf("List = %d scenarios, %v", len(all), err)
	}
	some, err := List(Options{Paths: []string{"state/available.feature"}})
	if err != nil || len(some) == 0 || len(some) >= len(all) || some[0].File != "state/available.feature" {
		t.Errorf("List of one file = %v, %v", some, err)
	}
}

func TestRunRefusesUndefinedStepsBeforeALabStarts(t *testing.T) {
	name := write(t, strings.Replace(several, "Then the server is off", "Then the servr is of", 1))
	var out bytes.Buffer
	err := Run(t.Context(), Options{Format: Pretty, Paths: []string{name}, Out: &out})
	bad := new(UsageError)
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), name+`:11: there is no step "the servr is of": the nearest is "the server is off"`) {
		t.Errorf("Run = %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("something ran: %s", &out)
	}
}

func TestRunRefusesEmptyArgumentsBeforeALabStarts(t *testing.T) {
	name := write(t, strings.Replace(several, "Then the server is off", `Then the events include ""`, 1))
	var out bytes.Buffer
	err := Run(t.Context(), Options{Format: Pretty, Paths: []string{name}, Out: &out})
	bad := new(UsageError)
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), name+`:11: argument 1 of the step "the events include \"\"" is empty`) {
		t.Errorf("Run = %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("something ran: %s", &out)
	}
}
