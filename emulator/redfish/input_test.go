package redfish

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// inputs of every kind that stands within another.
var nested = []resource.Input{
	{Name: "Names", Kind: resource.Array, Max: 3, Of: []resource.Input{{Kind: resource.Text, Form: func(s string) bool { return s != "x" }}}},
	{Name: "Levels", Kind: resource.Array, Min: 1, Of: []resource.Input{{Kind: resource.Integer, Min: 0, Max: 5}}},
	{Name: "Of", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Link}}},
	{Name: "People", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Group, Of: []resource.Input{
		{Name: "Name", Kind: resource.Text, Required: true}, {Name: "Pin", Kind: resource.Integer, Max: 9, Secret: true},
	}}}},
	{Name: "Headers", Kind: resource.Array, Secret: true, Of: []resource.Input{{Kind: resource.StringMap, Form: func(s string) bool { return s != "a: b" }}}},
	{Name: "Note", Kind: resource.Text, Nullable: true},
}

func TestNestedArraysAreAccepted(t *testing.T) {
	in, err := resource.Parse([]byte(`{"Names":["a","b"],"Levels":[0,5],"Of":[{"@odata.id":"/redfish/v1"}],"People":[{"Name":"Ada","Pin":3}],"Headers":[{"A":"b"}],"Note":null}`))
	must(t, err)
	set, bad := resource.Validate(in, nested, resource.View{}, nil)
	want := resource.Values{
		"Names": []any{"a", "b"}, "Levels": []any{int64(0), int64(5)}, "Of": []any{"/redfish/v1"},
		"People": []any{resource.Values{"Name": "Ada", "Pin": int64(3)}}, "Headers": []any{map[string]string{"A": "b"}}, "Note": nil,
	}
	if diff := cmp.Diff(want, set); diff != "" || len(bad) > 0 {
		t.Errorf("accept refuses %v; values (-want +got):\n%s", bad, diff)
	}
	if diff := cmp.Diff(resource.Object{
		"Names": []any{"a", "b"}, "Levels": in.Fields[in.Index("Levels")].Value, "Of": []any{resource.Object{"@odata.id": "/redfish/v1"}},
		"People": []any{resource.Object{"Name": "Ada"}}, "Note": nil,
	}, in.RedactSecrets(nested, new(bool))); diff != "" {
		t.Errorf("without secrets (-want +got):\n%s", diff)
	}
}

func TestErrorNamesInvalidArrayElement(t *testing.T) {
	for _, tt := range []struct{ body, key, pointer, arg string }{
		{`{"Names":"a"}`, "PropertyValueTypeError", "#/Names", "a"},
		{`{"Names":["a",7]}`, "PropertyValueTypeError", "#/Names/1", "7"},
		{`{"Names":["x"]}`, "PropertyValueFormatError", "#/Names/0", "x"},
		{`{"Names":["a",null]}`, "PropertyValueTypeError", "#/Names/1", "null"},
		{`{"Names":["a","b","c","d"]}`, "ArraySizeTooLong", "#/Names", "Names"},
		{`{"Levels":[]}`, "ArraySizeTooShort", "#/Levels", "Levels"},
		{`{"Levels":[6]}`, "PropertyValueOutOfRange", "#/Levels/0", "6"},
		{`{"Of":["/redfish/v1"]}`, "PropertyValueTypeError", "#/Of/0", "/redfish/v1"},
		{`{"Of":[{"@odata.id":"/x","Name":"y"}]}`, "PropertyValueTypeError", "#/Of/0", "{…}"},
		{`{"People":[{"Name":"Ada"},{"Nme":"Bob"}]}`, "PropertyUnknown", "#/People/1/Nme", "Nme"},
		{`{"People":[{}]}`, "PropertyMissing", "#/People/0/Name", "Name"},
		{`{"People":[{"Name":"Ada","Pin":10}]}`, "PropertyValueError", "#/People/0/Pin", "Pin"},
		{`{"People":["Ada"]}`, "PropertyValueTypeError", "#/People/0", "Ada"},
		{`{"Headers":[{"a":"b"}]}`, "PropertyValueError", "#/Headers/0", "Headers"},
		{`{"Headers":[{"a":7}]}`, "PropertyValueError", "#/Headers/0", "Headers"},
		{`{"Note":7}`, "PropertyValueTypeError", "#/Note", "7"},
		{`{"Names":null}`, "PropertyValueTypeError", "#/Names", "null"},
	} {
		in, err := resource.Parse([]byte(tt.body))
		must(t, err)
		set, bad := resource.Validate(in, nested, resource.View{}, nil)
		if len(bad) == 0 || len(set) > 0 {
			t.Errorf("%s is taken: %v", tt.body, set)
			continue
		}
		if m := bad[0].PropertyMessage(); m.Key != tt.key || m.Related[0] != tt.pointer || m.Args[0] != tt.arg {
			t.Errorf("%s: %s %q about %s, want %s [%s …] about %s", tt.body, m.Key, m.Args, m.Related, tt.key, tt.arg, tt.pointer)
		}
		if m := bad[0].ParameterMessage("Thing.Do"); m.Text == "" {
			t.Errorf("%s: no message of a parameter", tt.body)
		}
	}
}

// listed are inputs of a resource whose arrays can be changed.
var listed = []resource.Input{
	{Name: "Names", Kind: resource.Array, Max: 3, Of: []resource.Input{{Kind: resource.Text}}},
	{Name: "Of", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Link}}},
	{Name: "People", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Group, Of: []resource.Input{
		{Name: "Name", Kind: resource.Text, Required: true}, {Name: "Age", Kind: resource.Integer, Max: 200}, {Name: "Pin", Kind: resource.Text, Secret: true},
		{Name: "At", Kind: resource.Group, Of: []resource.Input{{Name: "Town", Kind: resource.Text}, {Name: "Street", Kind: resource.Text}}},
		{Name: "Pets", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Text}}},
	}}}},
	{Name: "Places", Kind: resource.Array, Fixed: true, Max: 4, Of: []resource.Input{{Kind: resource.Text, Nullable: true}}},
}

func TestArrayPatchKeepsUnsentElements(t *testing.T) {
	shown := resource.Object{
		"Names": []string{"a", "b", "c"}, "Of": []resource.Object{resource.Ref("/x"), resource.Ref("/y")}, "Places": []any{"p", nil, "q", nil},
		"People": []resource.Object{
			{"Name": "Ada", "Age": 36, "Pin": nil, "At": resource.Object{"Town": "London", "Street": "S"}, "Pets": []string{"cat"}, "Id": "0"},
			{"Name": "Bob", "Age": 40},
		},
	}
	ada := resource.Values{resource.PreviousIndex: 0, "Name": "Ada", "Age": int64(36), "At/Town": "London", "At/Street": "S", "Pets": []any{"cat"}}
	bob := resource.Values{resource.PreviousIndex: 1, "Name": "Bob", "Age": int64(40)}
	with := func(of resource.Values, name string, x any) resource.Values {
		of = maps.Clone(of)
		of[name] = x
		return of
	}
	for _, tt := range []struct {
		body string
		want resource.Values // nil: refused
	}{
		{`{"Names":[{},{},{}]}`, resource.Values{"Names": []any{"a", "b", "c"}}},
		{`{"Names":[{},null,"x"]}`, resource.Values{"Names": []any{"a", "x"}}},
		{`{"Names":[{}]}`, resource.Values{"Names": []any{"a"}}}, // shorter: the rest goes
		{`{"Names":[]}`, resource.Values{"Names": []any{}}},
		{`{"Names":[null,null,null]}`, resource.Values{"Names": []any{}}},
		{`{"Names":["x",null,"y","z"]}`, resource.Values{"Names": []any{"x", "y", "z"}}},
		{`{"Names":["w","x","y","z"]}`, nil},
		{`{"Names":[{},{},{},{}]}`, nil}, // there is no fourth to keep
		{`{"Names":[{"a":1}]}`, nil},
		{`{"Of":[null,{},{"@odata.id":"/z"}]}`, resource.Values{"Of": []any{"/y", "/z"}}},
		{`{"People":[{},{}]}`, resource.Values{"People": []any{ada, bob}}},
		{`{"People":[null,{"Age":41}]}`, resource.Values{"People": []any{with(bob, "Age", int64(41))}}},
		{`{"People":[{"At":{"Town":"Paris"},"Pin":"1"},{},{"Name":"Cy"}]}`, resource.Values{"People": []any{with(with(ada, "At/Town", "Paris"), "Pin", "1"), bob, resource.Values{"Name": "Cy"}}}},
		{`{"People":[{},{},{"Age":1}]}`, nil}, // a new one wants a name
		{`{"People":[{"Nme":"x"}]}`, nil},
		{`{"Places":[{},"x"]}`, resource.Values{"Places": []any{"p", "x", "q", nil}}},
		{`{"Places":[null]}`, resource.Values{"Places": []any{nil, nil, "q", nil}}},
		{`{"Places":["a","b","c","d","e"]}`, nil},
	} {
		in, err := resource.Parse([]byte(tt.body))
		must(t, err)
		set, bad := resource.Validate(in, listed, resource.View{}, func() resource.Object { return shown })
		if (len(bad) > 0) != (tt.want == nil) {
			t.Errorf("%s: refused %v; want %v", tt.body, bad, tt.want)
		} else if diff := cmp.Diff(tt.want, set); tt.want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.body, diff)
		}
	}
}

func TestInputValuesAreValidated(t *testing.T) {
	inputs := []resource.Input{
		{Name: "Watts", Kind: resource.Number, Min: 1, Max: 100}, {Name: "Any", Kind: resource.Number}, {Name: "Tag", Kind: resource.Text, Min: 2, Max: 4},
		{Name: "Pin", Kind: resource.Text, Min: 2, Max: 4, Secret: true}, {Name: "Group", Kind: resource.Group, Nullable: true, Of: []resource.Input{{Name: "X", Kind: resource.Boolean}}},
		{Name: "Attributes", Kind: resource.ScalarMap},
	}
	for _, tt := range []struct{ body, key, pointer string }{
		{`{"Watts":2.5,"Any":-1e300,"Tag":"äöü","Pin":"1234","Group":null,"Attributes":{"a":1,"b":"x","c":true,"d":null,"e":0.5}}`, "", ""},
		{`{"Watts":0.5}`, "PropertyValueOutOfRange", "#/Watts"}, {`{"Watts":"1"}`, "PropertyValueTypeError", "#/Watts"}, {`{"Any":1e999}`, "PropertyValueOutOfRange", "#/Any"},
		{`{"Tag":"x"}`, "StringValueTooShort", "#/Tag"}, {`{"Tag":"äöüßx"}`, "StringValueTooLong", "#/Tag"}, {`{"Pin":"x"}`, "PropertyValueError", "#/Pin"},
		{`{"Group":7}`, "PropertyValueTypeError", "#/Group"}, {`{"Attributes":7}`, "PropertyValueTypeError", "#/Attributes"},
		{`{"Attributes":{"a":[1]}}`, "PropertyValueTypeError", "#/Attributes/a"}, {`{"Attributes":{"a":1,"a":2}}`, "PropertyDuplicate", "#/Attributes/a"},
	} {
		in, err := resource.Parse([]byte(tt.body))
		must(t, err)
		set, bad := resource.Validate(in, inputs, resource.View{}, nil)
		if tt.key == "" {
			want := resource.Values{
				"Watts": 2.5, "Any": -1e300, "Tag": "äöü", "Pin": "1234", "Group": nil,
				"Attributes": map[string]any{"a": int64(1), "b": "x", "c": true, "d": nil, "e": 0.5},
			}
			if diff := cmp.Diff(want, set); diff != "" || len(bad) > 0 {
				t.Errorf("%s: refused %v (-want +got):\n%s", tt.body, bad, diff)
			}
			continue
		}
		if len(bad) != 1 {
			t.Errorf("%s: refused %v", tt.body, bad)
		} else if m := bad[0].PropertyMessage(); m.Key != tt.key || m.Related[0] != tt.pointer {
			t.Errorf("%s: %s about %s, want %s about %s", tt.body, m.Key, m.Related, tt.key, tt.pointer)
		}
	}
}
