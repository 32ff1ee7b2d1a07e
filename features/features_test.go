package features

import (
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/steps"
)

// labsAtATime is how many scenarios run at the same time: they wait more than
// they compute.
const labsAtATime = 3

func TestFeatures(t *testing.T) {
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
