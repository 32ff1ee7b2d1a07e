package ilo

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// arrays are controllers, drives and volumes as they were shown before there was
// a standard for them [V table: until iLO 5; docs, HpeSmartStorage…].
func arrays(g generation) []dialect.Resource {
	const array = system + "/SmartStorage/ArrayControllers"
	kind := func(of, version string) string {
		of = g.oem + "SmartStorage" + of
		if version == "" {
			return of + "." + of
		}
		return of + "." + version + "." + of
	}
	return []dialect.Resource{
		{At: system + "/SmartStorage", Type: kind("", "v2_0_0"), Name: "HpeSmartStorage", Set: []datum{
			{Path: "Links/ArrayControllers", Value: dict{"@odata.id": array}}, {Path: "Status/Health", Value: "OK"},
		}},
		{At: array, Type: kind("ArrayControllerCollection", ""), Name: "HpeSmartStorageArrayControllers",
			Like: system + "/Storage"},
		{At: array + "/{storage}", Like: system + "/Storage/{storage}", Type: kind("ArrayController", "v2_2_0"),
			Name: "HpeSmartStorageArrayController", Drop: []string{
				"Drives", "Drives@odata.count", "StorageControllers", "StorageControllers@odata.count", "Controllers", "Volumes", "HotspareActivationPolicy",
				"Links/Enclosures", "Links/Enclosures@odata.count", "Actions", "@Redfish.OperationApplyTimeSupport",
			}, Set: []datum{
				{Path: "AdapterType", Value: "SmartArray"}, {Path: "BackupPowerSourceStatus", Value: "Present"}, {Path: "CurrentOperatingMode", Value: "Mixed"},
				{Path: "Model", From: "StorageControllers/0/Model"}, {Path: "SerialNumber", From: "StorageControllers/0/SerialNumber"},
				{Path: "FirmwareVersion/Current/VersionString", From: "StorageControllers/0/FirmwareVersion"},
				{Path: "Location", Value: "Slot 0"}, {Path: "LocationFormat", Value: "PCISlot"},
				{Path: "Links/LogicalDrives", Value: dict{"@odata.id": array + "/{storage}/LogicalDrives"}},
				{Path: "Links/PhysicalDrives", Value: dict{"@odata.id": array + "/{storage}/DiskDrives"}},
			}},
		{At: array + "/{storage}/LogicalDrives", Like: system + "/Storage/{storage}/Volumes", Name: "HpeSmartStorageLogicalDrives",
			Type: kind("LogicalDriveCollection", ""), Drop: []string{"@Redfish.CollectionCapabilities", "@Redfish.OperationApplyTimeSupport"}},
		{At: array + "/{storage}/LogicalDrives/{volume}", Like: system + "/Storage/{storage}/Volumes/{volume}", Name: "HpeSmartStorageLogicalDrive",
			Type: kind("LogicalDrive", "v2_3_0"), Drop: []string{
				"RAIDType", "OptimumIOSizeBytes", "Encrypted", "VolumeUsage", "ReadCachePolicy", "WriteCachePolicy", "WriteCacheState", "InitializeMethod",
				"RecoverableCapacitySourceCount", "Operations", "Actions", "Links", "DisplayName", "Identifiers", "CapacityBytes", "MediaSpanCount",
				"@Redfish.OperationApplyTimeSupport",
			}, Set: []datum{
				{Path: "LogicalDriveName", From: "DisplayName"}, {Path: "Raid", From: "RAIDType", Map: raids, Value: "Unknown"},
				{Path: "VolumeUniqueIdentifier", From: "Identifiers/0/DurableName"}, {Path: "LogicalDriveType", Value: "Data"},
				{Path: "MediaType", Value: "HDD"}, {Path: "InterfaceType", Value: "SAS"},
			}},
		{At: array + "/{storage}/DiskDrives", Name: "HpeSmartStorageDiskDrives", Type: kind("DiskDriveCollection", ""),
			Read: func(l dialect.Look) map[string]any {
				members := []any{}
				for _, at := range drivesOf(l, l.IDs["storage"]) {
					members = append(members, dict{"@odata.id": l.Self + at[strings.LastIndexByte(at, '/'):]})
				}
				return dict{"Members": members}
			}},
		{At: array + "/{storage}/DiskDrives/{drive}", Like: system + "/Storage/{storage}/Drives/{drive}", Name: "HpeSmartStorageDiskDrive",
			Type: kind("DiskDrive", "v2_1_0"), Drop: []string{"Actions", "Links", "Operations", "Metrics", "Identifiers", "PhysicalLocation", "HotspareType", "StatusIndicator", "@Redfish.OperationApplyTimeSupport"},
			Set: []datum{
				{Path: "InterfaceType", From: "Protocol"}, {Path: "DiskDriveUse", Value: "Data"}, {Path: "LocationFormat", Value: "ControllerPort:Box:Bay"},
			}},
	}
}
