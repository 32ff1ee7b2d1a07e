package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

const reset = "ComputerSystem.Reset"

// presentation returns the Presentation that all generations begin with.
func presentation(g generation) dialect.Presentation {
	return dialect.Presentation{
		URIMappings:   append([]dialect.URIMapping(nil), mediaMappings...),
		IgnoreURICase: true, // [V table: URIs ignore case]
		Hidden:        append([]string(nil), hidden...),
		Transforms:    transforms(g),
		RejectRules:   rejectRules(g),
		InputAliases: []dialect.InputAlias{
			// A POST of an account has OEM privileges instead of a role [V table; docs,
			// managingUsers]. With the privilege to configure users the account becomes
			// an administrator, else an operator.
			{ResourceType: "ManagerAccountCollection", Method: "POST", Path: "RoleId", Default: "ReadOnly", DefaultWith: []string{"UserName"}},
			{ResourceType: "ManagerAccountCollection", Method: "POST", Path: g.oemPath("Privileges/UserConfigPriv"), Values: dict{"true": "Administrator", "false": "Operator"}, To: "RoleId"},
			{ResourceType: "ManagerAccountCollection", Method: "POST", Path: "Oem", To: dialect.Discard},
		},
		Errors: dialect.ErrorFormat{
			Code:    "iLO.0.10.ExtendedInfo", // [V table; docs, concepts/errorresponses]
			IDsOnly: true,                    // messages have no texts [V table]
			Success: g.successMessage(),
			SuccessMessages: []dialect.SuccessMessage{
				// [V table: 200 and no task; docs, biosDoc]
				{ResourceType: "Bios", Method: "PATCH", Message: g.message("SystemResetRequired", "What was changed takes effect when the system is reset.")},
				{ResourceType: g.oem + "ServerBootSettings", Method: "PATCH", Message: g.message("SystemResetRequired", "What was changed takes effect when the system is reset.")},
				{ResourceType: "SmartStorageConfig", Method: "PATCH", Message: g.message("SystemResetRequired", "What was changed takes effect when the system is reset.")},
				{ResourceType: "Bios", Method: "Bios.ResetBios", Message: g.message("SystemResetRequired", "What was changed takes effect when the system is reset.")},
			},
		},
	}
}

// rejectRules returns the RejectRules of all generations.
func rejectRules(g generation) []dialect.RejectRule {
	state := g.message("InvalidOperationForSystemState", "The power of the system is not as the operation needs it.")
	post := g.message("UnableToModifyDuringSystemPOST", "The property %1 cannot be changed while the system is in POST.")
	unknown := g.message("PropertyNotWritableOrUnknown", "The property %1 cannot be written, or is none of this resource.")
	return []dialect.RejectRule{
		// [V table: 400, and clients retry; github.com/goldyfruit/ansible-ilo/issues/1]
		{ResourceType: "ComputerSystem", Method: reset, OneOf: map[string][]string{"ResetType": {"On"}}, While: dialect.SystemOn, Message: state},
		{ResourceType: "ComputerSystem", Method: reset, While: dialect.SystemOff, Message: state,
			OneOf: map[string][]string{"ResetType": {"ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "Nmi"}}},
		{ResourceType: "ComputerSystem", Method: reset, OneOf: map[string][]string{"ResetType": {"PowerCycle"}}, // [V table: not among the resets]
			Message: baseMessage(g, "ActionParameterValueNotInList", "The value %2 of the parameter %1 is not in the list of those that are taken.")},
		// [V github.com/ironcore-dev/metal-operator/issues/997]. It lasts until
		// the system boots: without a boot source it stays in InPostDiscoveryComplete,
		// which rejects boot overrides as well, until it is powered off [V HPE's
		// developer portal, "Master the Redfish Server States": Off or FinishedPost].
		{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{"Boot"}, While: dialect.InPOST, Message: post},
		{ResourceType: "Bios", Method: "PATCH", SendsAny: []string{"Attributes"}, While: dialect.InPOST, Message: post},
		// The boot mode is a BIOS setting [V table]. An override in the present mode
		// does not send it.
		{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{"Boot/BootSourceOverrideMode"}, Message: unknown},
		// [V table: use the BIOS's UrlBootFile; github.com/dsx-ai-factory/libredfish/pull/76]
		{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{"Boot/HttpBootUri"}, Message: unknown},
		// Properties of the standard that iLO lacks [V docs, ComputerSystem].
		{ResourceType: "ComputerSystem", Method: "PATCH", Message: unknown, SendsAny: []string{
			"PowerRestorePolicy", "PowerOnDelaySeconds", "PowerCycleDelaySeconds", "HostWatchdogTimer", "SerialConsole",
			"Boot/AutomaticRetryConfig", "Boot/AutomaticRetryAttempts", "Boot/AliasBootOrder", "Boot/BootNext", "Boot/BootOrder",
		}},
		{ResourceType: "Bios", Method: "PATCH", SendsAny: []string{"@Redfish.SettingsApplyTime"}, Message: unknown},                                                                     // [V table]
		{ResourceType: "SessionService", Method: "PATCH", SendsAny: []string{"SessionTimeout"}, Message: unknown},                                                                       // [K] the manager has the timeout in Oem
		{ResourceType: "AccountService", Method: "PATCH", SendsAny: []string{"AccountLockoutThreshold", "AccountLockoutDuration", "AccountLockoutCounterResetAfter"}, Message: unknown}, // [V table: a delay, no lock]
		// [V table; sushy release note fix-eject-media-empty-dict]
		{ResourceType: "VirtualMedia", Method: "VirtualMedia.EjectMedia", EmptyBody: true, Message: baseMessage(g, "MalformedJSON", "The body of the request is no JSON.")},
		// [V docs, updateService: HTTP and HTTPS; table]
		{ResourceType: "UpdateService", Method: "UpdateService.SimpleUpdate", Message: g.message("PropertyValueBadParam", "The value is not valid."),
			HasPrefix: map[string][]string{"ImageURI": {"tftp:", "nfs:", "cifs:", "ftp:", "sftp:", "scp:", "file:"}}},
	}
}

func baseMessage(g generation, key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "Base", Version: g.base, Key: key, Text: text, Resolution: "Change the request, and try again."}
}
