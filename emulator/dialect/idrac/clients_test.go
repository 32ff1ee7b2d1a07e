package idrac_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// TestClientsSeeAnIDRAC reads each generation: identity, URIs, boot override, virtual media and OEM.
func TestClientsSeeAnIDRAC(t *testing.T) {
	for model, rows := range map[string][]racktest.Behavior{
		"dell-r730": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                           nil,
				"/redfish/v1#Product":                                          "Integrated Remote Access Controller",
				"/redfish/v1#Oem/Dell/@odata.type":                             "#DellServiceRoot.v1_0_0.ServiceRootSummary",
				"/redfish/v1/Systems#Members/0/@odata.id":                      "/redfish/v1/Systems/System.Embedded.1",
				"/redfish/v1/Managers#Members/0/@odata.id":                     "/redfish/v1/Managers/iDRAC.Embedded.1",
				"/redfish/v1/Managers/iDRAC.Embedded.1#Model":                  "13G Monolithic",
				"/redfish/v1/Systems/System.Embedded.1#Manufacturer":           "Dell Inc.",
				"/redfish/v1/Systems/System.Embedded.1#Oem/Dell/@odata.type":   "#DellOem.v1_3_0.DellOemResources",
				"/redfish/v1/Managers/iDRAC.Embedded.1#Oem/Dell":               "map",
				"/redfish/v1/Managers/iDRAC.Embedded.1#VirtualMedia/@odata.id": "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia",
			}},
			{Source: "ansible, idrac_boot", Method: "PATCH", Path: "/redfish/v1/Systems/System.Embedded.1", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/System.Embedded.1#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/System.Embedded.1#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "reference: media by generation", Method: "POST", Path: "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 204, Shows: map[string]any{
				"/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD#Image": "IMAGE", "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD#Inserted": true,
			}},
			{Source: "ansible, idrac_server_config_profile: a local share has a name", Method: "POST", Path: "/redfish/v1/Managers/iDRAC.Embedded.1/Actions/Oem/EID_674_Manager.ExportSystemConfiguration", Body: `{"ExportFormat":"XML","ExportUse":"Default","ShareParameters":{"Target":"BIOS","ShareType":"LOCAL","ShareName":"/tmp","FileName":"a.xml"}}`, Status: 202},
		},
		"dell-r640": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                           "Dell",
				"/redfish/v1#Product":                                          "Integrated Dell Remote Access Controller",
				"/redfish/v1#Oem/Dell/@odata.type":                             "#DellServiceRoot.v1_0_0.ServiceRootSummary",
				"/redfish/v1/Systems#Members/0/@odata.id":                      "/redfish/v1/Systems/System.Embedded.1",
				"/redfish/v1/Managers#Members/0/@odata.id":                     "/redfish/v1/Managers/iDRAC.Embedded.1",
				"/redfish/v1/Managers/iDRAC.Embedded.1#Model":                  "14G Monolithic",
				"/redfish/v1/Systems/System.Embedded.1#Manufacturer":           "Dell Inc.",
				"/redfish/v1/Systems/System.Embedded.1#Oem/Dell/@odata.type":   "#DellOem.v1_3_0.DellOemResources",
				"/redfish/v1/Managers/iDRAC.Embedded.1#Oem/Dell":               "map",
				"/redfish/v1/Managers/iDRAC.Embedded.1#VirtualMedia/@odata.id": "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia",
			}},
			{Source: "ansible, idrac_boot", Method: "PATCH", Path: "/redfish/v1/Systems/System.Embedded.1", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/System.Embedded.1#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/System.Embedded.1#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "reference: media by generation", Method: "POST", Path: "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 204, Shows: map[string]any{
				"/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD#Image": "IMAGE", "/redfish/v1/Managers/iDRAC.Embedded.1/VirtualMedia/CD#Inserted": true,
			}},
		},
		"dell-r650": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                           "Dell",
				"/redfish/v1#Product":                                          "Integrated Dell Remote Access Controller",
				"/redfish/v1#Oem/Dell/@odata.type":                             "#DellServiceRoot.v1_0_0.ServiceRootSummary",
				"/redfish/v1/Systems#Members/0/@odata.id":                      "/redfish/v1/Systems/System.Embedded.1",
				"/redfish/v1/Managers#Members/0/@odata.id":                     "/redfish/v1/Managers/iDRAC.Embedded.1",
				"/redfish/v1/Managers/iDRAC.Embedded.1#Model":                  "15G Monolithic",
				"/redfish/v1/Systems/System.Embedded.1#Manufacturer":           "Dell Inc.",
				"/redfish/v1/Systems/System.Embedded.1#Oem/Dell/@odata.type":   "#DellOem.v1_3_0.DellOemResources",
				"/redfish/v1/Managers/iDRAC.Embedded.1#Oem/Dell":               "map",
				"/redfish/v1/Managers/iDRAC.Embedded.1#VirtualMedia/@odata.id": "/redfish/v1/Systems/System.Embedded.1/VirtualMedia",
			}},
			{Source: "ansible, idrac_boot", Method: "PATCH", Path: "/redfish/v1/Systems/System.Embedded.1", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/System.Embedded.1#Boot/BootSourceOverrideTarget": "Pxe", "/redfish/v1/Systems/System.Embedded.1#Boot/BootSourceOverrideEnabled": "Once",
			}},
			{Source: "reference: media by generation", Method: "POST", Path: "/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 204, Shows: map[string]any{
				"/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1#Image": "IMAGE", "/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1#Inserted": true,
			}},
			{Source: "ansible, dellemc.openmanage: the earlier URI exports a profile", Method: "POST", Path: "/redfish/v1/Managers/iDRAC.Embedded.1/Actions/Oem/EID_674_Manager.ExportSystemConfiguration", Body: `{"ExportFormat":"JSON","ShareParameters":{"Target":["IDRAC"]}}`, Status: 202},
			{Source: "ansible, idrac_attributes: the registry of the attributes", Method: "GET", Path: "/redfish/v1/Registries/ManagerAttributeRegistry", Status: 200, Shows: map[string]any{
				"/redfish/v1/Registries/ManagerAttributeRegistry#Location/0/Uri":                                                                  "/redfish/v1/Registries/ManagerAttributeRegistry/ManagerAttributeRegistry.v1_0_0.json",
				"/redfish/v1/Registries/ManagerAttributeRegistry/ManagerAttributeRegistry.v1_0_0.json#RegistryEntries/Attributes/0/AttributeName": "Info.1.Product",
			}},
		},
		"dell-r770": {
			{Source: "mockup, ServiceRoot", Method: "GET", Path: "/redfish/v1/", Status: 200, Shows: map[string]any{
				"/redfish/v1#Vendor":                                           "Dell",
				"/redfish/v1#Product":                                          "Integrated Dell Remote Access Controller",
				"/redfish/v1#Oem/Dell/@odata.type":                             "#DellServiceRoot.v1_0_0.ServiceRootSummary",
				"/redfish/v1/Systems#Members/0/@odata.id":                      "/redfish/v1/Systems/System.Embedded.1",
				"/redfish/v1/Managers#Members/0/@odata.id":                     "/redfish/v1/Managers/iDRAC.Embedded.1",
				"/redfish/v1/Managers/iDRAC.Embedded.1#Model":                  "17G Monolithic",
				"/redfish/v1/Systems/System.Embedded.1#Manufacturer":           "Dell Inc.",
				"/redfish/v1/Systems/System.Embedded.1#Oem/Dell/@odata.type":   "#DellOem.v1_3_0.DellOemResources",
				"/redfish/v1/Managers/iDRAC.Embedded.1#Oem/Dell":               "map",
				"/redfish/v1/Managers/iDRAC.Embedded.1#VirtualMedia/@odata.id": "/redfish/v1/Systems/System.Embedded.1/VirtualMedia",
			}},
			{Source: "libredfish #26: no legacy boot", Method: "PATCH", Path: "/redfish/v1/Systems/System.Embedded.1/Bios/Settings", Body: `{"Attributes":{"BootMode":"Bios"}}`, Status: 400, Says: "BootMode", Shows: map[string]any{
				"/redfish/v1/Systems/System.Embedded.1/Bios#Attributes/BootMode":                            "Uefi",
				"/redfish/v1/Systems/System.Embedded.1/Bios#Attributes/RedirAfterBoot":                      nil,
				"/redfish/v1/Systems/System.Embedded.1#Boot/BootSourceOverrideMode@Redfish.AllowableValues": "[UEFI]",
			}},
			{Source: "libredfish #26: no legacy boot", Method: "PATCH", Path: "/redfish/v1/Systems/System.Embedded.1/Settings", Match: "ETAG", Body: `{"Boot":{"BootSourceOverrideMode":"Legacy"}}`, Status: 400, Says: "SYS426"},
			{Source: "infra-controller #6358: no account where none was made", Method: "GET", Path: "/redfish/v1/AccountService/Accounts/7", Status: 404},
			{Source: "issue 342 of Dell's scripts: an account by POST", Method: "POST", Path: "/redfish/v1/AccountService/Accounts", Body: `{"UserName":"ops","Password":"ops-Pa55word","RoleId":"Operator","Enabled":true}`, Status: 201, Shows: map[string]any{
				"/redfish/v1/AccountService/Accounts/3#UserName": "ops",
			}},
			{Source: "CreateDeleteIdracUsersREDFISH.py: at an ID of the client's choice", Method: "POST", Path: "/redfish/v1/AccountService/Accounts", Body: `{"Id":"7","UserName":"seventh","Password":"ops-Pa55word","RoleId":"Operator","Enabled":true}`, Status: 201, Shows: map[string]any{
				"/redfish/v1/AccountService/Accounts/7#UserName": "seventh",
			}},
			{Source: "CreateDeleteIdracUsersREDFISH.py: 2 to 16", Method: "POST", Path: "/redfish/v1/AccountService/Accounts", Body: `{"Id":"17","UserName":"other","Password":"ops-Pa55word","RoleId":"Operator"}`, Status: 400, Says: "17"},
			{Source: "an ID that is taken", Method: "POST", Path: "/redfish/v1/AccountService/Accounts", Body: `{"Id":"7","UserName":"other","Password":"ops-Pa55word","RoleId":"Operator"}`, Status: 400, Says: "ResourceAlreadyExists"},
			{Source: "dellemc.openmanage #1088: no such sensor", Method: "GET", Path: "/redfish/v1/Chassis/System.Embedded.1/Sensors/SystemBoardInletTemp", Status: 404},
			{Source: "dellemc.openmanage #1039, system_metrics.py: names of sensors", Method: "GET", Path: "/redfish/v1/Chassis/System.Embedded.1/Sensors/InletTemp", Status: 200, Shows: map[string]any{
				"/redfish/v1/Chassis/System.Embedded.1/Sensors/Fan5_1#Id":                    "Fan5_1",
				"/redfish/v1/Chassis/System.Embedded.1/Sensors/PSU.Slot.1_InputPower#Id":     "PSU.Slot.1_InputPower",
				"/redfish/v1/Chassis/System.Embedded.1/Sensors/PSU.Slot.2_OutputPower#Id":    "PSU.Slot.2_OutputPower",
				"/redfish/v1/Chassis/System.Embedded.1/Sensors/SystemBoardPwrConsumption#Id": "SystemBoardPwrConsumption",
			}},
			{Source: "idrac_exporter #202: names of fans", Method: "GET", Path: "/redfish/v1/Chassis/System.Embedded.1/ThermalSubsystem/Fans/CoolingController.1.Fan1", Status: 200, Shows: map[string]any{
				"/redfish/v1/Chassis/System.Embedded.1/ThermalSubsystem/Fans#Members/0/@odata.id": "/redfish/v1/Chassis/System.Embedded.1/ThermalSubsystem/Fans/CoolingController.1.Fan1",
			}},
			{Source: "DeviceFirmwareSimpleUpdateREDFISH.py: no HttpPushUri", Method: "POST", Path: "/redfish/v1/UpdateService/Upload", Status: 404, Shows: map[string]any{
				"/redfish/v1/UpdateService#HttpPushUri": nil, "/redfish/v1/UpdateService#MultipartHttpPushUri": "/redfish/v1/UpdateService/MultipartUpload",
			}},
			{Source: "issue 342 of Dell's scripts: which can be deleted", Method: "DELETE", Path: "/redfish/v1/AccountService/Accounts/3", Status: 204},
			{Source: "gofish #511: Boot is read-only", Method: "PATCH", Path: "/redfish/v1/Systems/System.Embedded.1", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 405},
			{Source: "gofish #511: and set at the settings", Method: "PATCH", Path: "/redfish/v1/Systems/System.Embedded.1/Settings", Match: "ETAG", Body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, Status: 200, Shows: map[string]any{
				"/redfish/v1/Systems/System.Embedded.1#@Redfish.Settings/SettingsObject/@odata.id": "/redfish/v1/Systems/System.Embedded.1/Settings",
				"/redfish/v1/Systems/System.Embedded.1#Boot/BootSourceOverrideTarget":              "Pxe",
			}},
			{Source: "reference: media by generation", Method: "POST", Path: "/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1/Actions/VirtualMedia.InsertMedia", Body: `{"Image":"IMAGE"}`, Status: 204, Shows: map[string]any{
				"/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1#Image": "IMAGE", "/redfish/v1/Systems/System.Embedded.1/VirtualMedia/1#Inserted": true,
			}},
		},
	} {
		t.Run(model, func(t *testing.T) { racktest.CheckBehaviors(t, model, rows) })
	}
}
