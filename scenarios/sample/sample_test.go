package sample

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
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
		all, kept := strings.Split(outline, "\n"), strings.Split(string(got["a/colours.feature"]), "\n")
		if len(all) != len(kept) {
			t.Fatalf("%d lines, want %d", len(kept), len(all))
		}
		var lost []string
		for i := range all {
			if kept[i] == "" && all[i] != "" {
				lost = append(lost, row(all[i]))
			} else if diff := cmp.Diff(all[i], kept[i]); diff != "" {
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

func TestShareDrawsPartOfAList(t *testing.T) {
	t.Setenv(FullEnv, "")
	t.Setenv(SeedEnv, "42")
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	for _, tt := range []struct {
		share, complete string
		want, rows      int // names, and rows of a matrix that asks for 4, that remain of 7
	}{
		{"", "", 7, 4},
		{"1", "", 7, 4},
		{"3", "", 3, 4},
		{"12", "", 1, 1},
		{"100", "", 1, 1},
		{"3", "other", 3, 4},
		{"3", "other,scenarios/sample", 7, 7},
		{"none", "", 7, 4},
		{"-3", "", 7, 4},
	} {
		t.Setenv(ShareEnv, tt.share)
		t.Setenv(CompleteEnv, tt.complete)
		if got := Share(t, "list", names); len(got) != tt.want || !slices.IsSorted(got) {
			t.Errorf("share %q, complete %q: %v, want %d", tt.share, tt.complete, got, tt.want)
		}
		if got := Rows(t, "matrix", 4, names); len(got) != tt.rows {
			t.Errorf("share %q, complete %q: rows %v, want %d", tt.share, tt.complete, got, tt.rows)
		}
		if got := Part(7); got != tt.want {
			t.Errorf("share %q, complete %q: Part(7) = %d, want %d", tt.share, tt.complete, got, tt.want)
		}
	}
}

func TestShareDrawsScenariosOfAFeature(t *testing.T) {
	t.Setenv(FullEnv, "")
	t.Setenv(ShareEnv, "3")
	text := "Feature: f\n  Background:\n    Given b\n"
	for _, name := range []string{"one", "two", "three", "four"} {
		text += "\n  @tag\n  Scenario: " + name + "\n    Given " + name + "\n"
	}
	seen := map[string]bool{}
	for seed := range 20 {
		t.Setenv(SeedEnv, strconv.Itoa(seed))
		got := string(Features(t, fstest.MapFS{"a.feature": {Data: []byte(text)}})["a.feature"])
		if n := strings.Count(got, "Scenario: "); n != 2 || strings.Count(got, "@tag") != n || strings.Count(got, "\n") != strings.Count(text, "\n") || !strings.Contains(got, "Given b") {
			t.Fatalf("seed %d:\n%s", seed, got)
		}
		for _, line := range strings.Split(got, "\n") {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Scenario: "); ok {
				seen[name] = true
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("20 seeds draw %v", seen)
	}
}

// A run with a seed that repeats one row must draw what it drew before, and a name that ends in
// #01 must be the same row.
func TestSeedDrawsTheSameInARunOfOneRow(t *testing.T) {
	run := flag.Lookup("test.run")
	before := run.Value.String()
	defer func() {
		if err := run.Value.Set(before); err != nil {
			t.Error(err)
		}
	}()
	if err := run.Value.Set("TestFeatures/a_row#01"); err != nil {
		t.Fatal(err)
	}
	t.Setenv(FullEnv, "")
	for seed, want := range map[string]bool{"42": false, "": true} {
		t.Setenv(SeedEnv, seed)
		if Full() != want {
			t.Errorf("seed %q: Full() = %v", seed, Full())
		}
	}
}

// The tests choose the environment variables themselves: `make test` sets them.
func TestMain(m *testing.M) {
	for _, name := range []string{SeedEnv, FullEnv, ShareEnv, CompleteEnv} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
