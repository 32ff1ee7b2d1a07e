package resource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAllowableValuesOfWriteablePropertiesAreListed(t *testing.T) {
	shared := Object{"Mode": "A"}
	o := Object{"Level": "A", "Group": shared, "Known": "A", "Known@Redfish.AllowableValues": []string{"mine"}}
	annotateAllowableValues(o, []Input{
		{Name: "Level", Kind: Text, Allowed: OneOf("A", "B")}, {Name: "Absent", Kind: Text, Allowed: OneOf("A")}, {Name: "Known", Kind: Text, Allowed: OneOf("A")},
		{Name: "Group", Kind: Group, Of: []Input{{Name: "Mode", Kind: Text, Allowed: OneOf("A", "C")}}},
	}, View{})
	want := Object{
		"Level": "A", "Level@Redfish.AllowableValues": []string{"A", "B"}, "Known": "A", "Known@Redfish.AllowableValues": []string{"mine"},
		"Group": Object{"Mode": "A", "Mode@Redfish.AllowableValues": []string{"A", "C"}},
	}
	if diff := cmp.Diff(want, o); diff != "" || len(shared) != 1 {
		t.Errorf("annotated (-want +got):\n%s; what is shared has %v", diff, shared)
	}
}

func TestWriteablePropertiesAreListed(t *testing.T) {
	shared := Object{"Mode": "A", "Fact": 1}
	o := Object{"Level": "A", "Fact": 2, "Group": shared, "List": []Object{{"Name": "a"}, {"Name": "b"}}, "Fixed": Object{"Fact": 3}}
	annotateWriteable(o, []Input{
		{Name: "Level", Kind: Text}, {Name: "Absent", Kind: Text}, {Name: "@Redfish.SettingsApplyTime", Kind: Group},
		{Name: "List", Kind: Array, Of: []Input{{Kind: Group, Of: []Input{{Name: "Name", Kind: Text}}}}},
		{Name: "Group", Kind: Group, Of: []Input{{Name: "Mode", Kind: Text}}}, {Name: "Fragment", Kind: Text},
	}, []string{"Fragment"})
	want := Object{
		"@Redfish.WriteableProperties": []string{"Fragment", "Group", "Level", "List"}, "Level": "A", "Fact": 2, "Fixed": Object{"Fact": 3},
		"Group": Object{"@Redfish.WriteableProperties": []string{"Mode"}, "Mode": "A", "Fact": 1},
		"List":  []any{Object{"@Redfish.WriteableProperties": []string{"Name"}, "Name": "a"}, Object{"Name": "b"}},
	}
	if diff := cmp.Diff(want, o); diff != "" || len(shared) != 2 {
		t.Errorf("annotated (-want +got):\n%s; what is shared has %v", diff, shared)
	}
}
