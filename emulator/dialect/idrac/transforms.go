package idrac

import (
	"strconv"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// transforms returns the transforms of a generation, which add links and OEM objects
// [V: sushy, samples of a root, a manager and a system of the 14th generation; what
// those lack is K].
func transforms(g generation) []dialect.Transform {
	all := commonTransforms(g)
	if !g.old {
		all = append(all, dialect.Transform{ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{
			{Path: "Links/Oem/Dell/DellRaidService", Value: map[string]any{"@odata.id": raidService}},
		}})
	}
	return all
}

func commonTransforms(g generation) []dialect.Transform {
	serial := system + "#SerialNumber"
	return []dialect.Transform{
		{ResourceType: "ServiceRoot", Set: []dialect.PropertyRule{
			{Path: "Oem/Dell", Value: map[string]any{"@odata.type": "#DellServiceRoot.v1_0_0.ServiceRootSummary", "IsBranded": 0}},
			{Path: "Oem/Dell/ServiceTag", From: serial},
			{Path: "Oem/Dell/ManagerMACAddress", From: manager + "/EthernetInterfaces/1#MACAddress"},
		}},
		// SKU is the service tag, SerialNumber that of the board [V: ironic].
		{ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{
			{Path: "SKU", From: "SerialNumber"},
			{Path: "Links/Oem/Dell", Value: map[string]any{
				"@odata.type": "#DellOem.v1_3_0.DellOemLinks",
			}},
			{Path: "Oem/Dell", Value: map[string]any{"@odata.type": "#DellOem.v1_3_0.DellOemResources"}},
			{Path: "Oem/Dell/DellSystem", Value: map[string]any{
				"@odata.type": "#DellSystem.v1_4_0.DellSystem", "Id": "System.Embedded.1", "Name": "DellSystem",
				"SystemGeneration": g.model, "CurrentRollupStatus": "OK", "IsOEMBranded": "False", "PowerCapEnabledState": "Disabled",
			}},
			{Path: "Oem/Dell/DellSystem/ChassisServiceTag", From: "SerialNumber"},
			{Path: "Oem/Dell/DellSystem/NodeID", From: "SerialNumber"},
			{Path: "Oem/Dell/DellSystem/UUID", From: "UUID"},
			{Path: "Oem/Dell/DellSystem/ChassisModel", From: "Model"},
			{Path: "SerialNumber", From: "SerialNumber", Format: "CN%"},
		}},
		{ResourceType: "Chassis", Set: []dialect.PropertyRule{{Path: "SKU", From: "SerialNumber"}, {Path: "SerialNumber", From: "SerialNumber", Format: "CN%"}}},
		{ResourceType: "Manager", Set: []dialect.PropertyRule{
			{Path: "Links/Oem/Dell", Value: g.managerLinks()},
			{Path: "Oem/Dell/@odata.type", Value: "#DellManager.v1_2_0.DellManager"}, // [V: libredfish, tests/mockups/dell]
			{Path: "Oem/Dell/DelliDRACCard", Value: map[string]any{
				"@odata.type": "#DelliDRACCard.v1_1_0.DelliDRACCard", "Id": "iDRAC.Embedded.1-1_0x23_IDRACinfo", "Name": "DelliDRACCard", "IPMIVersion": "2.0",
			}},
		}},
		{ResourceType: "StorageController", Set: []dialect.PropertyRule{
			{Path: "Oem/Dell", Value: map[string]any{"@odata.type": "#DellOemStorageController.v1_1_0.DellOemStorageController"}},
			// PERC 11 and later have no other mode [V: sushy].
			{Path: "Oem/Dell/DellStorageController", Value: map[string]any{
				"@odata.type": "#DellStorageController.v1_1_0.DellStorageController", "Id": "{self}", "ControllerMode": "RAID", "RealtimeCapability": "Capable",
			}},
		}},
		{ResourceType: "Drive", Set: []dialect.PropertyRule{
			{Path: "Oem/Dell", Value: map[string]any{"@odata.type": "#DellOem.v1_3_0.DellOemResources"}},
			{Path: "Oem/Dell/DellPhysicalDisk", Value: map[string]any{"@odata.type": "#DellPhysicalDisk.v1_5_0.DellPhysicalDisk"}},
			{Path: "Oem/Dell/DellPhysicalDisk/RaidStatus", Value: "Ready"},
			{Path: "Oem/Dell/DellPhysicalDisk/RaidStatus", From: "=" + storedMode("{self}")},
			{Path: "Oem/Dell/DellPhysicalDisk/RaidStatus", From: "Links/Volumes@odata.count", Map: inVolumes, Otherwise: dialect.LeaveUnchanged},
		}},
		// Task.Oem.Dell is the job [V: sushy, sample of a task].
		{ResourceType: "Task", Set: append([]dialect.PropertyRule{
			{Path: "Oem/Dell", Value: map[string]any{"@odata.type": jobType}},
		}, jobData("Oem/Dell/")...)},
	}
}

// maxVolumes is more than the volumes that share a drive: 16 on a PERC [K].
const maxVolumes = 64

// inVolumes is the RaidStatus of a drive by the number of its volumes.
var inVolumes = func() map[string]any {
	all := map[string]any{}
	for n := range maxVolumes {
		all[strconv.Itoa(n+1)] = "Online"
	}
	return all
}()

// managerLinks returns the links of the manager to OEM resources.
func (g generation) managerLinks() map[string]any {
	link := func(to string) map[string]any { return map[string]any{"@odata.id": to} }
	var all []any
	for _, name := range groupNames {
		all = append(all, link(g.groupURI(name)))
	}
	out := map[string]any{
		"@odata.type": "#DellManager.v1_2_0.DellManagerLinks", "Jobs": link(oldJobs), "DellAttributes": all, "DellAttributes@odata.count": len(all),
	}
	if !g.old {
		out["Jobs"] = link(jobs)
		out["DelliDRACCardService"], out["DellLCService"], out["DellJobService"] = link(cardService), link(lifecycleService), link(jobService)
	}
	return out
}
