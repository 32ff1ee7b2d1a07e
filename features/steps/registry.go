package steps

import (
	"regexp"
	"strings"
	"sync"

	"github.com/cucumber/godog"
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
	sc    *godog.ScenarioContext // nil: steps are collected only
	about string
	steps []Step
}

// Step binds a pattern to a function. doc is one line: what the step does or asserts.
func (b *stepRegistry) Step(pattern, doc string, does any) {
	if b.sc == nil {
		b.steps = append(b.steps, Step{About: b.about, Phrase: phrase(pattern), Pattern: pattern, Doc: doc})
		return
	}
	b.sc.Step(compiled(pattern), does)
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

// Catalogue returns all steps, grouped by their subject.
func Catalogue() []Step {
	b := &stepRegistry{}
	new(scenario).register(b)
	return b.steps
}
