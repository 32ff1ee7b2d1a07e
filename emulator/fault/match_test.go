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
