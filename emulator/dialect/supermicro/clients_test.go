package supermicro_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestClientsSeeASupermicroBMC reads both generations: identity, URIs, boot override, virtual media and OEM.
func TestClientsSeeASupermicroBMC(t *testing.T) {
	for model, rows := range map[string][]racktest.Behavior{
		"supermicro-1029u": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                                          nil,
				"/redfish/v1#Product":                                                         nil,
				"/redfish/v1/Systems#Members/0/@odata.id":                                     "/redfish/v1/Systems/1",
				"/redfish/v1/Managers#Members/0/@odata.id":                                    "/redfish/v1/Managers/1",
				"/redfish/v1/Systems/1#Manufacturer":                                          "Supermicro",
				"/redfish/v1/Systems/1#Oem/Supermicro":                                        nil,
				"/redfish/v1/Managers/1#Oem/Supermicro/@odata.type":                           "#SmcManagerExtensions.v1_0_0.Manager",
				"/redfish/v1/Managers/1#VirtualMedia/@odata.id":                               "/redfish/v1/Managers/1/VM1",
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget@Redfish.AllowableValues": "[None Pxe Floppy Cd Usb Hdd BiosSetup UsbCd UefiBootNext]",
			}},
			{Source: "sushy change-bootdev-smc", Method: "PATCH", Path: "/redfish/v1/Systems/1", Body: `{"Boot":{"BootSourceOverrideTarget":"UsbCd","BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget": "UsbCd", "/redfish/v1/Systems/1#Boot/BootSourceOverrideMode": "UEFI",
			}},
			{Source: "sushy fix-insert-media-payload", Method: "POST", Path: "/redfish/v1/Managers/1/VM1/CD1/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Managers/1/VM1/CD1#Inserted": true,
			}},
		},
		"supermicro-621c": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                                          "Supermicro",
				"/redfish/v1#Product":                                                         nil,
				"/redfish/v1/Systems#Members/0/@odata.id":                                     "/redfish/v1/Systems/1",
				"/redfish/v1/Managers#Members/0/@odata.id":                                    "/redfish/v1/Managers/1",
				"/redfish/v1/Systems/1#Manufacturer":                                          "Supermicro",
				"/redfish/v1/Systems/1#Oem/Supermicro":                                        "map",
				"/redfish/v1/Managers/1#Oem/Supermicro/@odata.type":                           "#SmcManagerExtensions.v1_0_0.Manager",
				"/redfish/v1/Managers/1#VirtualMedia/@odata.id":                               "/redfish/v1/Managers/1/VirtualMedia",
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget@Redfish.AllowableValues": "[None Pxe Floppy Cd Usb Hdd BiosSetup UsbCd UefiBootNext UefiHttp]",
			}},
			{Source: "sushy change-bootdev-smc", Method: "PATCH", Path: "/redfish/v1/Systems/1", Body: `{"Boot":{"BootSourceOverrideTarget":"UsbCd","BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget": "UsbCd", "/redfish/v1/Systems/1#Boot/BootSourceOverrideMode": "UEFI",
			}},
			{Source: "sushy fix-insert-media-payload", Method: "POST", Path: "/redfish/v1/Managers/1/VirtualMedia/VirtualMedia1/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Managers/1/VirtualMedia/VirtualMedia1#Inserted": true,
			}},
		},
	} {
		t.Run(model, func(t *testing.T) { racktest.CheckBehaviors(t, model, rows) })
	}
}
