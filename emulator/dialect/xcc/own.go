package xcc

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

const (
	control  = manager + "/Oem/Lenovo/RemoteControl"
	mounting = manager + "/Oem/Lenovo/RemoteMap"
	licences = "/redfish/v1/LicenseService"
	pending  = system + "/Pending"
	document = system + "/VirtualMedia/RDOC1"
)

// licence is one that is installed; of what it is the standard has words.
func licence(id, name string) dialect.Resource {
	return dialect.Resource{
		At: licences + "/Licenses/" + id, Type: "License.v1_0_0.License", Name: name,
		Set: []dialect.Datum{
			{Path: "LicenseType", Value: "Production"}, {Path: "LicenseOrigin", Value: "BuiltIn"}, {Path: "AuthorizationScope", Value: "Device"},
			{Path: "Removable", Value: false}, {Path: "Status", Value: map[string]any{"State": "Enabled", "Health": "OK"}},
		},
	}
}

// own is what only an XCC has.
var own = dialect.Own{
	Resources: []dialect.Resource{
		// The boot order of the next start [V: mockup]. Here it is the order at once:
		// nothing reads it before the next start.
		{
			At: pending, Type: "ComputerSystem.v1_17_0.ComputerSystem", Name: "Pending", Needs: "ConfigureComponents",
			Set:     []dialect.Datum{{Path: "Boot/BootOrder", From: system + "#Boot/BootOrder"}},
			Changes: []string{"Boot/BootOrder"},
		},
		// Licences of the tier that has remote media [V: mockup, LicenseService].
		{
			At: licences, Type: "LicenseService.v1_0_0.LicenseService", Name: "License Service",
			Set: []dialect.Datum{
				{Path: "ServiceEnabled", Value: true}, {Path: "LicenseExpirationWarningDays", Value: 0},
				{Path: "Licenses/@odata.id", Value: licences + "/Licenses"},
				{Path: "Oem/Lenovo", Value: map[string]any{"@odata.type": "#LenovoLicenseService.v1_0_0.LenovoLicenseService", "Tier": "Tier3"}},
			},
		},
		{
			At: licences + "/Licenses", Type: "LicenseCollection.LicenseCollection", Name: "License Collection",
			Set: []dialect.Datum{{Path: "Members", Value: []any{
				map[string]any{"@odata.id": licences + "/Licenses/XCC_Advanced"}, map[string]any{"@odata.id": licences + "/Licenses/XCC_Enterprised"},
			}}},
		},
		licence("XCC_Advanced", "Lenovo XClarity Controller Advanced Upgrade"),
		licence("XCC_Enterprised", "Lenovo XClarity Controller Enterprise Upgrade"),
		// Images that are brought to the controller (RDOC), and mounted by an action
		// of their own [V: mockup; scripts, lenovo_mount_virtual_media.py].
		{
			At: control, Type: "LenovoRemoteControlService.v1_0_0.LenovoRemoteControlService", Name: "Remote Control Service",
			Set: []dialect.Datum{{Path: "ServiceEnabled", Value: true}},
		},
		{
			At: mounting, Type: "LenovoRemoteMapService.v1_0_0.LenovoRemoteMapService", Name: "RemoteMapService",
			Set: []dialect.Datum{{Path: "ServiceEnabled", Value: true}},
		},
	},
	Actions: []dialect.Action{
		{
			// [V: mockup; libredfish] The mains are the lab's: what a client sees of
			// it is that the system starts anew, and that the controller does.
			On: system, Name: "LenovoComputerSystem.SystemReset", Needs: "ConfigureComponents",
			Inputs: []dialect.Input{{Name: "ResetType", Required: true, Values: []string{"ACPowerCycle"}}},
			Does: []dialect.Effect{
				{While: dialect.SystemOff, Steps: []dialect.Step{restart}},
				{Steps: []dialect.Step{
					{Method: "POST", At: system + "/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": "ForceRestart"}}, restart,
				}},
			},
		},
		{
			// [V: mockup for the name; K for what it does]
			On: system, Name: "LenovoComputerSystem.RemoteClearCMOS", Needs: "ConfigureComponents",
			Does: []dialect.Effect{{Steps: []dialect.Step{{Method: "POST", At: system + "/Bios/Actions/Bios.ResetBios"}}}},
		},
		{
			// [V: mockup for the name; K for what it does]
			On: system, Name: "LenovoComputerSystem.BootToBIOSSetup", Needs: "ConfigureComponents",
			Does: []dialect.Effect{{Steps: []dialect.Step{{
				Method: "PATCH", At: system, Body: map[string]any{"Boot": map[string]any{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "BiosSetup"}},
			}}}},
		},
		{
			On: control, Name: "LenovoRemoteControlService.UploadFromURL",
			Inputs: []dialect.Input{
				{Name: "sourceURL", Required: true}, {Name: "Type", Values: []string{"Samba", "NFS", "HTTP", "HTTPS", "SFTP", "FTP"}},
				{Name: "Username"}, {Name: "Password", Secret: true}, {Name: "Readonly", Type: dialect.WholeInput}, {Name: "Domain"}, {Name: "Options"},
			},
			Does: []dialect.Effect{{Keep: map[string]any{"Document": "$sourceURL"}}},
		},
		{
			On: mounting, Name: "LenovoRemoteMapService.Mount",
			Does: []dialect.Effect{{Steps: []dialect.Step{{Method: "PATCH", At: document, Body: map[string]any{"Image": "=Document", "Inserted": true}}}}},
		},
		{
			On: mounting, Name: "LenovoRemoteMapService.UMount",
			Does: []dialect.Effect{{Steps: []dialect.Step{{Method: "PATCH", At: document, Body: map[string]any{"Image": nil}}}}},
		},
	},
	// Images are pushed there, outside of Redfish [V: mockup, UpdateService].
	Also: []dialect.Move{
		{From: "/fwupdate", To: "/redfish/v1/UpdateService/Upload"}, {From: "/mfwupdate", To: "/redfish/v1/UpdateService/MultipartUpload"},
	},
	Writes: []dialect.Write{{
		Of: "ComputerSystem", At: pending, Path: "Boot/BootOrder", Type: dialect.ListInput,
		Does: []dialect.Effect{{Steps: []dialect.Step{{Method: "PATCH", At: system, Body: map[string]any{"Boot": map[string]any{"BootOrder": "$"}}}}}},
	}},
}

// restart is that of the controller.
var restart = dialect.Step{Method: "POST", At: manager + "/Actions/Manager.Reset", Body: map[string]any{"ResetType": "GracefulRestart"}}

// both also has the manager's collection of virtual media, beside the system's
// [V: mockup].
func both(o dialect.Own) dialect.Own {
	o.Also = append(slices.Clone(o.Also), dialect.Move{From: manager + "/VirtualMedia", To: system + "/VirtualMedia"})
	return o
}
