package conformance

import (
	"archive/zip"
	"embed"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/conformance/steps"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

//go:embed *.feature
var files embed.FS

// schemasFeature needs DMTF's archive, which not everybody has.
const schemasFeature = "schemas.feature"

func TestFeatures(t *testing.T) {
	run(t, steps.NewLabs(t, nil), func(name string) bool { return name != schemasFeature })
}

func TestFeaturesOfSchemas(t *testing.T) {
	archive, err := zip.OpenReader(prerequisites.Need(t, "DMTF archive"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	run(t, steps.NewLabs(t, archive), func(name string) bool { return name == schemasFeature })
}

// run runs the feature files that take returns true for.
func run(t *testing.T, labs *steps.Labs, take func(name string) bool) {
	t.Helper()
	var features []godog.Feature
	for name, text := range sample.Features(t, files) {
		if take(name) {
			features = append(features, godog.Feature{Name: name, Contents: text})
		}
	}
	if len(features) == 0 {
		t.Fatal("no feature file was taken")
	}
	slices.SortFunc(features, func(a, b godog.Feature) int { return strings.Compare(a.Name, b.Name) })
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) { steps.Register(sc, labs) },
		Options:             &godog.Options{Format: "progress", FeatureContents: features, TestingT: t, Strict: true, NoColors: true},
	}
	if suite.Run() != 0 {
		t.Fatal("features failed")
	}
}

// TestEveryCheckPassesAndFails fails when a check has no scenario in which it
// passes, or none in which something lets it fail or warn.
func TestEveryCheckPassesAndFails(t *testing.T) {
	passes, fails := map[string]bool{}, map[string]bool{}
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\s*\|\s*([A-Z0-9]+-\d{3})\s*\|\s*(pass|warn|fail)\s*\|`)
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range row.FindAllStringSubmatch(string(text), -1) {
			if m[2] == "pass" {
				passes[m[1]] = true
			} else {
				fails[m[1]] = true
			}
		}
	}
	for _, c := range conformance.Checks() {
		if !passes[c.ID] {
			t.Errorf("no scenario shows that %s passes", c.ID)
		}
		if !fails[c.ID] {
			t.Errorf("no scenario shows what lets %s fail", c.ID)
		}
	}
}
