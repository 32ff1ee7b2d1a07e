package features

import (
	"errors"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/steps"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// labsAtATime is how many scenarios run at the same time. They wait more than they
// compute.
const labsAtATime = 3

// garbage is the target percentage of the garbage collector (GOGC), and heap the
// memory limit in bytes. With the default target the collector took a fifth of the
// features' processor time; an idle lab has 70 MB in use.
const (
	garbage = 400
	heap    = 1700 << 20
)

// TestFeatures runs every scenario, with a sample of the rows of outlines that
// carry the tag @sample-N.
func TestFeatures(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(heap))
	var labs steps.Labs
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) { labs.Register(sc) },
		Options: &godog.Options{
			Format: "pretty", FeatureContents: contents(t), TestingT: t, Strict: true, NoColors: true,
			Concurrency: labsAtATime,
		},
	}
	if suite.Run() != 0 {
		t.Error("features failed")
	}
	if err := labs.Close(); err != nil {
		t.Error(err)
	}
}

// The steps after a failed one are skipped: nothing that is done for them hides the failure.
func TestFailedScenarioReportsItsFailureAlone(t *testing.T) {
	const feature = `
Feature: Failures
  Scenario: A step fails
    Given a lab with 1 server
    When we fail
    Then the server is off
    When the operator registers the server
`
	var out strings.Builder
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			steps.Register(sc)
			sc.Step("^we fail$", func() error { return errors.New("our failure") })
		},
		Options: &godog.Options{
			Format: "pretty", Output: &out, Strict: true, NoColors: true,
			FeatureContents: []godog.Feature{{Name: "failures.feature", Contents: []byte(feature)}},
		},
	}
	if suite.Run() == 0 {
		t.Error("the suite passed")
	}
	if text := out.String(); !strings.Contains(text, "our failure") || strings.Contains(text, "hook failed: Get") || !strings.Contains(text, "1 passed, 1 failed, 2 skipped") {
		t.Errorf("the output is:\n%s", text)
	}
}

// contents returns the feature files as this run tests them.
func contents(t *testing.T) (out []godog.Feature) {
	files := sample.Features(t, Files)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, godog.Feature{Name: name, Contents: files[name]})
	}
	return out
}

// TestEveryStepMatchesOnePattern looks at every row of every outline, also at
// those that are not in the sample.
func TestEveryStepMatchesOnePattern(t *testing.T) {
	var patterns []*regexp.Regexp
	for _, s := range steps.Catalogue() {
		patterns = append(patterns, regexp.MustCompile(s.Pattern))
	}
	suite := godog.TestSuite{Options: &godog.Options{FS: Files, Paths: []string{"."}}}
	found, err := suite.RetrieveFeatures()
	if err != nil || len(found) == 0 {
		t.Fatalf("%d features, %v", len(found), err)
	}
	for _, f := range found {
		for _, pickle := range f.Pickles {
			for _, step := range pickle.Steps {
				var matching []string
				for _, p := range patterns {
					if p.MatchString(step.Text) {
						matching = append(matching, p.String())
					}
				}
				if len(matching) != 1 {
					t.Errorf("%s: %s: %q matches %q, want one pattern", f.Uri, pickle.Name, step.Text, matching)
				}
				if err := steps.Definitions().Check(step); err != nil {
					t.Errorf("%s: %s: %v", f.Uri, pickle.Name, err)
				}
			}
		}
	}
}
