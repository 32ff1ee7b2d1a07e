package steps

import (
	"regexp"
	"strings"
	"sync"

	"github.com/cucumber/godog"
)

// Step is a phrase that feature files can use.
type Step struct {
	About   string `json:"about"`   // the noun: host, server, image …
	Phrase  string `json:"phrase"`  // as one writes it, with TEXT and NUMBER for what varies
	Pattern string `json:"pattern"` // as it is matched
	Doc     string `json:"doc"`     // what it does, or asserts
}

// stepRegistry takes steps in, for a scenario or for the catalogue alone.
type stepRegistry struct {
	sc    *godog.ScenarioContext // nil: nobody runs them
	about string
	steps []Step
}

// Step binds a phrase to what it does. The doc says in a line what that is.
func (b *stepRegistry) Step(pattern, doc string, does any) {
	if b.sc == nil {
		b.steps = append(b.steps, Step{About: b.about, Phrase: phrase(pattern), Pattern: pattern, Doc: doc})
		return
	}
	b.sc.Step(compiled(pattern), does)
}

// patterns are those that were compiled, as every scenario binds all of them.
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

// phrase is a pattern as people read it.
func phrase(pattern string) string {
	p := strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$")
	p = quoted.ReplaceAllString(p, "TEXT")
	p = digits.ReplaceAllString(p, "NUMBER")
	p = alternative.ReplaceAllString(p, "($2)")
	return optional.ReplaceAllStringFunc(p, func(s string) string { return "[" + s[:1] + "]" })
}

// Catalogue lists all steps, those about one noun together.
func Catalogue() []Step {
	b := &stepRegistry{}
	new(scenario).register(b)
	return b.steps
}
