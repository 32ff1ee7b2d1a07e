package odata

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const server = `{
	"Name": "it's", "Status": {"State": "Enabled", "Health": "OK", "Gone": null}, "Count": 2, "Size": 9007199254740993,
	"Ratio": 0.5, "Ready": true, "Created": "2026-03-01T12:00:00+01:00", "Actions": {"#X.Y": {"target": "/x"}},
	"Tags": ["a", "b"], "Links": {"Chassis": [{"@odata.id": "/c/1"}, {"@odata.id": "/c/2"}]}, "Members@odata.count": 3
}`

func decode(t testing.TB, text string) Object {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var o Object
	if err := d.Decode(&o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestFilters shows statement A14.
func TestFilters(t *testing.T) {
	o := decode(t, server)
	for _, tt := range []struct {
		filter string
		want   string // "true", "false" or why it is refused
	}{
		{"Status/State eq 'Enabled'", "true"}, {"Status/State ne 'Enabled'", "false"}, {"'Enabled' eq Status/State", "true"},
		{"status/state eq 'Enabled'", "false"}, {"Name eq 'it''s'", "true"}, {"Name gt 'a' and Name lt 'z'", "true"},
		{"Count eq 2", "true"}, {"Count eq 2.0", "true"}, {"Count gt 2", "false"}, {"Count ge 2", "true"}, {"Count lt 2", "false"}, {"Count le 2e0", "true"},
		{"3 gt Count", "true"}, {"2 lt Count", "false"}, {"3 ge Count", "true"}, {"Count lt 1e999", "true"}, {"Count gt -1", "true"},
		{"Size eq 9007199254740993", "true"}, {"Size gt 9007199254740992", "true"}, {"Ratio lt 1", "true"},
		{"Ready eq true", "true"}, {"Ready ne true", "false"}, {"Ready eq false", "false"}, {"not Ready eq false", "true"},
		{"Status/Gone eq null", "true"}, {"Nothing eq null", "true"}, {"Count ne null", "true"}, {"null eq Count", "false"},
		{"Nothing eq 'x'", "false"}, {"Nothing ne 'x'", "true"}, {"Nothing gt 1", "false"}, {"Nothing/Below lt 1", "false"}, {"Name/Below eq null", "true"},
		{"Created eq 2026-03-01T11:00:00Z", "true"}, {"Created gt 2026-03-01T11:00:00.5Z", "false"}, {"Created ge '2026-03-01T10:00:00Z'", "true"},
		{"Created lt '2026-03-01T12:00:00Z'", "true"}, {"Created ne 'x'", "true"},
		{"Tags eq 'b'", "true"}, {"Tags eq 'c'", "false"}, {"Links/Chassis/@odata.id eq '/c/2'", "true"}, {"Actions/#X.Y/target eq '/x'", "true"},
		{"Members@odata.count eq 3", "true"},
		// Precedence: not, comparison, and, or (DSP0266, "The $filter query parameter").
		{"Count eq 1 or Count eq 2 and Ready eq false", "false"}, {"(Count eq 2 or Count eq 1) and Ready eq true", "true"},
		{"Count eq 2 or Count eq 1 and Ready eq false", "true"}, {"not Count eq 1 and Count eq 2", "true"}, {"not (Count eq 1 or Count eq 2)", "false"},
		{"not not Count eq 2", "true"}, {"((((Count eq 2))))", "true"}, {"  Count\teq 2 ", "true"}, {"not(Count eq 1)and(Count eq 2)", "true"},

		{"Count eq '2'", "type"}, {"Name eq 2", "type"}, {"Ready eq 'true'", "type"}, {"Name eq true", "type"}, {"Name ge 2026-03-01T11:00:00Z", "type"},
		{"Status eq 'OK'", "type"}, {"Status ne null", "true"}, {"Ready gt false", "type"}, {"Count gt null", "type"}, {"Count eq 2 or Name eq 1", "type"},
		{"", "form"}, {"Count", "form"}, {"Count eq", "form"}, {"eq 2", "form"}, {"Count == 2", "form"}, {"Count eq 2 2", "form"}, {"Count eq 2 and", "form"},
		{"(Count eq 2", "form"}, {"Count eq 2)", "form"}, {"Count eq 'a", "form"}, {"Count eq 2026-03-01", "form"}, {"Count eq 1x", "form"}, {"Count eq Count", "form"},
		{"2 eq 2", "form"}, {"and eq 2", "form"}, {"/Count eq 2", "form"}, {"A//B eq 2", "form"}, {"startswith(Name,'x')", "form"}, {"Count AND 2", "form"},
		{"Ready", "form"}, {"not", "form"}, {"()", "form"}, {"Count eq 2 or or Count eq 2", "form"},
		{strings.Repeat("(", 40) + "Count eq 2" + strings.Repeat(")", 40), "form"}, {strings.Repeat("not ", 40) + "Count eq 2", "form"},
		{strings.Repeat("Count eq 2 or ", 200) + "Count eq 2", "form"}, {"Name eq '" + strings.Repeat("x", 5000) + "'", "form"},
	} {
		f, err := ParseFilter(tt.filter)
		got := "false"
		var e *Error
		if err == nil {
			var ok bool
			if ok, e = f.Match(o); ok {
				got = "true"
			}
		} else {
			errors.As(err, &e)
		}
		if e != nil {
			if got = string(e.Why); e.Detail == "" || e.Parameter != "$filter" {
				t.Errorf("%q: %+v says too little", tt.filter, e)
			}
		}
		if got != tt.want {
			t.Errorf("%q = %s (%v), want %s", tt.filter, got, e, tt.want)
		}
	}
}

func TestFilterComparesFloats(t *testing.T) {
	f, err := ParseFilter("A gt 1 and B eq 0.25")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := f.Match(Object{"A": 1.5, "B": 0.25}); !ok || err != nil {
		t.Errorf("Match = %t, %v", ok, err)
	}
}
