package ilo

import (
	"maps"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

type (
	propertyRule = dialect.PropertyRule
	transform    = dialect.Transform
	dict         = map[string]any
)

// oemPath returns the path of a property in the vendor's object.
func (g generation) oemPath(path string) string { return "Oem/" + g.oem + "/" + path }

// oemType sets the type of the vendor's object in a resource.
func (g generation) oemType(of string) propertyRule {
	return propertyRule{Path: g.oemPath("@odata.type"), Value: "#" + g.oem + of + ".v2_0_0." + g.oem + of}
}

// postStates has Oem.Hpe.PostState by the progress of the boot [V table: PowerOff
// InPost InPostDiscoveryComplete FinishedPost; docs,
// ComputerSystem.Oem.Hpe.PostState].
var postStates = dict{
	"None": "InPost", "PrimaryProcessorInitializationStarted": "InPost", "BusInitializationStarted": "InPost",
	"MemoryInitializationStarted": "InPost", "SecondaryProcessorInitializationStarted": "InPost",
	"PCIResourceConfigStarted":             "InPostDiscoveryStart",
	"SystemHardwareInitializationComplete": "InPostDiscoveryComplete", "SetupEntered": "InPostDiscoveryComplete", "OEM": "InPostDiscoveryComplete",
	"OSBootStarted": "FinishedPost", "OSRunning": "FinishedPost",
}

// discoveryStates has Oem.Hpe.DeviceDiscoveryComplete.DeviceDiscovery, for which
// clients wait before they look for storage [V table; docs, ComputerSystem].
func discoveryStates(done, before string) dict {
	out := dict{}
	for progress, post := range postStates {
		out[progress] = before
		if post == "FinishedPost" || post == "InPostDiscoveryComplete" {
			out[progress] = done
		}
	}
	return out
}

// action sets an OEM action of a resource in Oem, where iLO has them instead of
// Actions.Oem [V docs, concepts/performing_actions].
func (g generation) action(name string, more dict) propertyRule {
	a := dict{"target": "{self}/Actions/Oem/" + g.oem + "/" + name}
	maps.Copy(a, more)
	return propertyRule{Path: g.oemPath("Actions/#" + name), Value: a}
}

// transforms returns the transforms of all generations.
func transforms(g generation) []transform {
	powers := dict{"PoweringOn": "On", "PoweringOff": "On", "Paused": "On"} // [V docs, ComputerSystem.PowerState: On, Off, Unknown, Reset]
	ext := "ComputerSystemExt"
	return []transform{
		{ResourceType: "ServiceRoot", Set: []propertyRule{ // [V table; docs, ServiceRoot]
			{Path: "Name", Value: "HPE RESTful Root Service"},
			{Path: "Product", From: system + "#Model"},
			g.oemType("iLOServiceExt"),
			{Path: g.oemPath("Links/ResourceDirectory"), Value: dict{"@odata.id": "/redfish/v1/ResourceDirectory"}},
			{Path: g.oemPath("Manager"), Value: []any{dict{
				"DefaultLanguage": "en", "ManagerType": g.model, "Languages": []any{dict{"Language": "en", "TranslationName": "English"}},
				"Status": dict{"Health": "OK"},
			}}},
			{Path: g.oemPath("Manager/0/ManagerFirmwareVersion"), From: manager + "#FirmwareVersion"},
			{Path: g.oemPath("Manager/0/HostName"), From: manager + "/NetworkProtocol#HostName"},
			{Path: g.oemPath("Manager/0/FQDN"), From: manager + "/NetworkProtocol#FQDN"},
			{Path: g.oemPath("Moniker"), Value: dict{
				"ADVLIC": "iLO Advanced", "BMC": "iLO", "BSYS": "BladeSystem", "CLASS": "Baseboard Management Controller", "FEDGRP": "DEFAULT",
				"IPROV": "Intelligent Provisioning", "PRODABR": "iLO", "PRODFAM": "Integrated Lights-Out", "PRODGEN": g.model,
				"PRODNAM": "Integrated Lights-Out " + g.model[len("iLO "):], "PRODTAG": "HPE " + g.model, "STDLIC": "iLO Standard",
				"SUMABR": "SUM", "SUMGR": "Smart Update Manager", "SYSFAM": "ProLiant", "VENDABR": "HPE", "VENDNAM": "Hewlett Packard Enterprise",
				"WWW": "www.hpe.com",
			}},
			{Path: g.oemPath("Sessions"), Value: dict{
				"CertificateLoginEnabled": false, "KerberosEnabled": false, "LDAPAuthLicenced": true, "LDAPEnabled": false, "LocalLoginEnabled": true,
				"SecurityOverride": false,
				"LoginHint":        dict{"Hint": "POST to /Sessions", "HintPOSTData": dict{"Password": "password", "UserName": "username"}},
			}},
			{Path: g.oemPath("Sessions/LoginFailureDelay"), From: "/redfish/v1/AccountService#AccountLockoutDuration"},
			{Path: g.oemPath("Sessions/ServerName"), From: system + "#HostName"},
		}},
		{ResourceType: "ComputerSystem", Remove: []string{
			// Properties that iLO lacks, or has in Oem [V docs, ComputerSystem].
			"PowerRestorePolicy", "PowerRestorePolicy@Redfish.AllowableValues", "PowerOnDelaySeconds", "PowerCycleDelaySeconds",
			"HostWatchdogTimer", "SerialConsole", "LastResetTime", "LastResetCause", "VirtualMedia", "PartNumber",
			"Boot/AutomaticRetryConfig", "Boot/AutomaticRetryConfig@Redfish.AllowableValues", "Boot/AutomaticRetryAttempts",
			"Boot/RemainingAutomaticRetryAttempts", "Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues", "Boot/BootNext",
			"Boot/HttpBootUri", "Boot/BootOrderPropertySelection", "Boot/StopBootOnFault",
			// These two have no allowable values [V table].
			"Boot/BootSourceOverrideEnabled@Redfish.AllowableValues", "Boot/BootSourceOverrideMode@Redfish.AllowableValues",
		}, Set: []propertyRule{
			g.oemType(ext),
			{Path: g.oemPath("PostState"), From: "BootProgress/LastState", Map: postStates, Value: "Unknown"},
			{Path: g.oemPath("PostState"), From: "PowerState", Map: dict{"Off": "PowerOff"}, Otherwise: dialect.LeaveUnchanged},
			{Path: g.oemPath("DeviceDiscoveryComplete/AMSDeviceDiscovery"), Value: "NoAMS"},
			{Path: g.oemPath("DeviceDiscoveryComplete/DeviceDiscovery"), From: "BootProgress/LastState", Map: discoveryStates("vMainDeviceDiscoveryComplete", "Busy"), Value: "Busy"},
			{Path: g.oemPath("DeviceDiscoveryComplete/DeviceDiscovery"), From: "PowerState", Map: dict{"Off": "vAuxDeviceDiscoveryComplete"}, Otherwise: dialect.LeaveUnchanged},
			{Path: g.oemPath("DeviceDiscoveryComplete/SmartArrayDiscovery"), From: "BootProgress/LastState", Map: discoveryStates("Complete", "Busy"), Value: "Busy"},
			{Path: g.oemPath("DeviceDiscoveryComplete/SmartArrayDiscovery"), From: "PowerState", Map: dict{"Off": "Cached"}, Otherwise: dialect.LeaveUnchanged},
			{Path: g.oemPath("Bios/Current/VersionString"), From: "BiosVersion"},
			{Path: g.oemPath("Bios/UefiClass"), Value: 2},
			{Path: g.oemPath("PowerAutoOn"), From: "PowerRestorePolicy", Map: dict{"AlwaysOn": "PowerOn", "AlwaysOff": "RemainOff", "LastState": "Restore"}, Value: "Restore"},
			{Path: g.oemPath("PowerOnDelay"), From: "PowerOnDelaySeconds", Map: dict{"0": "Minimum", "15": "15Sec", "30": "30Sec", "45": "45Sec", "60": "60Sec"}, Value: "Minimum"},
			{Path: g.oemPath("AggregateHealthStatus/AgentlessManagementService"), Value: "Unavailable"},
			{Path: g.oemPath("AggregateHealthStatus/AggregateServerHealth"), From: "Status/HealthRollup"},
			{Path: g.oemPath("IntelligentProvisioningVersion"), Value: "N/A"},
			{Path: g.oemPath("PostMode"), Value: "Normal"},
			{Path: g.oemPath("EndOfPostDelaySeconds"), Value: nil},
			{Path: g.oemPath("ServerFQDN"), From: "HostName", Map: dict{"<nil>": ""}, Otherwise: dialect.LeaveUnchanged},
			// PowerCycle is missing: SystemReset does it.
			{Path: "Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues", Value: resetTypes},
			g.action(g.oem+ext+".PowerButton", dict{"PushType@Redfish.AllowableValues": []any{"Press", "PressAndHold"}}),
			g.action(g.oem+ext+".SystemReset", dict{"ResetType@Redfish.AllowableValues": []any{"ColdBoot", "AuxCycle"}}),
			// The boot mode is read from the BIOS attributes [V table].
			{Path: "PowerState", From: "PowerState", Map: powers, Otherwise: dialect.LeaveUnchanged},
		}},
		{ResourceType: "ActionInfo", URI: system + "/ResetActionInfo", Set: []propertyRule{{Path: "Parameters/0/AllowableValues", Value: resetTypes}}},
		{ResourceType: "VirtualMedia", Remove: []string{
			"TransferMethod", "UserName", "Password", "VerifyCertificate", "EjectPolicy", "Status", "Certificates",
			"TransferMethod@Redfish.AllowableValues", "TransferProtocolType@Redfish.AllowableValues",
		}, Set: []propertyRule{
			g.oemType("iLOVirtualMedia"),
			{Path: "Description", Value: "Virtual Removable Media"},
			{Path: "Image", From: "Image", Map: dict{"<nil>": ""}, Otherwise: dialect.LeaveUnchanged},                     // [V table: "", not null]
			{Path: "ImageName", From: "ImageName", Map: dict{"<nil>": ""}, Otherwise: dialect.LeaveUnchanged},             // [K]
			{Path: "WriteProtected", From: "WriteProtected", Map: dict{"<nil>": true}, Otherwise: dialect.LeaveUnchanged}, // [V table]
			g.action(g.oem+"iLOVirtualMedia.EjectVirtualMedia", nil),
			g.action(g.oem+"iLOVirtualMedia.InsertVirtualMedia", nil),
		}},
		{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/2", Set: []propertyRule{ // [V table: on the CD only]
			{Path: g.oemPath("BootOnNextServerReset"), From: system + "#Boot/BootSourceOverrideTarget", Map: dict{"Cd": true}, Value: false},
		}},
		{ResourceType: "Manager", Remove: []string{"SerialConsole", "LastResetTime", "ServiceEntryPointUUID", "DateTimeLocalOffset", "TimeZoneName"},
			Set: []propertyRule{
				g.oemType("iLO"),
				{Path: g.oemPath("Firmware/Current/VersionString"), From: "FirmwareVersion", Format: g.firmware},
				{Path: "FirmwareVersion", From: "FirmwareVersion", Format: g.firmware},
				{Path: g.oemPath("License"), Value: dict{"LicenseString": "iLO Advanced", "LicenseTier": "ADV", "LicenseType": "Perpetual"}}, // [V table]
				{Path: g.oemPath("iLOSelfTestResults"), Value: []any{}},
				{Path: g.oemPath("RequiredLoginForiLORBSU"), Value: false},
				{Path: g.oemPath("WebGuiEnabled"), Value: true},
				{Path: g.oemPath("Links/DateTimeService"), Value: dict{"@odata.id": manager + "/DateTime"}},
				{Path: g.oemPath("Links/LicenseService"), Value: dict{"@odata.id": manager + "/LicenseService"}},
			}},
		{ResourceType: "AccountService", Remove: []string{ // [V docs, AccountService]
			"AccountLockoutThreshold", "AccountLockoutDuration", "AccountLockoutCounterResetAfter", "AccountLockoutCounterResetEnabled",
			"AuthFailureLoggingThreshold", "PasswordExpirationDays", "EnforcePasswordHistoryCount", "RequireChangePasswordAction",
			"SupportedAccountTypes", "MaxPasswordLength",
		}, Set: []propertyRule{
			g.oemType("iLOAccountService"),
			{Path: g.oemPath("AuthFailureDelayTimeSeconds"), From: "AccountLockoutDuration"},
			{Path: g.oemPath("AuthFailureLoggingThreshold"), From: "AuthFailureLoggingThreshold"},
			{Path: g.oemPath("AuthFailuresBeforeDelay"), From: "AccountLockoutThreshold", Map: dict{"0": 0, "2": 1, "4": 3, "6": 5}, Value: 1},
			{Path: g.oemPath("EnforcePasswordComplexity"), Value: false},
			{Path: g.oemPath("MinPasswordLength"), From: "MinPasswordLength"},
		}},
		{ResourceType: "ManagerAccount", Remove: []string{ // [V docs, ManagerAccount]
			"Locked", "AccountTypes", "AccountTypes@Redfish.AllowableValues", "StrictAccountTypes", "PasswordExpiration", "AccountExpiration", "Actions",
		}, Set: append([]propertyRule{
			// The last type without AccountTypes, which later ones require [V docs;
			// K of iLO 6 and 7, which have a later one].
			{Path: "@odata.type", Value: "#ManagerAccount.v1_3_0.ManagerAccount"},
			g.oemType("iLOAccount"),
			{Path: "Name", Value: "User Account"},
			{Path: g.oemPath("LoginName"), From: "UserName"},
			{Path: g.oemPath("ServiceAccount"), Value: false},
		}, privileges(g)...)},
		{ResourceType: "SessionService", Remove: []string{"AbsoluteSessionTimeout", "AbsoluteSessionTimeoutEnabled"}, Set: []propertyRule{
			{Path: "SessionTimeout", From: "SessionTimeout", Map: dict{"1800": 30}, Otherwise: dialect.LeaveUnchanged}, // [V table: 30, as if it were minutes]
		}},
		{ResourceType: "Session", Remove: []string{"@odata.type"}},                                             // [V table]
		{ResourceType: "EventService", Remove: []string{"ServerSentEventUri", "SSEFilterPropertiesSupported"}}, // [V table]
		{ResourceType: "UpdateService", Remove: []string{"MultipartHttpPushUri"}, // [V table]
			Set: []propertyRule{
				g.oemType("iLOUpdateServiceExt"),
				// The state of the update of the BMC or the BIOS [V table: State,
				// FlashProgressPercent, Result; docs, UpdateService.Oem.Hpe.State]. The
				// task has its progress.
				{Path: g.oemPath("State"), From: "/redfish/v1/UpdateService/FirmwareInventory/BMC#Status/State", Map: dict{"Updating": "Updating"}, Value: "Idle"},
				{Path: g.oemPath("State"), From: "/redfish/v1/UpdateService/FirmwareInventory/BIOS#Status/State", Map: dict{"Updating": "Updating"}, Otherwise: dialect.LeaveUnchanged},
				{Path: g.oemPath("FlashProgressPercent"), Value: nil},
				g.action(g.oem+"iLOUpdateServiceExt.AddFromUri", nil),
				{Path: g.oemPath("Accept3rdPartyFirmware"), Value: false},
				{Path: g.oemPath("DowngradePolicy"), Value: "AllowDowngrade"},
			}},
		// iLO itself is the root of trust [K]: there are no TrustedComponents [V docs].
		{ResourceType: "ComponentIntegrity", Set: []propertyRule{{Path: "TargetComponentURI", Value: manager}}},
		{ResourceType: "Bios", Set: []propertyRule{ // [V docs, Bios; table]
			{Path: g.oemPath("Links/Boot/@odata.id"), Value: g.bootURI()},
			g.oemType("BiosExt"),
		}, Remove: []string{"@Redfish.Settings/SupportedApplyTimes"}}, // [V NVIDIA/libredfish, tests/mockups/hpe: none; an apply time is refused]
	}
}

// transformsILO5To7 returns the transforms of iLO 5, 6 and 7.
func transformsILO5To7(g generation) []transform {
	return []transform{{ResourceType: "ComputerSystem", Set: []propertyRule{deviceLinks(g)}}}
}

// resetTypes are the allowable values of Reset [V table].
var resetTypes = []any{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"}

// privileges sets Oem.Hpe.Privileges by the account's role [V docs, managingUsers:
// Administrator has all, Operator all but those for iLO, users and recovery,
// ReadOnly the login alone].
func privileges(g generation) []propertyRule {
	var out []propertyRule
	for _, p := range allPrivileges {
		out = append(out, propertyRule{Path: g.oemPath("Privileges/" + p.name), From: "RoleId", Map: dict{"Administrator": true, "Operator": p.operator}, Value: false})
	}
	return append(out, propertyRule{Path: g.oemPath("Privileges/LoginPriv"), Value: true})
}

// allPrivileges has the privileges besides the login, and whether operators have
// them.
var allPrivileges = []struct {
	name     string
	operator bool
}{
	{"HostBIOSConfigPriv", true}, {"HostNICConfigPriv", true}, {"HostStorageConfigPriv", true}, {"RemoteConsolePriv", true},
	{"VirtualMediaPriv", true}, {"VirtualPowerAndResetPriv", true},
	{"SystemRecoveryConfigPriv", false}, {"UserConfigPriv", false}, {"iLOConfigPriv", false},
}

// transformsILO5 are the transforms of iLO 5 alone.
var transformsILO5 = []transform{
	{ResourceType: "VolumeCollection", Remove: []string{"@Redfish.OperationApplyTimeSupport"}}, // it refuses POST: readOnlyVolumes
	{ResourceType: "ComputerSystem", Remove: []string{"BootProgress"}},                         // [V docs: of systems with a DPU only]
	{ResourceType: "AccountService", Remove: []string{"HTTPBasicAuth"}},                        // [V docs: AccountService.v1_5_0]
	// ResetBios is an action of the settings resource, which Bios shows [V table; docs,
	// ilo5_adaptation].
	{ResourceType: "Bios", Set: []propertyRule{
		{Path: "Actions/#Bios.ResetBios/target", Value: system + "/Bios/Settings/Actions/Bios.ResetBios"},
		{Path: "Actions/#Bios.ChangePassword/target", Value: system + "/Bios/Settings/Actions/Bios.ChangePassword"},
	}},
}

// resetTypesILO4 are the allowable values of Reset on iLO 4 [K table].
var resetTypesILO4 = []any{"On", "ForceOff", "ForceRestart", "Nmi", "PushPowerButton"}

// transformsILO4 returns the transforms of iLO 4 alone.
func transformsILO4() []transform {
	return []transform{
		{ResourceType: "ServiceRoot", Remove: []string{"Vendor", "Product", "ProtocolFeaturesSupported", "Links/ManagerProvidingService"}, Set: []propertyRule{ // [K table]
			{Path: "Name", Value: "HP RESTful Root Service"},
		}},
		{ResourceType: "ComputerSystem", Remove: []string{"BootProgress", "LocationIndicatorActive", "Boot/BootOptions", "Boot/BootOrder", "Boot/BootSourceOverrideMode", "HostingRoles"}}, // [V docs]
		{ResourceType: "ComputerSystem", Set: []propertyRule{{Path: "Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues", Value: resetTypesILO4}}},
		{ResourceType: "ActionInfo", URI: system + "/ResetActionInfo", Set: []propertyRule{{Path: "Parameters/0/AllowableValues", Value: resetTypesILO4}}},
		{ResourceType: "AccountService", Remove: []string{"HTTPBasicAuth", "LocalAccountAuth", "MinPasswordLength"}},
		{ResourceType: "ManagerAccount", Remove: []string{"RoleId", "RoleId@Redfish.AllowableValues", "Links/Role", "PasswordChangeRequired"}, Set: []propertyRule{ // [V docs: privileges, and no role]
			{Path: "@odata.type", Value: "#ManagerAccount.v1_0_0.ManagerAccount"},
		}},
		{ResourceType: "Bios", Remove: []string{"Oem/Hp/Links"}, Set: []propertyRule{{Path: "@odata.type", Value: "#HpBios.v1_2_0.HpBios"}}}, // [V docs]
		{ResourceType: "Manager", Set: []propertyRule{{Path: "Oem/Hp/Links/UpdateService", Value: dict{"@odata.id": manager + "/UpdateService"}}}},
	}
}

// oemTypes returns the vendor's types for which a schema is served: none.
func oemTypes(generation) []dialect.OEMType { return nil }
