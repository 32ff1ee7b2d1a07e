package supermicro

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

const (
	system  = "/redfish/v1/Systems/{system}"
	manager = "/redfish/v1/Managers/{manager}"

	target  = "Boot/BootSourceOverrideTarget"
	enabled = "Boot/BootSourceOverrideEnabled"
	mode    = "Boot/BootSourceOverrideMode"
	allowed = "@Redfish.AllowableValues"
)

// targets are those that clients see. Virtual media are a CD that hangs on USB:
// Cd is taken as well, and boots none of them [V: sushy, BootSource.USB_CD and
// supermicro-vmedia-dev-workaround; mockup for the list].
var targets = []any{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext"}

func say(version, key, text string) dialect.Saying {
	return dialect.Saying{Registry: "Base", Version: version, Key: key, Text: text, Resolution: "Correct the request and send it again."}
}

// booting is what is of both generations: what clients see, what they may say,
// and how it is read.
func booting(version string, targets []any) (s dialect.Shape, u dialect.Rule, g dialect.Reading) {
	texts := make([]string, len(targets))
	for i, t := range targets {
		texts[i] = t.(string)
	}
	s = dialect.Shape{
		Of: "ComputerSystem",
		// AliasBootOrder and retries are not there [V: mockup].
		Drop: []string{
			"Boot/AliasBootOrder", "Boot/AliasBootOrder" + allowed, "Boot/AutomaticRetryConfig", "Boot/AutomaticRetryConfig" + allowed,
			"Boot/AutomaticRetryAttempts", "Boot/RemainingAutomaticRetryAttempts", "Boot/UefiTargetBootSourceOverride", "Boot/BootOrderPropertySelection",
		},
		Set: []dialect.Datum{
			{Path: target, From: target, Map: map[string]any{"Cd": "UsbCd", "RemoteDrive": "Cd"}, Else: dialect.AsItIs},
			{Path: target + allowed, Value: targets},
		},
	}
	u = dialect.Rule{
		Of: "ComputerSystem", Method: "PATCH", Beyond: map[string][]string{target: texts},
		Says: say(version, "PropertyValueNotInList", "The value %2 for the property %1 is not in the list of acceptable values."),
	}
	g = dialect.Reading{Of: "ComputerSystem", Method: "PATCH", Path: target, Words: map[string]any{"UsbCd": "Cd", "Cd": "RemoteDrive"}}
	return s, u, g
}

// moves are where both have what others have elsewhere. Settings are at SD [V:
// mockup; K for X11].
var moves = []dialect.Move{
	{From: "/redfish/v1/UpdateService/MultipartUpload", To: "/redfish/v1/UpdateService/upload"}, // [V: mockup]
	{From: system + "/Bios/Settings", To: system + "/Bios/SD"},
	{From: system + "/Storage/{storage}/Drives/Disk.{drive}", To: system + "/Storage/{storage}/Drives/Disk.Bay.{drive}"}, // [V: mockup for the name]
	// [V: mockup, UpdateService]
	{From: "/redfish/v1/UpdateService/FirmwareInventory/TPM", To: "/redfish/v1/UpdateService/FirmwareInventory/TPM_1"},
}

var shapes = []dialect.Shape{
	// Without Attributes as long as none is pending [V: mockup, Bios/SD], and
	// nothing says when they are applied [V: mockup, Bios].
	{Of: "Bios", At: system + "/Bios/Settings", Bare: []string{"Attributes"}, Drop: []string{"@Redfish.SettingsApplyTime"}},
	{Of: "Bios", Drop: []string{"@Redfish.Settings/SupportedApplyTimes"}},
	{Of: "UpdateService", Drop: []string{"HttpPushUri"}}, // [V: mockup]
	{
		Of: "Manager",
		Set: []dialect.Datum{
			{Path: "Oem/Supermicro/@odata.type", Value: "#SmcManagerExtensions.v1_0_0.Manager"}, // [V: mockup]
			{Path: "Oem/Supermicro/LicenseManager/@odata.id", Value: licences},                  // [K for where the link is]
		},
	},
}

var x11Face = func() dialect.Face {
	const version = "1.4.0"
	s, u, g := booting(version, targets)
	return dialect.Face{
		// Both addresses are of X11: the collection is VM1 [V: jgato, badfish], and
		// later VirtualMedia [V: ansible #4839], which is answered too (own.go).
		Moves: append(slices.Clone(moves), dialect.Move{From: system + "/VirtualMedia", To: manager + "/VM1"}),
		Shapes: append(slices.Clone(shapes), s,
			dialect.Shape{Of: "ServiceRoot", Drop: []string{"Product", "Vendor"}, Set: []dialect.Datum{{Path: "Oem", Value: map[string]any{}}}}, // [V: reference, of X10]
			dialect.Shape{Of: "ComputerSystem", Drop: []string{"VirtualMedia"}},                                                                 // [K]
			dialect.Shape{
				Of:  "VirtualMediaCollection",
				Set: []dialect.Datum{{Path: "Oem/Supermicro/VirtualMediaConfig/@odata.id", Value: manager + "/VM1/CfgCD"}}, // [V: badfish]
			},
			dialect.Shape{Of: "VirtualMedia", Drop: []string{"VerifyCertificate", "Certificates"}}, // [V: jgato]
		),
		Rules: append([]dialect.Rule{u}, unlicensed...),
		Readings: []dialect.Reading{
			g,
			// The mode flips to Legacy when nobody says it [V: story 2008252].
			{Of: "ComputerSystem", Method: "PATCH", Path: mode, Else: "Legacy", With: []string{target, enabled}},
		},
		Shut: []string{system + "/VirtualMedia/{slot}/Certificates", "/redfish/v1/TelemetryService"}, // [K]
		Errors: dialect.Errors{
			Errata: true, Code: "Base.1.4.0.GeneralError", // [V: jgato, of Base.1.0.0]
			// [V: jgato: {"Success":{"code":"Base.1.0.0.Success",…}}]
			Done: &dialect.Saying{Registry: "Base", Version: version, Key: "Success", Text: "Successfully Completed Request.", Resolution: "None."}, Under: "Success",
		},
	}
}()

var x13Face = func() dialect.Face {
	const version = "1.10.3"
	s, u, g := booting(version, append(slices.Clone(targets), "UefiHttp"))
	return dialect.Face{
		Moves: append(slices.Clone(moves), dialect.Move{From: system + "/VirtualMedia", To: manager + "/VirtualMedia"}), // [V: mockup]
		Shapes: append(slices.Clone(shapes), s,
			dialect.Shape{Of: "ServiceRoot", Drop: []string{"Product"}}, // [V: root]
			// What resets there are only ActionInfo says [V: mockup].
			dialect.Shape{Of: "ComputerSystem", Drop: []string{"Actions/#ComputerSystem.Reset/ResetType" + allowed}, Set: []dialect.Datum{
				{Path: "Oem/Supermicro/@odata.type", Value: "#SmcSystemExtensions.v1_0_0.System"}, // [V: mockup]
			}},
			dialect.Shape{Of: "Manager", Set: []dialect.Datum{ // [V: mockup]
				{Path: "Oem/Supermicro/SysLockdown/@odata.id", Value: lockdown}, {Path: "Oem/Supermicro/KCSInterface/@odata.id", Value: kcs},
			}},
			// [V: mockup]
			dialect.Shape{Of: "VirtualMedia", Set: []dialect.Datum{{Path: "Oem/Supermicro", Value: map[string]any{
				"@odata.type": "#VirtualMediaConfig.v1_0_0.VirtualMediaConfig", "AcceptSelfSigned": nil,
			}}}},
		),
		Rules:    append([]dialect.Rule{u}, unlicensed...),
		Readings: []dialect.Reading{g},
		Shut:     []string{system + "/VirtualMedia/{slot}/Certificates"}, // the standard has none at a manager's
		Errors: dialect.Errors{
			Code: "Base.1.10.GeneralError",                                                                                                                            // [K]
			Done: &dialect.Saying{Registry: "Base", Version: version, Key: "Success", Text: "Successfully Completed Request.", Resolution: "None."}, Under: "Success", // [K]
		},
	}
}()

// types are those of Supermicro's objects in resources of the standard [V: mockup].
var types = []dialect.OEMType{
	{Namespace: "SmcSystemExtensions", Version: "v1_0_0", Name: "System"},
	{Namespace: "SmcManagerExtensions", Version: "v1_0_0", Name: "Manager", Properties: []dialect.OEMProperty{
		{Name: "LicenseManager", Type: dialect.EdmLink, Description: "The licences of the controller."},
		{Name: "SysLockdown", Type: dialect.EdmLink, Description: "Whether the configuration is locked."},
		{Name: "KCSInterface", Type: dialect.EdmLink, Description: "Who the system is to the controller by IPMI."},
	}},
	{
		Namespace: "VirtualMediaConfig", Version: "v1_0_0", Name: "VirtualMediaConfig",
		Properties: []dialect.OEMProperty{{Name: "AcceptSelfSigned", Type: dialect.EdmBoolean, Description: "Whether a server of images may have signed for itself."}},
	},
}
