// Package falseclaim tests steps that check: it runs scenarios whose last step is false,
// and fails when one of them passes, or fails earlier.
package falseclaim

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/cucumber/godog"
)

// Claim is a scenario that has failed at its last step.
type Claim struct {
	Scenario string
	Tags     []string // without @
	Step     string   // its last step
	Err      error    // error of the last step
}

// List returns all scenarios of a feature as claims, without errors: it runs none.
func List(feature []byte) ([]Claim, error) {
	files := fstest.MapFS{name: {Data: feature}}
	suite := godog.TestSuite{Options: &godog.Options{FS: files, Paths: []string{name}}}
	found, err := suite.RetrieveFeatures()
	if err != nil {
		return nil, err
	}
	var out []Claim
	for _, f := range found {
		for _, s := range f.Pickles {
			out = append(out, claim(s))
		}
	}
	return out, nil
}

// name is that of a feature without a file.
const name = "falseclaims.feature"

// claim returns what a scenario claims.
func claim(s *godog.Scenario) Claim {
	c := Claim{Scenario: s.Name, Step: s.Steps[len(s.Steps)-1].Text}
	for _, tag := range s.Tags {
		c.Tags = append(c.Tags, strings.TrimPrefix(tag.Name, "@"))
	}
	return c
}

// TagsVariable is the environment variable whose tag expression, as godog's --tags, selects
// scenarios. Without it all run.
const TagsVariable = "METALAB_CLAIMS"

// Run runs the scenarios of a feature that TagsVariable selects, several at the same time, and returns those that
// were not skipped. It reports an error for each that does not fail at its last step, and
// at no other. bind registers the steps; lastStep makes the context of a last step from that
// of the steps before it.
func Run(t *testing.T, feature []byte, atATime int, bind func(*godog.ScenarioContext), lastStep func(context.Context) context.Context) []Claim {
	t.Helper()
	type result struct {
		claim   Claim
		lastID  string // ID of the last step
		failed  []string
		skipped bool
	}
	var mu sync.Mutex
	var results []*result
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			r := &result{}
			sc.Before(func(ctx context.Context, s *godog.Scenario) (context.Context, error) {
				r.claim, r.lastID = claim(s), s.Steps[len(s.Steps)-1].Id
				mu.Lock()
				defer mu.Unlock()
				results = append(results, r)
				return ctx, nil
			})
			sc.StepContext().Before(func(ctx context.Context, s *godog.Step) (context.Context, error) {
				if s.Id == r.lastID {
					ctx = lastStep(ctx)
				}
				return ctx, nil
			})
			sc.StepContext().After(func(ctx context.Context, s *godog.Step, status godog.StepResultStatus, err error) (context.Context, error) {
				switch {
				case status == godog.StepSkipped && len(r.failed) == 0:
					r.skipped = true // a program is missing
				case status != godog.StepPassed && status != godog.StepSkipped:
					r.failed = append(r.failed, fmt.Sprintf("%s: %v", s.Text, err))
					r.claim.Err = err
				}
				return ctx, nil
			})
			bind(sc)
		},
		Options: &godog.Options{
			Format: "progress", Output: io.Discard, Strict: true, NoColors: true, Concurrency: atATime, Tags: os.Getenv(TagsVariable),
			FeatureContents: []godog.Feature{{Name: name, Contents: feature}},
		},
	}
	suite.Run() // fails, as the scenarios do
	if len(results) == 0 {
		t.Error("no scenario ran")
	}
	var claims []Claim
	for _, r := range results {
		if r.skipped {
			t.Logf("skipped: %s", r.claim.Scenario)
			continue
		}
		claims = append(claims, r.claim)
		if len(r.failed) != 1 || !strings.HasPrefix(r.failed[0], r.claim.Step+": ") {
			t.Errorf("%s: the failed steps are %q, want %q alone", r.claim.Scenario, r.failed, r.claim.Step)
		}
	}
	return claims
}
