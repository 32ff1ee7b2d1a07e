package fault

import "testing"

func TestPathPatternMatches(t *testing.T) {
	tests := []struct {
		glob, path string
		want       bool
	}{
		{"", "/anything", true},
		{"/redfish/v1", "/redfish/v1", true},
		{"/redfish/v1", "/redfish/v1/", true},
		{"/redfish/v1", "/redfish/v1/Systems", false},
		{"/redfish/v1/", "/redfish/v1", true},
		{"/redfish/v1/", "/redfish/v1/Systems/1", true},
		{"/redfish/v1/", "/redfish/v2", false},
		{"/redfish/v1/Systems/*", "/redfish/v1/Systems/1", true},
		{"/redfish/v1/Systems/*", "/redfish/v1/Systems", false},
		{"/redfish/v1/Systems/*", "/redfish/v1/Systems/1/Bios", false},
		{"/redfish/v1/Systems/**", "/redfish/v1/Systems", true},
		{"/redfish/v1/Systems/**", "/redfish/v1/Systems/1/Bios/Settings", true},
		{"/redfish/**/Actions/*", "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", true},
		{"/redfish/**/Actions/*", "/redfish/v1/Systems/1/Actions", false},
		{"/**/Disk.?", "/redfish/v1/Chassis/1/Drives/Disk.7", true},
		{"/**/Disk.[0-3]", "/redfish/v1/Chassis/1/Drives/Disk.7", false},
		{"/**/a/**/a/b", "/a/a/a/a/b", true},
		{"/**/a/**/a/b", "/a/b", false},
		{"/redfish/v1/systems", "/redfish/v1/Systems", false},
		{"/**", "/", true},
		{"/", "/", true},
	}
	for _, tt := range tests {
		got, err := Matches(tt.glob, tt.path)
		if got != tt.want || err != nil {
			t.Errorf("Matches(%q, %q) = %v, %v, want %v", tt.glob, tt.path, got, err, tt.want)
		}
	}
	for _, glob := range []string{"redfish", "/a/[b", "/a/b**"} {
		if _, err := Matches(glob, "/"); err == nil {
			t.Errorf("Matches(%q) = nil, want an error", glob)
		}
	}
}

// What ** took must never be sought in all ways there are.
func TestPathPatternWithManyStarsIsFast(t *testing.T) {
	glob, path := "", ""
	for range 200 {
		glob, path = glob+"/**/a", path+"/a/a"
	}
	if ok, err := Matches(glob+"/b", path); ok || err != nil {
		t.Errorf("Matches() = %v, %v", ok, err)
	}
}

func TestRuleMatchesWhatARequestSends(t *testing.T) {
	tests := []struct {
		name  string
		sends Values
		body  string
		hits  bool
	}{
		{"the value", Values{"/ResetType": "ForceOff"}, `{"ResetType": "ForceOff"}`, true},
		{"another value", Values{"/ResetType": "ForceOff"}, `{"ResetType": "On"}`, false},
		{"another type", Values{"/Delay": "1"}, `{"Delay": 1}`, false},
		{"a number", Values{"/Delay": 1}, `{"Delay": 1}`, true},
		{"one of two", Values{"/A": 1, "/B": 2}, `{"A": 1}`, false},
		{"both", Values{"/A": 1, "/B": 2}, `{"A": 1, "B": 2, "C": 3}`, true},
		{"below an array", Values{"/Boot/BootOrder/1": "Hdd"}, `{"Boot": {"BootOrder": ["Pxe", "Hdd"]}}`, true},
		{"beyond an array", Values{"/Boot/BootOrder/2": "Hdd"}, `{"Boot": {"BootOrder": ["Pxe", "Hdd"]}}`, false},
		{"below a text", Values{"/Boot/Mode": nil}, `{"Boot": "Pxe"}`, false},
		{"null", Values{"/Boot": nil}, `{"Boot": null}`, true},
		{"absent is not null", Values{"/Boot": nil}, `{}`, false},
		{"an object", Values{"/Boot": map[string]any{"Target": "Cd"}}, `{"Boot": {"Target": "Cd"}}`, true},
		{"no JSON", Values{"/A": 1}, `{"A": 1`, false},
		{"no body", Values{"/A": 1}, ``, false},
		{"nothing asked", nil, ``, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := planOf(t, 1, Rule{Sends: tt.sends, Status: 503})
			if got := p.ReadsBodies(); got != (tt.sends != nil) {
				t.Errorf("ReadsBodies() = %v", got)
			}
			d := p.Decide(Subject{Site: Request, Body: []byte(tt.body)}, t0)
			if got := !d.Nothing(); got != tt.hits {
				t.Errorf("the rule hits: %v, want %v", got, tt.hits)
			}
		})
	}
}
