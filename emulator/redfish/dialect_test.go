package redfish

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/ibmc"
	"github.com/metalab-dev/metalab/emulator/dialect/irmc"
	"github.com/metalab-dev/metalab/emulator/dialect/openbmc"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// vendorAsk is a request to a vendor's service, the expected response, and its source.
type vendorAsk struct {
	source             string
	method, path, body string
	tagged             bool // the request has If-Match
	want               int
	says               string // part of the response
}

// asks sends requests in order and advances the clock after each.
func asks(t *testing.T, d *dialect.Record, profile string, all ...vendorAsk) (*Service, *host) {
	t.Helper()
	s, h := newVendorHost(t, d, profile)
	h.boots = true
	for _, a := range all {
		var header []string
		if a.tagged {
			at, _, _ := strings.Cut(a.path, "/Actions/")
			_, tag := get(t, s, at)
			header = []string{"If-Match", tag}
		}
		w := call(t, s, "admin", a.method, a.path, a.body, header...)
		if w.Code != a.want || !strings.Contains(w.Body.String(), a.says) {
			t.Errorf("%s: %s, want %d %s", a.source, shape(a.method, a.path, a.body, w), a.want, a.says)
		}
		h.carrying.Wait()
		h.pass(40 * time.Second)
	}
	return s, h
}

func TestOpenBMCDialect(t *testing.T) {
	const slot, insert = "/redfish/v1/Managers/bmc/VirtualMedia/Slot_", "/Actions/VirtualMedia.InsertMedia"
	system := "/redfish/v1/Systems/system"
	image := func(rest string) string { return `{"Image":"https://images.test/a.iso"` + rest + `}` }
	s, _ := asks(t, &openbmc.Record, "openbmc-tiogapass",
		vendorAsk{"virtual_media.hpp: the browser's slot", "POST", slot + "0" + insert, image(""), false, 404, ""},
		vendorAsk{"virtual_media.hpp: the browser's slot ejects", "POST", slot + "0/Actions/VirtualMedia.EjectMedia", "", false, 204, ""},
		vendorAsk{"virtual_media.hpp: schemes", "POST", slot + "1" + insert, `{"Image":"http://images.test/a.iso"}`, false, 400, "ResourceAtUriInUnknownFormat"},
		vendorAsk{"virtual_media.hpp: schemes", "POST", slot + "1" + insert, `{"Image":"nfs://images.test/a.iso"}`, false, 400, "ResourceAtUriInUnknownFormat"},
		vendorAsk{"virtual_media.hpp: TransferMethod", "POST", slot + "1" + insert, image(`,"TransferMethod":"Upload"`), false, 400, "ActionParameterNotSupported"},
		vendorAsk{"virtual_media.hpp: Inserted", "POST", slot + "1" + insert, image(`,"Inserted":false`), false, 400, "ActionParameterNotSupported"},
		vendorAsk{"virtual_media.hpp: TransferProtocolType", "POST", slot + "1" + insert, image(`,"TransferProtocolType":"HTTP"`), false, 400, "PropertyValueNotInList"},
		vendorAsk{"virtual_media.hpp: what is sent of an image", "POST", slot + "1" + insert, image(`,"TransferMethod":"Stream","TransferProtocolType":"HTTPS"`), false, 204, ""},
		vendorAsk{"virtual_media.hpp: no PATCH", "PATCH", slot + "1", `{"Image":null}`, false, 405, ""},
		vendorAsk{"virtual_media.hpp: of the manager alone", "GET", system + "/VirtualMedia", "", false, 404, ""},
		vendorAsk{"bios.hpp: reset and no more", "POST", system + "/Bios/Actions/Bios.ResetBios", "", false, 204, ""},
		vendorAsk{"bios.hpp: no settings", "GET", system + "/Bios/Settings", "", false, 404, ""},
		vendorAsk{"storage.hpp: read only", "POST", system + "/Storage/1/Volumes", `{"RAIDType":"RAID0"}`, false, 404, ""},
		vendorAsk{"storage.hpp: no secure erase", "POST", system + "/Storage/1/Drives/Disk.0/Actions/Drive.SecureErase", "", false, 404, ""},
		vendorAsk{"storage.hpp: at the root as well", "GET", "/redfish/v1/Storage/1", "", false, 200, ""},
		vendorAsk{"systems.hpp: boot sources", "PATCH", system, `{"Boot":{"BootSourceOverrideTarget":"Usb","BootSourceOverrideEnabled":"Once"}}`, false, 200, ""},
		vendorAsk{"systems.hpp: boot sources", "PATCH", system, `{"Boot":{"BootSourceOverrideTarget":"UefiHttp","BootSourceOverrideEnabled":"Once"}}`, false, 400, ""},
		vendorAsk{"systems.hpp: no boot order", "PATCH", system, `{"Boot":{"BootOrder":["Boot0100"]}}`, false, 400, "PropertyUnknown"},
		vendorAsk{"systems.hpp: resets", "POST", system + "/Actions/ComputerSystem.Reset", `{"ResetType":"PushPowerButton"}`, false, 400, ""},
		vendorAsk{"systems.hpp: resets", "POST", system + "/Actions/ComputerSystem.Reset", `{"ResetType":"ForceOn"}`, false, 204, ""},
		vendorAsk{"managers.hpp: everything or nothing", "POST", "/redfish/v1/Managers/bmc/Actions/Manager.ResetToDefaults", `{"ResetToDefaultsType":"PreserveNetwork","ResetType":"PreserveNetwork"}`, false, 400, ""},
		vendorAsk{"update_service.hpp", "GET", "/redfish/v1/UpdateService", "", false, 200, "/redfish/v1/UpdateService/update-multipart"},
	)
	root, _ := get(t, s, "/redfish/v1")
	if root["Vendor"] != nil || root["RedfishVersion"] != "1.17.0" {
		t.Errorf("service_root.hpp: %v", root)
	}
	is, _ := get(t, s, system)
	action := is["Actions"].(map[string]any)["#ComputerSystem.Reset"].(map[string]any)
	if action["ResetType@Redfish.AllowableValues"] != nil || action["@Redfish.ActionInfo"] != system+"/ResetActionInfo" {
		t.Errorf("systems.hpp: the reset action is %v", action)
	}
	one, _ := get(t, s, slot+"1")
	if one["TransferMethod"] != "Stream" || one["TransferProtocolType"] != "HTTPS" || one["Image"] == nil {
		t.Errorf("virtual_media.hpp: %v", one)
	}
	accounts, _ := get(t, s, "/redfish/v1/AccountService")
	if accounts["AccountLockoutThreshold"] != 0.0 {
		t.Errorf("account_service.hpp: the threshold is %v", accounts["AccountLockoutThreshold"])
	}
}

func TestIBMCDialect(t *testing.T) {
	const control = "/redfish/v1/Managers/1/VirtualMedia/CD/Oem/Huawei/Actions/VirtualMedia.VmmControl"
	const volumes = "/redfish/v1/Systems/1/Storages/RAIDStorage0/Volumes"
	reset, fru := "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", "/redfish/v1/Systems/1/Actions/Oem/Huawei/ComputerSystem.FruControl"
	volume := `{"Oem":{"Huawei":{"VolumeName":"os","VolumeRaidLevel":"RAID1","Drives":[0,1]}}}`
	s, h := asks(t, &ibmc.Record, "huawei-2288h-v5",
		vendorAsk{"the table: http", "POST", control, `{"VmmControlType":"Connect","Image":"http://images.test/a.iso"}`, false, 400, "iBMC.1.0.FileTransferProtocolMismatch"},
		vendorAsk{"Deploy.ps1: connect", "POST", control, `{"VmmControlType":"Connect","Image":"https://images.test/a.iso"}`, false, 202, "/redfish/v1/TaskService/Tasks/1"},
		vendorAsk{"Deploy.ps1: the image is there", "GET", "/redfish/v1/Managers/1/VirtualMedia/CD", "", false, 200, `"Inserted":true`},
		vendorAsk{"the table: NFS is taken", "POST", control, `{"VmmControlType":"Connect","Image":"nfs://images.test/a.iso"}`, false, 202, ""},
		vendorAsk{"Redfish.ps1: what fails is an exception", "GET", "/redfish/v1/TaskService/Tasks/2", "", false, 200, `"TaskState":"Exception"`},
		vendorAsk{"Deploy.ps1: disconnect", "POST", control, `{"VmmControlType":"Disconnect"}`, false, 202, ""},
		vendorAsk{"Deploy.ps1: the image is gone", "GET", "/redfish/v1/Managers/1/VirtualMedia/CD", "", false, 200, `"Inserted":false`},
		vendorAsk{"Redfish.ps1: percentage as a text", "GET", "/redfish/v1/TaskService/Tasks/1", "", false, 200, `"TaskPercentage":"100%"`},
		vendorAsk{"the table: no actions of the standard's", "POST", "/redfish/v1/Managers/1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia", `{"Image":"https://images.test/a.iso"}`, false, 404, ""},
		vendorAsk{"storage.py: If-Match", "PATCH", "/redfish/v1/Systems/1", `{"AssetTag":"a"}`, false, 428, ""},
		vendorAsk{"storage.py: If-Match", "PATCH", "/redfish/v1/Systems/1", `{"AssetTag":"a"}`, true, 200, "Base.1.0.Success"},
		vendorAsk{"gofish#174: If-Match", "PATCH", "/redfish/v1/Systems/1/Bios/Settings", `{"Attributes":{"QuietBoot":"Enabled"}}`, false, 428, ""},
		vendorAsk{"gofish#174: If-Match", "PATCH", "/redfish/v1/Systems/1/Bios/Settings", `{"Attributes":{"QuietBoot":"Enabled"}}`, true, 200, ""},
		vendorAsk{"system-v5.json: boot targets", "PATCH", "/redfish/v1/Systems/1", `{"Boot":{"BootSourceOverrideTarget":"Floppy","BootSourceOverrideEnabled":"Continuous"}}`, true, 200, ""},
		vendorAsk{"system-v5.json: boot targets", "PATCH", "/redfish/v1/Systems/1", `{"Boot":{"BootSourceOverrideTarget":"UefiHttp"}}`, true, 400, ""},
		vendorAsk{"PowerControl.ps1: resets", "POST", reset, `{"ResetType":"On"}`, false, 200, "Base.1.0.Success"},
		vendorAsk{"PowerControl.ps1: resets", "POST", reset, `{"ResetType":"PowerCycle"}`, false, 400, "ActionParameterNotSupported"},
		vendorAsk{"PowerControl.ps1: resets", "POST", reset, `{"ResetType":"ForcePowerCycle"}`, false, 200, "Base.1.0.Success"},
		vendorAsk{"PowerControl.ps1: FRU", "POST", fru, `{"FruControlType":"ForceRestart","FruID":0}`, false, 200, ""},
		vendorAsk{"create-volume-task-init-response.json", "POST", volumes, volume, false, 202, `"Messages":[]`},
		vendorAsk{"volume.py: the volume", "GET", volumes + "/LogicalDrive1", "", false, 200, `"VolumeRaidLevel":"RAID1"`},
		vendorAsk{"get-drive-0.json", "GET", "/redfish/v1/Chassis/1/Drives/HDDPlaneDisk1", "", false, 200, `"FirmwareStatus":"Online"`},
		vendorAsk{"create-volume-task-exception-response.json", "POST", volumes, strings.Replace(volume, "[0,1]", "[77]", 1), false, 400, "iBMC.1.0.PhysicalDiskIdInvalid"},
		vendorAsk{"volumes as the standard has them", "POST", volumes, `{"RAIDType":"RAID1","Links":{"Drives":[{"@odata.id":"/redfish/v1/Chassis/1/Drives/HDDPlaneDisk2"},{"@odata.id":"/redfish/v1/Chassis/1/Drives/HDDPlaneDisk3"}]}}`, false, 202, ""},
		vendorAsk{"error shows the value as it was sent", "POST", volumes, `{"RAIDType":"RAID1","Links":{"Drives":[{"@odata.id":"/redfish/v1/Chassis/1/Drives/HDDPlaneDisk2"},{"@odata.id":"/redfish/v1/Chassis/1/Drives/HDDPlaneDisk4"}]}}`, false, 409, "The value /redfish/v1/Chassis/1/Drives/HDDPlaneDisk2 "},
		vendorAsk{"volumes as the standard has them", "DELETE", volumes + "/LogicalDrive2", "", false, 202, ""},
		vendorAsk{"the table: http, by PATCH", "PATCH", "/redfish/v1/Managers/1/VirtualMedia/CD", `{"Image":"http://images.test/a.iso"}`, false, 400, "iBMC.1.0.FileTransferProtocolMismatch"},
		vendorAsk{"volume.py: initialize", "POST", volumes + "/LogicalDrive1/Actions/Volume.Initialize", `{"Type":"QuickInit"}`, false, 202, ""},
		vendorAsk{"volume.py: delete, without If-Match", "DELETE", volumes + "/LogicalDrive1", "", false, 202, ""},
		vendorAsk{"volume.py: gone", "GET", volumes, "", false, 200, `"Members@odata.count":0`},
	)
	if v := h.machine.View(); v.Power != "On" {
		t.Errorf("after its cycle the server is %s", v.Power)
	}
	is, _ := get(t, s, "/redfish/v1/Systems/1")
	links := is["Links"].(map[string]any)
	if links["ManagedBy"] != nil || links["Managers"] == nil {
		t.Errorf("system-v5.json: Links %v", links)
	}
	info, _ := get(t, s, "/redfish/v1/Systems/1/ResetActionInfo")
	if !strings.Contains(string(resource.Encode(info)), `"ForcePowerCycle"`) {
		t.Errorf("PowerControl.ps1: %v", info)
	}
}

func TestIRMCDialect(t *testing.T) {
	for _, g := range []struct {
		record      *dialect.Record
		profile     string
		oem, prefix string
	}{
		{&irmc.S5, "fujitsu-rx2540-m5", "ts_fujitsu", "FTS"}, {&irmc.S6, "fujitsu-rx2540-m7", "Fsas", "Fsas"},
	} {
		t.Run(g.record.Name, func(t *testing.T) {
			const volumes = "/redfish/v1/Systems/0/Storage/0/Volumes"
			oem := "/redfish/v1/Systems/0/Oem/" + g.oem
			media := oem + "/VirtualMedia"
			action := "/redfish/v1/Systems/0/Actions/Oem/" + g.prefix
			profiles := "/rest/v1/Oem/eLCM/ProfileManagement"
			s, h := asks(t, g.record, g.profile,
				vendorAsk{"provider: the generations", "GET", "/redfish/v1", "", false, 200, `"Oem":{"` + g.oem + `"`},
				vendorAsk{"provider: BootConfig needs If-Match", "PATCH", oem + "/BootConfig", `{"BootDevice":"Pxe","NextBootOnlyEnabled":true}`, false, 428, ""},
				vendorAsk{"provider: BootConfig", "PATCH", oem + "/BootConfig", `{"BootDevice":"Pxe","NextBootOnlyEnabled":false,"@odata.etag":"x"}`, true, 200, `"BootDevice":"Pxe"`},
				vendorAsk{"provider: BootConfig is the override", "GET", "/redfish/v1/Systems/0", "", false, 200, `"BootSourceOverrideEnabled":"Continuous"`},
				vendorAsk{"provider: BootConfig, once", "PATCH", oem + "/BootConfig", `{"BootDevice":"Cd","NextBootOnlyEnabled":true}`, true, 200, `"NextBootOnlyEnabled":true`},
				vendorAsk{"provider: BootConfig, unknown", "PATCH", oem + "/BootConfig", `{"BootDevice":"Tape"}`, true, 400, ""},
				vendorAsk{"irmc_setnextboot: If-Match", "PATCH", "/redfish/v1/Systems/0", `{"Boot":{"BootSourceOverrideTarget":"Pxe"}}`, false, 428, ""},
				vendorAsk{"irmc_setnextboot: None alone", "PATCH", "/redfish/v1/Systems/0", `{"Boot":{"BootSourceOverrideTarget":"None","BootSourceOverrideEnabled":"Disabled"}}`, true, 500, "InternalError"},
				vendorAsk{"irmc_powerstate: unknown", "POST", action + "ComputerSystem.Reset", `{"` + g.prefix + `ResetType":"On"}`, false, 400, ""},
				vendorAsk{"irmc_powerstate: on", "POST", action + "ComputerSystem.Reset", `{"` + g.prefix + `ResetType":"PowerOn"}`, false, 204, ""},
				vendorAsk{"host_reset.go: POST", "GET", "/redfish/v1/Systems/0/Bios", "", false, 200, `"IsBiosInPostPhase":true`},
				vendorAsk{"host_reset.go: still", "GET", "/redfish/v1/Managers/iRMC/VirtualMedia/0", "", false, 200, ""},
				vendorAsk{"host_reset.go: still", "GET", "/redfish/v1/Managers/iRMC/VirtualMedia/1", "", false, 200, ""},
				vendorAsk{"irmc_setvm: what to mount", "PATCH", media, `{"CDImage":{"ShareType":"HTTPS","Server":"images.test","ShareName":"iso","ImageName":"a.iso"}}`, true, 200, `"a.iso"`},
				vendorAsk{"irmc_connectvm: connect", "POST", action + "ComputerSystem.VirtualMedia", `{"` + g.prefix + `VirtualMediaAction":"ConnectCD"}`, false, 204, ""},
				vendorAsk{"irmc_connectvm: it is there", "GET", "/redfish/v1/Managers/iRMC/VirtualMedia/0", "", false, 200, `"Image":"https://images.test/iso/a.iso"`},
				vendorAsk{"irmc_connectvm: nothing to mount", "POST", action + "ComputerSystem.VirtualMedia", `{"` + g.prefix + `VirtualMediaAction":"ConnectHD"}`, false, 409, ""},
				vendorAsk{"irmc_connectvm: disconnect", "POST", action + "ComputerSystem.VirtualMedia", `{"` + g.prefix + `VirtualMediaAction":"DisconnectCD"}`, false, 204, ""},
				vendorAsk{"resource_bios.go: If-Match", "PATCH", "/redfish/v1/Systems/0/Bios/Settings", `{"Attributes":{"HyperThreadingEnabled":false}}`, false, 428, ""},
				vendorAsk{"common_bios.go: all while none wait", "GET", "/redfish/v1/Systems/0/Bios/Settings", "", false, 200, `"PciAspmSupport"`},
				vendorAsk{"resource_bios.go: set", "PATCH", "/redfish/v1/Systems/0/Bios/Settings", `{"Attributes":{"HyperThreadingEnabled":false}}`, true, 200, `"Attributes":{"HyperThreadingEnabled":false}`},
				vendorAsk{"host_reset.go: restart", "POST", action + "ComputerSystem.Reset", `{"` + g.prefix + `ResetType":"ImmediateReset"}`, false, 204, ""},
				vendorAsk{"storage_volume_helpers.go: create", "POST", volumes, `{"Name":"os","RAIDType":"RAID1","PhysicalDisks":[{"Group":["0-0","0-1"]}],"InitMode":"Fast","OptimumIOSizeBytes":65536}`, false, 202, ""},
				vendorAsk{"storage_volume_helpers.go: two groups", "POST", volumes, `{"Name":"data","RAIDType":"RAID10","PhysicalDisks":[{"Group":["0-2","0-3"]},{"Group":["0-4","0-5"]}]}`, false, map[string]int{"irmc-s5": 202, "irmc-s6": 400}[g.record.Name], ""},
				vendorAsk{"volumes as the standard has them", "POST", volumes, `{"RAIDType":"RAID1","Links":{"Drives":[{"@odata.id":"/redfish/v1/Systems/0/Storage/0/Drives/6"},{"@odata.id":"/redfish/v1/Systems/0/Storage/0/Drives/7"}]}}`, false, 202, ""},
				vendorAsk{"task.go: logs", "GET", "/redfish/v1/TaskService/Tasks/1/Oem/" + g.oem + "/Logs", "", false, 200, `"Entries":[`},
				vendorAsk{"irmc_task", "GET", "/redfish/v1/TaskService/Tasks/1", "", false, 200, `"TotalProgressPercent":100`},
				vendorAsk{"storage_volume_helpers.go: capabilities", "GET", "/redfish/v1/Systems/0/Storage/0/Oem/" + g.oem + "/RAIDCapabilities", "", false, 200, `"MinimumSpanCount":2`},
				vendorAsk{"storage_volume_helpers.go: delete", "DELETE", volumes + "/1", "", false, 202, ""},
				vendorAsk{"irmc.py: licence", "GET", "/rest/v1/Oem/eLCM/eLCMStatus", "", false, 200, `"EnabledAndLicenced":"true"`},
				vendorAsk{"irmc_profiles: none", "GET", profiles, "", false, 200, `"profileStore":[]`},
				vendorAsk{"irmc_profiles: no such profile", "POST", profiles + "/get?PARAM_PATH=Server/Nonsense", "", false, 404, ""},
				vendorAsk{"irmc_profiles: not there", "GET", profiles + "/BiosConfig", "", false, 404, ""},
				vendorAsk{"irmc_profiles: create", "POST", profiles + "/get?PARAM_PATH=Server/SystemConfig/BiosConfig", "", false, 202, `"Session":{"Id":"`},
				vendorAsk{"irmc_profiles: get", "GET", profiles + "/BiosConfig", "", false, 200, `"CpuConfig":{`},
				vendorAsk{"irmc_profiles: twice", "POST", profiles + "/get?PARAM_PATH=Server/SystemConfig/BiosConfig", "", false, 409, ""},
				vendorAsk{"irmc_profiles: list", "GET", profiles, "", false, 200, "rest/v1/Oem/eLCM/ProfileManagement/BiosConfig"},
				vendorAsk{"irmc_profiles: delete", "DELETE", profiles + "/BiosConfig", "", false, 204, ""},
				vendorAsk{"irmc_profiles: import of BIOS", "POST", profiles + "/set", `{"Server":{"SystemConfig":{"BiosConfig":{"@Processing":"execute","CpuConfig":{"CpuVtEnabled":false}}}}}`, false, 202, `"Session"`},
				vendorAsk{"irmc_profiles: it waits", "GET", "/redfish/v1/Systems/0/Bios/Settings", "", false, 200, `"CpuVtEnabled":false`},
				vendorAsk{"irmc_raid: nothing to do", "POST", profiles + "/set", `{"Server":{}}`, false, 406, ""},
				vendorAsk{"irmc_raid: create", "POST", profiles + "/set", `{"Server":{"HWConfigurationIrmc":{"Adapters":{"RAIDAdapter":[{"@AdapterId":"RAIDAdapter0","LogicalDrives":{"LogicalDrive":[{"@Action":"Create","Name":"pool","RaidLevel":"1"}]}}]}}}}`, false, 202, `"Session"`},
			)
			if set, _ := get(t, s, "/redfish/v1/Systems/0/Bios"); set["Attributes"].(map[string]any)["HyperThreadingEnabled"] != false {
				t.Error("resource_bios.go: the setting is not there after POST")
			}
			if w := call(t, s, "admin", "POST", profiles+"/get?PARAM_PATH=Server/HWConfigurationIrmc/Adapters/RAIDAdapter", ""); w.Code != http.StatusAccepted {
				t.Error(shape("POST", profiles, "", w))
			}
			h.carrying.Wait()
			raid, _ := get(t, s, profiles+"/RAIDAdapter")
			if text := string(resource.Encode(raid)); !strings.Contains(text, `"Name":"pool"`) || !strings.Contains(text, `"PhysicalDisk":[`) {
				t.Errorf("irmc_raid: %s", text)
			}
			session, _ := get(t, s, "/sessionInformation/1/status")
			if session["Session"].(map[string]any)["Status"] != "terminated regularly" {
				t.Errorf("irmc.py: %v", session)
			}
			if on := h.bmc.View().Spec.Network.IPMI.On; on != (g.record == &irmc.S5) {
				t.Errorf("release notes of 2.00: IPMI is %v as new", on)
			}
		})
	}
}
