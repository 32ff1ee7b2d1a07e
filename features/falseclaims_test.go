package features

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/steps"
)

//go:embed testdata/falseclaims.gherkin
var falseClaims []byte

// Steps that say that nothing happens fail when something does: each scenario of the
// file ends with such a step, and its effect is present.
func TestStepsThatSayNothingHappensFailWhenItDoes(t *testing.T) {
	var labs steps.Labs
	var mu sync.Mutex
	claims := map[string]string{}   // the last step of each scenario
	failed := map[string][]string{} // texts of the steps that failed, by scenario
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			var scenario *godog.Scenario
			sc.Before(func(ctx context.Context, s *godog.Scenario) (context.Context, error) {
				mu.Lock()
				defer mu.Unlock()
				scenario, claims[s.Name] = s, s.Steps[len(s.Steps)-1].Text
				return ctx, nil
			})
			sc.StepContext().After(func(ctx context.Context, s *godog.Step, status godog.StepResultStatus, err error) (context.Context, error) {
				if status != godog.StepPassed && status != godog.StepSkipped {
					mu.Lock()
					defer mu.Unlock()
					failed[scenario.Name] = append(failed[scenario.Name], fmt.Sprintf("%s: %v", s.Text, err))
				}
				return ctx, nil
			})
			labs.Register(sc)
		},
		Options: &godog.Options{
			Format: "progress", Output: io.Discard, Strict: true, NoColors: true, Concurrency: labsAtATime,
			FeatureContents: []godog.Feature{{Name: "falseclaims.feature", Contents: falseClaims}},
		},
	}
	suite.Run() // fails, as the scenarios do
	if len(claims) < 9 {
		t.Errorf("%d scenarios ran", len(claims))
	}
	for name, claim := range claims {
		if got := failed[name]; len(got) != 1 || !strings.HasPrefix(got[0], claim) {
			t.Errorf("%s: the failed steps are %q, want %q alone", name, got, claim)
		}
	}
	if err := labs.Close(); err != nil {
		t.Error(err)
	}
}
