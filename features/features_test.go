package features

import (
	"runtime/debug"
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/steps"
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

func TestFeatures(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(heap))
	var labs steps.Labs
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) { labs.Register(sc) },
		Options: &godog.Options{
			Format: "pretty", FS: Files, Paths: []string{"."}, TestingT: t, Strict: true, NoColors: true,
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
