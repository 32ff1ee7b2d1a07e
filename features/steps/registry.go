package steps

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/features/step"
)

// Step describes a step that feature files can use.
type Step struct {
	About   string `json:"about"`   // the noun: host, server, image …
	Phrase  string `json:"phrase"`  // as features have it, with TEXT and NUMBER for arguments
	Pattern string `json:"pattern"` // the regular expression
	Doc     string `json:"doc"`     // what it does or asserts, in a line
}

// stepRegistry binds steps to a scenario, or collects them for Catalogue.
type stepRegistry struct {
	sc          *godog.ScenarioContext // nil: steps are collected only
	about       string
	steps       []Step
	definitions step.Definitions
}

// Step binds a pattern to a function. doc is one line about the step's action or assertion.
// An empty argument is refused.
func (b *stepRegistry) Step(pattern, doc string, does any) {
	b.bind(pattern, doc, does, step.Definition{})
}

// StepWithOptionalText binds a step whose arguments may be empty. Its doc has the meaning
// of an empty one.
func (b *stepRegistry) StepWithOptionalText(pattern, doc string, does any) {
	b.bind(pattern, doc, does, step.Definition{OptionalText: true})
}

// NegativeStep binds a step that says that something does not happen. Its function lets
// the controllers act before it looks, and a scenario of falseclaims.gherkin shows that it
// fails when the thing happens.
func (b *stepRegistry) NegativeStep(pattern, doc string, does any) {
	b.bind(pattern, doc, does, step.Definition{Negative: true})
}

func (b *stepRegistry) bind(pattern, doc string, does any, d step.Definition) {
	d.Pattern = compiled(pattern)
	if b.sc == nil {
		b.steps = append(b.steps, Step{About: b.about, Phrase: phrase(pattern), Pattern: pattern, Doc: doc})
		b.definitions = append(b.definitions, d)
		return
	}
	b.sc.Step(d.Pattern, does)
}

// patterns caches compiled patterns: every scenario binds all steps.
var patterns sync.Map

func compiled(pattern string) *regexp.Regexp {
	if known, ok := patterns.Load(pattern); ok {
		return known.(*regexp.Regexp)
	}
	made, _ := patterns.LoadOrStore(pattern, regexp.MustCompile(pattern))
	return made.(*regexp.Regexp)
}

var (
	quoted      = regexp.MustCompile(`\(\[\^"\]\*\)`)
	digits      = regexp.MustCompile(`\(\\d\+\)`)
	alternative = regexp.MustCompile(`\((\?:)?([^()]*\|[^()]*)\)`)
	optional    = regexp.MustCompile(`\w\?`)
)

// phrase returns a pattern as people read it.
func phrase(pattern string) string {
	p := strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$")
	p = quoted.ReplaceAllString(p, "TEXT")
	p = digits.ReplaceAllString(p, "NUMBER")
	p = alternative.ReplaceAllString(p, "($2)")
	return optional.ReplaceAllStringFunc(p, func(s string) string { return "[" + s[:1] + "]" })
}

var (
	quotedText = regexp.MustCompile(`"[^"]*"`)
	number     = regexp.MustCompile(`\b\d+\b`)
)

// Phrase returns the text of a step with TEXT and NUMBER for its values, as
// Step.Phrase has them.
func Phrase(text string) string {
	return number.ReplaceAllString(quotedText.ReplaceAllString(text, `"TEXT"`), "NUMBER")
}

// collected returns a registry that has collected all steps.
var collected = sync.OnceValue(func() *stepRegistry {
	b := &stepRegistry{}
	new(scenario).register(b)
	return b
})

// Catalogue returns all steps, grouped by their subject.
func Catalogue() []Step { return slices.Clone(collected().steps) }

// Definitions returns the definitions of all steps for godog.
func Definitions() step.Definitions { return collected().definitions }
