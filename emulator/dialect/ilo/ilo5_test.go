package ilo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// generations are what tells them apart.
var generations = []struct {
	name, profile, oem                                            string
	vendor, root, redfish, model, firmware, product, manufacturer string
	bios, settings, registry                                      string
}{
	{
		name: "ilo5", profile: "hpe-dl360-gen10", oem: "Hpe", vendor: "HPE", root: "HPE RESTful Root Service", redfish: "1.6.0", model: "iLO 5",
		firmware: "iLO 5 v3.04", product: "ProLiant DL360 Gen10", manufacturer: "HPE",
		bios: "/redfish/v1/systems/1/bios/", settings: "/redfish/v1/systems/1/bios/settings/", registry: "BiosAttributeRegistryU32.",
	},
	{
		name: "ilo6", profile: "hpe-dl360-gen11", oem: "Hpe", vendor: "HPE", root: "HPE RESTful Root Service", redfish: "1.20.0", model: "iLO 6",
		firmware: "iLO 6 v1.70", product: "ProLiant DL360 Gen11", manufacturer: "HPE",
		bios: "/redfish/v1/systems/1/bios/", settings: "/redfish/v1/systems/1/bios/settings/", registry: "BiosAttributeRegistryU54.",
	},
	{
		name: "ilo7", profile: "hpe-dl360-gen12", oem: "Hpe", vendor: "HPE", root: "HPE RESTful Root Service", redfish: "1.20.0", model: "iLO 7",
		firmware: "1.14.00 May 28 2025", product: "ProLiant DL360 Gen12", manufacturer: "HPE",
		bios: "/redfish/v1/systems/1/bios/", settings: "/redfish/v1/systems/1/bios/settings/", registry: "BiosAttributeRegistryU68.",
	},
}

const smart = system + "/SmartStorageConfig"

// Volumes of a Smart Array are made at the next start [HPE's Redfish reference,
// "SmartStorage configuration"] (statements D4 and E18).
func TestSmartStorageConfigMakesVolumesAtTheNextReset(t *testing.T) {
	b := serve(t, "hpe-dl360-gen10")
	const drives = `{"Raid":"Raid1","LogicalDriveName":"root","DataDrives":["1I:1:1","1I:1:2"]}`
	b.behaves(
		row{docs, "PATCH", smart + "/Settings", `{"LogicalDrives":[{"Raid":"Raid7","DataDrives":["1I:1:1"]}]}`, 400, "PropertyValueBadParam"},
		row{docs, "PATCH", smart + "/Settings", `{"LogicalDrives":[{"Raid":"Raid0","DataDrives":["9I:1:1"]}]}`, 400, "PropertyValueBadParam"},
		row{docs, "PATCH", smart + "/Settings", `{"LogicalDrives":[` + drives + `],"DataGuard":"Strict"}`, 200, "SystemResetRequired"},
	)
	b.shows(map[string]any{
		smart + "#LogicalDrives": "[]", smart + "/settings#LogicalDrives/0/LogicalDriveName": "root",
		smart + "#@Redfish.Settings/Messages/0/MessageId": "iLO.2.23.SystemResetRequired",
	})
	b.behaves(row{docs, "POST", reset, `{"ResetType":"On"}`, 200, "Success"})
	b.until(smart, "LogicalDrives/0/LogicalDriveName", "root")
	b.shows(map[string]any{
		smart + "#LogicalDrives/0/Raid": "Raid1", smart + "#LogicalDrives/0/DataDrives": "[1I:1:1 1I:1:2]", smart + "#DataGuard": "Strict",
		smart + "#@Redfish.Settings/Messages/0/MessageId":                                    "Base.1.0.Success",
		system + "/SmartStorage/ArrayControllers/DE00A000/LogicalDrives#Members@odata.count": 1,
		system + "/SmartStorage/ArrayControllers/DE00A000/LogicalDrives/1#Raid":              "Raid1",
		system + "/SmartStorage/ArrayControllers/DE00A000/DiskDrives#Members@odata.count":    8,
	})
	id := fmt.Sprint(b.get(smart, "LogicalDrives/0/VolumeUniqueIdentifier"))
	remove := `{"VolumeUniqueIdentifier":"` + id + `","Actions":[{"Action":"LogicalDriveDelete"}]}`
	var kinds []string
	kinds = append(kinds, `{"Raid":"Raid5","DataDrives":{"DataDriveCount":3,"DataDriveMediaType":"SSD"}}`, `{"Raid":"Raid0","DataDrives":["1I:1:1"]}`)
	b.behaves(
		row{docs, "PATCH", smart + "/Settings", `{"LogicalDrives":[]}`, 400, "PropertyValueBadParam"},
		row{docs, "PATCH", smart + "/Settings", `{"LogicalDrives":[` + remove + `]}`, 400, "PropertyValueBadParam"},
		row{docs, "PATCH", smart + "/Settings", `{"DataGuard":"Permissive","LogicalDrives":[` + remove + "," + strings.Join(kinds, ",") + `]}`, 200, "SystemResetRequired"},
		row{docs, "POST", reset, `{"ResetType":"ForceOff"}`, 200, "Success"},
	)
	b.until(system, "PowerState", "Off")
	b.l.Advance(time.Minute)
	b.behaves(row{docs, "POST", reset, `{"ResetType":"On"}`, 200, "Success"})
	b.until(smart, "LogicalDrives/1/Raid", "Raid0")
	b.shows(map[string]any{smart + "#LogicalDrives/0/Raid": "Raid5", smart + "#LogicalDrives/0/DataDrives": "[2I:1:5 2I:1:6 2I:1:7]"})
	b.behaves(
		row{table, "POST", system + "/Storage/DE00A000/Volumes", `{"RAIDType":"RAID0"}`, 405, ""},
		row{table, "DELETE", fmt.Sprint(b.get(system+"/Storage/DE00A000/Volumes", "Members/0/@odata.id")), ``, 405, ""},
		row{docs, "PATCH", smart + "/Settings", `{"DataGuard":"Disabled","LogicalDrives":[]}`, 200, "SystemResetRequired"},
		row{docs, "PATCH", smart + "/Settings", `{"RebuildPriority":"Low"}`, 200, "SystemResetRequired"},
	)
	b.shows(map[string]any{smart + "/settings#RebuildPriority": "Low"})
}

// The BIOS is reset by its settings [table of vendors' dialects].
func TestILO5ResetsBIOSAtTheSettingsResource(t *testing.T) {
	b := serve(t, "hpe-dl360-gen10")
	const bios = "/redfish/v1/systems/1/bios/"
	target := bios + "settings/Actions/Bios.ResetBios/"
	b.shows(map[string]any{bios + "#Actions/#Bios.ResetBios/target": target})
	b.behaves(
		row{table, "PATCH", bios + "settings/", `{"Attributes":{"AdminName":"joe"}}`, 200, "SystemResetRequired"},
		row{table, "POST", reset, `{"ResetType":"On"}`, 200, "Success"},
	)
	b.until(bios, "Attributes/AdminName", "joe")
	b.behaves(row{table, "POST", reset, `{"ResetType":"ForceOff"}`, 200, "Success"})
	b.until(system, "PowerState", "Off")
	b.behaves(
		row{table, "POST", target, `{}`, 200, "SystemResetRequired"},
		row{table, "POST", reset, `{"ResetType":"On"}`, 200, "Success"},
	)
	b.until(bios, "Attributes/AdminName", "")
}
