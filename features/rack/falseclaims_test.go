package rack

import (
	"context"
	_ "embed"
	"os"
	"slices"
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/rack/steps"
	"github.com/metalab-dev/metalab/features/step/falseclaim"
)

//go:embed testdata/falseclaims.gherkin
var falseClaims []byte

// TestFalseClaimsFail runs scenarios whose last step is false.
func TestFalseClaimsFail(t *testing.T) {
	same := func(ctx context.Context) context.Context { return ctx }
	claims := falseclaim.Run(t, falseClaims, atATime, func(sc *godog.ScenarioContext) { steps.Register(sc, t) }, same)
	if os.Getenv(falseclaim.TagsVariable) != "" { // not all ran
		return
	}
	for _, d := range steps.Definitions() {
		claimed := slices.ContainsFunc(claims, func(c falseclaim.Claim) bool { return d.Pattern.MatchString(c.Step) })
		if d.Negative && !claimed {
			t.Errorf("no scenario of falseclaims.gherkin ends with the step %s", d.Pattern)
		}
	}
}

// TestEveryStepIsUsedAndHasItsArguments looks at every row of every outline. A step that
// no feature uses is tested by nothing.
func TestEveryStepIsUsedAndHasItsArguments(t *testing.T) {
	suite := godog.TestSuite{Options: &godog.Options{Paths: []string{"."}}}
	found, err := suite.RetrieveFeatures()
	if err != nil || len(found) == 0 {
		t.Fatalf("%d features, %v", len(found), err)
	}
	all := steps.Definitions()
	used := map[string]bool{}
	for _, f := range found {
		for _, pickle := range f.Pickles {
			for _, st := range pickle.Steps {
				if d, ok := all.Find(st.Text); ok {
					used[d.Pattern.String()] = true
				} else {
					t.Errorf("%s: %s: there is no step %q", f.Uri, pickle.Name, st.Text)
				}
				if err := all.Check(st); err != nil {
					t.Errorf("%s: %s: %v", f.Uri, pickle.Name, err)
				}
			}
		}
	}
	for _, d := range all {
		if !used[d.Pattern.String()] {
			t.Errorf("no feature uses the step %s", d.Pattern)
		}
	}
}
