// Package features runs the feature files beside it against live labs, one per
// scenario, at the speed at which there is work. METALAB_LOG=1 shows what the
// labs log.
package features

import (
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/steps"
)

func TestFeatures(t *testing.T) {
	suite := godog.TestSuite{
		ScenarioInitializer: steps.Register,
		Options: &godog.Options{
			Format: "pretty", Paths: []string{"provision.feature", "image.feature"}, TestingT: t, Strict: true, NoColors: true,
		},
	}
	if suite.Run() != 0 {
		t.Fatal("features failed")
	}
}
