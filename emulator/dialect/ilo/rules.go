package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

const reset = "ComputerSystem.Reset"

// face is what all generations show otherwise, and refuse.
func face(g generation) dialect.Face {
	return dialect.Face{
		Moves:  append([]dialect.Move(nil), media...),
		Fold:   true, // [V table: addresses have no case]
		Shut:   append([]string(nil), missing...),
		Shapes: shapes(g),
		Rules:  rules(g),
		Readings: []dialect.Reading{
			// An account is made with privileges rather than with a role [V table;
			// docs, managingUsers: those of Oem]. Who configures users is an
			// administrator; others become operators.
			{Of: "ManagerAccountCollection", Method: "POST", Path: "RoleId", Else: "ReadOnly", With: []string{"UserName"}},
			{Of: "ManagerAccountCollection", Method: "POST", Path: g.in("Privileges/UserConfigPriv"), Words: dict{"true": "Administrator", "false": "Operator"}, To: "RoleId"},
			{Of: "ManagerAccountCollection", Method: "POST", Path: "Oem", To: dialect.Nowhere},
		},
		Errors: dialect.Errors{
			Code:  "iLO.0.10.ExtendedInfo", // [V table; docs, concepts/errorresponses]
			Terse: true,                    // no texts unless a client asks for them [V table]
			Done:  g.done(),
			Tells: []dialect.Tell{
				// [V table: 200 and no task; docs, biosDoc]
				{Of: "Bios", Method: "PATCH", Says: g.says("SystemResetRequired", "What was changed takes effect when the system is reset.")},
				{Of: g.oem + "ServerBootSettings", Method: "PATCH", Says: g.says("SystemResetRequired", "What was changed takes effect when the system is reset.")},
				{Of: "SmartStorageConfig", Method: "PATCH", Says: g.says("SystemResetRequired", "What was changed takes effect when the system is reset.")},
				{Of: "Bios", Method: "Bios.ResetBios", Says: g.says("SystemResetRequired", "What was changed takes effect when the system is reset.")},
			},
		},
	}
}

// rules are what iLO refuses.
func rules(g generation) []dialect.Rule {
	state := g.says("InvalidOperationForSystemState", "The power of the system is not as the operation needs it.")
	post := g.says("UnableToModifyDuringSystemPOST", "The property %1 cannot be changed while the system is in POST.")
	unknown := g.says("PropertyNotWritableOrUnknown", "The property %1 cannot be written, or is none of this resource.")
	return []dialect.Rule{
		// [V table: 400, and clients try again; github.com/goldyfruit/ansible-ilo/issues/1]
		{Of: "ComputerSystem", Method: reset, Is: map[string][]string{"ResetType": {"On"}}, While: dialect.SystemOn, Says: state},
		{Of: "ComputerSystem", Method: reset, While: dialect.SystemOff, Says: state,
			Is: map[string][]string{"ResetType": {"ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "Nmi"}}},
		{Of: "ComputerSystem", Method: reset, Is: map[string][]string{"ResetType": {"PowerCycle"}}, // [V table: not among the resets]
			Says: base(g, "ActionParameterValueNotInList", "The value %2 of the parameter %1 is not in the list of those that are taken.")},
		// [V github.com/ironcore-dev/metal-operator/issues/997]. It is so until
		// something boots: who finds nothing stays InPostDiscoveryComplete, in which
		// boots are refused as well, and has to be switched off [V HPE's developer
		// portal, "Master the Redfish Server States": Off or FinishedPost].
		{Of: "ComputerSystem", Method: "PATCH", Sent: []string{"Boot"}, While: dialect.InPOST, Says: post},
		{Of: "Bios", Method: "PATCH", Sent: []string{"Attributes"}, While: dialect.InPOST, Says: post},
		// The boot mode is a setting of the BIOS [V table]. An override that stays
		// in the mode that there is does not name it.
		{Of: "ComputerSystem", Method: "PATCH", Sent: []string{"Boot/BootSourceOverrideMode"}, Says: unknown},
		// [V table: use the BIOS's UrlBootFile; github.com/dsx-ai-factory/libredfish/pull/76]
		{Of: "ComputerSystem", Method: "PATCH", Sent: []string{"Boot/HttpBootUri"}, Says: unknown},
		// What the standard has for it and iLO has not [V docs, ComputerSystem].
		{Of: "ComputerSystem", Method: "PATCH", Says: unknown, Sent: []string{
			"PowerRestorePolicy", "PowerOnDelaySeconds", "PowerCycleDelaySeconds", "HostWatchdogTimer", "SerialConsole",
			"Boot/AutomaticRetryConfig", "Boot/AutomaticRetryAttempts", "Boot/AliasBootOrder", "Boot/BootNext", "Boot/BootOrder",
		}},
		{Of: "Bios", Method: "PATCH", Sent: []string{"@Redfish.SettingsApplyTime"}, Says: unknown},                                                                     // [V table]
		{Of: "SessionService", Method: "PATCH", Sent: []string{"SessionTimeout"}, Says: unknown},                                                                       // [K] it is one of the manager's own
		{Of: "AccountService", Method: "PATCH", Sent: []string{"AccountLockoutThreshold", "AccountLockoutDuration", "AccountLockoutCounterResetAfter"}, Says: unknown}, // [V table: a delay, no lock]
		// [V table; sushy release note fix-eject-media-empty-dict]
		{Of: "VirtualMedia", Method: "VirtualMedia.EjectMedia", Empty: true, Says: base(g, "MalformedJSON", "The body of the request is no JSON.")},
		// [V docs, updateService: HTTP and HTTPS; table]
		{Of: "UpdateService", Method: "UpdateService.SimpleUpdate", Says: g.says("PropertyValueBadParam", "The value is not valid."),
			Begins: map[string][]string{"ImageURI": {"tftp:", "nfs:", "cifs:", "ftp:", "sftp:", "scp:", "file:"}}},
	}
}

func base(g generation, key, text string) dialect.Saying {
	return dialect.Saying{Registry: "Base", Version: g.base, Key: key, Text: text, Resolution: "Change the request, and try again."}
}
