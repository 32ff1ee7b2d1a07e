package ibmc_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestClientsSeeAnIBMC reads an iBMC: identity, URIs, boot override, virtual media and OEM.
func TestClientsSeeAnIBMC(t *testing.T) {
	for model, rows := range map[string][]racktest.Behavior{
		"huawei-2288h-v5": {
			{Source: "cmdlets", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                       nil,
				"/redfish/v1#Product":                      nil,
				"/redfish/v1#Oem/Huawei":                   "map",
				"/redfish/v1/Systems#Members/0/@odata.id":  "/redfish/v1/Systems/1",
				"/redfish/v1/Managers#Members/0/@odata.id": "/redfish/v1/Managers/1",
				"/redfish/v1/Systems/1#Manufacturer":       "Huawei",
				"/redfish/v1/Managers/1#Model":             "iBMC",
				"/redfish/v1/Systems/1#Oem/Huawei":         "map",
				"/redfish/v1/Managers/1#Oem/Huawei":        "map",
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget@Redfish.AllowableValues": "[None Pxe Floppy Cd Hdd BiosSetup]",
			}},
			{Source: "sushy-oem-huawei", Method: "PATCH", Path: "/redfish/v1/Systems/1", Match: "ETAG", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/1#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "cmdlets: no InsertMedia", Method: "POST", Path: "/redfish/v1/Managers/1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 404, Shows: map[string]any{
				"/redfish/v1/Managers/1/VirtualMedia/CD#Actions/#VirtualMedia.InsertMedia": nil, "/redfish/v1/Managers/1/VirtualMedia/CD#Oem/Huawei/Actions/#VirtualMedia.VmmControl": "map",
			}},
			{Source: "cmdlets: Connect, by NFS alone", Method: "POST", Path: "/redfish/v1/Managers/1/VirtualMedia/CD/Oem/Huawei/Actions/VirtualMedia.VmmControl", Body: `{"VmmControlType":"Connect","Image":"IMAGE"}`, Status: 400, Says: "FileTransferProtocolMismatch"},
		},
	} {
		t.Run(model, func(t *testing.T) { racktest.CheckBehaviors(t, model, rows) })
	}
}
