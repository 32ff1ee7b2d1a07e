package resource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteablePropertiesAreListed(t *testing.T) {
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
