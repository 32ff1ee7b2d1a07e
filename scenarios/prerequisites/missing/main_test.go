package main

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

func TestReportNamesWhatIsMissingAndSkipped(t *testing.T) {
	missing := []prerequisites.Prerequisite{{Name: "ipmitool", Get: "Debian: ipmitool"}}
	uses := map[string][]string{"ipmitool": {"a: TestPower", "c.feature: Off"}, "curl": {"b: TestB"}}
	for _, tt := range []struct {
		required string
		short    bool
		want     string
	}{
		{"", false, "missing: ipmitool (Debian: ipmitool): 2 tests and scenarios are skipped\n  a: TestPower\n  c.feature: Off\n"},
		{"", true, "missing: ipmitool (Debian: ipmitool): 2 tests and scenarios are skipped\n"},
		{"1", true, "missing: ipmitool (Debian: ipmitool): 2 tests and scenarios fail\n"},
	} {
		t.Setenv(prerequisites.NeedEnv, tt.required)
		var out strings.Builder
		report(&out, missing, uses, tt.short)
		if out.String() != tt.want {
			t.Errorf("report = %q, want %q", out.String(), tt.want)
		}
	}
	var out strings.Builder
	report(&out, nil, uses, false)
	if out.Len() > 0 {
		t.Errorf("report of nothing = %q", out.String())
	}
}
