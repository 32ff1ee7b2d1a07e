package ilo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
)

// SmartStorageConfig creates and deletes the volumes of a Smart Array: a PATCH of its
// settings resource is applied when the system starts next [V table; docs,
// smartstorage]. The volumes are those of the standard service, where the changes wait
// as tasks.

// smartStorageURI is the URI of SmartStorageConfig; its settings are below it.
const smartStorageURI = "/redfish/v1/systems/{system}/smartstorageconfig"

// Names of stored values: DataGuard, which says how destructive a change may be, the
// logical drives of the last change, and its time.
const (
	storedGuard   = "SmartStorageConfig/DataGuard"
	storedPending = "SmartStorageConfig/LogicalDrives"
	storedTime    = "SmartStorageConfig/Time"
)

// smartConfig returns the resources of SmartStorageConfig.
func smartConfig() []dialect.Resource {
	const kind = "SmartStorageConfig.v2_0_3.SmartStorageConfig"
	tunable := []string{
		"ExpandPriority", "RebuildPriority", "ReadCachePercent", "DriveWriteCache", "NoBatteryWriteCache", "PredictiveSpareRebuild", "QueueDepth",
		"SurfaceScanAnalysisPriority", "SurfaceScanAnalysisDelaySeconds", "CurrentParallelSurfaceScanCount", "ElevatorSort",
		"DegradedPerformanceOptimization", "InconsistencyRepairPolicy", "MonitorAndPerformanceAnalysisDelaySeconds", "PowerModeAfterReboot",
		"SurvivalPowerMode", "WriteCacheBypassThresholdKiB", "FlexibleLatencySchedulerSetting",
	}
	return []dialect.Resource{
		{URI: smartStorageURI, Type: kind, Name: "Smart Storage Config", Read: func(l dialect.HookContext) map[string]any { return config(l, false) }},
		// Settings that tune the array are stored, and have no effect [V docs: names and
		// defaults].
		{URI: smartStorageURI + "/settings", Type: kind, Name: "Smart Storage Config Settings", Writable: tunable, Privilege: "ConfigureComponents",
			Read: func(l dialect.HookContext) map[string]any { return config(l, true) }},
	}
}

// raidTypes maps the standard's RAID types to iLO's [V docs: LogicalDrives.Raid].
// No controller of the rack makes Raid1ADM and Raid10ADM, of three drives each.
var raidTypes = dict{"RAID0": "Raid0", "RAID1": "Raid1", "RAID5": "Raid5", "RAID6": "Raid6", "RAID10": "Raid10", "RAID50": "Raid50", "RAID60": "Raid60"}

// smartWrites are the properties whose PATCH changes volumes.
var smartWrites = []dialect.WritableProperty{
	{ResourceType: "SmartStorageConfig", Path: "DataGuard", Effects: []dialect.Effect{
		{When: when("$", "Strict", "Permissive", "Disabled"), Store: dict{storedGuard: "$"}},
	}},
	{ResourceType: "SmartStorageConfig", Path: "LogicalDrives", Type: dialect.ArrayParameter, Effects: []dialect.Effect{{Hook: writeLogicalDrives}}},
}

// array returns the standard URI of the Storage resource that SmartStorageConfig
// configures: the first with volumes. It returns "" when there is none.
func array(l dialect.HookContext) string {
	all := l.Standard("/redfish/v1/Systems/" + l.Variables["system"] + "/Storage")
	for _, at := range ids(all["Members"]) {
		if l.Standard(at)["Volumes"] != nil {
			return at
		}
	}
	return ""
}

// ids returns the URIs of links.
func ids(v any) []string {
	var out []string
	all, _ := v.([]any)
	for _, x := range all {
		link, _ := x.(dict)
		if at, ok := link["@odata.id"].(string); ok {
			out = append(out, at)
		}
	}
	return out
}

func drivesOf(l dialect.HookContext, storage string) []string {
	return ids(l.Standard("/redfish/v1/Systems/" + l.Variables["system"] + "/Storage/" + storage)["Drives"])
}

// location returns the location of the n-th drive: port, box and bay [V docs:
// DriveLocationFormat; K: four drives a port].
func location(n int) string { return fmt.Sprintf("%dI:1:%d", n/4+1, n+1) }

// driveLocations returns the locations of the drives of an array, and the drives by
// their locations.
func driveLocations(l dialect.HookContext, array string) (at []string, of map[string]string) {
	of = map[string]string{}
	for i, drive := range ids(l.Standard(array)["Drives"]) {
		where := location(i)
		at = append(at, where)
		of[where] = drive
	}
	return at, of
}

// config returns the configuration: the present one, or the pending one.
func config(l dialect.HookContext, settings bool) map[string]any {
	guard, _ := l.Stored[storedGuard].(string)
	if guard == "" {
		guard = "Strict"
	}
	o := dict{
		"Id": "smartstorageconfig", "DataGuard": guard, "Location": "Slot 0", "LocationFormat": "PCISlot", "DriveLocationFormat": "ControllerPort:Box:Bay",
		"CurrentParallelSurfaceScanCount": 1, "DegradedPerformanceOptimization": "Disabled", "DriveWriteCache": "Disabled", "ElevatorSort": "Enabled",
		"EncryptionConfiguration": "None", "EncryptionEULA": nil, "ExpandPriority": "Medium", "FlexibleLatencySchedulerSetting": "Default",
		"InconsistencyRepairPolicy": "Disabled", "MonitorAndPerformanceAnalysisDelaySeconds": 60, "NoBatteryWriteCache": "Disabled",
		"PowerModeAfterReboot": "MaxPerformance", "PredictiveSpareRebuild": "Disabled", "QueueDepth": "Automatic", "ReadCachePercent": 10,
		"RebuildPriority": "High", "SurfaceScanAnalysisDelaySeconds": 3, "SurfaceScanAnalysisPriority": "Idle", "SurvivalPowerMode": "Enabled",
		"WriteCacheBypassThresholdKiB": 1040, "LogicalDrives": []any{}, "PhysicalDrives": []any{},
	}
	at := array(l)
	if at == "" {
		return o
	}
	where, of := driveLocations(l, at)
	physical := []any{}
	for _, p := range where {
		physical = append(physical, dict{"LegacyBootPriority": "None", "Location": p, "LocationFormat": "ControllerPort:Box:Bay"})
	}
	logical := []any{}
	for i, v := range ids(l.Standard(at + "/Volumes")["Members"]) {
		logical = append(logical, logicalDrive(l.Standard(v), i+1, where, of))
	}
	o["LogicalDrives"], o["PhysicalDrives"] = logical, physical
	if settings {
		o["Id"] = "settings"
		if asked, _ := l.Stored[storedPending].([]any); asked != nil && waitsForReset(l, at) {
			o["LogicalDrives"] = asked
		}
		return o
	}
	o["@Redfish.Settings"] = lastResult(l, at)
	return o
}

// logicalDrive returns a volume in iLO's properties.
func logicalDrive(v dict, n int, where []string, of map[string]string) dict {
	links, _ := v["Links"].(dict)
	named := func(links any) []any {
		out := []any{}
		all := ids(links)
		for _, p := range where {
			if slices.Contains(all, of[p]) {
				out = append(out, p)
			}
		}
		return out
	}
	size, block := number(v["CapacityBytes"]), max(1, number(v["BlockSizeBytes"]))
	data := named(links["Drives"])
	accelerator := "ControllerCache"
	if v["WriteCachePolicy"] == "WriteThrough" {
		accelerator = "None"
	}
	return dict{
		"LogicalDriveNumber": n, "LogicalDriveName": v["DisplayName"], "Raid": raidTypes[fmt.Sprint(v["RAIDType"])], "Accelerator": accelerator,
		"BlockSizeBytes": block, "CapacityBlocks": size / block, "CapacityGiB": size >> 30, "DataDrives": data,
		"SpareDrives": named(links["DedicatedSpareDrives"]), "SpareRebuildMode": nil, "LegacyBootPriority": "None", "ParityGroupCount": 0,
		"StripSizeBytes": number(v["StripSizeBytes"]), "StripeSizeBytes": number(v["OptimumIOSizeBytes"]), "DriveLocationFormat": "ControllerPort:Box:Bay",
		"VolumeUniqueIdentifier": identifier(v), "Status": v["Status"],
	}
}

// identifier returns the identifier of a volume.
func identifier(v dict) string {
	all, _ := v["Identifiers"].([]any)
	for _, x := range all {
		if id, ok := x.(dict); ok {
			return strings.ToUpper(fmt.Sprint(id["DurableName"]))
		}
	}
	return ""
}

// number returns a number of a body as an integer.
func number(v any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	return n
}

// jobs returns the tasks that the last change has made.
func jobs(l dialect.HookContext, array string) []bmc.Task {
	text, _ := l.Stored[storedTime].(string)
	since, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil
	}
	var out []bmc.Task
	for _, j := range l.BMC.Tasks.All() {
		if !j.Created.Before(since) && strings.HasPrefix(j.Request.Target, array+"/Volumes") {
			out = append(out, j)
		}
	}
	return out
}

// waitsForReset reports whether the last change waits for a reset of the system.
func waitsForReset(l dialect.HookContext, array string) bool {
	return slices.ContainsFunc(jobs(l, array), func(j bmc.Task) bool { return !j.State.Ended() })
}

// lastResult returns the result of the last change: that of the tasks that it made.
func lastResult(l dialect.HookContext, array string) dict {
	s := dict{
		"@odata.type": "#Settings.v1_0_0.Settings", "ETag": "", "Time": "", "Messages": []any{dict{"MessageId": "Base.1.0.Success"}},
		"SettingsObject": dict{"@odata.id": strings.Replace(smartStorageURI, "{system}", l.Variables["system"], 1) + "/settings"},
	}
	messages := []any{}
	for _, j := range jobs(l, array) {
		switch j.State {
		case bmc.TaskCompleted:
			s["Time"] = j.Ended.UTC().Format(time.RFC3339)
		case bmc.TaskException, bmc.TaskCancelled:
			s["Time"] = j.Ended.UTC().Format(time.RFC3339)
			messages = append(messages, dict{"MessageId": "SmartStorageMessages.2.0.OperationFailed", "MessageArgs": []any{j.Name}})
		default:
			messages = append(messages, dict{"MessageId": "iLO.2.23.SystemResetRequired"})
		}
	}
	if len(messages) > 0 {
		s["Messages"] = messages
	}
	return s
}
