package ilo

import (
	"maps"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

type (
	datum = dialect.PropertyRule
	shape = dialect.Transform
	dict  = map[string]any
)

// in is where a property of the vendor's stands.
func (g generation) in(path string) string { return "Oem/" + g.oem + "/" + path }

// kind is the type of what the vendor adds to a resource.
func (g generation) kind(of string) datum {
	return datum{Path: g.in("@odata.type"), Value: "#" + g.oem + of + ".v2_0_0." + g.oem + of}
}

// posts are Oem.Hpe.PostState by how far the boot is [V table: PowerOff InPost
// InPostDiscoveryComplete FinishedPost; docs, ComputerSystem.Oem.Hpe.PostState].
var posts = dict{
	"None": "InPost", "PrimaryProcessorInitializationStarted": "InPost", "BusInitializationStarted": "InPost",
	"MemoryInitializationStarted": "InPost", "SecondaryProcessorInitializationStarted": "InPost",
	"PCIResourceConfigStarted":             "InPostDiscoveryStart",
	"SystemHardwareInitializationComplete": "InPostDiscoveryComplete", "SetupEntered": "InPostDiscoveryComplete", "OEM": "InPostDiscoveryComplete",
	"OSBootStarted": "FinishedPost", "OSRunning": "FinishedPost",
}

// discoveries are Oem.Hpe.DeviceDiscoveryComplete.DeviceDiscovery: what clients
// wait for before they look for storage [V table; docs, ComputerSystem].
func discoveries(done, before string) dict {
	out := dict{}
	for progress, post := range posts {
		out[progress] = before
		if post == "FinishedPost" || post == "InPostDiscoveryComplete" {
			out[progress] = done
		}
	}
	return out
}

// action is what the vendor's actions of a resource look like, in Oem rather
// than in Actions.Oem [V docs, concepts/performing_actions].
func (g generation) action(name string, more dict) datum {
	a := dict{"target": "{self}/Actions/Oem/" + g.oem + "/" + name}
	maps.Copy(a, more)
	return datum{Path: g.in("Actions/#" + name), Value: a}
}

// shapes are what all generations show otherwise.
func shapes(g generation) []shape {
	powers := dict{"PoweringOn": "On", "PoweringOff": "On", "Paused": "On"} // [V docs, ComputerSystem.PowerState: On, Off, Unknown, Reset]
	ext := "ComputerSystemExt"
	return []shape{
		{ResourceType: "ServiceRoot", Set: []datum{ // [V table; docs, ServiceRoot]
			{Path: "Name", Value: "HPE RESTful Root Service"},
			{Path: "Product", From: system + "#Model"},
			g.kind("iLOServiceExt"),
			{Path: g.in("Links/ResourceDirectory"), Value: dict{"@odata.id": "/redfish/v1/ResourceDirectory"}},
			{Path: g.in("Manager"), Value: []any{dict{
				"DefaultLanguage": "en", "ManagerType": g.model, "Languages": []any{dict{"Language": "en", "TranslationName": "English"}},
				"Status": dict{"Health": "OK"},
			}}},
			{Path: g.in("Manager/0/ManagerFirmwareVersion"), From: manager + "#FirmwareVersion"},
			{Path: g.in("Manager/0/HostName"), From: manager + "/NetworkProtocol#HostName"},
			{Path: g.in("Manager/0/FQDN"), From: manager + "/NetworkProtocol#FQDN"},
			{Path: g.in("Moniker"), Value: dict{
				"ADVLIC": "iLO Advanced", "BMC": "iLO", "BSYS": "BladeSystem", "CLASS": "Baseboard Management Controller", "FEDGRP": "DEFAULT",
				"IPROV": "Intelligent Provisioning", "PRODABR": "iLO", "PRODFAM": "Integrated Lights-Out", "PRODGEN": g.model,
				"PRODNAM": "Integrated Lights-Out " + g.model[len("iLO "):], "PRODTAG": "HPE " + g.model, "STDLIC": "iLO Standard",
				"SUMABR": "SUM", "SUMGR": "Smart Update Manager", "SYSFAM": "ProLiant", "VENDABR": "HPE", "VENDNAM": "Hewlett Packard Enterprise",
				"WWW": "www.hpe.com",
			}},
			{Path: g.in("Sessions"), Value: dict{
				"CertificateLoginEnabled": false, "KerberosEnabled": false, "LDAPAuthLicenced": true, "LDAPEnabled": false, "LocalLoginEnabled": true,
				"SecurityOverride": false,
				"LoginHint":        dict{"Hint": "POST to /Sessions", "HintPOSTData": dict{"Password": "password", "UserName": "username"}},
			}},
			{Path: g.in("Sessions/LoginFailureDelay"), From: "/redfish/v1/AccountService#AccountLockoutDuration"},
			{Path: g.in("Sessions/ServerName"), From: system + "#HostName"},
		}},
		{ResourceType: "ComputerSystem", Remove: []string{
			// What iLO has not, or has in Oem [V docs, ComputerSystem].
			"PowerRestorePolicy", "PowerRestorePolicy@Redfish.AllowableValues", "PowerOnDelaySeconds", "PowerCycleDelaySeconds",
			"HostWatchdogTimer", "SerialConsole", "LastResetTime", "LastResetCause", "VirtualMedia", "PartNumber",
			"Boot/AutomaticRetryConfig", "Boot/AutomaticRetryConfig@Redfish.AllowableValues", "Boot/AutomaticRetryAttempts",
			"Boot/RemainingAutomaticRetryAttempts", "Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues", "Boot/BootNext",
			"Boot/HttpBootUri", "Boot/BootOrderPropertySelection", "Boot/StopBootOnFault",
			// There are no lists of these two [V table].
			"Boot/BootSourceOverrideEnabled@Redfish.AllowableValues", "Boot/BootSourceOverrideMode@Redfish.AllowableValues",
		}, Set: []datum{
			g.kind(ext),
			{Path: g.in("PostState"), From: "BootProgress/LastState", Map: posts, Value: "Unknown"},
			{Path: g.in("PostState"), From: "PowerState", Map: dict{"Off": "PowerOff"}, Otherwise: dialect.LeaveUnchanged},
			{Path: g.in("DeviceDiscoveryComplete/AMSDeviceDiscovery"), Value: "NoAMS"},
			{Path: g.in("DeviceDiscoveryComplete/DeviceDiscovery"), From: "BootProgress/LastState", Map: discoveries("vMainDeviceDiscoveryComplete", "Busy"), Value: "Busy"},
			{Path: g.in("DeviceDiscoveryComplete/DeviceDiscovery"), From: "PowerState", Map: dict{"Off": "vAuxDeviceDiscoveryComplete"}, Otherwise: dialect.LeaveUnchanged},
			{Path: g.in("DeviceDiscoveryComplete/SmartArrayDiscovery"), From: "BootProgress/LastState", Map: discoveries("Complete", "Busy"), Value: "Busy"},
			{Path: g.in("DeviceDiscoveryComplete/SmartArrayDiscovery"), From: "PowerState", Map: dict{"Off": "Cached"}, Otherwise: dialect.LeaveUnchanged},
			{Path: g.in("Bios/Current/VersionString"), From: "BiosVersion"},
			{Path: g.in("Bios/UefiClass"), Value: 2},
			{Path: g.in("PowerAutoOn"), From: "PowerRestorePolicy", Map: dict{"AlwaysOn": "PowerOn", "AlwaysOff": "RemainOff", "LastState": "Restore"}, Value: "Restore"},
			{Path: g.in("PowerOnDelay"), From: "PowerOnDelaySeconds", Map: dict{"0": "Minimum", "15": "15Sec", "30": "30Sec", "45": "45Sec", "60": "60Sec"}, Value: "Minimum"},
			{Path: g.in("AggregateHealthStatus/AgentlessManagementService"), Value: "Unavailable"},
			{Path: g.in("AggregateHealthStatus/AggregateServerHealth"), From: "Status/HealthRollup"},
			{Path: g.in("IntelligentProvisioningVersion"), Value: "N/A"},
			{Path: g.in("PostMode"), Value: "Normal"},
			{Path: g.in("EndOfPostDelaySeconds"), Value: nil},
			{Path: g.in("ServerFQDN"), From: "HostName", Map: dict{"<nil>": ""}, Otherwise: dialect.LeaveUnchanged},
			// PowerCycle is not offered: SystemReset does it.
			{Path: "Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues", Value: offered},
			g.action(g.oem+ext+".PowerButton", dict{"PushType@Redfish.AllowableValues": []any{"Press", "PressAndHold"}}),
			g.action(g.oem+ext+".SystemReset", dict{"ResetType@Redfish.AllowableValues": []any{"ColdBoot", "AuxCycle"}}),
			// The system ROM tells what the boot mode is [V table].
			{Path: "PowerState", From: "PowerState", Map: powers, Otherwise: dialect.LeaveUnchanged},
		}},
		{ResourceType: "ActionInfo", URI: system + "/ResetActionInfo", Set: []datum{{Path: "Parameters/0/AllowableValues", Value: offered}}},
		{ResourceType: "VirtualMedia", Remove: []string{
			"TransferMethod", "UserName", "Password", "VerifyCertificate", "EjectPolicy", "Status", "Certificates",
			"TransferMethod@Redfish.AllowableValues", "TransferProtocolType@Redfish.AllowableValues",
		}, Set: []datum{
			g.kind("iLOVirtualMedia"),
			{Path: "Description", Value: "Virtual Removable Media"},
			{Path: "Image", From: "Image", Map: dict{"<nil>": ""}, Otherwise: dialect.LeaveUnchanged},                     // [V table: "", not null]
			{Path: "ImageName", From: "ImageName", Map: dict{"<nil>": ""}, Otherwise: dialect.LeaveUnchanged},             // [K]
			{Path: "WriteProtected", From: "WriteProtected", Map: dict{"<nil>": true}, Otherwise: dialect.LeaveUnchanged}, // [V table]
			g.action(g.oem+"iLOVirtualMedia.EjectVirtualMedia", nil),
			g.action(g.oem+"iLOVirtualMedia.InsertVirtualMedia", nil),
		}},
		{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/2", Set: []datum{ // [V table: on the CD only]
			{Path: g.in("BootOnNextServerReset"), From: system + "#Boot/BootSourceOverrideTarget", Map: dict{"Cd": true}, Value: false},
		}},
		{ResourceType: "Manager", Remove: []string{"SerialConsole", "LastResetTime", "ServiceEntryPointUUID", "DateTimeLocalOffset", "TimeZoneName"},
			Set: []datum{
				g.kind("iLO"),
				{Path: g.in("Firmware/Current/VersionString"), From: "FirmwareVersion", Format: g.firmware},
				{Path: "FirmwareVersion", From: "FirmwareVersion", Format: g.firmware},
				{Path: g.in("License"), Value: dict{"LicenseString": "iLO Advanced", "LicenseTier": "ADV", "LicenseType": "Perpetual"}}, // [V table]
				{Path: g.in("iLOSelfTestResults"), Value: []any{}},
				{Path: g.in("RequiredLoginForiLORBSU"), Value: false},
				{Path: g.in("WebGuiEnabled"), Value: true},
				{Path: g.in("Links/DateTimeService"), Value: dict{"@odata.id": manager + "/DateTime"}},
				{Path: g.in("Links/LicenseService"), Value: dict{"@odata.id": manager + "/LicenseService"}},
			}},
		{ResourceType: "AccountService", Remove: []string{ // [V docs, AccountService]
			"AccountLockoutThreshold", "AccountLockoutDuration", "AccountLockoutCounterResetAfter", "AccountLockoutCounterResetEnabled",
			"AuthFailureLoggingThreshold", "PasswordExpirationDays", "EnforcePasswordHistoryCount", "RequireChangePasswordAction",
			"SupportedAccountTypes", "MaxPasswordLength",
		}, Set: []datum{
			g.kind("iLOAccountService"),
			{Path: g.in("AuthFailureDelayTimeSeconds"), From: "AccountLockoutDuration"},
			{Path: g.in("AuthFailureLoggingThreshold"), From: "AuthFailureLoggingThreshold"},
			{Path: g.in("AuthFailuresBeforeDelay"), From: "AccountLockoutThreshold", Map: dict{"0": 0, "2": 1, "4": 3, "6": 5}, Value: 1},
			{Path: g.in("EnforcePasswordComplexity"), Value: false},
			{Path: g.in("MinPasswordLength"), From: "MinPasswordLength"},
		}},
		{ResourceType: "ManagerAccount", Remove: []string{ // [V docs, ManagerAccount]
			"Locked", "AccountTypes", "AccountTypes@Redfish.AllowableValues", "StrictAccountTypes", "PasswordExpiration", "AccountExpiration", "Actions",
		}, Set: append([]datum{
			// The last type without AccountTypes, which later ones require [V docs;
			// K of iLO 6 and 7, which have a later one].
			{Path: "@odata.type", Value: "#ManagerAccount.v1_3_0.ManagerAccount"},
			g.kind("iLOAccount"),
			{Path: "Name", Value: "User Account"},
			{Path: g.in("LoginName"), From: "UserName"},
			{Path: g.in("ServiceAccount"), Value: false},
		}, privileges(g)...)},
		{ResourceType: "SessionService", Remove: []string{"AbsoluteSessionTimeout", "AbsoluteSessionTimeoutEnabled"}, Set: []datum{
			{Path: "SessionTimeout", From: "SessionTimeout", Map: dict{"1800": 30}, Otherwise: dialect.LeaveUnchanged}, // [V table: 30, as if it were minutes]
		}},
		{ResourceType: "Session", Remove: []string{"@odata.type"}},                                             // [V table]
		{ResourceType: "EventService", Remove: []string{"ServerSentEventUri", "SSEFilterPropertiesSupported"}}, // [V table]
		{ResourceType: "UpdateService", Remove: []string{"MultipartHttpPushUri"}, // [V table]
			Set: []datum{
				g.kind("iLOUpdateServiceExt"),
				// While a component that everybody has is written [V table: State,
				// FlashProgressPercent, Result; docs, UpdateService.Oem.Hpe.State]. How
				// far that is the task tells.
				{Path: g.in("State"), From: "/redfish/v1/UpdateService/FirmwareInventory/BMC#Status/State", Map: dict{"Updating": "Updating"}, Value: "Idle"},
				{Path: g.in("State"), From: "/redfish/v1/UpdateService/FirmwareInventory/BIOS#Status/State", Map: dict{"Updating": "Updating"}, Otherwise: dialect.LeaveUnchanged},
				{Path: g.in("FlashProgressPercent"), Value: nil},
				g.action(g.oem+"iLOUpdateServiceExt.AddFromUri", nil),
				{Path: g.in("Accept3rdPartyFirmware"), Value: false},
				{Path: g.in("DowngradePolicy"), Value: "AllowDowngrade"},
			}},
		// The root of trust is iLO's own [K]: there are no TrustedComponents [V docs].
		{ResourceType: "ComponentIntegrity", Set: []datum{{Path: "TargetComponentURI", Value: manager}}},
		{ResourceType: "Bios", Set: []datum{ // [V docs, Bios; table]
			{Path: g.in("Links/Boot/@odata.id"), Value: g.bootAt()},
			{Path: "Oem/" + g.oem + "/@odata.type", Value: "#HpeBiosExt.v2_0_0.HpeBiosExt"},
		}},
	}
}

// offered are the resets that clients are offered [V table].
var offered = []any{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"}

// privileges are Oem.Hpe.Privileges by the role [V docs, managingUsers:
// Administrator has all, Operator all but those for iLO, users and recovery,
// ReadOnly the login alone].
func privileges(g generation) []datum {
	var out []datum
	for _, p := range allPrivileges {
		out = append(out, datum{Path: g.in("Privileges/" + p.name), From: "RoleId", Map: dict{"Administrator": true, "Operator": p.operator}, Value: false})
	}
	return append(out, datum{Path: g.in("Privileges/LoginPriv"), Value: true})
}

// allPrivileges are those beside the login, and whether operators have them.
var allPrivileges = []struct {
	name     string
	operator bool
}{
	{"HostBIOSConfigPriv", true}, {"HostNICConfigPriv", true}, {"HostStorageConfigPriv", true}, {"RemoteConsolePriv", true},
	{"VirtualMediaPriv", true}, {"VirtualPowerAndResetPriv", true},
	{"SystemRecoveryConfigPriv", false}, {"UserConfigPriv", false}, {"iLOConfigPriv", false},
}

// gen10 is what iLO 5 alone shows.
var gen10 = []shape{
	{ResourceType: "ComputerSystem", Remove: []string{"BootProgress"}},  // [V docs: of systems with a DPU only]
	{ResourceType: "AccountService", Remove: []string{"HTTPBasicAuth"}}, // [V docs: AccountService.v1_5_0]
	// It is the settings that are reset, as the BIOS itself tells [V table; docs,
	// ilo5_adaptation].
	{ResourceType: "Bios", Set: []datum{
		{Path: "Actions/#Bios.ResetBios/target", Value: system + "/Bios/Settings/Actions/Bios.ResetBios"},
		{Path: "Actions/#Bios.ChangePassword/target", Value: system + "/Bios/Settings/Actions/Bios.ChangePassword"},
	}},
}

// offered4 are the resets of iLO 4 [K table].
var offered4 = []any{"On", "ForceOff", "ForceRestart", "Nmi", "PushPowerButton"}

// gen9 is what iLO 4 shows.
func gen9() []shape {
	return []shape{
		{ResourceType: "ServiceRoot", Remove: []string{"Vendor", "Product", "ProtocolFeaturesSupported", "Links/ManagerProvidingService"}, Set: []datum{ // [K table]
			{Path: "Name", Value: "HP RESTful Root Service"},
		}},
		{ResourceType: "ComputerSystem", Remove: []string{"BootProgress", "LocationIndicatorActive", "Boot/BootOptions", "Boot/BootOrder", "Boot/BootSourceOverrideMode", "HostingRoles"}}, // [V docs]
		{ResourceType: "ComputerSystem", Set: []datum{{Path: "Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues", Value: offered4}}},
		{ResourceType: "ActionInfo", URI: system + "/ResetActionInfo", Set: []datum{{Path: "Parameters/0/AllowableValues", Value: offered4}}},
		{ResourceType: "AccountService", Remove: []string{"HTTPBasicAuth", "LocalAccountAuth", "MinPasswordLength"}},
		{ResourceType: "ManagerAccount", Remove: []string{"RoleId", "RoleId@Redfish.AllowableValues", "Links/Role", "PasswordChangeRequired"}, Set: []datum{ // [V docs: privileges, and no role]
			{Path: "@odata.type", Value: "#ManagerAccount.v1_0_0.ManagerAccount"},
		}},
		{ResourceType: "Bios", Remove: []string{"Oem/Hp/Links"}, Set: []datum{{Path: "@odata.type", Value: "#HpBios.v1_2_0.HpBios"}}}, // [V docs]
		{ResourceType: "Manager", Set: []datum{{Path: "Oem/Hp/Links/UpdateService", Value: dict{"@odata.id": manager + "/UpdateService"}}}},
	}
}

// types are what the vendor adds, as far as a schema is served for it.
func types(generation) []dialect.OEMType { return nil }
