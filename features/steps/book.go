package steps

import (
	"regexp"
	"strings"

	"github.com/cucumber/godog"
)

// Step is a phrase that feature files can use.
type Step struct {
	About   string `json:"about"`   // the noun: host, server, image …
	Phrase  string `json:"phrase"`  // as one writes it, with TEXT and NUMBER for what varies
	Pattern string `json:"pattern"` // as it is matched
	Doc     string `json:"doc"`     // what it does, or asserts
}

// book takes steps in, for a scenario or for the catalogue alone.
type book struct {
	sc    *godog.ScenarioContext // nil: nobody runs them
	about string
	all   []Step
}

// Step binds a phrase to what it does. The doc says in a line what that is.
func (b *book) Step(pattern, doc string, does any) {
	b.all = append(b.all, Step{About: b.about, Phrase: phrase(pattern), Pattern: pattern, Doc: doc})
	if b.sc != nil {
		b.sc.Step(pattern, does)
	}
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
	b := &book{}
	new(scene).register(b)
	return b.all
}
