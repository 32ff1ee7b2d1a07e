package features

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/cucumber/godog"
	"github.com/google/go-cmp/cmp"
)

// TestPrettyWritesEachFailureOnce runs scenarios with steps of the test's own.
func TestPrettyWritesEachFailureOnce(t *testing.T) {
	const text = `Feature: Colours
  Background:
    Given a table
      | a | b |

  @slow
  Scenario Outline: One
    When it is <colour>
    Then it shows

    Examples:
      | colour |
      | red    |
      | green  |
`
	registerPretty()
	var out bytes.Buffer
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			sc.Step(`^a table$`, func(*godog.Table) error { return nil })
			sc.Step(`^it is red$`, func() error { return errors.New("it is\nblue") })
			sc.Step(`^it is green$`, func() error { return nil })
			sc.Step(`^it shows$`, func() error { return nil })
			sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
				if err != nil {
					return ctx, errors.New("states: none")
				}
				return ctx, nil
			})
		},
		Options: &godog.Options{
			Format: prettyName, FeatureContents: []godog.Feature{{Name: "c.feature", Contents: []byte(text)}},
			Output: &out, NoColors: true, Strict: true,
		},
	}
	if suite.Run() == 0 {
		t.Error("the suite passed")
	}
	want := `Feature: Colours

  Scenario: One  # c.feature:13
    Given a table
      | a | b |
    When it is red  (failed)
      it is
      blue
      states: none
    Then it shows  (skipped)

  Scenario: One  # c.feature:14
    Given a table
      | a | b |
    When it is green
    Then it shows

1 of 2 scenarios passed (steps: 4 passed, 1 failed, 1 skipped) in TIME

Failed:
  c.feature:13  One
`
	got := regexp.MustCompile(`in [0-9.]+m?s`).ReplaceAllString(out.String(), "in TIME")
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
