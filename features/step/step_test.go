package step

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v21"
)

func TestEmptyArgumentIsRefused(t *testing.T) {
	all := Definitions{
		{Pattern: regexp.MustCompile(`^it prints "([^"]*)"$`)},
		{Pattern: regexp.MustCompile(`^it prints:$`)},
		{Pattern: regexp.MustCompile(`^the host stays "([^"]*)"$`), OptionalText: true},
		{Pattern: regexp.MustCompile(`^GET (\S+)(?: with (.*))?$`)},
	}
	text := func(content string) *messages.PickleStepArgument {
		return &messages.PickleStepArgument{DocString: &messages.PickleDocString{Content: content}}
	}
	for _, tt := range []struct {
		step godog.Step
		want string // in the error; "": none
	}{
		{godog.Step{Text: `it prints "on"`}, ""},
		{godog.Step{Text: `it prints ""`}, `argument 1 of the step "it prints \"\"" is empty`},
		{godog.Step{Text: `it prints "  "`}, "argument 1"},
		{godog.Step{Text: "it prints:", Argument: text("on\noff")}, ""},
		{godog.Step{Text: "it prints:", Argument: text(" \n")}, "the text below"},
		{godog.Step{Text: `the host stays ""`}, ""},
		{godog.Step{Text: "GET /redfish/v1"}, ""},
		{godog.Step{Text: "GET /redfish/v1 with "}, "argument 2"},
		{godog.Step{Text: "undefined"}, ""},
	} {
		err := all.Check(&tt.step)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("Check(%q) = %v, want %q", tt.step.Text, err, tt.want)
		}
	}
}
