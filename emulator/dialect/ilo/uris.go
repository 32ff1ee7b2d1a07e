package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	system  = "/redfish/v1/Systems/{system}"
	manager = "/redfish/v1/Managers/{manager}"
	chassis = "/redfish/v1/Chassis/{chassis}"
)

// mediaMappings moves virtual media below the manager [V table; docs, resmap].
var mediaMappings = []dialect.URIMapping{{From: system + "/VirtualMedia", To: manager + "/VirtualMedia"}}

// biosMappings writes the URI of the BIOS in small letters and with a slash at its end
// [V table, docs, concepts/biosdatamodel].
var biosMappings = []dialect.URIMapping{
	{From: system + "/Bios", To: "/redfish/v1/systems/{system}/bios", TrailingSlash: true},
	{From: system + "/Bios/Settings", To: "/redfish/v1/systems/{system}/bios/settings", TrailingSlash: true},
}

// hidden has the URIs that no iLO has [V docs: resmap of iLO 5, 6 and 7 lists none of
// them].
var hidden = []string{
	"/redfish/v1/AccountService/Accounts/{account}/Actions", // the version of ManagerAccount has none: transforms.go
	"/redfish/v1/JobService", "/redfish/v1/EventService/SSE", "/redfish/v1/UpdateService/MultipartUpload",
	system + "/Actions/ComputerSystem.SetDefaultBootOrder", chassis + "/Controls", chassis + "/TrustedComponents", chassis + "/Drives",
	system + "/Boot/Certificates", system + "/Memory/{dimm}/EnvironmentMetrics", system + "/Processors/{processor}/EnvironmentMetrics",
	system + "/Storage/{storage}/Drives/{drive}/Metrics",
}

// hiddenBeforeILO6 has the URIs that iLO 6 introduced [V docs: resmap of iLO 5 3.04
// has none of them].
var hiddenBeforeILO6 = []string{
	"/redfish/v1/ComponentIntegrity",
	chassis + "/PowerSubsystem", chassis + "/ThermalSubsystem", chassis + "/EnvironmentMetrics", chassis + "/Sensors", chassis + "/PCIeDevices",
	system + "/SecureBoot/SecureBootDatabases",
}

// mappingsILO4 has the URIs that differ on iLO 4 [V docs of iLO 4].
var mappingsILO4 = []dialect.URIMapping{{From: manager + "/NetworkProtocol", To: manager + "/NetworkService"}}

// hiddenInILO4 has the URIs that iLO 4 lacks, in addition to hiddenBeforeILO6 [V
// docs of iLO 4: the list of its resources].
var hiddenInILO4 = []string{
	"/redfish/v1/CertificateService", "/redfish/v1/TelemetryService", "/redfish/v1/UpdateService", "/redfish/v1/AccountService/Roles",
	"/redfish/v1/AccountService/Accounts/{account}/Certificates", manager + "/NetworkProtocol/HTTPS/Certificates",
	system + "/Storage", system + "/BootOptions", system + "/NetworkInterfaces", chassis + "/NetworkAdapters", manager + "/HostInterfaces",
	system + "/SecureBoot/SecureBootDatabases",
}
