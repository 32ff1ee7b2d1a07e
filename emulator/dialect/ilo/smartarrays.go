package ilo

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// smartArrays returns the SmartStorage resources of controllers, drives and volumes,
// which are older than the standard's Storage [V table: until iLO 5; docs,
// HpeSmartStorage…].
func smartArrays(g generation) []dialect.Resource {
	const array = system + "/SmartStorage/ArrayControllers"
	kind := func(of, version string) string {
		of = g.oem + "SmartStorage" + of
		if version == "" {
			return of + "." + of
		}
		return of + "." + version + "." + of
	}
	return []dialect.Resource{
		{URI: system + "/SmartStorage", Type: kind("", "v2_0_0"), Name: "HpeSmartStorage", Set: []propertyRule{
			{Path: "Links/ArrayControllers", Value: dict{"@odata.id": array}}, {Path: "Status/Health", Value: "OK"},
		}},
		{URI: array, Type: kind("ArrayControllerCollection", ""), Name: "HpeSmartStorageArrayControllers",
			BasedOn: system + "/Storage"},
		{URI: array + "/{storage}", BasedOn: system + "/Storage/{storage}", Type: kind("ArrayController", "v2_2_0"),
			Name: "HpeSmartStorageArrayController", Remove: []string{
				"Drives", "Drives@odata.count", "StorageControllers", "StorageControllers@odata.count", "Controllers", "Volumes", "HotspareActivationPolicy",
				"Links/Enclosures", "Links/Enclosures@odata.count", "Actions", "@Redfish.OperationApplyTimeSupport",
			}, Set: []propertyRule{
				{Path: "AdapterType", Value: "SmartArray"}, {Path: "BackupPowerSourceStatus", Value: "Present"}, {Path: "CurrentOperatingMode", Value: "Mixed"},
				{Path: "Model", From: "StorageControllers/0/Model"}, {Path: "SerialNumber", From: "StorageControllers/0/SerialNumber"},
				{Path: "FirmwareVersion/Current/VersionString", From: "StorageControllers/0/FirmwareVersion"},
				{Path: "Location", Value: "Slot 0"}, {Path: "LocationFormat", Value: "PCISlot"},
				{Path: "Links/LogicalDrives", Value: dict{"@odata.id": array + "/{storage}/LogicalDrives"}},
				{Path: "Links/PhysicalDrives", Value: dict{"@odata.id": array + "/{storage}/DiskDrives"}},
			}},
		{URI: array + "/{storage}/LogicalDrives", BasedOn: system + "/Storage/{storage}/Volumes", Name: "HpeSmartStorageLogicalDrives",
			Type: kind("LogicalDriveCollection", ""), Remove: []string{"@Redfish.CollectionCapabilities", "@Redfish.OperationApplyTimeSupport"}},
		{URI: array + "/{storage}/LogicalDrives/{volume}", BasedOn: system + "/Storage/{storage}/Volumes/{volume}", Name: "HpeSmartStorageLogicalDrive",
			Type: kind("LogicalDrive", "v2_3_0"), Remove: []string{
				"RAIDType", "OptimumIOSizeBytes", "Encrypted", "VolumeUsage", "ReadCachePolicy", "WriteCachePolicy", "WriteCacheState", "InitializeMethod",
				"RecoverableCapacitySourceCount", "Operations", "Actions", "Links", "DisplayName", "Identifiers", "CapacityBytes", "MediaSpanCount",
				"@Redfish.OperationApplyTimeSupport",
			}, Set: []propertyRule{
				{Path: "LogicalDriveName", From: "DisplayName"}, {Path: "Raid", From: "RAIDType", Map: raidTypes, Value: "Unknown"},
				{Path: "VolumeUniqueIdentifier", From: "Identifiers/0/DurableName"}, {Path: "LogicalDriveType", Value: "Data"},
				{Path: "MediaType", Value: "HDD"}, {Path: "InterfaceType", Value: "SAS"},
			}},
		{URI: array + "/{storage}/DiskDrives", Name: "HpeSmartStorageDiskDrives", Type: kind("DiskDriveCollection", ""),
			Read: func(l dialect.HookContext) map[string]any {
				members := []any{}
				for _, at := range drivesOf(l, l.Variables["storage"]) {
					members = append(members, dict{"@odata.id": l.URI + at[strings.LastIndexByte(at, '/'):]})
				}
				return dict{"Members": members}
			}},
		{URI: array + "/{storage}/DiskDrives/{drive}", BasedOn: system + "/Storage/{storage}/Drives/{drive}", Name: "HpeSmartStorageDiskDrive",
			Type: kind("DiskDrive", "v2_1_0"), Remove: []string{"Actions", "Links", "Operations", "Metrics", "Identifiers", "PhysicalLocation", "HotspareType", "StatusIndicator", "@Redfish.OperationApplyTimeSupport"},
			Set: []propertyRule{
				{Path: "InterfaceType", From: "Protocol"}, {Path: "DiskDriveUse", Value: "Data"}, {Path: "LocationFormat", Value: "ControllerPort:Box:Bay"},
			}},
	}
}
