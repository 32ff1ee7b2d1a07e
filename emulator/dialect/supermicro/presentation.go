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

// targets are the boot targets that clients see. Virtual media are a USB CD drive. Cd
// is accepted too, and does not boot them [V: sushy, BootSource.USB_CD and
// supermicro-vmedia-dev-workaround; mockup for the list].
var targets = []any{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext"}

func vendorMessage(version, key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "Base", Version: version, Key: key, Text: text, Resolution: "Correct the request and send it again."}
}

// bootOverride returns the transform, the reject rule and the input alias of the boot
// override, for both generations.
func bootOverride(version string, targets []any) (s dialect.Transform, u dialect.RejectRule, g dialect.InputAlias) {
	texts := make([]string, len(targets))
	for i, t := range targets {
		texts[i] = t.(string)
	}
	s = dialect.Transform{
		ResourceType: "ComputerSystem",
		// AliasBootOrder and retries are missing [V: mockup].
		Remove: []string{
			"Boot/AliasBootOrder", "Boot/AliasBootOrder" + allowed, "Boot/AutomaticRetryConfig", "Boot/AutomaticRetryConfig" + allowed,
			"Boot/AutomaticRetryAttempts", "Boot/RemainingAutomaticRetryAttempts", "Boot/UefiTargetBootSourceOverride", "Boot/BootOrderPropertySelection",
		},
		Set: []dialect.PropertyRule{
			{Path: target, From: target, Map: map[string]any{"Cd": "UsbCd", "RemoteDrive": "Cd"}, Otherwise: dialect.LeaveUnchanged},
			{Path: target + allowed, Value: targets},
		},
	}
	u = dialect.RejectRule{
		ResourceType: "ComputerSystem", Method: "PATCH", NotOneOf: map[string][]string{target: texts},
		Message: vendorMessage(version, "PropertyValueNotInList", "The value %2 for the property %1 is not in the list of acceptable values."),
	}
	g = dialect.InputAlias{ResourceType: "ComputerSystem", Method: "PATCH", Path: target, Values: map[string]any{"UsbCd": "Cd", "Cd": "RemoteDrive"}}
	return s, u, g
}

// uriMappings are the URI mappings of both generations. Settings resources are named SD
// [V: mockup; K for X11].
var uriMappings = []dialect.URIMapping{
	{From: "/redfish/v1/UpdateService/MultipartUpload", To: "/redfish/v1/UpdateService/upload"}, // [V: mockup]
	{From: system + "/Bios/Settings", To: system + "/Bios/SD"},
	{From: system + "/Storage/{storage}/Drives/Disk.{drive}", To: system + "/Storage/{storage}/Drives/Disk.Bay.{drive}"}, // [V: mockup for the name]
	// [V: mockup, UpdateService]
	{From: "/redfish/v1/UpdateService/FirmwareInventory/TPM", To: "/redfish/v1/UpdateService/FirmwareInventory/TPM_1"},
}

var transforms = []dialect.Transform{
	// Bios/SD has no Attributes while none is pending [V: mockup], and Bios does not say
	// when settings are applied [V: mockup].
	{ResourceType: "Bios", URI: system + "/Bios/Settings", OmitEmpty: []string{"Attributes"}, Remove: []string{"@Redfish.SettingsApplyTime"}},
	{ResourceType: "Bios", Remove: []string{"@Redfish.Settings/SupportedApplyTimes"}},
	{ResourceType: "UpdateService", Remove: []string{"HttpPushUri"}}, // [V: mockup]
	{
		ResourceType: "Manager",
		Set: []dialect.PropertyRule{
			{Path: "Oem/Supermicro/@odata.type", Value: "#SmcManagerExtensions.v1_0_0.Manager"}, // [V: mockup]
			{Path: "Oem/Supermicro/LicenseManager/@odata.id", Value: licences},                  // [K for where the link is]
		},
	},
}

var x11Presentation = func() dialect.Presentation {
	const version = "1.4.0"
	s, u, g := bootOverride(version, targets)
	return dialect.Presentation{
		// X11 has two URIs: the collection is VM1 [V: jgato, badfish], and in later
		// firmware VirtualMedia [V: ansible #4839], an alias (oem.go).
		URIMappings: append(slices.Clone(uriMappings), dialect.URIMapping{From: system + "/VirtualMedia", To: manager + "/VM1"}),
		Transforms: append(slices.Clone(transforms), s,
			dialect.Transform{ResourceType: "ServiceRoot", Remove: []string{"Product", "Vendor"}, Set: []dialect.PropertyRule{{Path: "Oem", Value: map[string]any{}}}}, // [V: reference, of X10]
			dialect.Transform{ResourceType: "ComputerSystem", Remove: []string{"VirtualMedia"}},                                                                        // [K]
			dialect.Transform{
				ResourceType: "VirtualMediaCollection",
				Set:          []dialect.PropertyRule{{Path: "Oem/Supermicro/VirtualMediaConfig/@odata.id", Value: manager + "/VM1/CfgCD"}}, // [V: badfish]
			},
			dialect.Transform{ResourceType: "VirtualMedia", Remove: []string{"VerifyCertificate", "Certificates"}}, // [V: jgato]
		),
		RejectRules: append([]dialect.RejectRule{u}, licenseRules...),
		InputAliases: []dialect.InputAlias{
			g,
			// The mode becomes Legacy when a request does not send it [V: story 2008252].
			{ResourceType: "ComputerSystem", Method: "PATCH", Path: mode, Default: "Legacy", DefaultWith: []string{target, enabled}},
		},
		Hidden: []string{system + "/VirtualMedia/{slot}/Certificates", "/redfish/v1/TelemetryService"}, // [K]
		Errors: dialect.ErrorFormat{
			FullVersions: true, Code: "Base.1.4.0.GeneralError", // [V: jgato, of Base.1.0.0]
			// [V: jgato: {"Success":{"code":"Base.1.0.0.Success",…}}]
			Success: &dialect.VendorMessage{Registry: "Base", Version: version, Key: "Success", Text: "Successfully Completed Request.", Resolution: "None."}, SuccessProperty: "Success",
		},
	}
}()

var x13Presentation = func() dialect.Presentation {
	const version = "1.10.3"
	s, u, g := bootOverride(version, append(slices.Clone(targets), "UefiHttp"))
	return dialect.Presentation{
		URIMappings: append(slices.Clone(uriMappings), dialect.URIMapping{From: system + "/VirtualMedia", To: manager + "/VirtualMedia"}), // [V: mockup]
		Transforms: append(slices.Clone(transforms), s,
			dialect.Transform{ResourceType: "ServiceRoot", Remove: []string{"Product"}}, // [V: root]
			// Only the ActionInfo lists the reset types [V: mockup].
			dialect.Transform{ResourceType: "ComputerSystem", Remove: []string{"Actions/#ComputerSystem.Reset/ResetType" + allowed}, Set: []dialect.PropertyRule{
				{Path: "Oem/Supermicro/@odata.type", Value: "#SmcSystemExtensions.v1_0_0.System"}, // [V: mockup]
			}},
			dialect.Transform{ResourceType: "Manager", Set: []dialect.PropertyRule{ // [V: mockup]
				{Path: "Oem/Supermicro/SysLockdown/@odata.id", Value: lockdown}, {Path: "Oem/Supermicro/KCSInterface/@odata.id", Value: kcs},
			}},
			// [V: mockup]
			dialect.Transform{ResourceType: "VirtualMedia", Set: []dialect.PropertyRule{{Path: "Oem/Supermicro", Value: map[string]any{
				"@odata.type": "#VirtualMediaConfig.v1_0_0.VirtualMediaConfig", "AcceptSelfSigned": nil,
			}}}},
		),
		RejectRules:  append([]dialect.RejectRule{u}, licenseRules...),
		InputAliases: []dialect.InputAlias{g},
		Hidden:       []string{system + "/VirtualMedia/{slot}/Certificates"}, // a manager's virtual media have no Certificates in the standard
		Errors: dialect.ErrorFormat{
			Code:    "Base.1.10.GeneralError",                                                                                                                                             // [K]
			Success: &dialect.VendorMessage{Registry: "Base", Version: version, Key: "Success", Text: "Successfully Completed Request.", Resolution: "None."}, SuccessProperty: "Success", // [K]
		},
	}
}()

// oemTypes are the types of Supermicro's objects in standard resources [V: mockup].
var oemTypes = []dialect.OEMType{
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
