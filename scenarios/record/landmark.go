package record

import (
	"strings"

	"github.com/metalab-dev/metalab/scenarios/capture"
)

// landmarks are the resources of the tree that there is one of, with the link
// that leads there from another.
var landmarks = []struct{ tree, from, link string }{
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

// landmarks finds them.
func (d *deriver) landmarks() {
	d.place(capture.Root, capture.Root)
	d.place(system, d.system)
	d.place(manager, d.manager)
	d.place(chassis, d.chassis)
	for _, l := range landmarks {
		at := d.link(d.places[l.from], l.link)
		if d.c.Pages[at] == nil {
			continue
		}
		d.place(l.tree, at)
	}
	// What has a name of its own there, and is what stands in the same place of
	// the collection here.
	media := d.places["/redfish/v1/Systems/{system}/VirtualMedia"]
	for _, at := range d.c.Members(media) {
		d.place("/redfish/v1/Systems/{system}/VirtualMedia/"+last(at), at)
	}
	for at, tree := range map[string]string{d.manager: manager, d.system: system} {
		of := d.page(at)
		if all := d.members(of, "EthernetInterfaces"); tree == manager && len(all) > 0 {
			d.place(tree+"/EthernetInterfaces/1", all[0])
		}
	}
}

// under says whether an address is another one or below it.
func under(at, of string) bool { return at == of || strings.HasPrefix(at, of+"/") }
