package firmware

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/fixtures"
)

var parts = map[string]int{"nic": 2, "controller": 1, "module": 4}

// generic is the registry of the generic server.
func generic(t testing.TB) *Registry {
	t.Helper()
	raw, err := fixtures.Profiles.ReadFile("registries/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRegistry("r.yaml", raw, parts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// held is a parsed registry.
func held(r *Registry) func() *Registry { return func() *Registry { return r } }

func TestBuiltInRegistriesAreValid(t *testing.T) {
	all, err := fixtures.Profiles.ReadDir("registries")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, f := range all {
		raw, err := fixtures.Profiles.ReadFile("registries/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, have := range []map[string]int{parts, {"nic": 0, "controller": 0, "module": 0}, {"nic": 16, "controller": 4, "module": 16}} {
			if _, err := ParseRegistry("r.yaml", raw, have); err != nil {
				t.Errorf("%s with %v: %v", f.Name(), have, err)
			}
		}
	}
}

func TestEachRepeatsRowsForEveryPart(t *testing.T) {
	r := generic(t)
	for name, want := range map[string]bool{"Nic1Pxe": true, "Nic2Pxe": true, "Nic3Pxe": false, "StorageRom1": true, "StorageRom2": false, "Nic{n}Pxe": false} {
		if got := r.Attribute(name) != nil; got != want {
			t.Errorf("Attribute(%s) is there: %v, want %v", name, got, want)
		}
	}
	if got := r.Attribute("Nic2Pxe").Display; got != "PXE on Port 2" {
		t.Errorf("display = %q", got)
	}
}

// broken makes a registry of which one line is replaced.
func broken(old, by string) string {
	const good = `
id: Test.v1_0_0
name: Test
version: 1.0.0
language: en
owner: Metalab
menus: [{name: A, path: ./A, display: A}]
attributes:
  - {name: Mode, type: Enumeration, display: Mode, menu: ./A, default: a, values: [{name: a, display: A}, {name: b, display: B}]}
  - {name: Count, type: Integer, display: Count, default: 3, lower: 1, upper: 9}
  - {name: Label, type: String, display: Label, default: "", maxLength: 8, pattern: '^[a-z]*$'}
  - {name: Flag, type: Boolean, display: Flag, default: false}
  - {name: Key, type: Password, display: Key}
  - {name: Serial, type: String, display: Serial, fact: serial, readOnly: true}
dependencies:
  - {if: [{attribute: Mode, is: EQU, value: b}], set: {attribute: Count, property: ReadOnly, value: true}}
  - {if: [{attribute: Count, is: GTR, value: 5}], set: {attribute: Flag, property: CurrentValue, value: true}}
effects:
  - {attribute: Mode, value: b, does: bootMode, as: UEFI}
`
	if !strings.Contains(good, old) {
		panic(old)
	}
	return strings.Replace(good, old, by, 1)
}

func TestParseRegistryNamesFieldOfEachMistake(t *testing.T) {
	if _, err := ParseRegistry("r.yaml", []byte(broken("", "")), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, by, want string }{
		{"id: Test.v1_0_0", "id: Test", "id: must be like"},
		{"name: Test", "name: ''", "name: must not be empty"},
		{"version: 1.0.0", "version: '1'", "version: must be like"},
		{"owner: Metalab", "owners: Metalab", "owners"},
		{"language: en", "", "language: must be"},
		{"path: ./A", "path: A", "menus[0].path: must begin"},
		{"menu: ./A", "menu: ./B", "attributes[0].menu: must be the path"},
		{"name: Count", "name: Mode", "attributes[1].name: must differ from the others: Mode"},
		{"name: Count", "name: 'C t'", "attributes[1].name: must be letters"},
		{"display: Count,", "", "attributes[1].display: must not be empty"},
		{"type: Integer", "type: Number", "attributes[1].type: must be Enumeration"},
		{"default: a", "default: c", "attributes[0].default: must be a value of the attribute: not in the list"},
		{"default: 3", "default: 10", "attributes[1].default: must be a value of the attribute: out of range"},
		{"default: 3", "default: three", "attributes[1].default: must be a value of the attribute: wrong type"},
		{"default: 3", "default: 3.5", "attributes[1].default: "},
		{"upper: 9", "upper: 0", "attributes[1].upper: must not be below"},
		{"default: 3,", "default: 3, maxLength: 3,", "attributes[1].minLength: must not be there"},
		{"default: false", "default: false, lower: 1", "attributes[3].lower: must not be there"},
		{"default: false", "default: false, values: [{name: a, display: A}]", "attributes[3].values: must be there for an Enumeration"},
		{"{name: b, display: B}", "{name: a, display: B}", "attributes[0].values[1]: must have a name of its own"},
		{"pattern: '^[a-z]*$'", "pattern: '['", "attributes[2].pattern: must be a regular expression"},
		{"maxLength: 8", "minLength: 9, maxLength: 8", "attributes[2].maxLength: must not be below"},
		{"display: Key", "display: Key, default: secret", "attributes[4].default: must not be there"},
		{"fact: serial, readOnly: true", "fact: serial", "attributes[5].readOnly: must be true"},
		{"display: Flag,", "display: Flag, each: nic,", "attributes[3].each: \"nic\": must be a part"},
		{"is: EQU", "is: LIKE", "dependencies[0].if[0].is: must be EQU"},
		{"attribute: Mode, is: EQU", "attribute: Mod, is: EQU", "dependencies[0].if[0].attribute: must be an attribute"},
		{"value: b}], set", "value: c}], set", "dependencies[0].if[0].value: must be a value of Mode"},
		{"value: b}], set", "value: b}, {attribute: Mode, is: EQU, value: b}], set", "dependencies[0].if[1].term: must be AND or OR"},
		{"attribute: Count, is: GTR, value: 5", "attribute: Serial, is: EQU, value: x", "dependencies[1].if[0].attribute: must not be a fact"},
		{"property: ReadOnly, value: true", "property: ReadOnly, value: 1", "dependencies[0].set.value: must be of the kind boolean"},
		{"attribute: Mode, is: EQU", "attribute: Mode, property: Immutable, is: EQU", "dependencies[0].if[0].property: must be a property that dependencies read"},
		{"property: ReadOnly", "property: Colour", "dependencies[0].set.property: must be a property"},
		{"{attribute: Flag, property: CurrentValue, value: true}", "{attribute: Serial, property: CurrentValue, value: x}", "dependencies[1].set.attribute: must be one that can change"},
		{"value: 5", "value: 1", "dependencies: must not change the defaults: Flag becomes true"},
		{"set: {attribute: Count, property: ReadOnly, value: true}}", "set: {attribute: Count, property: CurrentValue, value: 4}}\n  - {if: [{attribute: Flag, is: EQU, value: true}], set: {attribute: Mode, property: CurrentValue, value: a}}", "dependencies[0]: must not depend on what it changes"},
		{"does: bootMode", "does: magic", "effects[0].does: must be an effect"},
		{"as: UEFI", "on: '1', as: UEFI", "effects[0].on: must be there"},
		{"attribute: Mode, value: b, does", "attribute: Mode, value: c, does", "effects[0].value: must be a value"},
		{"attribute: Mode, value: b, does", "attribute: Key, does", "effects[0].attribute: must be a setting"},
	} {
		_, err := ParseRegistry("r.yaml", []byte(broken(tt.old, tt.by)), map[string]int{"fan": 1})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "r.yaml:") {
			t.Errorf("with %q: ParseRegistry() = %v, want %q", tt.by, err, tt.want)
		}
	}
}

func TestValuesSurviveJSON(t *testing.T) {
	in := []Value{{}, Text(""), Text("x"), Integer(-3), Integer(0), Integer(1 << 60), Boolean(true), Boolean(false)}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[null,"","x",-3,0,1152921504606846976,true,false]`; string(b) != want {
		t.Errorf("Marshal = %s, want %s", b, want)
	}
	var out []Value
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(in, out, cmp.Comparer(func(a, b Value) bool { return a == b })); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"1.5", "[]", "{}", "1e300"} {
		if err := json.Unmarshal([]byte(bad), new(Value)); err == nil {
			t.Errorf("Unmarshal(%s) = nil, want an error", bad)
		}
	}
	if v, ok := ValueOf(json.Number("3.0")); !ok || v != Integer(3) {
		t.Errorf("ValueOf(3.0) = %v, %v, want 3", v, ok)
	}
}

func TestConditionsJoinFromLeftToRight(t *testing.T) {
	r := generic(t)
	is := func(v string, t Term) Condition {
		return Condition{Term: t, Attribute: "MemoryMode", Property: CurrentValue, Is: EQU, Value: Text(v)}
	}
	u := r.rules(func(name string) Value { return r.Attribute(name).Default })
	for _, tt := range []struct {
		in   []Condition
		want bool
	}{
		{[]Condition{is("Optimized", "")}, true},
		{[]Condition{is("Mirror", "")}, false},
		{[]Condition{is("Mirror", ""), is("Optimized", Or)}, true},
		{[]Condition{is("Optimized", ""), is("Mirror", And)}, false},
		{[]Condition{is("Optimized", ""), is("Mirror", Or), is("Mirror", And)}, false},
		{[]Condition{is("Mirror", ""), is("Mirror", And), is("Optimized", Or)}, true},
	} {
		if got := u.hold(tt.in); got != tt.want {
			t.Errorf("hold(%+v) = %v, want %v", tt.in, got, tt.want)
		}
	}
}

func TestRelations(t *testing.T) {
	r := generic(t)
	u := r.rules(func(string) Value { return Integer(5) })
	for is, want := range map[Relation]string{EQU: "5", NEQ: "46", GTR: "4", GEQ: "45", LSS: "6", LEQ: "56"} {
		got := ""
		for n := int64(4); n <= 6; n++ {
			if u.holds(Condition{Attribute: "EnergyPolicy", Property: CurrentValue, Is: is, Value: Integer(n)}) {
				got += Integer(n).String()
			}
		}
		if got != want {
			t.Errorf("5 %s holds for %q, want %q", is, got, want)
		}
	}
	// A bound that is not there is neither more nor less than anything.
	none := Condition{Attribute: "AssetTag", Property: LowerBound, Is: LSS, Value: Integer(5)}
	if u.holds(none) {
		t.Error("no bound is below 5")
	}
	if none.Is = NEQ; !u.holds(none) {
		t.Error("no bound is 5")
	}
}
