package redfish

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestETagComparisonMatchesEntireTags(t *testing.T) {
	for _, tt := range []struct {
		header string
		how    resource.ETagComparison
		want   bool
	}{
		{`"a"`, resource.StrongComparison, true},
		{`"b", "a"`, resource.StrongComparison, true},
		{`"b","a" , "c"`, resource.StrongComparison, true},
		{`W/"a"`, resource.StrongComparison, false},
		{`W/"a"`, resource.WeakComparison, true},
		{`"a"x`, resource.StrongComparison, false},
		{`"a"x, "a"`, resource.StrongComparison, false},
		{`"b"x "a"`, resource.StrongComparison, false},
		{`a`, resource.StrongComparison, false},
		{`"a`, resource.StrongComparison, false},
		{`*`, resource.StrongComparison, true},
		{``, resource.StrongComparison, false},
	} {
		if got := resource.MatchesETag([]string{tt.header}, `"a"`, tt.how); got != tt.want {
			t.Errorf("MatchesETag(%s) = %v, want %v", tt.header, got, tt.want)
		}
	}
}
