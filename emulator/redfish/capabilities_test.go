package redfish

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestCollectionCapabilitiesMaxMembers(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for uri, want := range map[string]int{
		"/redfish/v1/AccountService/Accounts": h.BMC().Spec.Accounts.Most, resource.SubscriptionsURI: bmc.MaxSubscriptions + bmc.MaxStreams,
	} {
		o, _ := get(t, s, uri)
		if capable, _ := o["@Redfish.CollectionCapabilities"].(map[string]any); capable["MaxMembers"] != float64(want) {
			t.Errorf("%s has capabilities %v, want MaxMembers %d", uri, capable, want)
		}
	}
}

func TestCollectionCapabilitiesMatchTheirSchema(t *testing.T) {
	_, s := raiding(t)
	for _, uri := range []string{"/redfish/v1/AccountService/Accounts", volumes} {
		o, _ := get(t, s, uri)
		capable, ok := o["@Redfish.CollectionCapabilities"].(map[string]any)
		if !ok {
			t.Errorf("%s has no @Redfish.CollectionCapabilities", uri)
			continue
		}
		newSchemas(t).check(t, "annotation", "CollectionCapabilities.v1_4_1", resource.Encode(capable))
	}
}

func TestActionInfoDescribesParameters(t *testing.T) {
	for _, tt := range []struct {
		in   resource.Input
		want resource.Object
	}{
		{resource.Input{Name: "A", Kind: resource.Text, Required: true}, resource.Object{"Name": "A", "Required": true, "DataType": "String"}},
		{resource.Input{Name: "A", Kind: resource.Boolean, Allowed: resource.OneOf("true")}, resource.Object{"Name": "A", "Required": false, "DataType": "Boolean"}},
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
