package redfish

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func TestCapabilitiesTellWhatANewMemberIsMadeOf(t *testing.T) {
	inputs := []input{
		{name: "Level", kind: text, required: true, values: oneOf("A", "B")},
		{name: "Label", kind: text},
		{name: "Kinds", kind: array, of: []input{{kind: text, values: oneOf("x")}}},
		{name: "Links", kind: group, required: true, of: []input{{name: "Parts", kind: array, of: []input{{kind: link}}}, {name: "Owner", kind: text}}},
	}
	member := resource{schema: "Volume.v1_10_1", patch: &patch{inputs: []input{
		{name: "Label", kind: text}, {name: "Links", kind: group, of: []input{{name: "Owner", kind: text}}},
	}}}
	r := resource{
		uri: "/x", name: "Volumes", of: "volume",
		create: &create{inputs: inputs, useCase: "VolumeCreation", most: func(view) int { return 7 }},
	}
	row := capabilities(&r, &member)
	if row.uri != "/x/Capabilities" || row.schema != member.schema {
		t.Errorf("capabilities of %s at %s", row.schema, row.uri)
	}
	want := object{
		"Name":                           "Capabilities of Volumes",
		"Level@Redfish.RequiredOnCreate": true, "Level@Redfish.SetOnlyOnCreate": true, "Level@Redfish.AllowableValues": []string{"A", "B"},
		"Label@Redfish.OptionalOnCreate": true, "Label@Redfish.UpdatableAfterCreate": true,
		"Kinds@Redfish.OptionalOnCreate": true, "Kinds@Redfish.SetOnlyOnCreate": true, "Kinds@Redfish.AllowableValues": []string{"x"},
		"Links@Redfish.RequiredOnCreate": true, "Links@Redfish.UpdatableAfterCreate": true,
		"Links": object{
			"Parts@Redfish.OptionalOnCreate": true, "Parts@Redfish.SetOnlyOnCreate": true,
			"Owner@Redfish.OptionalOnCreate": true, "Owner@Redfish.UpdatableAfterCreate": true,
		},
	}
	if diff := cmp.Diff(want, row.read(view{})); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	capable := r.capable(view{uri: "/x"})
	if diff := cmp.Diff(object{
		"@odata.type": "#CollectionCapabilities.v1_4_1.CollectionCapabilities", "MaxMembers": 7,
		"Capabilities": []object{{
			"CapabilitiesObject": ref("/x/Capabilities"), "UseCase": "VolumeCreation", "Links": object{"TargetCollection": ref("/x")},
		}},
	}, capable); diff != "" {
		t.Errorf("annotation (-want +got):\n%s", diff)
	}
	newSchemas(t).check(t, "annotation", "CollectionCapabilities.v1_4_1", encode(capable))
	if sessions := pick(rows(), "/redfish/v1/SessionService/Sessions", func(r resource) string { return r.uri }); sessions.capable(view{}) != nil {
		t.Errorf("a collection that has nothing to tell tells %v", sessions.capable(view{}))
	}
}

func TestCollectionsTellHowManyMembersTheyTake(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for uri, want := range map[string]int{
		"/redfish/v1/AccountService/Accounts": h.BMC().Spec.Accounts.Most, subscriptionsURI: bmc.MaxSubscriptions + bmc.MaxStreams,
	} {
		o, _ := get(t, s, uri)
		if capable, _ := o["@Redfish.CollectionCapabilities"].(map[string]any); capable["MaxMembers"] != float64(want) {
			t.Errorf("%s takes %v, want %d", uri, capable, want)
		}
	}
}

func TestParametersAreDescribed(t *testing.T) {
	for _, tt := range []struct {
		in   input
		want object
	}{
		{input{name: "A", kind: text, required: true}, object{"Name": "A", "Required": true, "DataType": "String"}},
		{input{name: "A", kind: boolean, values: oneOf("true")}, object{"Name": "A", "Required": false, "DataType": "Boolean", "AllowableValues": []string{"true"}}},
		{input{name: "A", kind: integer, min: 1, max: 9}, object{"Name": "A", "Required": false, "DataType": "Number", "MinimumValue": int64(1), "MaximumValue": int64(9)}},
		{input{name: "A", kind: number}, object{"Name": "A", "Required": false, "DataType": "Number"}},
		{
			input{name: "A", kind: array, min: 1, max: 3, of: []input{{kind: text, values: oneOf("x", "y")}}},
			object{"Name": "A", "Required": false, "DataType": "StringArray", "AllowableValues": []string{"x", "y"}, "ArraySizeMinimum": int64(1), "ArraySizeMaximum": int64(3)},
		},
		{
			input{name: "A", kind: array, of: []input{{kind: integer, max: 5}}},
			object{"Name": "A", "Required": false, "DataType": "NumberArray", "MinimumValue": int64(0), "MaximumValue": int64(5), "ArraySizeMinimum": int64(0), "ArraySizeMaximum": int64(maxElements)},
		},
		{
			input{name: "A", kind: array, of: []input{{kind: boolean}}},
			object{"Name": "A", "Required": false, "ArraySizeMinimum": int64(0), "ArraySizeMaximum": int64(maxElements)},
		},
		{input{name: "A", kind: link}, object{"Name": "A", "Required": false, "DataType": "Object"}},
	} {
		got := tt.in.described(view{})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in.kind, diff)
		}
		newSchemas(t).check(t, "description", "ActionInfo.v1_5_0", encode(object{
			"@odata.id": "/x", "@odata.type": "#ActionInfo.v1_5_0.ActionInfo", "Id": "x", "Name": "x", "Parameters": []object{got},
		}))
	}
}

func TestWhatCanBeWrittenIsListed(t *testing.T) {
	shared := object{"Mode": "A"}
	o := object{"Level": "A", "Group": shared, "Known": "A", "Known@Redfish.AllowableValues": []string{"mine"}}
	annotate(o, []input{
		{name: "Level", kind: text, values: oneOf("A", "B")}, {name: "Absent", kind: text, values: oneOf("A")}, {name: "Known", kind: text, values: oneOf("A")},
		{name: "Group", kind: group, of: []input{{name: "Mode", kind: text, values: oneOf("A", "C")}}},
	}, view{})
	want := object{
		"Level": "A", "Level@Redfish.AllowableValues": []string{"A", "B"}, "Known": "A", "Known@Redfish.AllowableValues": []string{"mine"},
		"Group": object{"Mode": "A", "Mode@Redfish.AllowableValues": []string{"A", "C"}},
	}
	if diff := cmp.Diff(want, o); diff != "" || len(shared) != 1 {
		t.Errorf("annotated (-want +got):\n%s; what is shared has %v", diff, shared)
	}
}
