package quirk

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect/generic"
)

func TestEveryQuirkChangesARecordAndKeepsItValid(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range All {
		if seen[q.ID] || q.Does == "" || q.Seen == "" || len(q.Source) == 0 {
			t.Errorf("%s: must be there once, and say what it does, where it was seen and how one knows", q.ID)
		}
		seen[q.ID] = true
		before := generic.Record
		r, err := Apply(&generic.Record, []Setting{{ID: q.ID}})
		if err != nil {
			t.Errorf("%s: %v", q.ID, err)
			continue
		}
		if cmp.Equal(*r, before) {
			t.Errorf("%s changes nothing", q.ID)
		}
		if d := cmp.Diff(before, generic.Record); d != "" {
			t.Errorf("%s changes the record that others share: %s", q.ID, d)
		}
		for _, p := range q.Params {
			if err := p.check(p.Default); err != nil {
				t.Errorf("%s: the default of %s: %v", q.ID, p.Name, err)
			}
		}
	}
}

func TestApplyAddsQuirksToThoseOfTheRecord(t *testing.T) {
	one, err := Apply(&generic.Record, []Setting{{ID: "vmedia-strict-payload"}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := Apply(one, []Setting{{ID: "power-settle-409", Params: map[string]string{"for": "30s"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Presentation.RejectRules) != 1 || len(two.Presentation.RejectRules) != 2 {
		t.Errorf("%d and %d rules, want 1 and 2", len(one.Presentation.RejectRules), len(two.Presentation.RejectRules))
	}
}

func TestParseRefusesInvalidSettings(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "empty",
		"no-such-quirk":                   "no-such-quirk: there is no such quirk",
		"power-settle-409 for":            "name=value",
		"power-settle-409 for=soon":       "for: \"soon\": must be a duration",
		"power-settle-409 long=1s":        `no parameter "long"`,
		"session-limit most=0":            "must be a number from 1",
		"vmedia-strict-payload for=1s":    "no parameter",
		"vmedia-stale-inserted for=-3s":   "must be a duration",
		"vmedia-stale-inserted for=1000h": "must be a duration",
		"bmc-not-ready how=503 members=a": "members: must be shown or empty",
		"slow-patch-60s for=2h":           "for: must be an hour at most",
		"auth-delay for=10s most=5s":      "most: must not be less than for",
		"license-two-documents of=A,,B":   "of: must be types",
		"ipmi-slowcommit n=0":             "must be a number from 1",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want %s", text, err, want)
		}
	}
	s, err := Parse("  power-settle-409   for=30s ")
	if err != nil || s.String() != "power-settle-409 for=30s" {
		t.Errorf("%v %v", s, err)
	}
}
