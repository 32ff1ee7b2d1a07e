// Package features runs the feature files beside it against a live lab.
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
			Format: "pretty", Paths: []string{"."}, TestingT: t, Strict: true, NoColors: true,
		},
	}
	if suite.Run() != 0 {
		t.Fatal("features failed")
	}
}
