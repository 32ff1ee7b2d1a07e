package openbmc_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestClientsSeeBmcweb reads a BMC as a client of bmcweb: identity, URIs, boot override, virtual
// media, and no OEM. The evidence names its sources.
func TestClientsSeeBmcweb(t *testing.T) {
	for model, rows := range map[string][]racktest.Behavior{
		"openbmc-tiogapass": {
			{Source: "service_root.hpp, systems.hpp, managers.hpp", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                              nil,
				"/redfish/v1#Product":                             nil,
				"/redfish/v1#Oem":                                 nil,
				"/redfish/v1/Systems#Members/0/@odata.id":         "/redfish/v1/Systems/system",
				"/redfish/v1/Managers#Members/0/@odata.id":        "/redfish/v1/Managers/bmc",
				"/redfish/v1/Managers/bmc#Model":                  "OpenBmc",
				"/redfish/v1/Systems/system#Oem":                  nil,
				"/redfish/v1/Systems/system#VirtualMedia":         nil,
				"/redfish/v1/Managers/bmc#VirtualMedia/@odata.id": "/redfish/v1/Managers/bmc/VirtualMedia",
				"/redfish/v1/Systems/system#Boot/BootSourceOverrideTarget@Redfish.AllowableValues": "[None Pxe Hdd Cd Diags BiosSetup Usb]",
				"/redfish/v1/Systems/system#Boot/BootOrder":                                        nil,
			}},
			{Source: "systems.hpp, setBootProperties", Method: "PATCH", Path: "/redfish/v1/Systems/system", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/system#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/system#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "systems.hpp, handleComputerSystemPatch", Method: "PATCH", Path: "/redfish/v1/Systems/system", Body: `{"Boot":{"BootOrder":[]}}`, Status: 400, Says: "PropertyUnknown"},
			{Source: "virtual_media.hpp: Slot_0 is of the proxy mode", Method: "GET", Path: "/redfish/v1/Managers/bmc/VirtualMedia/Slot_0", Status: 200, Shows: map[string]any{
				"/redfish/v1/Managers/bmc/VirtualMedia/Slot_0#Actions/#VirtualMedia.InsertMedia": nil, "/redfish/v1/Managers/bmc/VirtualMedia/Slot_0#Actions/#VirtualMedia.EjectMedia": "map",
				"/redfish/v1/Managers/bmc/VirtualMedia/Slot_1#Actions/#VirtualMedia.InsertMedia": "map",
			}},
			{Source: "virtual_media.hpp, validateParams: no http", Method: "POST", Path: "/redfish/v1/Managers/bmc/VirtualMedia/Slot_1/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 400, Says: "ResourceAtUriInUnknownFormat"},
			{Source: "event_service.hpp: Protocol is no std::optional", Method: "POST", Path: "/redfish/v1/EventService/Subscriptions", Body: `{"Destination":"https://192.0.2.1/"}`, Status: 400, Says: "PropertyMissing"},
			{Source: "account_service.hpp: RoleId is User by default, which getPrivilegeFromRoleId lacks", Method: "POST", Path: "/redfish/v1/AccountService/Accounts", Body: `{"UserName":"joe","Password":"joes-Pa55word"}`, Status: 400, Says: "PropertyValueNotInList"},
			{Source: "virtual_media.hpp has no PATCH", Method: "PATCH", Path: "/redfish/v1/Managers/bmc/VirtualMedia/Slot_1", Body: `{"Image":"IMAGE"}`, Status: 405},
		},
		"openbmc-mtjade": {
			{Source: "service_root.hpp, systems.hpp, managers.hpp", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                              nil,
				"/redfish/v1#Product":                             nil,
				"/redfish/v1#Oem":                                 nil,
				"/redfish/v1/Systems#Members/0/@odata.id":         "/redfish/v1/Systems/system",
				"/redfish/v1/Managers#Members/0/@odata.id":        "/redfish/v1/Managers/bmc",
				"/redfish/v1/Managers/bmc#Model":                  "OpenBmc",
				"/redfish/v1/Systems/system#Oem":                  nil,
				"/redfish/v1/Systems/system#VirtualMedia":         nil,
				"/redfish/v1/Managers/bmc#VirtualMedia/@odata.id": "/redfish/v1/Managers/bmc/VirtualMedia",
				"/redfish/v1/Systems/system#Boot/BootSourceOverrideTarget@Redfish.AllowableValues": "[None Pxe Hdd Cd Diags BiosSetup Usb]",
				"/redfish/v1/Systems/system#Boot/BootOrder":                                        nil,
			}},
			{Source: "systems.hpp, setBootProperties", Method: "PATCH", Path: "/redfish/v1/Systems/system", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/system#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/system#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "systems.hpp, handleComputerSystemPatch", Method: "PATCH", Path: "/redfish/v1/Systems/system", Body: `{"Boot":{"BootOrder":[]}}`, Status: 400, Says: "PropertyUnknown"},
			{Source: "virtual_media.hpp: Slot_0 is of the proxy mode", Method: "GET", Path: "/redfish/v1/Managers/bmc/VirtualMedia/Slot_0", Status: 200, Shows: map[string]any{
				"/redfish/v1/Managers/bmc/VirtualMedia/Slot_0#Actions/#VirtualMedia.InsertMedia": nil, "/redfish/v1/Managers/bmc/VirtualMedia/Slot_0#Actions/#VirtualMedia.EjectMedia": "map",
				"/redfish/v1/Managers/bmc/VirtualMedia/Slot_1#Actions/#VirtualMedia.InsertMedia": "map",
			}},
			{Source: "virtual_media.hpp, validateParams: no http", Method: "POST", Path: "/redfish/v1/Managers/bmc/VirtualMedia/Slot_1/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 400, Says: "ResourceAtUriInUnknownFormat"},
			{Source: "virtual_media.hpp has no PATCH", Method: "PATCH", Path: "/redfish/v1/Managers/bmc/VirtualMedia/Slot_1", Body: `{"Image":"IMAGE"}`, Status: 405},
		},
	} {
		t.Run(model, func(t *testing.T) { racktest.CheckBehaviors(t, model, rows) })
	}
}
