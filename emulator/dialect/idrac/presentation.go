package idrac

import "github.com/metalab-dev/metalab/emulator/dialect"

// Standard URIs.
const (
	system        = "/redfish/v1/Systems/{system}"
	manager       = "/redfish/v1/Managers/{manager}"
	chassis       = "/redfish/v1/Chassis/{chassis}"
	media         = system + "/VirtualMedia"
	managersMedia = manager + "/VirtualMedia"
	bios          = system + "/Bios"
	biosSettings  = bios + "/Settings"
	subsystem     = system + "/Storage/{storage}"
	fans          = chassis + "/ThermalSubsystem/Fans"
	tasks         = "/redfish/v1/TaskService/Tasks"
	task          = tasks + "/{task}"
)

// presentation returns the Presentation of a generation.
func presentation(g generation) dialect.Presentation {
	return dialect.Presentation{
		URIMappings: uriMappings(), Transforms: transforms(g), RejectRules: rejectRules(g), InputAliases: inputAliases(),
		// The code is always GeneralError. A message of IDRAC stands before the one of Base
		// that means the same, if there is one; each has lists with their counts [V:
		// iDRAC-Redfish-Scripting#262; dellemc.openmanage#132, and its samples of
		// idrac_system_erase].
		Errors: dialect.ErrorFormat{Code: "Base." + short(g.base) + ".GeneralError", KeepReplaced: true, Counts: true},
	}
}

// uriMappings returns the URI mappings: URIs have FQDDs, which name a part by its
// place [V].
func uriMappings() []dialect.URIMapping {
	firmware := "/redfish/v1/UpdateService/FirmwareInventory/"
	return []dialect.URIMapping{
		{From: task, To: tasks + "/JID_{task:12}"}, // [V]
		{From: "/redfish/v1/TaskService/TaskMonitors/{task}", To: "/redfish/v1/TaskService/TaskMonitors/JID_{task:12}"},
		{From: system + "/Processors/CPU{n}", To: system + "/Processors/CPU.Socket.{n}"},
		{From: system + "/Memory/DIMM{n}", To: system + "/Memory/DIMM.Socket.A{n}"},
		{From: chassis + "/PowerSubsystem/PowerSupplies/PSU{n}", To: chassis + "/PowerSubsystem/PowerSupplies/PSU.Slot.{n}"},
		{From: fans + "/Fan{n}", To: fans + "/Fan.Embedded.{n}"},
		{From: manager + "/EthernetInterfaces/1", To: manager + "/EthernetInterfaces/NIC.1"},
		{From: manager + "/HostInterfaces/1", To: manager + "/HostInterfaces/Host.1"},
		// Disk.Bay.0:Enclosure.Internal.0-1:RAID.Integrated.1-1 [V]
		{From: subsystem + "/Drives/Disk.{drive}", To: subsystem + "/Drives/Disk.Bay.{drive}:Enclosure.Internal.0-1:{storage}"},
		{From: subsystem + "/Volumes/{volume}", To: subsystem + "/Volumes/Disk.Virtual.{volume}:{storage}"}, // [V]
		{From: subsystem + "/Controllers/0", To: subsystem + "/Controllers/{storage}"},                      // [V]
		// The BIOS attribute registry [V].
		{From: "/redfish/v1/Registries/BiosAttributeRegistry.v1_0_0/BiosAttributeRegistry.v1_0_0.json", To: bios + "/BiosRegistry"},
		// Installed-… is the running firmware [V]. A real ID also has the version, with
		// which the URI would change at every update.
		{From: firmware + "BIOS", To: firmware + "Installed-159__BIOS.Setup.1-1"},
		{From: firmware + "BMC", To: firmware + "Installed-25227__iDRAC.Embedded.1-1"},
		{From: firmware + "Storage.{storage}", To: firmware + "Installed-0__{storage}"},
		{From: firmware + "Disk.{drive}", To: firmware + "Installed-1__Disk.Bay.{drive}"},
	}
}

// inputAliases returns the aliases of a new volume's properties [V: POST to Volumes].
func inputAliases() []dialect.InputAlias {
	of := func(path, to string) dialect.InputAlias {
		return dialect.InputAlias{ResourceType: "VolumeCollection", Method: "POST", Path: path, To: to}
	}
	return []dialect.InputAlias{of("OptimumIOSizeBytes", "StripSizeBytes"), of("Oem/Dell/DellVolume/DiskCachePolicy", dialect.Discard)}
}

// rejectRules returns the RejectRules of a generation.
func rejectRules(g generation) []dialect.RejectRule {
	return []dialect.RejectRule{
		// While a job waits to apply settings, others are rejected [V: SYS011; badfish#30].
		{ResourceType: "Bios", URI: biosSettings, Method: "PATCH", While: dialect.SettingsDue,
			Message: g.message("SYS011", "Settings that a job has taken wait to be applied: no others can be set until then.")},
		// [V: dellemc.openmanage: UefiTarget cannot be Continuous]
		{ResourceType: "ComputerSystem", Method: "PATCH", OneOf: map[string][]string{enabled: {"Continuous"}}, HasPrefix: map[string][]string{target: {"UefiTarget"}},
			Message: g.message("SYS428", "An override of %1 cannot be continuous.")},
		// [V: dellemc-openmanage-ansible-modules#132: 409 and PSU501]
		{ResourceType: "ComputerSystem", Method: "ComputerSystem.Reset", OneOf: map[string][]string{"ResetType": {"On"}}, While: dialect.SystemOn, Status: 409,
			Message: g.message("PSU501", "The server is on already.")},
		// [V: openstack-k8s-operators/infra-operator#434: 409; NVIDIA/libredfish,
		// tests/mockups/dell, EEMIRegistry: PSU502 answers a request to power off, and
		// no restart]
		{ResourceType: "ComputerSystem", Method: "ComputerSystem.Reset", OneOf: map[string][]string{"ResetType": {"ForceOff", "GracefulShutdown"}},
			While: dialect.SystemOff, Status: 409, Message: g.message("PSU502", "The server is off already.")},
		// [V: sushy, fix-volume-delete: from 6.00.02 on]
		{ResourceType: "Volume", Method: "DELETE", SendsAny: []string{"@Redfish.OperationApplyTime"},
			Message: g.message("SYS409", "The property %1 is not known to this service.")},
	}
}

const (
	enabled = "Boot/BootSourceOverrideEnabled"
	target  = "Boot/BootSourceOverrideTarget"
)
