package rack

import (
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/rack/steps"
)

// atATime is how many scenarios run at the same time. They wait for programs and
// for answers that never come far longer than they compute: one after the other
// they took 84 s, of which 21 s were processor time.
const atATime = 6

func TestFeatures(t *testing.T) {
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) { steps.Register(sc, t) },
		Options: &godog.Options{
			Format: "progress", Paths: []string{"."}, TestingT: t, Strict: true, NoColors: true,
			Concurrency: atATime,
		},
	}
	if suite.Run() != 0 {
		t.Fatal("features failed")
	}
}
