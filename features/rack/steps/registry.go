package steps

import (
	"regexp"
	"sync"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/step"
)

// stepRegistry binds steps to a scenario, or collects them for Definitions.
type stepRegistry struct {
	sc          *godog.ScenarioContext // nil: steps are collected only
	definitions step.Definitions
}

// Step binds a pattern to a function. An empty argument is refused.
func (r *stepRegistry) Step(pattern string, does any) {
	r.bind(does, step.Definition{Pattern: compiled(pattern)})
}

// NegativeStep binds a step that says that something is not so. A scenario of
// falseclaims.gherkin shows that it fails when it is.
func (r *stepRegistry) NegativeStep(pattern string, does any) {
	r.bind(does, step.Definition{Pattern: compiled(pattern), Negative: true})
}

func (r *stepRegistry) bind(does any, d step.Definition) {
	if r.sc == nil {
		r.definitions = append(r.definitions, d)
		return
	}
	r.sc.Step(d.Pattern, does)
}

// After registers a hook that runs after each scenario.
func (r *stepRegistry) After(h godog.AfterScenarioHook) {
	if r.sc != nil {
		r.sc.After(h)
	}
}

// Definitions returns all steps.
var Definitions = sync.OnceValue(func() step.Definitions {
	r := &stepRegistry{}
	new(scenario).register(r)
	return r.definitions
})

// patterns caches compiled patterns: every scenario binds all steps.
var patterns sync.Map

func compiled(pattern string) *regexp.Regexp {
	if known, ok := patterns.Load(pattern); ok {
		return known.(*regexp.Regexp)
	}
	made, _ := patterns.LoadOrStore(pattern, regexp.MustCompile(pattern))
	return made.(*regexp.Regexp)
}
