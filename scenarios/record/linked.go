package record

import (
	"strings"

	"github.com/metalab-dev/metalab/scenarios/capture"
)

// linkedResources lists the resources that exist once, each with the resource
// and the property that link to it. All URIs are the standard ones.
var linkedResources = []struct{ tree, from, link string }{
	{"/redfish/v1/Systems", capture.Root, "Systems"},
	{"/redfish/v1/Chassis", capture.Root, "Chassis"},
	{"/redfish/v1/Managers", capture.Root, "Managers"},
	{"/redfish/v1/AccountService", capture.Root, "AccountService"},
	{"/redfish/v1/SessionService", capture.Root, "SessionService"},
	{"/redfish/v1/SessionService/Sessions", capture.Root, "Links/Sessions"},
	{"/redfish/v1/TaskService", capture.Root, "Tasks"},
	{"/redfish/v1/JobService", capture.Root, "JobService"},
	{"/redfish/v1/EventService", capture.Root, "EventService"},
	{"/redfish/v1/UpdateService", capture.Root, "UpdateService"},
	{"/redfish/v1/Registries", capture.Root, "Registries"},
	{"/redfish/v1/TelemetryService", capture.Root, "TelemetryService"},
	{"/redfish/v1/CertificateService", capture.Root, "CertificateService"},
	{"/redfish/v1/AccountService/Accounts", "/redfish/v1/AccountService", "Accounts"},
	{"/redfish/v1/AccountService/Roles", "/redfish/v1/AccountService", "Roles"},
	{"/redfish/v1/EventService/Subscriptions", "/redfish/v1/EventService", "Subscriptions"},
	{"/redfish/v1/TaskService/Tasks", "/redfish/v1/TaskService", "Tasks"},
	{"/redfish/v1/JobService/Jobs", "/redfish/v1/JobService", "Jobs"},
	{"/redfish/v1/UpdateService/FirmwareInventory", "/redfish/v1/UpdateService", "FirmwareInventory"},
	{"/redfish/v1/UpdateService/SoftwareInventory", "/redfish/v1/UpdateService", "SoftwareInventory"},
	{"/redfish/v1/Systems/{system}/Bios", system, "Bios"},
	{"/redfish/v1/Systems/{system}/Bios/Settings", "/redfish/v1/Systems/{system}/Bios", "@Redfish.Settings/SettingsObject"},
	{"/redfish/v1/Systems/{system}/Processors", system, "Processors"},
	{"/redfish/v1/Systems/{system}/Memory", system, "Memory"},
	{"/redfish/v1/Systems/{system}/EthernetInterfaces", system, "EthernetInterfaces"},
	{"/redfish/v1/Systems/{system}/NetworkInterfaces", system, "NetworkInterfaces"},
	{"/redfish/v1/Systems/{system}/Storage", system, "Storage"},
	{"/redfish/v1/Systems/{system}/SecureBoot", system, "SecureBoot"},
	{"/redfish/v1/Systems/{system}/SecureBoot/SecureBootDatabases", "/redfish/v1/Systems/{system}/SecureBoot", "SecureBootDatabases"},
	{"/redfish/v1/Systems/{system}/BootOptions", system, "Boot/BootOptions"},
	{"/redfish/v1/Systems/{system}/VirtualMedia", system, "VirtualMedia"},
	{"/redfish/v1/Systems/{system}/VirtualMedia", manager, "VirtualMedia"},
	{"/redfish/v1/Systems/{system}/LogServices", system, "LogServices"},
	{"/redfish/v1/Managers/{manager}/LogServices", manager, "LogServices"},
	{"/redfish/v1/Managers/{manager}/EthernetInterfaces", manager, "EthernetInterfaces"},
	{"/redfish/v1/Managers/{manager}/HostInterfaces", manager, "HostInterfaces"},
	{"/redfish/v1/Managers/{manager}/NetworkProtocol", manager, "NetworkProtocol"},
	{"/redfish/v1/Chassis/{chassis}/Power", chassis, "Power"},
	{"/redfish/v1/Chassis/{chassis}/Thermal", chassis, "Thermal"},
	{"/redfish/v1/Chassis/{chassis}/PowerSubsystem", chassis, "PowerSubsystem"},
	{"/redfish/v1/Chassis/{chassis}/ThermalSubsystem", chassis, "ThermalSubsystem"},
	{"/redfish/v1/Chassis/{chassis}/EnvironmentMetrics", chassis, "EnvironmentMetrics"},
	{"/redfish/v1/Chassis/{chassis}/Sensors", chassis, "Sensors"},
	{"/redfish/v1/Chassis/{chassis}/NetworkAdapters", chassis, "NetworkAdapters"},
	{"/redfish/v1/Chassis/{chassis}/PCIeDevices", chassis, "PCIeDevices"},
	{"/redfish/v1/Chassis/{chassis}/Drives", chassis, "Drives"},
	{"/redfish/v1/Chassis/{chassis}/TrustedComponents", chassis, "TrustedComponents"},
	{"/redfish/v1/Chassis/{chassis}/PowerSubsystem/PowerSupplies", "/redfish/v1/Chassis/{chassis}/PowerSubsystem", "PowerSupplies"},
	{"/redfish/v1/Chassis/{chassis}/ThermalSubsystem/Fans", "/redfish/v1/Chassis/{chassis}/ThermalSubsystem", "Fans"},
}

const (
	system  = "/redfish/v1/Systems/{system}"
	manager = "/redfish/v1/Managers/{manager}"
	chassis = "/redfish/v1/Chassis/{chassis}"
)

// locateLinkedResources follows the links of linkedResources, and locates their
// members where the IDs of members are known.
func (d *deriver) locateLinkedResources() {
	d.locate(capture.Root, capture.Root)
	d.locate(system, d.system)
	d.locate(manager, d.manager)
	d.locate(chassis, d.chassis)
	for _, l := range linkedResources {
		at := d.link(d.locations[l.from], l.link)
		if d.capture.Resources[at] == nil {
			continue
		}
		d.locate(l.tree, at)
	}
	// The IDs of virtual media and of the first network interface may differ from
	// the emulator's.
	media := d.locations["/redfish/v1/Systems/{system}/VirtualMedia"]
	for _, at := range d.capture.Members(media) {
		d.locate("/redfish/v1/Systems/{system}/VirtualMedia/"+last(at), at)
	}
	for at, tree := range map[string]string{d.manager: manager, d.system: system} {
		of := d.resource(at)
		if all := d.members(of, "EthernetInterfaces"); tree == manager && len(all) > 0 {
			d.locate(tree+"/EthernetInterfaces/1", all[0])
		}
	}
}

// isUnder reports whether a URI equals another one or is below it.
func isUnder(at, of string) bool { return at == of || strings.HasPrefix(at, of+"/") }
