package supermicro

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	config   = manager + "/VM1/CfgCD"
	licences = manager + "/LicenseManager"
	lockdown = manager + "/Oem/Supermicro/SysLockdown"
	kcs      = manager + "/Oem/Supermicro/KCSInterface"
	drive    = system + "/VirtualMedia/CD1"
)

// Names of stored values, and the value of a licence that is missing.
const (
	storedHost, storedPath, storedUser, storedPassword = "CfgCD/Host", "CfgCD/Path", "CfgCD/Username", "CfgCD/Password"

	storedLicence = "Licence"
	noLicence     = "none"
)

// licenses returns the resources and actions of licences [V: mockup]. A board has one
// from the factory. An entry is JSON in a string, as on a real BMC.
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
		// [K: the parameter]; any key installs the licence.
		{ResourceURI: licences, Name: "LicenseManager.ActivateLicense", Parameters: []dialect.Parameter{{Name: "LicenseKey", Required: true}}, Effects: []dialect.Effect{{Store: map[string]any{storedLicence: nil}}}},
		{ResourceURI: licences, Name: "LicenseManager.ClearLicense", Effects: []dialect.Effect{{Store: map[string]any{storedLicence: noLicence}}}},
	}
	return all, actions
}

// licenseRules reject requests that need a licence while none is installed [V: ironic,
// OemLicenseNotPassed; which functions need it: reference].
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

// acCycle returns the action with ResetType ACCycle [V: libredfish supermicro.rs], which
// no body shows [V: mockup]. It leaves the power feeds alone: a client sees the system
// and the BMC restart.
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

// x11OEM returns the OEM resources of X11: a client configures an image with a PATCH of
// Host, which begins with the protocol, and Path, and then mounts it [V: jgato, badfish;
// a Host without protocol is an SMB share, which the BMC does not fetch].
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
		// The URI of the collection in later firmware [V: ansible #4839].
		URIAliases: []dialect.URIMapping{{From: manager + "/VirtualMedia", To: system + "/VirtualMedia"}},
	}
}()

// x13OEM returns the OEM resources of X13 [V: mockup]. Lockdown has no effect: it
// rejects changes from the system itself, of which there are none.
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
