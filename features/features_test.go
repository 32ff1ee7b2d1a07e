package features

import (
	"maps"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/steps"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// labsAtATime is how many scenarios run at the same time: they wait more than
// they compute.
const labsAtATime = 3

// garbage is how much there may be of it, in percent of what is in use, and heap
// bounds both in bytes. To look for it more often took a fifth of all that the
// features compute; each lab that waits for the next scenario has 70 MB in use.
const (
	garbage = 400
	heap    = 4 << 30
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

// contents returns the feature files as this run tests them.
func contents(t *testing.T) (out []godog.Feature) {
	files := sample.Features(t, Files)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, godog.Feature{Name: name, Contents: files[name]})
	}
	return out
}
