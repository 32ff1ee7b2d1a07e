package sample

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var colours = []string{"red", "green", "blue", "cyan", "white", "black", "grey"}

func TestEveryRowIsDrawnOverManySeeds(t *testing.T) {
	const seeds, take = 200, 2
	drawn := map[string]int{}
	for seed := range seeds {
		got := Draw(fmt.Sprint(seed), "colours", take, colours)
		if len(got) != take || got[0] == got[1] {
			t.Fatalf("Draw with seed %d = %q, want %d different rows", seed, got, take)
		}
		for _, c := range got {
			drawn[c]++
		}
	}
	for _, c := range colours {
		if mean := seeds * take / len(colours); drawn[c] < mean/2 || drawn[c] > mean*2 {
			t.Errorf("%s is drawn %d times in %d seeds, want about %d", c, drawn[c], seeds, mean)
		}
	}
}

func TestTheSameSeedDrawsTheSameRowsInTheirOrder(t *testing.T) {
	one, two := Draw("seed", "colours", 4, colours), Draw("seed", "colours", 4, colours)
	if !slices.Equal(one, two) {
		t.Errorf("Draw = %q, and then %q", one, two)
	}
	last := -1
	for _, c := range one {
		at := slices.Index(colours, c)
		if at <= last {
			t.Errorf("Draw = %q: not in the order of the rows", one)
		}
		last = at
	}
	if other := Draw("seed", "shapes", 4, colours); slices.Equal(one, other) {
		t.Errorf("two matrices draw the same rows %q", one)
	}
}

func TestRowsAreAllDrawnInAFullRun(t *testing.T) {
	t.Setenv(FullEnv, "")
	t.Setenv(SeedEnv, "seed")
	if got, want := Rows(t, "colours", 3, colours), Draw("seed", "colours", 3, colours); !slices.Equal(got, want) {
		t.Errorf("Rows = %q, want %q", got, want)
	}
	if got := Rows(t, "colours", 99, colours); !slices.Equal(got, colours) {
		t.Errorf("Rows of more than there are = %q", got)
	}
	t.Setenv(FullEnv, "1")
	if got := Rows(t, "colours", 3, colours); !slices.Equal(got, colours) {
		t.Errorf("Rows in a full run = %q, want all", got)
	}
}

const outline = `Feature: Colours
  @fault @sample-1
  Scenario Outline: All together
    Given the data
      | not | a row |
    Then <colour>
      """
      Examples:
        | not | a row |
      """

    Examples: bright
      | colour |
      | red    |
      | green  |

    @dark @sample-2
    Examples: dark
      | colour |
      | black  |
      | grey   |
      | brown  |

    Examples: bright, too
      | colour |
      | white  |

  Scenario Outline: None
    Examples:
      | colour |
      | blue   |
`

func TestExamplesKeepTheirLinesAndLoseRows(t *testing.T) {
	t.Setenv(FullEnv, "")
	files := fstest.MapFS{"a/colours.feature": {Data: []byte(outline)}, "a/colours.go": {Data: []byte("package a")}}
	seen := map[string]bool{}
	for seed := range 50 {
		t.Setenv(SeedEnv, fmt.Sprint(seed))
		got := Features(t, files)
		if len(got) != 1 {
			t.Fatalf("Features = %d files, want the feature file alone", len(got))
		}
		was, is := strings.Split(outline, "\n"), strings.Split(string(got["a/colours.feature"]), "\n")
		if len(was) != len(is) {
			t.Fatalf("%d lines, want %d", len(is), len(was))
		}
		var lost []string
		for i := range was {
			if is[i] == "" && was[i] != "" {
				lost = append(lost, row(was[i]))
			} else if diff := cmp.Diff(was[i], is[i]); diff != "" {
				t.Errorf("line %d: %s", i+1, diff)
			}
		}
		bright, dark := 0, 0
		for _, c := range lost {
			switch c {
			case "red", "green", "white":
				bright++
			case "black", "grey", "brown":
				dark++
			default:
				t.Errorf("%q is no row of a tagged matrix", c)
			}
		}
		if bright != 2 || dark != 1 {
			t.Errorf("seed %d leaves out %q, want 2 bright ones and 1 dark one", seed, lost)
		}
		for _, c := range []string{"red", "green", "white", "black", "grey", "brown"} {
			seen[c] = seen[c] || !slices.Contains(lost, c)
		}
	}
	if len(seen) != 6 || slices.Contains([]bool{seen["red"], seen["green"], seen["white"], seen["black"], seen["grey"], seen["brown"]}, false) {
		t.Errorf("over 50 seeds these are drawn: %v", seen)
	}
	t.Setenv(FullEnv, "1")
	if got := string(Features(t, files)["a/colours.feature"]); got != outline {
		t.Error("a full run leaves rows out")
	}
}

const withFullOnly = `Feature: Slow
  Background:
    Given a thing

  @H1
  Scenario: First
    Given a text
      """
      @full
      Scenario: not one
      """

  @H2 @full
  Scenario: Slow
    Given much

  @full
  @H3
  Scenario Outline: Slow rows
    Given <a>

    @dark
    Examples:
      | a |
      | 1 |

  Scenario: Last
    Given little
`

// A scenario with the tag @full is in a full run alone, and the others keep their lines.
func TestScenarioForAFullRun(t *testing.T) {
	files := fstest.MapFS{"slow.feature": {Data: []byte(withFullOnly)}}
	t.Setenv(FullEnv, "1")
	if got := string(Features(t, files)["slow.feature"]); got != withFullOnly {
		t.Errorf("a full run = %s", got)
	}
	t.Setenv(FullEnv, "")
	before, rest, _ := strings.Cut(withFullOnly, "  @H2 @full\n")
	_, after, _ := strings.Cut(rest, "  Scenario: Last\n")
	want := before + strings.Repeat("\n", strings.Count(rest, "\n")-strings.Count(after, "\n")) + "  Scenario: Last\n" + after
	if diff := cmp.Diff(want, string(Features(t, files)["slow.feature"])); diff != "" {
		t.Error(diff)
	}
}
