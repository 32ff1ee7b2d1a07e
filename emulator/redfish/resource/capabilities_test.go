package resource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCollectionCapabilitiesDescribeCreateBody(t *testing.T) {
	inputs := []Input{
		{Name: "Level", Kind: Text, Required: true, Allowed: OneOf("A", "B")},
		{Name: "Label", Kind: Text},
		{Name: "Kinds", Kind: Array, Of: []Input{{Kind: Text, Allowed: OneOf("x")}}},
		{Name: "Links", Kind: Group, Required: true, Of: []Input{{Name: "Parts", Kind: Array, Of: []Input{{Kind: Link}}}, {Name: "Owner", Kind: Text}}},
	}
	member := Row{Schema: "Volume.v1_10_1", Patch: &Patch{Inputs: []Input{
		{Name: "Label", Kind: Text}, {Name: "Links", Kind: Group, Of: []Input{{Name: "Owner", Kind: Text}}},
	}}}
	r := Row{
		URI: "/x", collectionName: "Volumes", memberVariable: "volume",
		Create: &create{Inputs: inputs, useCase: "VolumeCreation", maxMembers: func(View) int { return 7 }},
	}
	row := capabilities(&r, &member)
	if row.URI != "/x/Capabilities" || row.Schema != member.Schema {
		t.Errorf("capabilities of %s at %s", row.Schema, row.URI)
	}
	want := Object{
		"Name":                           "Capabilities of Volumes",
		"Level@Redfish.RequiredOnCreate": true, "Level@Redfish.SetOnlyOnCreate": true, "Level@Redfish.AllowableValues": []string{"A", "B"},
		"Label@Redfish.OptionalOnCreate": true, "Label@Redfish.UpdatableAfterCreate": true,
		"Kinds@Redfish.OptionalOnCreate": true, "Kinds@Redfish.SetOnlyOnCreate": true, "Kinds@Redfish.AllowableValues": []string{"x"},
		"Links@Redfish.RequiredOnCreate": true, "Links@Redfish.UpdatableAfterCreate": true,
		"Links": Object{
			"Parts@Redfish.OptionalOnCreate": true, "Parts@Redfish.SetOnlyOnCreate": true,
			"Owner@Redfish.OptionalOnCreate": true, "Owner@Redfish.UpdatableAfterCreate": true,
		},
	}
	if diff := cmp.Diff(want, row.Read(View{})); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	capable := r.capabilitiesAnnotation(View{URI: "/x"})
	if diff := cmp.Diff(Object{
		"@odata.type": "#CollectionCapabilities.v1_4_1.CollectionCapabilities", "MaxMembers": 7,
		"Capabilities": []Object{{
			"CapabilitiesObject": Ref("/x/Capabilities"), "UseCase": "VolumeCreation", "Links": Object{"TargetCollection": Ref("/x")},
		}},
	}, capable); diff != "" {
		t.Errorf("annotation (-want +got):\n%s", diff)
	}
	if sessions := Find(Rows(), "/redfish/v1/SessionService/Sessions", func(r Row) string { return r.URI }); sessions.capabilitiesAnnotation(View{}) != nil {
		t.Errorf("a collection without POST has capabilities %v", sessions.capabilitiesAnnotation(View{}))
	}
}
