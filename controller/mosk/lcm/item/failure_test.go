package item

import (
	"strings"
	"testing"
	"unicode/utf8"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

func TestLine(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"one", "one"},
		{"\n  fatal: no such host \nsecond", "fatal: no such host"},
		{strings.Repeat("x", MaxLine), strings.Repeat("x", MaxLine)},
		{strings.Repeat("x", MaxLine+1), strings.Repeat("x", MaxLine-3) + "…"},
	} {
		if got := Line(tt.text); got != tt.want {
			t.Errorf("Line(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	for n := range 8 { // it cuts no character
		if got := Line(strings.Repeat("x", n) + strings.Repeat("é", MaxLine)); !utf8.ValidString(got) || len(got) > MaxLine {
			t.Errorf("Line of %d letters and é = %q, %d bytes", n, got, len(got))
		}
	}
}

func TestFailureMessage(t *testing.T) {
	if got := FailureMessage(lcmv1.StateItemStatus{ExitCode: 2}); got != "exit code 2" {
		t.Errorf("without a message: %q", got)
	}
	if got := FailureMessage(lcmv1.StateItemStatus{ExitCode: 2, Message: "no package\nPLAY RECAP"}); got != "no package" {
		t.Errorf("with a message: %q", got)
	}
}
