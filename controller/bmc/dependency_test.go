package bmc

import (
	"fmt"
	"strings"
	"testing"
)

// mirror is a registry in which settings unlock, force and bound each other.
func mirror() *AttributeRegistry {
	is := func(name string, value any) []Condition {
		return []Condition{{Attribute: name, Is: Equal, Value: value}}
	}
	return NewAttributeRegistry("R", []Attribute{
		{Name: "Profile", Type: EnumerationAttribute, Values: []string{"Fast", "Custom"}},
		{Name: "Turbo", Type: BooleanAttribute, ReadOnly: true},
		{Name: "Boot", Type: EnumerationAttribute, Values: []string{"Uefi", "Bios"}},
		{Name: "Http", Type: EnumerationAttribute, Values: []string{"Enabled", "Disabled"}},
		{Name: "Uri", Type: StringAttribute, ReadOnly: true},
		{Name: "Cores", Type: IntegerAttribute, Lower: new(int64(0)), Upper: new(int64(64))},
		{Name: "Threads", Type: IntegerAttribute, Lower: new(int64(0)), Upper: new(int64(64))},
		{Name: "Fixed", Type: StringAttribute, Immutable: true},
		{Name: "Both", Type: StringAttribute, ReadOnly: true},
		{Name: "Either", Type: StringAttribute, ReadOnly: true},
		{Name: "Serial", Type: StringAttribute, ReadOnly: true},
		{Name: "Gray", Type: StringAttribute, GrayOut: true},
	},
		Dependency{If: is("Profile", "Custom"), Attribute: "Turbo", Property: ReadOnly, Value: false},
		Dependency{If: is("Profile", "Fast"), Attribute: "Turbo", Property: CurrentValue, Value: true},
		Dependency{If: is("Boot", "Bios"), Attribute: "Http", Property: CurrentValue, Value: "Disabled"},
		Dependency{If: is("Boot", "Bios"), Attribute: "Http", Property: ReadOnly, Value: true},
		Dependency{If: is("Http", "Enabled"), Attribute: "Uri", Property: ReadOnly, Value: false},
		Dependency{If: []Condition{{Attribute: "Cores", Is: Greater, Value: int64(8)}}, Attribute: "Threads", Property: UpperBound, Value: int64(4)},
		Dependency{If: []Condition{{Attribute: "Cores", Is: GreaterOrEqual, Value: "016"}}, Attribute: "Threads", Property: ReadOnly, Value: true},
		Dependency{If: append(is("Profile", "Custom"), Condition{Attribute: "Cores", Is: Less, Value: int64(4)}), Attribute: "Both", Property: ReadOnly, Value: false},
		Dependency{If: append(is("Profile", "Custom"), Condition{Or: true, Attribute: "Cores", Is: LessOrEqual, Value: int64(4)}), Attribute: "Either", Property: ReadOnly, Value: false},
		Dependency{If: is("Profile", "Fast"), Attribute: "Gray", Property: GrayOut, Value: true},
		Dependency{If: is("Profile", "Fast"), Attribute: "Gray", Property: Hidden, Value: true},
		Dependency{If: is("Nowhere", "x"), Attribute: "Cores", Property: ReadOnly, Value: true},
	)
}

func present() Settings {
	return Settings{
		"Profile": "Fast", "Turbo": true, "Boot": "Uefi", "Http": "Disabled", "Uri": "", "Cores": int64(8), "Threads": int64(2),
		"Fixed": "f", "Both": "", "Either": "", "Serial": "S", "Gray": "",
	}
}

// A refusal names the setting that must change first, and to what.
func TestLockedSettingsNameWhatUnlocksThem(t *testing.T) {
	for _, tt := range []struct {
		present, wanted Settings
		want            string
	}{
		{nil, Settings{"Turbo": false}, "Setting Turbo is invalid, it is true while Profile is Fast: set Profile to Custom first"},
		{nil, Settings{"Turbo": false, "Profile": "Custom"}, ""},
		{nil, Settings{"Turbo": "true"}, ""}, // it has that value
		{Settings{"Profile": "Custom", "Turbo": false}, Settings{"Profile": "Fast", "Turbo": true}, ""},
		{Settings{"Profile": "Custom"}, Settings{"Turbo": false}, ""},
		{Settings{"Turbo": false}, Settings{"Turbo": "false", "Cores": int64(1)}, ""}, // the BMC has what its registry denies
		{nil, Settings{"Uri": "http://x"}, "Setting Uri is invalid, it is ReadOnly while Http is Disabled: set Http to Enabled first"},
		{nil, Settings{"Uri": "http://x", "Http": "Enabled"}, ""},
		{Settings{"Boot": "Bios"}, Settings{"Uri": "http://x"}, "Setting Uri is invalid, it is ReadOnly while Boot is Bios and Http is Disabled: set Boot to Uefi and set Http to Enabled first"},
		{nil, Settings{"Http": "Enabled", "Boot": "Bios"}, "Setting Http is invalid, it is Disabled while Boot is Bios: set Boot to Uefi first"},
		{nil, Settings{"Threads": 3, "Cores": int64(16)}, "Setting Threads is invalid, it is ReadOnly while Cores is 16: set Cores to 15 first"},
		{nil, Settings{"Threads": 3, "Cores": "015"}, ""},
		{nil, Settings{"Both": "x"}, "Setting Both is invalid, it is ReadOnly while Profile is Fast and Cores is 8: set Profile to Custom and set Cores to 3 first"},
		{nil, Settings{"Either": "x"}, "Setting Either is invalid, it is ReadOnly while Profile is Fast: set Profile to Custom first"},
		{nil, Settings{"Fixed": "x"}, "Setting Fixed is invalid, it is ReadOnly"},
		{nil, Settings{"Serial": "x"}, "Setting Serial is invalid, it is ReadOnly"},
		{nil, Settings{"Gray": "x"}, ""}, // it can be modified all the same
		{nil, Settings{"Cores": int64(1)}, ""},
		{nil, Settings{"Unknown": "x"}, ""},
	} {
		now := present()
		for name, v := range tt.present {
			now[name] = v
		}
		var got []string
		for _, e := range mirror().Locks(now, tt.wanted) {
			got = append(got, e.Error())
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("Locks(%v) = %q, want %q", tt.wanted, s, tt.want)
		}
	}
}

func TestRulesChangeBounds(t *testing.T) {
	r := mirror()
	now := present()
	if a := r.Rules(now).Attribute("Threads"); *a.Upper != 64 || a.ReadOnly {
		t.Errorf("Threads with 8 cores = %+v, want up to 64", a)
	}
	now["Cores"] = int64(9)
	if a := r.Rules(now).Attribute("Threads"); *a.Upper != 4 || a.ReadOnly {
		t.Errorf("Threads with 9 cores = %+v, want up to 4", a)
	}
	if *r.Attribute("Threads").Upper != 64 {
		t.Error("Rules changed the registry")
	}
	if a := (*AttributeRegistry)(nil).Rules(now).Attribute("Threads"); a != nil {
		t.Errorf("Attribute() of no registry = %+v, want nil", a)
	}
}

func TestValuesAreComparedByType(t *testing.T) {
	integer, boolean := &Attribute{Type: IntegerAttribute}, &Attribute{Type: BooleanAttribute}
	text, list := &Attribute{Type: StringAttribute}, &Attribute{Type: EnumerationAttribute}
	for _, tt := range []struct {
		a    *Attribute
		x, y any
		want bool
	}{
		{integer, "0123", int64(123), true}, {integer, "+5", int64(5), true}, {integer, "-0", int64(0), true}, {integer, "5", "05", true},
		{integer, 5.0, int64(5), true}, {integer, "5.0", int64(5), false}, {integer, "", int64(0), false}, {integer, nil, int64(0), false},
		{integer, "99999999999999999999", int64(9), false},
		{boolean, "true", true, true}, {boolean, "false", true, false},
		{text, "0123", "123", false}, {text, "5", int64(5), true}, {list, "+5", "5", false}, {list, "5", int64(5), true},
		{nil, "0123", int64(123), true}, {nil, "0123", "123", false}, {nil, "true", true, true}, {nil, nil, "", true},
		{nil, []any{1.0}, map[string]any{}, false}, {nil, map[string]any{"a": 1.0}, map[string]any{"a": 1.0}, true},
	} {
		if got := SameValue(tt.a, tt.x, tt.y); got != tt.want {
			t.Errorf("SameValue(%v, %#v, %#v) = %v, want %v", tt.a, tt.x, tt.y, got, tt.want)
		}
	}
}

// Rows that contradict each other in a circle, and very many of them, end.
func TestHostileDependenciesEnd(t *testing.T) {
	var all []Attribute
	var rows []Dependency
	now := Settings{}
	for i := range 3000 {
		name := fmt.Sprint("A", i)
		all = append(all, Attribute{Name: name, Type: EnumerationAttribute, Values: []string{"a", "b"}, ReadOnly: true})
		now[name] = "a"
		rows = append(rows,
			Dependency{If: []Condition{{Attribute: name, Is: Equal, Value: "a"}}, Attribute: fmt.Sprint("A", (i+1)%3000), Property: CurrentValue, Value: "b"},
			Dependency{If: []Condition{{Attribute: name, Is: Equal, Value: "b"}}, Attribute: fmt.Sprint("A", (i+1)%3000), Property: CurrentValue, Value: "a"},
			Dependency{If: []Condition{{Attribute: fmt.Sprint("A", (i+7)%3000), Is: "LIKE", Value: []any{"b"}}}, Attribute: name, Property: ReadOnly, Value: false})
	}
	wanted := Settings{}
	for i := range 200 {
		wanted[fmt.Sprint("A", i)] = "c"
	}
	if got := NewAttributeRegistry("R", all, rows...).Locks(now, wanted); len(got) != 200 {
		t.Errorf("%d settings are locked, want 200", len(got))
	}
}
