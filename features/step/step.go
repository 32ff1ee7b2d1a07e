// Package step defines the steps of feature files as data, and checks their use: it
// refuses an empty argument where a step needs a text, since a check for an empty text
// cannot fail. It knows no lab and no step.
package step

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/cucumber/godog"
)

// Definition is a step that feature files can use.
type Definition struct {
	Pattern *regexp.Regexp // matches the whole text of the step

	// OptionalText allows empty arguments: the step's text gives their meaning.
	OptionalText bool

	// Negative marks a step that says that something does not happen: a false scenario
	// must show that it fails when it does.
	Negative bool
}

// Definitions are all steps of a suite.
type Definitions []Definition

// Find returns the definition of a step.
func (all Definitions) Find(text string) (Definition, bool) {
	for _, d := range all {
		if d.Pattern.MatchString(text) {
			return d, true
		}
	}
	return Definition{}, false
}

// Check returns an error when an argument of a step, or the text below it, is empty or
// blank and the step needs a text. A step that has no definition passes: godog reports it.
func (all Definitions) Check(st *godog.Step) error {
	d, ok := all.Find(st.Text)
	if !ok || d.OptionalText {
		return nil
	}
	at := d.Pattern.FindStringSubmatchIndex(st.Text)
	for i := 2; i < len(at); i += 2 {
		if at[i] >= 0 && strings.TrimSpace(st.Text[at[i]:at[i+1]]) == "" {
			return fmt.Errorf("argument %d of the step %q is empty: write the text that it is about", i/2, st.Text)
		}
	}
	if st.Argument != nil && st.Argument.DocString != nil && strings.TrimSpace(st.Argument.DocString.Content) == "" {
		return fmt.Errorf("the text below the step %q is empty: write the text that it is about", st.Text)
	}
	return nil
}
