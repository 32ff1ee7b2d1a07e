package xcc

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

const (
	system  = "/redfish/v1/Systems/{system}"
	manager = "/redfish/v1/Managers/{manager}"
	images  = "/redfish/v1/UpdateService/FirmwareInventory"
)

// uriMappings are the URI mappings of both generations.
var uriMappings = []dialect.URIMapping{
	{From: system + "/Bios/Settings", To: system + "/Bios/Pending"},                           // [V: mockup]
	{From: images + "/BIOS", To: images + "/UEFI"},                                            // [V: mockup]
	{From: images + "/BMC", To: images + "/BMC-Primary"},                                      // [V: mockup]
	{From: system + "/EthernetInterfaces/{nic}", To: system + "/EthernetInterfaces/NIC{nic}"}, // [V: mockup]
	{From: manager + "/EthernetInterfaces/1", To: manager + "/EthernetInterfaces/NIC"},        // [V: mockup]; a BMC has one
}

// transforms are the transforms of both generations.
var transforms = []dialect.Transform{
	{ResourceType: "ServiceRoot", Remove: []string{"Product"}, Set: []dialect.PropertyRule{{Path: "LicenseService/@odata.id", Value: licences}}}, // [V: mockup]
	{
		ResourceType: "ComputerSystem",
		// [V: mockup, which has none of these]
		Remove: []string{"Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues", "Boot/HttpBootUri"},
		Set: []dialect.PropertyRule{
			{Path: "Oem/Lenovo/@odata.type", Value: "#LenovoComputerSystem.v1_0_0.LenovoSystemProperties"}, // [V: mockup]
			{Path: "@Redfish.Settings", Value: map[string]any{ // [V: mockup]
				"@odata.type": "#Settings.v1_3_0.Settings", "SupportedApplyTimes": []any{"OnReset"}, "SettingsObject": map[string]any{"@odata.id": pending},
			}},
			{
				// [V: mockup for one value, K for the others]
				Path: "Oem/Lenovo/SystemStatus", From: "BootProgress/LastState", Value: "SystemOn_StartingUEFI",
				Map: map[string]any{
					"None": "SystemPowerOff_StateUnknown", "SetupEntered": "SystemRunningInUEFISetup",
					"OSBootStarted": "BootingOSOrInUndetectedOS", "OSRunning": "OSBooted",
				},
			},
			{Path: "Oem/Lenovo/FrontPanelUSB", Value: map[string]any{"FPMode": "Server", "PortSwitchingTo": "Server", "IDButton": "On", "InactivityTimeoutMins": 5}}, // [V: mockup]
		},
	},
	{ResourceType: "ComputerSystem", URI: pending, Remove: []string{"@Redfish.Settings", "Oem", "Actions"}}, // [V: mockup]
	{
		ResourceType: "Manager",
		Set: []dialect.PropertyRule{
			{Path: "Oem/Lenovo/@odata.type", Value: "#LenovoManager.v1_0_0.LenovoManagerProperties"}, // [V: mockup]
			{Path: "Oem/Lenovo/RemoteControl/@odata.id", Value: control},                             // [V: mockup]
			{Path: "Oem/Lenovo/RemoteMap/@odata.id", Value: mounting},                                // [V: mockup]
			{Path: "Oem/Lenovo/KCSEnabled", Value: true},                                             // [V: mockup for the name]
		},
	},
	{ResourceType: "UpdateService", Set: []dialect.PropertyRule{{Path: "HttpPushUri", Value: "/fwupdate"}, {Path: "MultipartHttpPushUri", Value: "/mfwupdate"}}}, // [V: mockup]
	{
		ResourceType: "Chassis",
		Set: []dialect.PropertyRule{
			{Path: "Oem/Lenovo/@odata.type", Value: "#LenovoChassis.v1_0_0.LenovoChassisProperties"}, // [V: mockup]
			{Path: "Oem/Lenovo/ProductName", From: "Model"},
		},
	},
	{
		ResourceType: "LogService", URI: system + "/LogServices/SEL",
		Set: []dialect.PropertyRule{
			{Path: "Oem/Lenovo/@odata.type", Value: "#LenovoLogService.v1_0_0.LenovoLogServiceProperties"}, // [V: mockup]
			{Path: "Oem/Lenovo/EnableSELWrapping", Value: false},
		},
	},
}

// oemTypes are the types of Lenovo's objects in standard resources.
var oemTypes = []dialect.OEMType{
	{
		Namespace: "LenovoComputerSystem", Version: "v1_0_0", Name: "LenovoSystemProperties",
		Properties: []dialect.OEMProperty{
			{Name: "SystemStatus", Type: dialect.EdmString, Description: "How far the system is."},
			{Name: "FrontPanelUSB", Type: dialect.EdmObject, Description: "What the USB port at the front is for.", Properties: []dialect.OEMProperty{
				{Name: "FPMode", Type: dialect.EdmString, Description: "Whom it serves: the system, the controller, or one after the other."},
				{Name: "PortSwitchingTo", Type: dialect.EdmString, Description: "Whom it serves now."},
				{Name: "IDButton", Type: dialect.EdmString, Description: "Whether the button beside it switches."},
				{Name: "InactivityTimeoutMins", Type: dialect.EdmInt64, Description: "Minutes after which it is switched back."},
			}},
		},
	},
	{
		Namespace: "LenovoManager", Version: "v1_0_0", Name: "LenovoManagerProperties",
		Properties: []dialect.OEMProperty{
			{Name: "KCSEnabled", Type: dialect.EdmBoolean, Description: "Whether the system reaches the controller by IPMI."},
			{Name: "RemoteControl", Type: dialect.EdmLink, Description: "The screen from afar, and the images that are uploaded for it."},
			{Name: "RemoteMap", Type: dialect.EdmLink, Description: "The images that are mounted from servers."},
		},
	},
	{
		Namespace: "LenovoChassis", Version: "v1_0_0", Name: "LenovoChassisProperties",
		Properties: []dialect.OEMProperty{{Name: "ProductName", Type: dialect.EdmString, Description: "Name of the product that the chassis is of."}},
	},
	{
		Namespace: "LenovoLogService", Version: "v1_0_0", Name: "LenovoLogServiceProperties",
		Properties: []dialect.OEMProperty{{Name: "EnableSELWrapping", Type: dialect.EdmBoolean, Description: "Whether new entries take the place of the oldest."}},
	},
}

// errorForm is the form of error responses: error.code is always that of a general
// error [V: pastebin.com/dLZ2vLWN].
var errorForm = dialect.ErrorFormat{Code: "Base.1.12.GeneralError"}

// firstPresentation has virtual media below the manager, without certificates of
// image servers [V: reference, where only XCC2 has VerifyCertificate].
var firstPresentation = dialect.Presentation{
	URIMappings: append(slices.Clone(uriMappings), dialect.URIMapping{From: system + "/VirtualMedia", To: manager + "/VirtualMedia"}),
	Transforms: append(slices.Clone(transforms),
		dialect.Transform{ResourceType: "ComputerSystem", Remove: []string{"VirtualMedia"}},
		dialect.Transform{ResourceType: "VirtualMedia", Remove: []string{"VerifyCertificate", "Certificates"}}),
	InputAliases: inputAliases,
	RejectRules: append(slices.Clone(rejectRules),
		dialect.RejectRule{ResourceType: "VirtualMedia", Method: "PATCH", SendsAny: []string{"VerifyCertificate"}, Message: unknown}),
	Hidden: []string{system + "/VirtualMedia/{slot}/Certificates"},
	Errors: errorForm,
}

// secondPresentation has virtual media below the system [V: mockup], and drives
// named by their bays [V: mockup, of an NVMe backplane].
var secondPresentation = dialect.Presentation{
	URIMappings: append(slices.Clone(uriMappings), dialect.URIMapping{
		From: system + "/Storage/{storage}/Drives/Disk.{drive}", To: system + "/Storage/{storage}/Drives/Drive.Bay_{drive}",
	}),
	Transforms:   transforms,
	RejectRules:  rejectRules,
	InputAliases: inputAliases,
	Errors:       errorForm,
}
