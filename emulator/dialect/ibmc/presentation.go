package ibmc

import (
	"fmt"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

const (
	systems  = "/redfish/v1/Systems/{system}"
	chassis  = "/redfish/v1/Chassis/{chassis}"
	storage  = systems + "/Storage"
	volumes  = storage + "/{storage}/Volumes"
	slot     = systems + "/VirtualMedia/{slot}"
	oem      = "Oem/Huawei"
	resets   = "ComputerSystem.Reset"
	cycle    = "ForcePowerCycle"
	resetURI = systems + "/ResetActionInfo"
)

func vendorMessage(key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "iBMC", Version: "1.0.0", Key: key, Text: text, Resolution: "Change the request and send it again."}
}

func baseMessage(key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "Base", Version: "1.0.0", Key: key, Text: text, Resolution: "Change the request and send it again."}
}

// presentation returns the Presentation of iBMC.
func presentation() dialect.Presentation {
	done := baseMessage("Success", "The request was carried out.")
	done.Resolution = "None"
	return dialect.Presentation{
		URIMappings: []dialect.URIMapping{
			// [V] client: get-raid-storage-0.json, get-volume-0.json, get-drive-0.json.
			{From: storage, To: systems + "/Storages"},
			{From: volumes + "/Capabilities", To: systems + "/Storages/{storage}/Volumes/Capabilities"},
			{From: volumes + "/{volume}", To: systems + "/Storages/{storage}/Volumes/LogicalDrive{volume}"},
			{From: storage + "/RAIDStorage0/Drives/Disk.{n}", To: chassis + "/Drives/HDDPlaneDisk{n}"},
			{From: "/redfish/v1/Registries/BiosAttributeRegistry.v1_8_7", To: "/redfish/v1/Registries/BiosAttributeRegistry.1.8.7"}, // [V] client: bios.json
			// [V] cmdlets: Deploy.ps1.
			{From: systems + "/VirtualMedia", To: "/redfish/v1/Managers/{manager}/VirtualMedia"},
		},
		Hidden: []string{
			// [V] client: redfish.json, system-v5.json, manager.json have no links to these.
			"/redfish/v1/CertificateService", "/redfish/v1/JobService", "/redfish/v1/ComponentIntegrity", "/redfish/v1/TelemetryService",
			"/redfish/v1/UpdateService/SoftwareInventory", "/redfish/v1/AccountService/Accounts/{account}/Certificates",
			"/redfish/v1/EventService/Subscriptions/{subscription}/Certificates",
			"/redfish/v1/Managers/{manager}/HostInterfaces", "/redfish/v1/Managers/{manager}/NetworkProtocol/HTTPS/Certificates",
			systems + "/BootOptions", systems + "/Boot/Certificates", systems + "/SecureBoot",
			systems + "/Actions/ComputerSystem.SetDefaultBootOrder",
			chassis + "/Controls", chassis + "/TrustedComponents", chassis + "/Sensors", chassis + "/PowerSubsystem", chassis + "/ThermalSubsystem",
			chassis + "/EnvironmentMetrics", systems + "/Processors/{processor}/EnvironmentMetrics", systems + "/Memory/{dimm}/EnvironmentMetrics",
			volumes + "/Capabilities", storage + "/{storage}/Controllers",
			// [V] the slot has no standard actions.
			slot + "/Actions", slot + "/InsertMediaActionInfo", slot + "/Certificates",
		},
		Transforms: []dialect.Transform{
			{ResourceType: "ServiceRoot", Remove: []string{"Vendor", "Product", "ProtocolFeaturesSupported"}, Set: []dialect.PropertyRule{ // [V] client: redfish.json
				{Path: oem + "/ProductName", From: systems + "#Model"}, {Path: oem + "/HostName", From: systems + "#HostName"},
				{Path: oem + "/LanguageSet", Value: "en,zh,ja"},
			}},
			{
				ResourceType: "ComputerSystem",
				Set: []dialect.PropertyRule{
					{Path: "Name", Value: "Computer System"},
					{Path: "Links/Managers", From: "Links/ManagedBy"}, // [V] client: system-v5.json: its name for ManagedBy
					{Path: oem + "/ProductName", From: "Model"},
					{Path: "Actions/Oem/Huawei/#" + fruControl, Value: map[string]any{"target": "{self}/Actions/Oem/Huawei/" + fruControl}}, // [V] client: system-v5.json
					{Path: oem + "/StorageSummary/Count", From: storage + "#Members@odata.count"},
					{Path: oem + "/PowerOnStrategy", From: "PowerRestorePolicy", Map: map[string]any{"AlwaysOn": "TurnOn", "AlwaysOff": "StayOff", "LastState": "RestorePreviousState"}},
				},
				Remove: []string{
					"Links/ManagedBy", "HostingRoles",
					"Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues", // [V] only the ActionInfo has them
					"Boot/BootSourceOverrideEnabled@Redfish.AllowableValues", "Boot/BootSourceOverrideMode@Redfish.AllowableValues",
					"Boot/BootOrder", "Boot/BootOptions", "Boot/BootNext", "Boot/BootOrderPropertySelection", "Boot/AliasBootOrder",
					"Boot/AliasBootOrder@Redfish.AllowableValues", "Boot/AutomaticRetryConfig", "Boot/AutomaticRetryConfig@Redfish.AllowableValues",
					"Boot/AutomaticRetryAttempts", "Boot/RemainingAutomaticRetryAttempts", "Boot/UefiTargetBootSourceOverride", "Boot/HttpBootUri", "Boot/Certificates",
				},
			},
			{ResourceType: "ActionInfo", URI: resetURI, Set: []dialect.PropertyRule{
				{Path: "Parameters/0/AllowableValues", Value: []any{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", cycle}}, // [V]
			}},
			// [V] client: bios.json: the version has no v.
			{ResourceType: "Bios", Set: []dialect.PropertyRule{{Path: "AttributeRegistry", Value: "BiosAttributeRegistry.1.8.7"}}},
			{ResourceType: "Manager", Set: []dialect.PropertyRule{{Path: oem + "/HostName", From: systems + "#HostName"}, {Path: oem + "/LanguageSet", Value: "en,zh,ja"}}},
			{
				ResourceType: "VirtualMedia", Remove: []string{"EjectPolicy", "VerifyCertificate", "TransferMethod@Redfish.AllowableValues", "TransferProtocolType@Redfish.AllowableValues"},
				Set: []dialect.PropertyRule{{Path: oem + "/Actions", Value: map[string]any{"#VirtualMedia.VmmControl": map[string]any{ // [V] cmdlets: Deploy.ps1
					"target": "{self}/Oem/Huawei/Actions/VirtualMedia.VmmControl",
				}}}},
			},
			{ResourceType: "Storage", Remove: []string{"Controllers", "Links/Enclosures", "Links/Enclosures@odata.count"}, Set: []dialect.PropertyRule{ // [V] client: get-raid-storage-0.json
				{Path: "StorageControllers/0/" + oem + "/SupportedRAIDLevels", From: "StorageControllers/0/SupportedRAIDTypes"},
				{Path: "StorageControllers/0/" + oem + "/Mode", Value: "RAID"},
				{Path: "StorageControllers/0/" + oem + "/OOBSupport", Value: true},
			}},
			{ResourceType: "Volume", Set: []dialect.PropertyRule{ // [V] client: get-volume-0.json
				{Path: oem + "/VolumeName", From: "Name"},
				{Path: oem + "/VolumeRaidLevel", From: "RAIDType"},
				{Path: oem + "/RaidControllerID", Value: 0},
				{Path: oem + "/DefaultReadPolicy", From: "ReadCachePolicy", Map: map[string]any{"Off": "NoReadAhead"}, Value: "ReadAhead"},
				{Path: oem + "/DefaultWritePolicy", From: "WriteCachePolicy", Map: map[string]any{"WriteThrough": "WriteThrough", "UnprotectedWriteBack": "WriteBack"}, Value: "WriteBackWithBBU"},
				// BootEnable is not here: which volume the firmware boots is its boot order's.
			}},
			{ResourceType: "Drive", Set: []dialect.PropertyRule{ // [V] client: get-drive-0.json
				{Path: oem + "/DriveID", From: "Id", Map: driveIDs(), Otherwise: dialect.LeaveUnchanged},
				{Path: oem + "/FirmwareStatus", From: "Links/Volumes@odata.count", Map: map[string]any{"0": "UnconfiguredGood"}, Value: "Online"},
				{Path: oem + "/RebuildState", Value: "DoneOrNotRebuilt"},
			}},
			// [V] client: create-volume-task-init-response.json and its like: one message,
			// not a list, and a percentage as a text.
			{ResourceType: "Task", Set: []dialect.PropertyRule{
				{Path: oem + "/TaskPercentage", From: "PercentComplete", Map: percents(), Otherwise: dialect.LeaveUnchanged},
				{Path: "Messages", From: "Messages/-1"},
				{Path: "Messages", From: "TaskState", Otherwise: dialect.LeaveUnchanged, Map: map[string]any{ // until it has ended there is none
					"New": []any{}, "Starting": []any{}, "Running": []any{}, "Pending": []any{}, "Stopping": []any{},
				}},
			}, Remove: []string{"PercentComplete", "HidePayload", "Payload"}},
		},
		RejectRules: []dialect.RejectRule{
			// [V] by the table: field notes of 1288H V5.
			{ResourceType: "VirtualMedia", Method: vmmControl, HasPrefix: map[string][]string{"Image": {"http://", "ftp://", "tftp://"}},
				Message: vendorMessage("FileTransferProtocolMismatch", "The protocol of %2 is none that files are transferred by here.")},
			// [K] whether a PATCH inserts is not known: it does, so that clients of the
			// standard alone have a way, and takes what the action takes.
			{ResourceType: "VirtualMedia", Method: "PATCH", HasPrefix: map[string][]string{"Image": {"http://", "ftp://", "tftp://"}},
				Message: vendorMessage("FileTransferProtocolMismatch", "The protocol of %2 is none that files are transferred by here.")},
			{ResourceType: "VirtualMedia", Method: vmmControl, OneOf: map[string][]string{"VmmControlType": {"Connect"}}, Missing: []string{"Image"},
				Message: baseMessage("ActionParameterMissing", "The action needs the parameter %1, which was not sent.")},
			{ResourceType: "ComputerSystem", Method: resets, OneOf: map[string][]string{"ResetType": {"PowerCycle"}},
				Message: baseMessage("ActionParameterNotSupported", "The parameter %1 cannot have the value %2 here.")},
		},
		InputAliases: []dialect.InputAlias{
			{ResourceType: "ComputerSystem", Method: resets, Path: "ResetType", Values: map[string]any{cycle: "PowerCycle"}},
			// [V] client: volume.py, init.
			{ResourceType: "Volume", Method: "Volume.Initialize", Path: "Type", To: "InitializeType", Values: map[string]any{"QuickInit": "Fast", "FullInit": "Slow"}},
		},
		// [V] client: reset-system.json.
		Errors: dialect.ErrorFormat{Code: "Base.1.0.GeneralError", Success: &done},
	}
}

// driveIDs maps the IDs of drives to their numbers.
func driveIDs() map[string]any {
	out := map[string]any{}
	for n := range 64 {
		out[fmt.Sprint("Disk.", n)] = n
	}
	return out
}

// percents maps whole percentages to texts.
func percents() map[string]any {
	out := map[string]any{}
	for n := range 101 {
		out[fmt.Sprint(n)] = fmt.Sprint(n, "%")
	}
	return out
}
