package redfish

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestCollectionCapabilitiesDescribeCreateBody(t *testing.T) {
	inputs := []resource.Input{
		{Name: "Level", Kind: resource.Text, Required: true, Allowed: resource.OneOf("A", "B")},
		{Name: "Label", Kind: resource.Text},
		{Name: "Kinds", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Text, Allowed: resource.OneOf("x")}}},
		{Name: "Links", Kind: resource.Group, Required: true, Of: []resource.Input{{Name: "Parts", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Link}}}, {Name: "Owner", Kind: resource.Text}}},
	}
	member := resource.Row{Schema: "Volume.v1_10_1", Patch: &resource.Patch{Inputs: []resource.Input{
		{Name: "Label", Kind: resource.Text}, {Name: "Links", Kind: resource.Group, Of: []resource.Input{{Name: "Owner", Kind: resource.Text}}},
	}}}
	r := resource.Row{
		URI: "/x", Name: "Volumes", MemberVariable: "volume",
		Create: &resource.Create{Inputs: inputs, UseCase: "VolumeCreation", MaxMembers: func(resource.View) int { return 7 }},
	}
	row := resource.Capabilities(&r, &member)
	if row.URI != "/x/Capabilities" || row.Schema != member.Schema {
		t.Errorf("capabilities of %s at %s", row.Schema, row.URI)
	}
	want := resource.Object{
		"Name":                           "Capabilities of Volumes",
		"Level@Redfish.RequiredOnCreate": true, "Level@Redfish.SetOnlyOnCreate": true, "Level@Redfish.AllowableValues": []string{"A", "B"},
		"Label@Redfish.OptionalOnCreate": true, "Label@Redfish.UpdatableAfterCreate": true,
		"Kinds@Redfish.OptionalOnCreate": true, "Kinds@Redfish.SetOnlyOnCreate": true, "Kinds@Redfish.AllowableValues": []string{"x"},
		"Links@Redfish.RequiredOnCreate": true, "Links@Redfish.UpdatableAfterCreate": true,
		"Links": resource.Object{
			"Parts@Redfish.OptionalOnCreate": true, "Parts@Redfish.SetOnlyOnCreate": true,
			"Owner@Redfish.OptionalOnCreate": true, "Owner@Redfish.UpdatableAfterCreate": true,
		},
	}
	if diff := cmp.Diff(want, row.Read(resource.View{})); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	capable := r.CapabilitiesAnnotation(resource.View{URI: "/x"})
	if diff := cmp.Diff(resource.Object{
		"@odata.type": "#CollectionCapabilities.v1_4_1.CollectionCapabilities", "MaxMembers": 7,
		"Capabilities": []resource.Object{{
			"CapabilitiesObject": resource.Ref("/x/Capabilities"), "UseCase": "VolumeCreation", "Links": resource.Object{"TargetCollection": resource.Ref("/x")},
		}},
	}, capable); diff != "" {
		t.Errorf("annotation (-want +got):\n%s", diff)
	}
	newSchemas(t).check(t, "annotation", "CollectionCapabilities.v1_4_1", resource.Encode(capable))
	if sessions := resource.Find(resource.Rows(), "/redfish/v1/SessionService/Sessions", func(r resource.Row) string { return r.URI }); sessions.CapabilitiesAnnotation(resource.View{}) != nil {
		t.Errorf("a collection that has nothing to tell tells %v", sessions.CapabilitiesAnnotation(resource.View{}))
	}
}

func TestCollectionCapabilitiesMaxMembers(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for uri, want := range map[string]int{
		"/redfish/v1/AccountService/Accounts": h.BMC().Spec.Accounts.Most, resource.SubscriptionsURI: bmc.MaxSubscriptions + bmc.MaxStreams,
	} {
		o, _ := get(t, s, uri)
		if capable, _ := o["@Redfish.CollectionCapabilities"].(map[string]any); capable["MaxMembers"] != float64(want) {
			t.Errorf("%s takes %v, want %d", uri, capable, want)
		}
	}
}

func TestActionInfoDescribesParameters(t *testing.T) {
	for _, tt := range []struct {
		in   resource.Input
		want resource.Object
	}{
		{resource.Input{Name: "A", Kind: resource.Text, Required: true}, resource.Object{"Name": "A", "Required": true, "DataType": "String"}},
		{resource.Input{Name: "A", Kind: resource.Boolean, Allowed: resource.OneOf("true")}, resource.Object{"Name": "A", "Required": false, "DataType": "Boolean", "AllowableValues": []string{"true"}}},
		{resource.Input{Name: "A", Kind: resource.Integer, Min: 1, Max: 9}, resource.Object{"Name": "A", "Required": false, "DataType": "Number", "MinimumValue": int64(1), "MaximumValue": int64(9)}},
		{resource.Input{Name: "A", Kind: resource.Number}, resource.Object{"Name": "A", "Required": false, "DataType": "Number"}},
		{
			resource.Input{Name: "A", Kind: resource.Array, Min: 1, Max: 3, Of: []resource.Input{{Kind: resource.Text, Allowed: resource.OneOf("x", "y")}}},
			resource.Object{"Name": "A", "Required": false, "DataType": "StringArray", "AllowableValues": []string{"x", "y"}, "ArraySizeMinimum": int64(1), "ArraySizeMaximum": int64(3)},
		},
		{
			resource.Input{Name: "A", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Integer, Max: 5}}},
			resource.Object{"Name": "A", "Required": false, "DataType": "NumberArray", "MinimumValue": int64(0), "MaximumValue": int64(5), "ArraySizeMinimum": int64(0), "ArraySizeMaximum": int64(resource.MaxElements)},
		},
		{
			resource.Input{Name: "A", Kind: resource.Array, Of: []resource.Input{{Kind: resource.Boolean}}},
			resource.Object{"Name": "A", "Required": false, "ArraySizeMinimum": int64(0), "ArraySizeMaximum": int64(resource.MaxElements)},
		},
		{resource.Input{Name: "A", Kind: resource.Link}, resource.Object{"Name": "A", "Required": false, "DataType": "Object"}},
	} {
		got := tt.in.ParameterInfo(resource.View{})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in.Kind, diff)
		}
		newSchemas(t).check(t, "description", "ActionInfo.v1_5_0", resource.Encode(resource.Object{
			"@odata.id": "/x", "@odata.type": "#ActionInfo.v1_5_0.ActionInfo", "Id": "x", "Name": "x", "Parameters": []resource.Object{got},
		}))
	}
}

func TestWriteablePropertiesAreListed(t *testing.T) {
	shared := resource.Object{"Mode": "A"}
	o := resource.Object{"Level": "A", "Group": shared, "Known": "A", "Known@Redfish.AllowableValues": []string{"mine"}}
	resource.AnnotateAllowableValues(o, []resource.Input{
		{Name: "Level", Kind: resource.Text, Allowed: resource.OneOf("A", "B")}, {Name: "Absent", Kind: resource.Text, Allowed: resource.OneOf("A")}, {Name: "Known", Kind: resource.Text, Allowed: resource.OneOf("A")},
		{Name: "Group", Kind: resource.Group, Of: []resource.Input{{Name: "Mode", Kind: resource.Text, Allowed: resource.OneOf("A", "C")}}},
	}, resource.View{})
	want := resource.Object{
		"Level": "A", "Level@Redfish.AllowableValues": []string{"A", "B"}, "Known": "A", "Known@Redfish.AllowableValues": []string{"mine"},
		"Group": resource.Object{"Mode": "A", "Mode@Redfish.AllowableValues": []string{"A", "C"}},
	}
	if diff := cmp.Diff(want, o); diff != "" || len(shared) != 1 {
		t.Errorf("annotated (-want +got):\n%s; what is shared has %v", diff, shared)
	}
}
