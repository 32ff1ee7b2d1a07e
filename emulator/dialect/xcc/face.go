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

// moves are where an XCC has what others have elsewhere.
var moves = []dialect.Move{
	{From: system + "/Bios/Settings", To: system + "/Bios/Pending"},                           // [V: mockup]
	{From: images + "/BIOS", To: images + "/UEFI"},                                            // [V: mockup]
	{From: images + "/BMC", To: images + "/BMC-Primary"},                                      // [V: mockup]
	{From: system + "/EthernetInterfaces/{nic}", To: system + "/EthernetInterfaces/NIC{nic}"}, // [V: mockup]
	{From: manager + "/EthernetInterfaces/1", To: manager + "/EthernetInterfaces/NIC"},        // [V: mockup]; a BMC has one
}

// shapes are how its resources differ.
var shapes = []dialect.Shape{
	{Of: "ServiceRoot", Drop: []string{"Product"}, Set: []dialect.Datum{{Path: "LicenseService/@odata.id", Value: licences}}}, // [V: mockup]
	{
		Of: "ComputerSystem",
		// [V: mockup, which has none of these]
		Drop: []string{"Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues", "Boot/HttpBootUri"},
		Set: []dialect.Datum{
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
	{Of: "ComputerSystem", At: pending, Drop: []string{"@Redfish.Settings", "Oem", "Actions"}}, // [V: mockup]
	{
		Of: "Manager",
		Set: []dialect.Datum{
			{Path: "Oem/Lenovo/@odata.type", Value: "#LenovoManager.v1_0_0.LenovoManagerProperties"}, // [V: mockup]
			{Path: "Oem/Lenovo/RemoteControl/@odata.id", Value: control},                             // [V: mockup]
			{Path: "Oem/Lenovo/RemoteMap/@odata.id", Value: mounting},                                // [V: mockup]
			{Path: "Oem/Lenovo/KCSEnabled", Value: true},                                             // [V: mockup for the name]
		},
	},
	{Of: "UpdateService", Set: []dialect.Datum{{Path: "HttpPushUri", Value: "/fwupdate"}, {Path: "MultipartHttpPushUri", Value: "/mfwupdate"}}}, // [V: mockup]
	{
		Of: "Chassis",
		Set: []dialect.Datum{
			{Path: "Oem/Lenovo/@odata.type", Value: "#LenovoChassis.v1_0_0.LenovoChassisProperties"}, // [V: mockup]
			{Path: "Oem/Lenovo/ProductName", From: "Model"},
		},
	},
	{
		Of: "LogService", At: system + "/LogServices/SEL",
		Set: []dialect.Datum{
			{Path: "Oem/Lenovo/@odata.type", Value: "#LenovoLogService.v1_0_0.LenovoLogServiceProperties"}, // [V: mockup]
			{Path: "Oem/Lenovo/EnableSELWrapping", Value: false},
		},
	},
}

// types are those of Lenovo's objects in resources of the standard.
var types = []dialect.OEMType{
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

// errors: the code is that of a general error, whatever it is [V: pastebin.com/dLZ2vLWN].
var errorForm = dialect.Errors{Code: "Base.1.12.GeneralError"}

// firstFace has virtual media under the manager, without certificates of their
// servers [V: reference, which has VerifyCertificate of XCC2].
var firstFace = dialect.Face{
	Moves: append(slices.Clone(moves), dialect.Move{From: system + "/VirtualMedia", To: manager + "/VirtualMedia"}),
	Shapes: append(slices.Clone(shapes),
		dialect.Shape{Of: "ComputerSystem", Drop: []string{"VirtualMedia"}},
		dialect.Shape{Of: "VirtualMedia", Drop: []string{"VerifyCertificate", "Certificates"}}),
	Readings: readings,
	Rules: append(slices.Clone(rules),
		dialect.Rule{Of: "VirtualMedia", Method: "PATCH", Sent: []string{"VerifyCertificate"}, Says: unknown}),
	Shut:   []string{system + "/VirtualMedia/{slot}/Certificates"},
	Errors: errorForm,
}

// secondFace has them under the system [V: mockup], and drives by their bays
// [V: mockup, of an NVMe backplane].
var secondFace = dialect.Face{
	Moves: append(slices.Clone(moves), dialect.Move{
		From: system + "/Storage/{storage}/Drives/Disk.{drive}", To: system + "/Storage/{storage}/Drives/Drive.Bay_{drive}",
	}),
	Shapes:   shapes,
	Rules:    rules,
	Readings: readings,
	Errors:   errorForm,
}
