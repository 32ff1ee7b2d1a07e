package xcc_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestClientsSeeAnXCC reads both generations: identity, URIs, boot override, virtual media and OEM.
func TestClientsSeeAnXCC(t *testing.T) {
	for model, rows := range map[string][]racktest.Behavior{
		"lenovo-sr650-v2": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                                           "Lenovo",
				"/redfish/v1#Product":                                                          nil,
				"/redfish/v1/Systems#Members/0/@odata.id":                                      "/redfish/v1/Systems/1",
				"/redfish/v1/Managers#Members/0/@odata.id":                                     "/redfish/v1/Managers/1",
				"/redfish/v1/Managers/1#Model":                                                 "Lenovo XClarity Controller",
				"/redfish/v1/Systems/1#Oem/Lenovo/@odata.type":                                 "#LenovoComputerSystem.v1_0_0.LenovoSystemProperties",
				"/redfish/v1/Managers/1#Oem/Lenovo/@odata.type":                                "#LenovoManager.v1_0_0.LenovoManagerProperties",
				"/redfish/v1/Systems/1#VirtualMedia/@odata.id":                                 nil,
				"/redfish/v1/Managers/1#VirtualMedia/@odata.id":                                "/redfish/v1/Managers/1/VirtualMedia",
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideEnabled@Redfish.AllowableValues": "[Once Disabled]",
			}},
			{Source: "bmclib, lenovo/boot.go", Method: "PATCH", Path: "/redfish/v1/Systems/1", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/1#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "scripts: PATCH inserts media", Method: "PATCH", Path: "/redfish/v1/Managers/1/VirtualMedia/EXT1", Body: `{"Image":"IMAGE","Inserted":true}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Managers/1/VirtualMedia/EXT1#Inserted": true, "/redfish/v1/Managers/1/VirtualMedia/EXT1#Image": "IMAGE", "/redfish/v1/Managers/1/VirtualMedia/EXT1#Actions": nil,
			}},
		},
		"lenovo-sr650-v3": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                                           "Lenovo",
				"/redfish/v1#Product":                                                          nil,
				"/redfish/v1/Systems#Members/0/@odata.id":                                      "/redfish/v1/Systems/1",
				"/redfish/v1/Managers#Members/0/@odata.id":                                     "/redfish/v1/Managers/1",
				"/redfish/v1/Managers/1#Model":                                                 "Lenovo XClarity Controller 2",
				"/redfish/v1/Systems/1#Oem/Lenovo/@odata.type":                                 "#LenovoComputerSystem.v1_0_0.LenovoSystemProperties",
				"/redfish/v1/Managers/1#Oem/Lenovo/@odata.type":                                "#LenovoManager.v1_0_0.LenovoManagerProperties",
				"/redfish/v1/Systems/1#VirtualMedia/@odata.id":                                 "/redfish/v1/Systems/1/VirtualMedia",
				"/redfish/v1/Managers/1#VirtualMedia/@odata.id":                                "/redfish/v1/Systems/1/VirtualMedia",
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideEnabled@Redfish.AllowableValues": "[Once Disabled]",
			}},
			{Source: "bmclib, lenovo/boot.go", Method: "PATCH", Path: "/redfish/v1/Systems/1", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/1#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "scripts: PATCH inserts media", Method: "PATCH", Path: "/redfish/v1/Systems/1/VirtualMedia/EXT1", Body: `{"Image":"IMAGE","Inserted":true}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/1/VirtualMedia/EXT1#Inserted": true, "/redfish/v1/Systems/1/VirtualMedia/EXT1#Image": "IMAGE", "/redfish/v1/Systems/1/VirtualMedia/EXT1#Actions": nil,
			}},
		},
	} {
		t.Run(model, func(t *testing.T) { racktest.CheckBehaviors(t, model, rows) })
	}
}
