package odata

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilterGroups(t *testing.T) {
	eq := func(name string, value any) Comparison { return Comparison{name, "eq", value} }
	for _, tt := range []struct {
		filter string
		want   [][]Comparison // nil: cannot be
	}{
		{"A eq 'x'", [][]Comparison{{eq("A", "x")}}},
		{"(A eq 'x' or A eq 'y') and B eq true and C ne 'z'", [][]Comparison{{eq("A", "x"), eq("A", "y")}, {eq("B", true)}, {{"C", "ne", "z"}}}},
		{"A/B eq null", [][]Comparison{{eq("A/B", nil)}}},
		{"not A eq 'x'", nil},
		{"A eq 'x' or (B eq 'y' and C eq 'z')", nil},
		{"(A eq 'x' and B eq 'y') and not (C eq 'z')", nil},
	} {
		f, err := ParseFilter(tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := f.Groups()
		if ok != (tt.want != nil) {
			t.Errorf("%s: Groups() = %v, %t", tt.filter, got, ok)
		}
		if diff := cmp.Diff(tt.want, got); ok && diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.filter, diff)
		}
	}
}
