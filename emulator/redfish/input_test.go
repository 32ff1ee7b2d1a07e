package redfish

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inputs of every kind that stands within another.
var nested = []input{
	{name: "Names", kind: array, max: 3, of: []input{{kind: text, form: func(s string) bool { return s != "x" }}}},
	{name: "Levels", kind: array, min: 1, of: []input{{kind: integer, min: 0, max: 5}}},
	{name: "Of", kind: array, of: []input{{kind: link}}},
	{name: "People", kind: array, of: []input{{kind: group, of: []input{
		{name: "Name", kind: text, required: true}, {name: "Pin", kind: integer, max: 9, secret: true},
	}}}},
	{name: "Headers", kind: array, secret: true, of: []input{{kind: named, form: func(s string) bool { return s != "a: b" }}}},
	{name: "Note", kind: text, nullable: true},
}

func TestArraysAreTakenWhole(t *testing.T) {
	in, err := parse([]byte(`{"Names":["a","b"],"Levels":[0,5],"Of":[{"@odata.id":"/redfish/v1"}],"People":[{"Name":"Ada","Pin":3}],"Headers":[{"A":"b"}],"Note":null}`))
	must(t, err)
	set, bad := accept(in, nested, view{}, nil)
	want := values{
		"Names": []any{"a", "b"}, "Levels": []any{int64(0), int64(5)}, "Of": []any{"/redfish/v1"},
		"People": []any{values{"Name": "Ada", "Pin": int64(3)}}, "Headers": []any{map[string]string{"A": "b"}}, "Note": nil,
	}
	if diff := cmp.Diff(want, set); diff != "" || len(bad) > 0 {
		t.Errorf("accept refuses %v; values (-want +got):\n%s", bad, diff)
	}
	if diff := cmp.Diff(object{
		"Names": []any{"a", "b"}, "Levels": in.fields[in.at("Levels")].value, "Of": []any{object{"@odata.id": "/redfish/v1"}},
		"People": []any{object{"Name": "Ada"}}, "Note": nil,
	}, in.without(nested, new(bool))); diff != "" {
		t.Errorf("without secrets (-want +got):\n%s", diff)
	}
}

func TestWhatIsWrongWithinAnArrayIsNamed(t *testing.T) {
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
		in, err := parse([]byte(tt.body))
		must(t, err)
		set, bad := accept(in, nested, view{}, nil)
		if len(bad) == 0 || len(set) > 0 {
			t.Errorf("%s is taken: %v", tt.body, set)
			continue
		}
		if m := bad[0].ofProperty(); m.Key != tt.key || m.Related[0] != tt.pointer || m.Args[0] != tt.arg {
			t.Errorf("%s: %s %q about %s, want %s [%s …] about %s", tt.body, m.Key, m.Args, m.Related, tt.key, tt.arg, tt.pointer)
		}
		if m := bad[0].ofParameter("Thing.Do"); m.Text == "" {
			t.Errorf("%s: no message of a parameter", tt.body)
		}
	}
}

// listed are inputs of a resource whose arrays can be changed.
var listed = []input{
	{name: "Names", kind: array, max: 3, of: []input{{kind: text}}},
	{name: "Of", kind: array, of: []input{{kind: link}}},
	{name: "People", kind: array, of: []input{{kind: group, of: []input{
		{name: "Name", kind: text, required: true}, {name: "Age", kind: integer, max: 200}, {name: "Pin", kind: text, secret: true},
		{name: "At", kind: group, of: []input{{name: "Town", kind: text}, {name: "Street", kind: text}}},
		{name: "Pets", kind: array, of: []input{{kind: text}}},
	}}}},
	{name: "Places", kind: array, fixed: true, max: 4, of: []input{{kind: text, nullable: true}}},
}

func TestPatchedArraysKeepWhatWasNotSent(t *testing.T) {
	shown := object{
		"Names": []string{"a", "b", "c"}, "Of": []object{ref("/x"), ref("/y")}, "Places": []any{"p", nil, "q", nil},
		"People": []object{
			{"Name": "Ada", "Age": 36, "Pin": nil, "At": object{"Town": "London", "Street": "S"}, "Pets": []string{"cat"}, "Id": "0"},
			{"Name": "Bob", "Age": 40},
		},
	}
	ada := values{place: 0, "Name": "Ada", "Age": int64(36), "At/Town": "London", "At/Street": "S", "Pets": []any{"cat"}}
	bob := values{place: 1, "Name": "Bob", "Age": int64(40)}
	with := func(of values, name string, x any) values {
		of = maps.Clone(of)
		of[name] = x
		return of
	}
	for _, tt := range []struct {
		body string
		want values // nil: refused
	}{
		{`{"Names":[{},{},{}]}`, values{"Names": []any{"a", "b", "c"}}},
		{`{"Names":[{},null,"x"]}`, values{"Names": []any{"a", "x"}}},
		{`{"Names":[{}]}`, values{"Names": []any{"a"}}}, // shorter: the rest goes
		{`{"Names":[]}`, values{"Names": []any{}}},
		{`{"Names":[null,null,null]}`, values{"Names": []any{}}},
		{`{"Names":["x",null,"y","z"]}`, values{"Names": []any{"x", "y", "z"}}},
		{`{"Names":["w","x","y","z"]}`, nil},
		{`{"Names":[{},{},{},{}]}`, nil}, // there is no fourth to keep
		{`{"Names":[{"a":1}]}`, nil},
		{`{"Of":[null,{},{"@odata.id":"/z"}]}`, values{"Of": []any{"/y", "/z"}}},
		{`{"People":[{},{}]}`, values{"People": []any{ada, bob}}},
		{`{"People":[null,{"Age":41}]}`, values{"People": []any{with(bob, "Age", int64(41))}}},
		{`{"People":[{"At":{"Town":"Paris"},"Pin":"1"},{},{"Name":"Cy"}]}`, values{"People": []any{with(with(ada, "At/Town", "Paris"), "Pin", "1"), bob, values{"Name": "Cy"}}}},
		{`{"People":[{},{},{"Age":1}]}`, nil}, // a new one wants a name
		{`{"People":[{"Nme":"x"}]}`, nil},
		{`{"Places":[{},"x"]}`, values{"Places": []any{"p", "x", "q", nil}}},
		{`{"Places":[null]}`, values{"Places": []any{nil, nil, "q", nil}}},
		{`{"Places":["a","b","c","d","e"]}`, nil},
	} {
		in, err := parse([]byte(tt.body))
		must(t, err)
		set, bad := accept(in, listed, view{}, func() object { return shown })
		if (len(bad) > 0) != (tt.want == nil) {
			t.Errorf("%s: refused %v; want %v", tt.body, bad, tt.want)
		} else if diff := cmp.Diff(tt.want, set); tt.want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.body, diff)
		}
	}
}

func TestValuesAreChecked(t *testing.T) {
	inputs := []input{
		{name: "Watts", kind: number, min: 1, max: 100}, {name: "Any", kind: number}, {name: "Tag", kind: text, min: 2, max: 4},
		{name: "Pin", kind: text, min: 2, max: 4, secret: true}, {name: "Group", kind: group, nullable: true, of: []input{{name: "X", kind: boolean}}},
		{name: "Attributes", kind: free},
	}
	for _, tt := range []struct{ body, key, pointer string }{
		{`{"Watts":2.5,"Any":-1e300,"Tag":"äöü","Pin":"1234","Group":null,"Attributes":{"a":1,"b":"x","c":true,"d":null,"e":0.5}}`, "", ""},
		{`{"Watts":0.5}`, "PropertyValueOutOfRange", "#/Watts"}, {`{"Watts":"1"}`, "PropertyValueTypeError", "#/Watts"}, {`{"Any":1e999}`, "PropertyValueOutOfRange", "#/Any"},
		{`{"Tag":"x"}`, "StringValueTooShort", "#/Tag"}, {`{"Tag":"äöüßx"}`, "StringValueTooLong", "#/Tag"}, {`{"Pin":"x"}`, "PropertyValueError", "#/Pin"},
		{`{"Group":7}`, "PropertyValueTypeError", "#/Group"}, {`{"Attributes":7}`, "PropertyValueTypeError", "#/Attributes"},
		{`{"Attributes":{"a":[1]}}`, "PropertyValueTypeError", "#/Attributes/a"}, {`{"Attributes":{"a":1,"a":2}}`, "PropertyDuplicate", "#/Attributes/a"},
	} {
		in, err := parse([]byte(tt.body))
		must(t, err)
		set, bad := accept(in, inputs, view{}, nil)
		if tt.key == "" {
			want := values{
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
		} else if m := bad[0].ofProperty(); m.Key != tt.key || m.Related[0] != tt.pointer {
			t.Errorf("%s: %s about %s, want %s about %s", tt.body, m.Key, m.Related, tt.key, tt.pointer)
		}
	}
}
