package megarac_test

import (
	"testing"

	"time"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestClientsSeeAMegaRAC reads two boards: identity, URIs, boot override, virtual media and OEM.
func TestClientsSeeAMegaRAC(t *testing.T) {
	for model, rows := range map[string][]racktest.Behavior{
		"gigabyte-r282": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                               "AMI",
				"/redfish/v1#Product":                              "AMI Redfish Server",
				"/redfish/v1#Oem/Ami/@odata.type":                  "#AMIServiceRoot.v1_0_0.AMIServiceRoot",
				"/redfish/v1/Systems#Members/0/@odata.id":          "/redfish/v1/Systems/Self",
				"/redfish/v1/Managers#Members/0/@odata.id":         "/redfish/v1/Managers/Self",
				"/redfish/v1/Systems/Self#Manufacturer":            "GIGABYTE",
				"/redfish/v1/Systems/Self#Oem/Ami/@odata.type":     "#AMIBIOSInventoryCRC.v1_0_0.AMIBIOSInventoryCRC",
				"/redfish/v1/Managers/Self#Oem/Ami/@odata.type":    "#AMIManager.v1_0_0.AMIManager",
				"/redfish/v1/Systems/Self#VirtualMedia":            nil,
				"/redfish/v1/Managers/Self#VirtualMedia/@odata.id": "/redfish/v1/Managers/Self/VirtualMedia",
			}},
			{Source: "libredfish: boots are set at SD", Method: "PATCH", Path: "/redfish/v1/Systems/Self/SD", Match: "ETAG", Body: `{"Boot":{"BootSourceOverrideTarget":"Cd","BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/Self#Boot/BootSourceOverrideTarget": "Cd",
			}},
			{Source: "scripts; sushy 4.3", Method: "POST", Path: "/redfish/v1/Managers/Self/VirtualMedia/CD1/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE","TransferProtocolType":"HTTP"}`, Status: 202},
			{Source: "scripts: a task", Wait: 10 * time.Second, Method: "GET", Path: "/redfish/v1/Managers/Self/VirtualMedia/CD1", Status: 200, Shows: map[string]any{
				"/redfish/v1/Managers/Self/VirtualMedia/CD1#Inserted": true,
			}},
		},
		"lenovo-sr655": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                               "AMI",
				"/redfish/v1#Product":                              "AMI Redfish Server",
				"/redfish/v1#Oem/Ami/@odata.type":                  "#AMIServiceRoot.v1_0_0.AMIServiceRoot",
				"/redfish/v1/Systems#Members/0/@odata.id":          "/redfish/v1/Systems/Self",
				"/redfish/v1/Managers#Members/0/@odata.id":         "/redfish/v1/Managers/Self",
				"/redfish/v1/Systems/Self#Manufacturer":            "Lenovo",
				"/redfish/v1/Systems/Self#Oem/Ami/@odata.type":     "#AMIBIOSInventoryCRC.v1_0_0.AMIBIOSInventoryCRC",
				"/redfish/v1/Managers/Self#Oem/Ami/@odata.type":    "#AMIManager.v1_0_0.AMIManager",
				"/redfish/v1/Systems/Self#VirtualMedia":            nil,
				"/redfish/v1/Managers/Self#VirtualMedia/@odata.id": "/redfish/v1/Managers/Self/VirtualMedia",
			}},
			{Source: "libredfish: boots are set at SD", Method: "PATCH", Path: "/redfish/v1/Systems/Self/SD", Match: "ETAG", Body: `{"Boot":{"BootSourceOverrideTarget":"Cd","BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/Self#Boot/BootSourceOverrideTarget": "Cd",
			}},
			{Source: "scripts; sushy 4.3", Method: "POST", Path: "/redfish/v1/Managers/Self/VirtualMedia/CD1/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE","TransferProtocolType":"HTTP"}`, Status: 202},
			{Source: "scripts: a task", Wait: 10 * time.Second, Method: "GET", Path: "/redfish/v1/Managers/Self/VirtualMedia/CD1", Status: 200, Shows: map[string]any{
				"/redfish/v1/Managers/Self/VirtualMedia/CD1#Inserted": true,
			}},
		},
	} {
		t.Run(model, func(t *testing.T) { racktest.CheckBehaviors(t, model, rows) })
	}
}
