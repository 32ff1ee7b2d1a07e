package idrac

import "github.com/metalab-dev/metalab/emulator/dialect"

// Addresses.
const (
	system        = "/redfish/v1/Systems/{system}"
	manager       = "/redfish/v1/Managers/{manager}"
	chassis       = "/redfish/v1/Chassis/{chassis}"
	media         = system + "/VirtualMedia"
	managersMedia = manager + "/VirtualMedia"
	bios          = system + "/Bios"
	biosSettings  = bios + "/Settings"
	subsystem     = system + "/Storage/{storage}"
	tasks         = "/redfish/v1/TaskService/Tasks"
	task          = tasks + "/{task}"
)

// face is where and how these controllers show what the standard's services
// show otherwise.
func face(g generation) dialect.Face {
	return dialect.Face{Moves: moves(), Shapes: shapes(g), Rules: rules(g), Readings: readings()}
}

// moves are the addresses, which name a part by its place: FQDDs [V].
func moves() []dialect.Move {
	firmware := "/redfish/v1/UpdateService/FirmwareInventory/"
	return []dialect.Move{
		{From: task, To: tasks + "/JID_{task:12}"}, // [V]
		{From: "/redfish/v1/TaskService/TaskMonitors/{task}", To: "/redfish/v1/TaskService/TaskMonitors/JID_{task:12}"},
		{From: system + "/Processors/CPU{n}", To: system + "/Processors/CPU.Socket.{n}"},
		{From: system + "/Memory/DIMM{n}", To: system + "/Memory/DIMM.Socket.A{n}"},
		{From: chassis + "/PowerSubsystem/PowerSupplies/PSU{n}", To: chassis + "/PowerSubsystem/PowerSupplies/PSU.Slot.{n}"},
		{From: chassis + "/ThermalSubsystem/Fans/Fan{n}", To: chassis + "/ThermalSubsystem/Fans/Fan.Embedded.{n}"},
		{From: manager + "/EthernetInterfaces/1", To: manager + "/EthernetInterfaces/NIC.1"},
		{From: manager + "/HostInterfaces/1", To: manager + "/HostInterfaces/Host.1"},
		// Disk.Bay.0:Enclosure.Internal.0-1:RAID.Integrated.1-1 [V]
		{From: subsystem + "/Drives/Disk.{drive}", To: subsystem + "/Drives/Disk.Bay.{drive}:Enclosure.Internal.0-1:{storage}"},
		{From: subsystem + "/Volumes/{volume}", To: subsystem + "/Volumes/Disk.Virtual.{volume}:{storage}"}, // [V]
		{From: subsystem + "/Controllers/0", To: subsystem + "/Controllers/{storage}"},                      // [V]
		// The registry of BIOS attributes [V].
		{From: "/redfish/v1/Registries/BiosAttributeRegistry.v1_0_0/BiosAttributeRegistry.v1_0_0.json", To: bios + "/BiosRegistry"},
		// Installed-… says what runs [V]; the version that stands in the middle
		// of the real name is no part of an address here, which would change with
		// every update.
		{From: firmware + "BIOS", To: firmware + "Installed-159__BIOS.Setup.1-1"},
		{From: firmware + "BMC", To: firmware + "Installed-25227__iDRAC.Embedded.1-1"},
		{From: firmware + "Storage.{storage}", To: firmware + "Installed-0__{storage}"},
		{From: firmware + "Disk.{drive}", To: firmware + "Installed-1__Disk.Bay.{drive}"},
	}
}

// readings are what these controllers call otherwise than the standard [V: POST
// to Volumes].
func readings() []dialect.Reading {
	of := func(path, to string) dialect.Reading {
		return dialect.Reading{Of: "VolumeCollection", Method: "POST", Path: path, To: to}
	}
	return []dialect.Reading{of("OptimumIOSizeBytes", "StripSizeBytes"), of("Oem/Dell/DellVolume/DiskCachePolicy", dialect.Nowhere)}
}

// rules are what these controllers refuse.
func rules(g generation) []dialect.Rule {
	return []dialect.Rule{
		// While a job of settings waits, no others are taken [V: SYS011; badfish#30].
		{Of: "Bios", At: biosSettings, Method: "PATCH", While: dialect.SettingsDue,
			Says: g.say("SYS011", "Settings that a job has taken wait to be applied: no others can be set until then.")},
		// [V: dellemc.openmanage: a UefiTarget cannot stay]
		{Of: "ComputerSystem", Method: "PATCH", Is: map[string][]string{enabled: {"Continuous"}}, Begins: map[string][]string{target: {"UefiTarget"}},
			Says: g.say("SYS428", "An override of %1 cannot be continuous.")},
		// [K: PSU501 and PSU502]
		{Of: "ComputerSystem", Method: "ComputerSystem.Reset", Is: map[string][]string{"ResetType": {"On"}}, While: dialect.SystemOn, Status: 409,
			Says: g.say("PSU501", "The server is on already.")},
		{Of: "ComputerSystem", Method: "ComputerSystem.Reset", Is: map[string][]string{"ResetType": {"ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "PowerCycle", "Nmi"}},
			While: dialect.SystemOff, Status: 409, Says: g.say("PSU502", "The server is off already.")},
		// [V: sushy, fix-volume-delete: from 6.00.02 on]
		{Of: "Volume", Method: "DELETE", Sent: []string{"@Redfish.OperationApplyTime"},
			Says: g.say("SYS409", "The property %1 is not known to this service.")},
	}
}

const (
	enabled = "Boot/BootSourceOverrideEnabled"
	target  = "Boot/BootSourceOverrideTarget"
)
