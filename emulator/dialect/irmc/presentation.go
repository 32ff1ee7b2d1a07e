package irmc

import (
	"fmt"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

const (
	systems = "/redfish/v1/Systems/{system}"
	drives  = systems + "/Storage/{storage}/Drives"
)

// applyTimes are the apply times of BIOS settings [V] common_bios.go.
var applyTimes = []firmware.ApplyTime{firmware.OnReset}

func protocol() dialect.Protocol {
	q := dialect.AllQueries
	q.Excerpt, q.MaxLevels = false, 1 // [V] collection sends $expand=Members; unknown parameters are ignored
	q.Unknown = dialect.Ignored
	return dialect.Protocol{
		Queries: q,
		// [V] provider sends If-Match with every PATCH of these types, and gofish#174 has
		// the response without it. It sends If-Match with a PATCH of accounts too; they
		// are missing here because it deletes them without. Clients that send no
		// If-Match, such as sushy for BIOS settings, cannot change those, nor on a real
		// iRMC.
		ETags: dialect.ETags{IfMatchRequired: []string{"ComputerSystem", "Bios", "UpdateService",
			"FTSBootConfig", "FsasBootConfig", "FTSVirtualMedia", "FsasVirtualMedia"}},
	}
}

func presentation(n names) dialect.Presentation {
	oem := "Oem/" + n.oem
	return dialect.Presentation{
		URIMappings: []dialect.URIMapping{
			// [V] provider: virtual media are below the manager.
			{From: systems + "/VirtualMedia", To: "/redfish/v1/Managers/{manager}/VirtualMedia"},
			// [K] IDs of drives are numbers.
			{From: drives + "/Disk.{n}", To: drives + "/{n}"},
		},
		Hidden: []string{
			"/redfish/v1/JobService", "/redfish/v1/ComponentIntegrity", // [K]
			"/redfish/v1/UpdateService/SoftwareInventory", "/redfish/v1/Chassis/{chassis}/TrustedComponents", "/redfish/v1/Chassis/{chassis}/Controls", // [K]
			systems + "/Boot/Certificates", systems + "/VirtualMedia/{slot}/Certificates", // [K]
			// [V] common_bios.go: clients write the boot order in the BIOS attribute
			// PersistentBootConfigOrder, whose value is a list. BIOS attributes are texts
			// and numbers here, so that it is missing; the boot order is in BootOrder.
		},
		Transforms: []dialect.Transform{
			{ResourceType: "ServiceRoot", Set: []dialect.PropertyRule{{Path: oem, Value: map[string]any{
				"@odata.type": "#" + n.prefix + "ServiceRoot.v1_0_0." + n.prefix + "ServiceRoot", // [V] provider distinguishes the generations by Oem.Fsas
			}}}},
			{ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{
				{Path: oem, Value: map[string]any{
					"@odata.type":       "#" + n.prefix + "ComputerSystem.v1_0_0." + n.prefix + "ComputerSystem",
					"System":            map[string]any{"@odata.id": systems + "/Oem/" + n.oem + "/System"},
					"BootConfig":        map[string]any{"@odata.id": systems + "/Oem/" + n.oem + "/BootConfig"},
					"VirtualMedia":      map[string]any{"@odata.id": systems + "/Oem/" + n.oem + "/VirtualMedia"},
					"FirmwareInventory": map[string]any{"@odata.id": systems + "/Oem/" + n.oem + "/FirmwareInventory"},
				}},
				{Path: oem + "/MainBoard/Manufacturer", From: "Manufacturer"}, // [V] collection: irmc_facts
				{Path: oem + "/MainBoard/PartNumber", From: "PartNumber"},
				{Path: oem + "/MainBoard/SerialNumber", From: "SerialNumber"},
			}, Remove: []string{"Boot/HttpBootUri", "Boot/AliasBootOrder", "Boot/AliasBootOrder@Redfish.AllowableValues", "Boot/AutomaticRetryConfig",
				"Boot/AutomaticRetryConfig@Redfish.AllowableValues", "Boot/AutomaticRetryAttempts", "Boot/RemainingAutomaticRetryAttempts"}}, // [K]
			// [V] host_reset.go waits until this becomes true, and then false.
			{ResourceType: "Bios", Set: []dialect.PropertyRule{
				{Path: oem + "/IsBiosInPostPhase", From: systems + "#BootProgress/LastState", Value: true, Map: map[string]any{
					"None": false, "OSBootStarted": false, "OSRunning": false, "SetupEntered": false, "OEM": false,
				}},
			}},
			{ResourceType: "Storage", Set: []dialect.PropertyRule{
				{Path: oem + "/RAIDCapabilities", Value: map[string]any{"@odata.id": "{self}/Oem/" + n.oem + "/RAIDCapabilities"}}, // [V] resource_storage_volume.go
				{Path: "StorageControllers/0/" + oem + "/DriveCount", From: "Drives@odata.count"},                                  // [V] collection: irmc_raid
			}},
			{ResourceType: "Drive", Set: []dialect.PropertyRule{{Path: "Location", From: "Id", Map: driveLocations(), Otherwise: dialect.LeaveUnchanged}}},
			{ResourceType: "VirtualMedia", Remove: []string{"EjectPolicy", "VerifyCertificate"}}, // [K]
			// [V] collection: irmc_task; task.go: a task has a URI for its log.
			{ResourceType: "Task", Set: []dialect.PropertyRule{
				{Path: oem + "/StatusOEM", From: "TaskState", Map: map[string]any{"Completed": "Completed", "Exception": "Failed", "Cancelled": "Cancelled", "New": "Pending"}, Value: "Running"},
				{Path: oem + "/TotalProgressPercent", From: "PercentComplete"},
				{Path: oem + "/StateProgressPercent", From: "PercentComplete"},
				{Path: oem + "/Logs", Value: map[string]any{"@odata.id": "{self}/Oem/" + n.oem + "/Logs"}},
			}},
		},
		RejectRules: []dialect.RejectRule{
			// [V] collection: irmc_setnextboot: None excludes other properties.
			{ResourceType: "ComputerSystem", Method: "PATCH", OneOf: map[string][]string{"Boot/BootSourceOverrideTarget": {"None"}},
				SendsAny: []string{"Boot/BootSourceOverrideEnabled", "Boot/BootSourceOverrideMode"}, Status: 500,
				Message: baseMessage("InternalError", "The service has failed; %1 cannot be sent with this target.")},
		},
	}
}

// driveLocations maps IDs of drives to their locations: [V]
// storage_volume_helpers.go reads them as system, controller, enclosure and slot.
func driveLocations() map[string]any {
	out := map[string]any{}
	for n := range 64 {
		out[fmt.Sprint("Disk.", n)] = []any{map[string]any{
			"Info": fmt.Sprintf("[ 0 : 0 : 0 : %d ]", n), "InfoFormat": "[ System_Id : Controller_Id : Enclosure_Id : Slot_Id ]",
		}}
	}
	return out
}

func baseMessage(key, text string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "Base", Version: "1.8.1", Key: key, Text: text, Resolution: "Change the request and send it again."}
}
