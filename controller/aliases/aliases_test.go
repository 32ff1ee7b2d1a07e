package aliases

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	doubled := "a0: &a0 [x, x]\n"
	for i := range 40 {
		doubled += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"no alias", "a: [1, 2]", ""},
		{"a few", "a: &a {b: c}\nd: [*a, *a]", ""},
		{"merge", "a: &a {b: c}\nd: {<<: *a, e: f}", ""},
		{"empty", "", ""},
		{"no YAML", "a: [", ""}, // its decoder says so
		{"no YAML, with an alias", "a: &a [x]\nb: [*a", "it is no YAML"},
		{"an unknown alias", "a: *b", "it is no YAML"},
		{"an asterisk", "a: 'x * y'", ""},
		{"doubled 40 times", doubled, "with its aliases the document has more than 4194304 bytes: repeat less"},
		{"a long text", "a: &a " + strings.Repeat("x", 1<<16) + "\nb: [" + strings.Repeat("*a, ", 100) + "*a]", "line 2: with its aliases"},
		{"endless", "a: &a\n  b: *a", "contains its alias: write it out"},
		{"endless, twice", "a: &a [&b [*a], *b]", "contains its alias"},
	} {
		err := Check([]byte(tt.text))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Check() = %v, want %q", tt.name, err, tt.want)
		}
	}
}
