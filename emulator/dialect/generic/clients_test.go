package generic_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestClientsSeeTheStandard reads the dialect without a vendor: identity, URIs, boot override, virtual
// media, and no OEM.
func TestClientsSeeTheStandard(t *testing.T) {
	for model, rows := range map[string][]racktest.Behavior{
		"generic": {
			{Source: "DSP0266", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                           "Metalab",
				"/redfish/v1#Product":                          "Metalab BMC",
				"/redfish/v1#Oem":                              nil,
				"/redfish/v1/Systems#Members/0/@odata.id":      "/redfish/v1/Systems/1",
				"/redfish/v1/Managers#Members/0/@odata.id":     "/redfish/v1/Managers/1",
				"/redfish/v1/Systems/1#Oem":                    nil,
				"/redfish/v1/Managers/1#Oem":                   nil,
				"/redfish/v1/Systems/1#VirtualMedia/@odata.id": "/redfish/v1/Systems/1/VirtualMedia",
			}},
			{Source: "DSP2046, Boot", Method: "PATCH", Path: "/redfish/v1/Systems/1", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/1#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "DSP2046, InsertMedia", Method: "POST", Path: "/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 204, Shows: map[string]any{
				"/redfish/v1/Systems/1/VirtualMedia/Cd#Image": "IMAGE", "/redfish/v1/Systems/1/VirtualMedia/Cd#Inserted": true,
			}},
		},
	} {
		t.Run(model, func(t *testing.T) { racktest.CheckBehaviors(t, model, rows) })
	}
}
