package resource

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inputs of every kind that stands within another.
var nested = []Input{
	{Name: "Names", Kind: Array, Max: 3, Of: []Input{{Kind: Text, form: func(s string) bool { return s != "x" }}}},
	{Name: "Levels", Kind: Array, Min: 1, Of: []Input{{Kind: Integer, Min: 0, Max: 5}}},
	{Name: "Of", Kind: Array, Of: []Input{{Kind: Link}}},
	{Name: "People", Kind: Array, Of: []Input{{Kind: Group, Of: []Input{
		{Name: "Name", Kind: Text, Required: true}, {Name: "Pin", Kind: Integer, Max: 9, Secret: true},
	}}}},
	{Name: "Headers", Kind: Array, Secret: true, Of: []Input{{Kind: StringMap, form: func(s string) bool { return s != "a: b" }}}},
	{Name: "Note", Kind: Text, nullable: true},
}

func TestNestedArraysAreAccepted(t *testing.T) {
	in, err := Parse([]byte(`{"Names":["a","b"],"Levels":[0,5],"Of":[{"@odata.id":"/redfish/v1"}],"People":[{"Name":"Ada","Pin":3}],"Headers":[{"A":"b"}],"Note":null}`))
	must(t, err)
	set, bad := Validate(in, nested, View{}, nil)
	want := Values{
		"Names": []any{"a", "b"}, "Levels": []any{int64(0), int64(5)}, "Of": []any{"/redfish/v1"},
		"People": []any{Values{"Name": "Ada", "Pin": int64(3)}}, "Headers": []any{map[string]string{"A": "b"}}, "Note": nil,
	}
	if diff := cmp.Diff(want, set); diff != "" || len(bad) > 0 {
		t.Errorf("accept refuses %v; values (-want +got):\n%s", bad, diff)
	}
	if diff := cmp.Diff(Object{
		"Names": []any{"a", "b"}, "Levels": in.Fields[in.Index("Levels")].Value, "Of": []any{Object{"@odata.id": "/redfish/v1"}},
		"People": []any{Object{"Name": "Ada"}}, "Note": nil,
	}, in.redactSecrets(nested, new(bool))); diff != "" {
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
		in, err := Parse([]byte(tt.body))
		must(t, err)
		set, bad := Validate(in, nested, View{}, nil)
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
var listed = []Input{
	{Name: "Names", Kind: Array, Max: 3, Of: []Input{{Kind: Text}}},
	{Name: "Of", Kind: Array, Of: []Input{{Kind: Link}}},
	{Name: "People", Kind: Array, Of: []Input{{Kind: Group, Of: []Input{
		{Name: "Name", Kind: Text, Required: true}, {Name: "Age", Kind: Integer, Max: 200}, {Name: "Pin", Kind: Text, Secret: true},
		{Name: "At", Kind: Group, Of: []Input{{Name: "Town", Kind: Text}, {Name: "Street", Kind: Text}}},
		{Name: "Pets", Kind: Array, Of: []Input{{Kind: Text}}},
	}}}},
	{Name: "Places", Kind: Array, fixed: true, Max: 4, Of: []Input{{Kind: Text, nullable: true}}},
}

func TestArrayPatchKeepsUnsentElements(t *testing.T) {
	shown := Object{
		"Names": []string{"a", "b", "c"}, "Of": []Object{Ref("/x"), Ref("/y")}, "Places": []any{"p", nil, "q", nil},
		"People": []Object{
			{"Name": "Ada", "Age": 36, "Pin": nil, "At": Object{"Town": "London", "Street": "S"}, "Pets": []string{"cat"}, "Id": "0"},
			{"Name": "Bob", "Age": 40},
		},
	}
	ada := Values{previousIndex: 0, "Name": "Ada", "Age": int64(36), "At/Town": "London", "At/Street": "S", "Pets": []any{"cat"}}
	bob := Values{previousIndex: 1, "Name": "Bob", "Age": int64(40)}
	with := func(of Values, name string, x any) Values {
		of = maps.Clone(of)
		of[name] = x
		return of
	}
	for _, tt := range []struct {
		body string
		want Values // nil: refused
	}{
		{`{"Names":[{},{},{}]}`, Values{"Names": []any{"a", "b", "c"}}},
		{`{"Names":[{},null,"x"]}`, Values{"Names": []any{"a", "x"}}},
		{`{"Names":[{}]}`, Values{"Names": []any{"a"}}}, // shorter: the rest goes
		{`{"Names":[]}`, Values{"Names": []any{}}},
		{`{"Names":[null,null,null]}`, Values{"Names": []any{}}},
		{`{"Names":["x",null,"y","z"]}`, Values{"Names": []any{"x", "y", "z"}}},
		{`{"Names":["w","x","y","z"]}`, nil},
		{`{"Names":[{},{},{},{}]}`, nil}, // there is no fourth to keep
		{`{"Names":[{"a":1}]}`, nil},
		{`{"Of":[null,{},{"@odata.id":"/z"}]}`, Values{"Of": []any{"/y", "/z"}}},
		{`{"People":[{},{}]}`, Values{"People": []any{ada, bob}}},
		{`{"People":[null,{"Age":41}]}`, Values{"People": []any{with(bob, "Age", int64(41))}}},
		{`{"People":[{"At":{"Town":"Paris"},"Pin":"1"},{},{"Name":"Cy"}]}`, Values{"People": []any{with(with(ada, "At/Town", "Paris"), "Pin", "1"), bob, Values{"Name": "Cy"}}}},
		{`{"People":[{},{},{"Age":1}]}`, nil}, // a new one wants a name
		{`{"People":[{"Nme":"x"}]}`, nil},
		{`{"Places":[{},"x"]}`, Values{"Places": []any{"p", "x", "q", nil}}},
		{`{"Places":[null]}`, Values{"Places": []any{nil, nil, "q", nil}}},
		{`{"Places":["a","b","c","d","e"]}`, nil},
	} {
		in, err := Parse([]byte(tt.body))
		must(t, err)
		set, bad := Validate(in, listed, View{}, func() Object { return shown })
		if (len(bad) > 0) != (tt.want == nil) {
			t.Errorf("%s: refused %v; want %v", tt.body, bad, tt.want)
		} else if diff := cmp.Diff(tt.want, set); tt.want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.body, diff)
		}
	}
}

func TestInputValuesAreValidated(t *testing.T) {
	inputs := []Input{
		{Name: "Watts", Kind: Number, Min: 1, Max: 100}, {Name: "Any", Kind: Number}, {Name: "Tag", Kind: Text, Min: 2, Max: 4},
		{Name: "Pin", Kind: Text, Min: 2, Max: 4, Secret: true}, {Name: "Group", Kind: Group, nullable: true, Of: []Input{{Name: "X", Kind: Boolean}}},
		{Name: "Attributes", Kind: ScalarMap},
	}
	for _, tt := range []struct{ body, key, pointer string }{
		{`{"Watts":2.5,"Any":-1e300,"Tag":"äöü","Pin":"1234","Group":null,"Attributes":{"a":1,"b":"x","c":true,"d":null,"e":0.5}}`, "", ""},
		{`{"Watts":0.5}`, "PropertyValueOutOfRange", "#/Watts"}, {`{"Watts":"1"}`, "PropertyValueTypeError", "#/Watts"}, {`{"Any":1e999}`, "PropertyValueOutOfRange", "#/Any"},
		{`{"Tag":"x"}`, "StringValueTooShort", "#/Tag"}, {`{"Tag":"äöüßx"}`, "StringValueTooLong", "#/Tag"}, {`{"Pin":"x"}`, "PropertyValueError", "#/Pin"},
		{`{"Group":7}`, "PropertyValueTypeError", "#/Group"}, {`{"Attributes":7}`, "PropertyValueTypeError", "#/Attributes"},
		{`{"Attributes":{"a":[1]}}`, "PropertyValueTypeError", "#/Attributes/a"}, {`{"Attributes":{"a":1,"a":2}}`, "PropertyDuplicate", "#/Attributes/a"},
	} {
		in, err := Parse([]byte(tt.body))
		must(t, err)
		set, bad := Validate(in, inputs, View{}, nil)
		if tt.key == "" {
			want := Values{
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
