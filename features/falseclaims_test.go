package features

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/step"
	"github.com/metalab-dev/metalab/features/step/falseclaim"
	"github.com/metalab-dev/metalab/features/steps"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

//go:embed testdata/falseclaims.gherkin
var falseClaims []byte

// lastStep is the time-out of a false last step, in real time.
const lastStep = 2 * time.Second

// noController is the tag of scenarios in which no controller runs. A step that says that
// nothing happens must not fail for that reason in others.
const noController = "no-controller"

// TestFalseClaimsFail runs scenarios whose last step is false: it denies an effect that is
// there, or reports one that happened before its cause.
func TestFalseClaimsFail(t *testing.T) {
	labs := steps.Labs{ExpectFailures: true}
	soon := func(ctx context.Context) context.Context { return steps.WithPatience(ctx, lastStep) }
	drawn := sample.Features(t, fstest.MapFS{"falseclaims.feature": {Data: falseClaims}})["falseclaims.feature"]
	claims := falseclaim.Run(t, drawn, labsAtATime, func(sc *godog.ScenarioContext) { labs.Register(sc) }, soon)
	if err := labs.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range claims {
		if errors.Is(c.Err, steps.ErrNotReconciled) != slices.Contains(c.Tags, noController) {
			t.Errorf("%s: %s: %v", c.Scenario, c.Step, c.Err)
		}
	}
	if claims, err := falseclaim.List(falseClaims); err != nil {
		t.Error(err)
	} else {
		checkClaims(t, claims)
	}
}

// checkClaims reports the steps that no scenario of the false claims is about.
func checkClaims(t *testing.T, claims []falseclaim.Claim) {
	t.Helper()
	all := steps.Definitions()
	for _, d := range all {
		claimed := slices.ContainsFunc(claims, func(c falseclaim.Claim) bool { return d.Pattern.MatchString(c.Step) })
		if d.Negative && !claimed {
			t.Errorf("no scenario of falseclaims.gherkin ends with the step %s", d.Pattern)
		}
	}
	for file, denials := range negativeSteps(t, all) {
		tag := strings.TrimSuffix(file, path.Ext(file))
		claimed := slices.ContainsFunc(claims, func(c falseclaim.Claim) bool {
			return slices.Contains(c.Tags, tag) && slices.ContainsFunc(denials, func(d step.Definition) bool { return d.Pattern.MatchString(c.Step) })
		})
		if !claimed {
			t.Errorf("no scenario of falseclaims.gherkin has the tag @%s and ends with a negative step that %s has", tag, file)
		}
	}
}

// everywhere is a negative step that most scenarios end with. It does not make a file need
// a false scenario.
const everywhere = "the host reports no error"

// negativeSteps returns the negative steps that each feature file has.
func negativeSteps(t *testing.T, all step.Definitions) map[string][]step.Definition {
	t.Helper()
	out := map[string][]step.Definition{}
	err := fs.WalkDir(Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		suite := godog.TestSuite{Options: &godog.Options{FS: Files, Paths: []string{name}}}
		found, err := suite.RetrieveFeatures()
		if err != nil {
			return err
		}
		for _, f := range found {
			for _, pickle := range f.Pickles {
				for _, st := range pickle.Steps {
					if d, ok := all.Find(st.Text); ok && d.Negative && st.Text != everywhere {
						out[name] = append(out[name], d)
					}
				}
			}
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%d files have negative steps, %v", len(out), err)
	}
	return out
}
