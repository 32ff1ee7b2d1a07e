package supermicro

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	config   = manager + "/VM1/CfgCD"
	licences = manager + "/LicenseManager"
	lockdown = manager + "/Oem/Supermicro/SysLockdown"
	kcs      = manager + "/Oem/Supermicro/KCSInterface"
	drive    = system + "/VirtualMedia/CD1"
)

// Names of what is kept, and what of the licence.
const (
	storedHost, storedPath, storedUser, storedPassword = "CfgCD/Host", "CfgCD/Path", "CfgCD/Username", "CfgCD/Password"

	storedLicence = "Licence"
	noLicence     = "none"
)

// licenses returns the resources and actions of licences [V: mockup]. A board comes
// with one. The text of an entry is JSON, as the vendor's is.
func licenses(name string) (all []dialect.Resource, actions []dialect.Action) {
	all = []dialect.Resource{
		{
			URI: licences, Type: "LicenseManager.v1_0_0.LicenseManager", Name: "License Manager",
			Set: []dialect.PropertyRule{{Path: "QueryLicense/@odata.id", Value: licences + "/QueryLicense"}},
		},
		{
			URI: licences + "/QueryLicense", Type: "QueryLicense.v1_0_0.QueryLicense", Name: "LicenseManager",
			Set: []dialect.PropertyRule{
				{Path: "Licenses", Value: []any{`{"ProductKey":{"Node":{"LicenseID":"2","LicenseName":"` + name + `"}}}`}},
				{Path: "Licenses", From: "=" + storedLicence, Map: map[string]any{noLicence: []any{}}, Otherwise: dialect.LeaveUnchanged},
			},
		},
	}
	actions = []dialect.Action{
		// What it takes is a lead [K]; with a key of any form the licence is there.
		{ResourceURI: licences, Name: "LicenseManager.ActivateLicense", Parameters: []dialect.Parameter{{Name: "LicenseKey", Required: true}}, Effects: []dialect.Effect{{Store: map[string]any{storedLicence: nil}}}},
		{ResourceURI: licences, Name: "LicenseManager.ClearLicense", Effects: []dialect.Effect{{Store: map[string]any{storedLicence: noLicence}}}},
	}
	return all, actions
}

// licenseRules reject what needs a licence on a board that has lost its licence [V:
// ironic, OemLicenseNotPassed; which functions need it: reference].
var licenseRules = func() (all []dialect.RejectRule) {
	for _, of := range []string{"VirtualMedia", "SecureBoot", "Bios"} {
		all = append(all, dialect.RejectRule{
			ResourceType: of, Stored: map[string][]string{storedLicence: {noLicence}}, Status: 403,
			Message: dialect.VendorMessage{
				Registry: "SMC", Version: "1.0.0", Key: "OemLicenseNotPassed", Text: "The request needs a licence that is not activated.",
				Resolution: "Activate the licence SFT-DCMS-SINGLE or SFT-OOB-LIC.",
			},
		})
	}
	return all
}()

// acCycle is the AC cycle of a board, by ResetType ACCycle [V: libredfish
// supermicro.rs]; no body shows it [V: mockup]. The power feeds are the lab's: a
// client sees the system and the BMC restart.
func acCycle(reset string) dialect.Action {
	restart := dialect.StandardRequest{Method: "POST", URI: manager + "/Actions/Manager.Reset", Body: map[string]any{"ResetType": "GracefulRestart"}}
	return dialect.Action{
		ResourceURI: system, Name: "OemSystemExtensions.Reset", Hidden: true, Privilege: "ConfigureComponents",
		Parameters: []dialect.Parameter{{Name: "ResetType", Required: true, AllowableValues: []string{"ACCycle"}}},
		Effects: []dialect.Effect{
			{While: dialect.SystemOff, Requests: []dialect.StandardRequest{restart}},
			{Requests: []dialect.StandardRequest{{Method: "POST", URI: system + "/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": reset}}, restart}},
		},
	}
}

// storedProperty stores a property of the configuration of a virtual drive.
func storedProperty(path, name string) dialect.WritableProperty {
	return dialect.WritableProperty{ResourceType: "IsoConfig", Path: path, Effects: []dialect.Effect{{Store: map[string]any{name: "$"}}}}
}

// x11OEM is what only an X11 has: an image is configured by PATCH of Host, with the
// protocol, and Path, and then mounted [V: jgato, badfish; a Host without protocol
// is an SMB share, which the lab does not fetch].
var x11OEM = func() dialect.OEM {
	all, actions := licenses("SFT-OOB-LIC") // [K]
	return dialect.OEM{
		Resources: append(all, dialect.Resource{
			URI: config, Type: "IsoConfig.IsoConfig", Name: "VM1", // [V: jgato]
			Set: []dialect.PropertyRule{
				{Path: "Host", Value: ""}, {Path: "Host", From: "=" + storedHost},
				{Path: "Path", Value: ""}, {Path: "Path", From: "=" + storedPath},
				{Path: "Username", Value: ""}, {Path: "Username", From: "=" + storedUser},
				{Path: "Password", Value: "********"}, // [V: jgato]
			},
			Writable: []string{"Host", "Path", "Username", "Password"},
		}),
		Actions: append(actions, acCycle("ForceRestart"),
			dialect.Action{ResourceURI: config, Name: "IsoConfig.Mount", Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{{
				Method: "POST", URI: drive + "/Actions/VirtualMedia.InsertMedia",
				Body: map[string]any{"Image": "{=" + storedHost + "}{=" + storedPath + "}", "UserName": "=" + storedUser, "Password": "=" + storedPassword},
			}}}}},
			dialect.Action{ResourceURI: config, Name: "IsoConfig.UnMount", Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{{
				Method: "POST", URI: drive + "/Actions/VirtualMedia.EjectMedia",
			}}}}},
		),
		WritableProperties: []dialect.WritableProperty{storedProperty("Host", storedHost), storedProperty("Path", storedPath), storedProperty("Username", storedUser), storedProperty("Password", storedPassword)},
		// Later firmware has the collection here, too [V: ansible #4839].
		URIAliases: []dialect.URIMapping{{From: manager + "/VirtualMedia", To: system + "/VirtualMedia"}},
	}
}()

// x13OEM is what only an X13 has [V: mockup]. Its lockdown covers what the system
// itself could change, which is nothing in the lab.
var x13OEM = func() dialect.OEM {
	all, actions := licenses("SFT-DCMS-SINGLE") // [V: mockup]
	return dialect.OEM{
		Resources: append(all,
			dialect.Resource{URI: lockdown, Type: "SysLockdown.v1_0_0.SysLockdown", Name: "SysLockdown",
				Set: []dialect.PropertyRule{{Path: "SysLockdownEnabled", Value: false}}, Writable: []string{"SysLockdownEnabled"}},
			dialect.Resource{URI: kcs, Type: "KCSInterface.v1_1_0.KCSInterface", Name: "KCS Interface",
				Set: []dialect.PropertyRule{
					{Path: "Privilege", Value: "Administrator"},
					{Path: "Privilege@Redfish.AllowableValues", Value: []any{"Administrator", "Operator", "User", "Callback"}},
				}, Writable: []string{"Privilege"}},
		),
		Actions: append(actions, acCycle("PowerCycle")),
	}
}()
