package steps

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// affirming names the plain steps whose expression or description has a word that denies, but
// that set something up, or wait for an object or an error to go or to come: they cannot pass
// before their effect is there. A step that asserts that nothing happens is a NegativeStep.
//
//go:embed testdata/affirming.txt
var affirming string

var denies = regexp.MustCompile(`(?i)\b(no|not|never|cannot)\b`)

// A plain step does not deny: it would pass before what it denies has had its turn.
func TestPlainStepsDoNotDeny(t *testing.T) {
	exceptions := strings.Split(strings.TrimSpace(affirming), "\n")
	if !slices.IsSorted(exceptions) {
		t.Error("testdata/affirming.txt is not sorted")
	}
	var used []string
	definitions := Definitions()
	for _, s := range Catalogue() {
		if !denies.MatchString(s.Pattern) && !denies.MatchString(s.Doc) {
			continue
		}
		for _, d := range definitions {
			if d.Pattern.String() != compiled(s.Pattern).String() || d.Negative {
				continue
			}
			if used = append(used, s.Pattern); !slices.Contains(exceptions, s.Pattern) {
				t.Errorf("the plain step %s says that something is not so (%s): make it a NegativeStep", s.Pattern, s.Doc)
			}
		}
	}
	for _, e := range exceptions {
		if !slices.Contains(used, e) {
			t.Errorf("testdata/affirming.txt names %s, which is no plain step that denies: remove it", e)
		}
	}
}
