package redfish

import "testing"

func TestETagComparisonMatchesEntireTags(t *testing.T) {
	for _, tt := range []struct {
		header string
		how    comparison
		want   bool
	}{
		{`"a"`, strongly, true},
		{`"b", "a"`, strongly, true},
		{`"b","a" , "c"`, strongly, true},
		{`W/"a"`, strongly, false},
		{`W/"a"`, weakly, true},
		{`"a"x`, strongly, false},
		{`"a"x, "a"`, strongly, false},
		{`"b"x "a"`, strongly, false},
		{`a`, strongly, false},
		{`"a`, strongly, false},
		{`*`, strongly, true},
		{``, strongly, false},
	} {
		if got := matches([]string{tt.header}, `"a"`, tt.how); got != tt.want {
			t.Errorf("matches(%s) = %v, want %v", tt.header, got, tt.want)
		}
	}
}
