package redfish

import (
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
		"Names": []any{"a", "b"}, "Levels": in.values["Levels"], "Of": []any{object{"@odata.id": "/redfish/v1"}},
		"People": []any{object{"Name": "Ada"}}, "Note": nil,
	}, in.without(nested)); diff != "" {
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
