package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

const resets = system + "/Actions/ComputerSystem.Reset"

func post(at string, body dict) dialect.StandardRequest {
	return dialect.StandardRequest{Method: "POST", URI: at, Body: body}
}

func patch(at string, body dict) dialect.StandardRequest {
	return dialect.StandardRequest{Method: "PATCH", URI: at, Body: body}
}

func when(path string, values ...string) map[string][]string {
	return map[string][]string{path: values}
}

// extensions returns the OEM resources, actions and properties of all generations.
func extensions(g generation) dialect.OEM {
	ext, disc := g.oem+"ComputerSystemExt.", g.oem+"iLOVirtualMedia."
	slot := manager + "/VirtualMedia/{slot}"
	inTree := system + "/VirtualMedia/{slot}/Actions/VirtualMedia."
	on, off := dialect.SystemOn, dialect.SystemOff
	noStore := g.message("UnsupportedOperation", "There is no repository of components here.")
	state := g.message("InvalidOperationForSystemState", "The power of the system is not as the operation needs it.")
	act := func(on, name string, does ...dialect.Effect) dialect.Action {
		return dialect.Action{ResourceURI: on, Name: name, Target: "/Actions/Oem/" + g.oem + "/" + name, Hidden: true, Effects: does}
	}
	// [V table; docs, concepts/performing_actions and ComputerSystem, Actions]
	button := act(system, ext+"PowerButton",
		dialect.Effect{When: when("PushType", "Press"), Requests: []dialect.StandardRequest{post(resets, dict{"ResetType": "PushPowerButton"})}},
		dialect.Effect{When: when("PushType", "PressAndHold"), While: on, Requests: []dialect.StandardRequest{post(resets, dict{"ResetType": "ForceOff"})}},
		dialect.Effect{When: when("PushType", "PressAndHold"), Reject: &state},
	)
	button.Parameters = []dialect.Parameter{{Name: "PushType", Required: true, AllowableValues: []string{"Press", "PressAndHold"}}}
	// AuxCycle interrupts the auxiliary power, so that iLO restarts as well.
	cycle := act(system, ext+"SystemReset",
		dialect.Effect{When: when("ResetType", "ColdBoot"), While: off, Reject: &state},
		dialect.Effect{When: when("ResetType", "ColdBoot"), Requests: []dialect.StandardRequest{post(resets, dict{"ResetType": "PowerCycle"})}},
		dialect.Effect{When: when("ResetType", "AuxCycle"), While: off, Requests: []dialect.StandardRequest{post(manager+"/Actions/Manager.Reset", dict{"ResetType": "ForceRestart"})}},
		dialect.Effect{When: when("ResetType", "AuxCycle"), Requests: []dialect.StandardRequest{
			post(resets, dict{"ResetType": "PowerCycle"}), post(manager+"/Actions/Manager.Reset", dict{"ResetType": "ForceRestart"}),
		}},
	)
	cycle.Parameters = []dialect.Parameter{{Name: "ResetType", Required: true, AllowableValues: []string{"ColdBoot", "AuxCycle"}}}
	in, out := post(inTree+"InsertMedia", dict{"Image": "$Image"}), post(inTree+"EjectMedia", dict{})
	if g.n < 5 { // iLO 4 inserts media by PATCH
		at := system + "/VirtualMedia/{slot}"
		in, out = patch(at, dict{"Image": "$Image"}), patch(at, dict{"Image": nil})
	}
	insert := act(slot, disc+"InsertVirtualMedia", dialect.Effect{Requests: []dialect.StandardRequest{in}})
	insert.Parameters = []dialect.Parameter{{Name: "Image", Required: true}}
	eject := act(slot, disc+"EjectVirtualMedia", dialect.Effect{Requests: []dialect.StandardRequest{out}})

	// An uploaded image is installed, and not stored in a repository [V docs,
	// updateService: UpdateTarget and UpdateRepository].
	add := act("/redfish/v1/UpdateService", g.oem+"iLOUpdateServiceExt.AddFromUri",
		dialect.Effect{When: when("UpdateTarget", "true"), Requests: []dialect.StandardRequest{
			post("/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", dict{"ImageURI": "$ImageURI"}),
		}},
		dialect.Effect{Reject: &noStore},
	)
	add.Privilege = "ConfigureComponents"
	add.Parameters = []dialect.Parameter{
		{Name: "ImageURI", Required: true}, {Name: "UpdateTarget", Type: dialect.BooleanParameter}, {Name: "UpdateRepository", Type: dialect.BooleanParameter},
		{Name: "UpdateRecoverySet", Type: dialect.BooleanParameter}, {Name: "ETag"}, {Name: "Section", Type: dialect.IntegerParameter},
	}

	actions := []dialect.Action{button, cycle, insert, eject}
	if g.n > 4 { // iLO 4 updates through flashService
		actions = append(actions, add)
	}

	once := g.oemPath("BootOnNextServerReset")
	return dialect.OEM{
		Actions: actions,
		WritableProperties: []dialect.WritableProperty{
			// The system boots from the image once, and the image is ejected at the second
			// reset [V table; docs, VirtualMedia].
			{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/2", Path: once, Type: dialect.BooleanParameter, Effects: []dialect.Effect{
				{When: when("$", "true"), EjectAfterBoots: 2, Requests: []dialect.StandardRequest{patch(system, dict{"Boot": dict{"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}})}},
				{EjectAfterBoots: -1, Requests: []dialect.StandardRequest{patch(system, dict{"Boot": dict{"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"}})}},
			}},
			{ResourceType: "ComputerSystem", Path: g.oemPath("PowerAutoOn"), Effects: []dialect.Effect{
				{When: when("$", "PowerOn"), Requests: []dialect.StandardRequest{patch(system, dict{"PowerRestorePolicy": "AlwaysOn"})}},
				{When: when("$", "RemainOff"), Requests: []dialect.StandardRequest{patch(system, dict{"PowerRestorePolicy": "AlwaysOff"})}},
				{When: when("$", "Restore"), Requests: []dialect.StandardRequest{patch(system, dict{"PowerRestorePolicy": "LastState"})}},
			}},
			{ResourceType: "AccountService", Path: g.oemPath("AuthFailureDelayTimeSeconds"), Type: dialect.IntegerParameter, Effects: []dialect.Effect{
				{When: when("$", "2", "5", "10", "30"), // [V docs, AccountService]
					Requests: []dialect.StandardRequest{patch("/redfish/v1/AccountService", dict{"AccountLockoutCounterResetAfter": 0}), patch("/redfish/v1/AccountService", dict{"AccountLockoutDuration": "$"})}},
			}},
			{ResourceType: "AccountService", Path: g.oemPath("AuthFailuresBeforeDelay"), Type: dialect.IntegerParameter, Effects: []dialect.Effect{ // [V docs: 0, 1, 3, 5]
				{When: when("$", "0"), Requests: []dialect.StandardRequest{patch("/redfish/v1/AccountService", dict{"AccountLockoutThreshold": 0})}},
				{When: when("$", "1"), Requests: []dialect.StandardRequest{patch("/redfish/v1/AccountService", dict{"AccountLockoutThreshold": 2})}},
				{When: when("$", "3"), Requests: []dialect.StandardRequest{patch("/redfish/v1/AccountService", dict{"AccountLockoutThreshold": 4})}},
				{When: when("$", "5"), Requests: []dialect.StandardRequest{patch("/redfish/v1/AccountService", dict{"AccountLockoutThreshold": 6})}},
			}},
			{ResourceType: "AccountService", Path: g.oemPath("MinPasswordLength"), Type: dialect.IntegerParameter, Effects: []dialect.Effect{
				{Requests: []dialect.StandardRequest{patch("/redfish/v1/AccountService", dict{"MinPasswordLength": "$"})}},
			}},
			{ResourceType: "ManagerAccount", Path: g.oemPath("Privileges"), Type: dialect.ObjectParameter, Effects: []dialect.Effect{{Hook: writePrivileges(g)}}},
		},
		Resources: append(licenses(g), resourceDirectory(g), dateTime(g)),
	}
}

// writePrivileges sets the role that has the privileges that a client sends. An
// account of the rack has a role and nothing else: privileges between two roles
// become the role that lacks none of them.
func writePrivileges(g generation) func(dialect.ActionCall) (dialect.Effect, error) {
	return func(c dialect.ActionCall) (dialect.Effect, error) {
		want := map[string]bool{}
		is := c.Standard(c.URI)
		role, _ := is["RoleId"].(string)
		for _, p := range allPrivileges {
			want[p.name] = role == "Administrator" || role == "Operator" && p.operator
		}
		oem, _ := c.Body["Oem"].(dict)
		vendor, _ := oem[g.oem].(dict)
		sent, _ := vendor["Privileges"].(dict)
		for name, v := range sent {
			if _, known := want[name]; !known && name != "LoginPriv" {
				return dialect.Effect{}, &dialect.Rejection{Message: g.message("PropertyNotWritableOrUnknown", "The property %1 cannot be written, or is none of this resource."), Args: []string{name}}
			}
			on, ok := v.(bool)
			if !ok {
				return dialect.Effect{}, &dialect.Rejection{Message: g.message("PropertyValueBadParam", "The value is not valid.")}
			}
			want[name] = on
		}
		role = "ReadOnly"
		for _, p := range allPrivileges {
			switch {
			case want[p.name] && !p.operator:
				role = "Administrator"
			case want[p.name] && role == "ReadOnly":
				role = "Operator"
			}
		}
		return dialect.Effect{Requests: []dialect.StandardRequest{patch(c.URI, dict{"RoleId": role})}}, nil
	}
}

// licenses returns the collection of licences, which always has one member [V docs,
// licenseService; table].
func licenses(g generation) []dialect.Resource {
	all := manager + "/LicenseService"
	features := dict{}
	for _, name := range []string{
		"AutoCertEnroll", "DirectoryAuth", "DowngradePolicy", "EmailAlert", "FWScan", "Federation", "Jitter", "KD", "KeyMgr", "MURC", "PowerReg", "RC",
		"Recovery", "RemoteSyslog", "Scrncap", "SecureErase", "SmartCard", "SuiteB", "TextCons", "VM", "VMScript", "VSPLogging",
	} {
		features[name] = true
	}
	return []dialect.Resource{
		{URI: all, Type: g.oem + "iLOLicenseCollection." + g.oem + "iLOLicenseCollection", Name: "iLO License Collection", Set: []propertyRule{
			{Path: "Members", Value: []any{dict{"@odata.id": all + "/1"}}},
		}},
		{URI: all + "/1", Type: g.oem + "iLOLicense.v2_3_0." + g.oem + "iLOLicense", Name: "iLO License", Set: []propertyRule{
			{Path: "License", Value: "iLO Advanced"}, {Path: "LicenseClass", Value: "FQL"}, {Path: "LicenseErr", Value: "None"},
			{Path: "LicenseTier", Value: "ADV"}, {Path: "LicenseType", Value: "Perpetual"}, {Path: "LicenseKey", Value: "XXXXX-XXXXX-XXXXX-XXXXX-XXXXX"},
			{Path: "LicenseFeatures", Value: features},
		}},
	}
}

// resourceDirectory lists URIs by types; HPE's clients look there first [V table:
// python-ilorest, proliantutils; docs, HpeiLOResourceDirectory].
func resourceDirectory(g generation) dialect.Resource {
	return dialect.Resource{
		URI: "/redfish/v1/ResourceDirectory", Type: g.oem + "iLOResourceDirectory.v2_0_0." + g.oem + "iLOResourceDirectory", Name: "Resource Directory",
		Read: func(l dialect.HookContext) map[string]any {
			all := []any{}
			add := func(at string) {
				is := l.Standard(at)
				if is == nil {
					return
				}
				methods := []any{"GET", "HEAD"}
				methods = append(methods, writable[at]...)
				entry := dict{"@odata.id": at, "@odata.type": is["@odata.type"], "HttpMethods": methods}
				all = append(all, entry)
				members, _ := is["Members"].([]any)
				for _, m := range members {
					if in, ok := m.(dict); ok {
						if id, ok := in["@odata.id"].(string); ok {
							if below := l.Standard(id); below != nil {
								all = append(all, dict{"@odata.id": id, "@odata.type": below["@odata.type"], "HttpMethods": []any{"GET", "HEAD"}})
							}
						}
					}
				}
			}
			for _, at := range directoryEntries {
				add(at)
			}
			return dict{"Instances": all}
		},
	}
}

// directoryEntries are the URIs in the resource directory; collections are listed with
// their members. writable has the methods that change a resource, by its URI.
var (
	directoryEntries = []string{
		"/redfish/v1/AccountService", "/redfish/v1/AccountService/Accounts", "/redfish/v1/Chassis", "/redfish/v1/EventService",
		"/redfish/v1/Managers", "/redfish/v1/Managers/1/NetworkProtocol", "/redfish/v1/Managers/1/EthernetInterfaces", "/redfish/v1/SessionService",
		"/redfish/v1/Systems", "/redfish/v1/Systems/1/Bios", "/redfish/v1/Systems/1/Bios/Settings", "/redfish/v1/Systems/1/SecureBoot",
		"/redfish/v1/Systems/1/Storage", "/redfish/v1/Systems/1/VirtualMedia", "/redfish/v1/Systems/1/EthernetInterfaces", "/redfish/v1/UpdateService",
		"/redfish/v1/TaskService", "/redfish/v1/Registries",
	}
	writable = map[string][]any{
		"/redfish/v1/AccountService/Accounts": {"POST"}, "/redfish/v1/AccountService": {"PATCH"},
		"/redfish/v1/Systems/1/Bios/Settings": {"PATCH"}, "/redfish/v1/Systems/1/SecureBoot": {"PATCH"}, "/redfish/v1/UpdateService": {"PATCH", "POST"},
	}
)

// flashService updates the firmware of iLO 4 [V docs of iLO 4, HpiLOFirmwareUpdate].
var (
	flashService = dialect.Resource{
		URI: manager + "/UpdateService", Type: "HpiLOFirmwareUpdate.v1_0_0.HpiLOFirmwareUpdate", Name: "Firmware Update",
		Set: []propertyRule{
			{Path: "State", From: "/redfish/v1/UpdateService/FirmwareInventory/BMC#Status/State", Map: dict{"Updating": "PROGRESSING"}, Value: "IDLE"},
			{Path: "ProgressPercent", Value: 0}, {Path: "Flags", Value: nil},
		},
	}
	flash = dialect.Action{
		ResourceURI: manager + "/UpdateService", Name: "HpiLOFirmwareUpdate.InstallFromURI",
		Parameters: []dialect.Parameter{{Name: "FirmwareURI", Required: true}, {Name: "TPMOverrideFlag", Type: dialect.BooleanParameter}},
		Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{
			post("/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", dict{"ImageURI": "$FirmwareURI"}),
		}}},
	}
)
