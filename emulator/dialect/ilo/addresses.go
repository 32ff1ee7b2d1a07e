package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

const (
	system  = "/redfish/v1/Systems/{system}"
	manager = "/redfish/v1/Managers/{manager}"
	chassis = "/redfish/v1/Chassis/{chassis}"
)

// media are at the manager and nowhere else [V table; docs, resmap].
var media = []dialect.URIMapping{{From: system + "/VirtualMedia", To: manager + "/VirtualMedia"}}

// bios is in small letters and ends with a slash [V table, docs, concepts/biosdatamodel].
var bios = []dialect.URIMapping{
	{From: system + "/Bios", To: "/redfish/v1/systems/{system}/bios", TrailingSlash: true},
	{From: system + "/Bios/Settings", To: "/redfish/v1/systems/{system}/bios/settings", TrailingSlash: true},
}

// missing is what no iLO has [V docs: resmap of iLO 5, 6 and 7 lists none of it].
var missing = []string{
	"/redfish/v1/AccountService/Accounts/{account}/Actions", // the type of its accounts has none: shapes.go
	"/redfish/v1/JobService", "/redfish/v1/EventService/SSE", "/redfish/v1/UpdateService/MultipartUpload",
	system + "/Actions/ComputerSystem.SetDefaultBootOrder", chassis + "/Controls", chassis + "/TrustedComponents", chassis + "/Drives",
	system + "/Boot/Certificates", system + "/Memory/{dimm}/EnvironmentMetrics", system + "/Processors/{processor}/EnvironmentMetrics",
	system + "/Storage/{storage}/Drives/{drive}/Metrics",
}

// modern is what came with iLO 6 [V docs: resmap of iLO 5 3.04 has none of it].
var modern = []string{
	"/redfish/v1/ComponentIntegrity",
	chassis + "/PowerSubsystem", chassis + "/ThermalSubsystem", chassis + "/EnvironmentMetrics", chassis + "/Sensors", chassis + "/PCIeDevices",
	system + "/SecureBoot/SecureBootDatabases",
}

// old is where iLO 4 has what the others have elsewhere [V docs of iLO 4].
var old = []dialect.URIMapping{{From: manager + "/NetworkProtocol", To: manager + "/NetworkService"}}

// gone is what iLO 4 has not, beside what iLO 5 has not [V docs of iLO 4: the
// list of its resources].
var gone = []string{
	"/redfish/v1/CertificateService", "/redfish/v1/TelemetryService", "/redfish/v1/UpdateService", "/redfish/v1/AccountService/Roles",
	"/redfish/v1/AccountService/Accounts/{account}/Certificates", manager + "/NetworkProtocol/HTTPS/Certificates",
	system + "/Storage", system + "/BootOptions", system + "/NetworkInterfaces", chassis + "/NetworkAdapters", manager + "/HostInterfaces",
	system + "/SecureBoot/SecureBootDatabases",
}
