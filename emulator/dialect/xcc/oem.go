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

// licence returns an installed licence, as a resource of the standard's schema.
func licence(id, name string) dialect.Resource {
	return dialect.Resource{
		URI: licences + "/Licenses/" + id, Type: "License.v1_0_0.License", Name: name,
		Set: []dialect.PropertyRule{
			{Path: "LicenseType", Value: "Production"}, {Path: "LicenseOrigin", Value: "BuiltIn"}, {Path: "AuthorizationScope", Value: "Device"},
			{Path: "Removable", Value: false}, {Path: "Status", Value: map[string]any{"State": "Enabled", "Health": "OK"}},
		},
	}
}

// extensions returns the OEM resources and actions of both generations.
var extensions = dialect.OEM{
	Resources: []dialect.Resource{
		// The boot order of the next start [V: mockup]. A PATCH takes effect at once,
		// which no client can tell from the next start.
		{
			URI: pending, Type: "ComputerSystem.v1_17_0.ComputerSystem", Name: "Pending", Privilege: "ConfigureComponents",
			Set:      []dialect.PropertyRule{{Path: "Boot/BootOrder", From: system + "#Boot/BootOrder"}},
			Writable: []string{"Boot/BootOrder"},
		},
		// Licences of the tier that has remote media [V: mockup, LicenseService].
		{
			URI: licences, Type: "LicenseService.v1_0_0.LicenseService", Name: "License Service",
			Set: []dialect.PropertyRule{
				{Path: "ServiceEnabled", Value: true}, {Path: "LicenseExpirationWarningDays", Value: 0},
				{Path: "Licenses/@odata.id", Value: licences + "/Licenses"},
				{Path: "Oem/Lenovo", Value: map[string]any{"@odata.type": "#LenovoLicenseService.v1_0_0.LenovoLicenseService", "Tier": "Tier3"}},
			},
		},
		{
			URI: licences + "/Licenses", Type: "LicenseCollection.LicenseCollection", Name: "License Collection",
			Set: []dialect.PropertyRule{{Path: "Members", Value: []any{
				map[string]any{"@odata.id": licences + "/Licenses/XCC_Advanced"}, map[string]any{"@odata.id": licences + "/Licenses/XCC_Enterprised"},
			}}},
		},
		licence("XCC_Advanced", "Lenovo XClarity Controller Advanced Upgrade"),
		licence("XCC_Enterprised", "Lenovo XClarity Controller Enterprise Upgrade"),
		// Images that are uploaded to the XCC (RDOC), and mounted by an OEM action [V: mockup; scripts, lenovo_mount_virtual_media.py].
		{
			URI: control, Type: "LenovoRemoteControlService.v1_0_0.LenovoRemoteControlService", Name: "Remote Control Service",
			Set: []dialect.PropertyRule{{Path: "ServiceEnabled", Value: true}},
		},
		{
			URI: mounting, Type: "LenovoRemoteMapService.v1_0_0.LenovoRemoteMapService", Name: "RemoteMapService",
			Set: []dialect.PropertyRule{{Path: "ServiceEnabled", Value: true}},
		},
	},
	Actions: []dialect.Action{
		{
			// [V: mockup; libredfish] It leaves the power feeds alone: a client sees the
			// system and the XCC restart.
			ResourceURI: system, Name: "LenovoComputerSystem.SystemReset", Privilege: "ConfigureComponents",
			Parameters: []dialect.Parameter{{Name: "ResetType", Required: true, AllowableValues: []string{"ACPowerCycle"}}},
			Effects: []dialect.Effect{
				{While: dialect.SystemOff, Requests: []dialect.StandardRequest{restart}},
				{Requests: []dialect.StandardRequest{
					{Method: "POST", URI: system + "/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": "ForceRestart"}}, restart,
				}},
			},
		},
		{
			// [V: mockup for the name; K for what it does]
			ResourceURI: system, Name: "LenovoComputerSystem.RemoteClearCMOS", Privilege: "ConfigureComponents",
			Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{{Method: "POST", URI: system + "/Bios/Actions/Bios.ResetBios"}}}},
		},
		{
			// [V: mockup for the name; K for what it does]
			ResourceURI: system, Name: "LenovoComputerSystem.BootToBIOSSetup", Privilege: "ConfigureComponents",
			Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{{
				Method: "PATCH", URI: system, Body: map[string]any{"Boot": map[string]any{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "BiosSetup"}},
			}}}},
		},
		{
			ResourceURI: control, Name: "LenovoRemoteControlService.UploadFromURL",
			Parameters: []dialect.Parameter{
				{Name: "sourceURL", Required: true}, {Name: "Type", AllowableValues: []string{"Samba", "NFS", "HTTP", "HTTPS", "SFTP", "FTP"}},
				{Name: "Username"}, {Name: "Password", Secret: true}, {Name: "Readonly", Type: dialect.IntegerParameter}, {Name: "Domain"}, {Name: "Options"},
			},
			Effects: []dialect.Effect{{Store: map[string]any{"Document": "$sourceURL"}}},
		},
		{
			ResourceURI: mounting, Name: "LenovoRemoteMapService.Mount",
			Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{{Method: "PATCH", URI: document, Body: map[string]any{"Image": "=Document", "Inserted": true}}}}},
		},
		{
			ResourceURI: mounting, Name: "LenovoRemoteMapService.UMount",
			Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{{Method: "PATCH", URI: document, Body: map[string]any{"Image": nil}}}}},
		},
	},
	// The push URIs, which are outside of Redfish [V: mockup, UpdateService].
	URIAliases: []dialect.URIMapping{
		{From: "/fwupdate", To: "/redfish/v1/UpdateService/Upload"}, {From: "/mfwupdate", To: "/redfish/v1/UpdateService/MultipartUpload"},
	},
	WritableProperties: []dialect.WritableProperty{{
		ResourceType: "ComputerSystem", URI: pending, Path: "Boot/BootOrder", Type: dialect.ArrayParameter,
		Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{{Method: "PATCH", URI: system, Body: map[string]any{"Boot": map[string]any{"BootOrder": "$"}}}}}},
	}},
}

// restart is the request that restarts the controller.
var restart = dialect.StandardRequest{Method: "POST", URI: manager + "/Actions/Manager.Reset", Body: map[string]any{"ResetType": "GracefulRestart"}}

// withManagerMedia adds the manager's collection of virtual media to the system's
// [V: mockup].
func withManagerMedia(o dialect.OEM) dialect.OEM {
	o.URIAliases = append(slices.Clone(o.URIAliases), dialect.URIMapping{From: manager + "/VirtualMedia", To: system + "/VirtualMedia"})
	return o
}
