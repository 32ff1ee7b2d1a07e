package rack_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

const (
	dellS    = "/redfish/v1/Systems/System.Embedded.1"
	dellM    = "/redfish/v1/Managers/iDRAC.Embedded.1"
	dellBIOS = dellS + "/Bios/Settings"
	dellOEM  = dellM + "/Oem/Dell"
	dellTask = "/redfish/v1/TaskService/Tasks/JID_00000000000"
	toJob    = `{"TargetSettingsURI":"` + dellBIOS + `"}`
	onReset  = `,"@Redfish.SettingsApplyTime":{"ApplyTime":"OnReset"}}`
	toGroup  = dellOEM + "/DellAttributes/iDRAC.Embedded.1"
	clearing = dellOEM + "/DellJobService/Actions/DellJobService.DeleteJobQueue"
	isReady  = dellOEM + "/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus"
	r650RAID = dellS + "/Storage/RAID.SL.3-1"
	r650Disk = ":Enclosure.Internal.0-1:RAID.SL.3-1"
)

// vcd is what sushy sends to boot from virtual media (sushy,
// oem/dell/resources/manager/manager.py).
const vcd = `{"ShareParameters":{"Target":["ALL"]},"ImportBuffer":"<SystemConfiguration><Component FQDD=\"iDRAC.Embedded.1\">` +
	`<Attribute Name=\"ServerBoot.1#BootOnce\">Enabled</Attribute><Attribute Name=\"ServerBoot.1#FirstBootDevice\">VCD-DVD</Attribute></Component></SystemConfiguration>"}`

// scpImport is a server configuration profile that changes the BIOS and creates a
// volume.
const scpImport = `{"ShareParameters":{"Target":["ALL"]},"ShutdownType":"Forced","ImportBuffer":"{\"SystemConfiguration\":{\"Components\":[` +
	`{\"FQDD\":\"BIOS.Setup.1-1\",\"Attributes\":[{\"Name\":\"NumLock\",\"Value\":\"Off\"},{\"Name\":\"AcPwrRcvry\",\"Value\":\"On\"},{\"Name\":\"MemTest\",\"Value\":\"Enabled\",\"Set On Import\":\"False\"}]},` +
	`{\"FQDD\":\"RAID.SL.3-1\",\"Attributes\":[],\"Components\":[{\"FQDD\":\"Disk.Virtual.0:RAID.SL.3-1\",\"Attributes\":[{\"Name\":\"RAIDaction\",\"Value\":\"Create\"},` +
	`{\"Name\":\"RAIDTypes\",\"Value\":\"RAID 1\"},{\"Name\":\"Name\",\"Value\":\"os\"},{\"Name\":\"IncludedPhysicalDiskID\",\"Value\":\"Disk.Bay.4` + r650Disk + `\"},` +
	`{\"Name\":\"IncludedPhysicalDiskID\",\"Value\":\"Disk.Bay.5` + r650Disk + `\"}]}]}]}}"}`

// exported exports a server configuration profile.
func exported(format string) string {
	return `{"ExportFormat":"` + format + `","ExportUse":"Clone","IncludeInExport":"IncludeReadOnly,IncludePasswordHashValues","ShareParameters":{"Target":["ALL"]}}`
}

// idracHabits are behaviours of iDRAC.
var idracHabits = []struct {
	profile string
	rows    []habit
}{
	{"dell-r650", []habit{
		{source: "sushy, sample of a root", method: "GET", path: "/redfish/v1/", status: 200, shows: map[string]any{
			"/redfish/v1#Vendor": "Dell", "/redfish/v1#Product": "Integrated Dell Remote Access Controller", "/redfish/v1#Oem/Dell/IsBranded": 0,
			"/redfish/v1#ProtocolFeaturesSupported/ExpandQuery/MaxLevels": 1, dellM + "#Model": "15G Monolithic",
		}},
		{source: "sushy wants these links", method: "GET", path: dellM, status: 200, says: "#OemManager.ImportSystemConfiguration", shows: map[string]any{
			dellM + "#Links/Oem/Dell/DellLCService/@odata.id": dellOEM + "/DellLCService", dellM + "#Links/Oem/Dell/Jobs/@odata.id": dellOEM + "/Jobs",
			dellM + "#Links/Oem/Dell/DellAttributes@odata.count":                                                        3,
			dellM + "#Actions/Oem/#OemManager.ExportSystemConfiguration/ShareParameters/Target@Redfish.AllowableValues": "[ALL IDRAC BIOS NIC RAID]",
			dellS + "#Links/Oem/Dell/DellRaidService/@odata.id":                                                         dellS + "/Oem/Dell/DellRaidService",
		}},
		{source: "reference: drives by FQDD", method: "GET", path: r650RAID + "/Drives/Disk.Bay.0" + r650Disk, status: 200, says: `"RaidStatus":"Ready"`},
		{source: "reference: media at the system", method: "POST", path: dellS + "/VirtualMedia/1" + inserting, body: `{"Image":"IMAGE"}`, status: 204,
			shows: map[string]any{dellM + "/VirtualMedia/1#Inserted": true}},
		{source: "metal-operator#1015: no If-Match on actions", method: "POST", path: dellS + "/VirtualMedia/1" + ejecting, body: `{}`, match: "*", status: 412},
		{source: "reference: UefiTarget cannot stay", method: "PATCH", path: dellS, status: 400, says: "IDRAC.2.8.",
			body: `{"Boot":{"BootSourceOverrideTarget":"UefiTarget","BootSourceOverrideEnabled":"Continuous"}}`},
		{source: "reference: accounts are slots", method: "POST", path: "/redfish/v1/AccountService/Accounts", body: `{"UserName":"ops","Password":"secret-99","RoleId":"Operator"}`, status: 405},
		{source: "reference: accounts are slots", method: "PATCH", path: "/redfish/v1/AccountService/Accounts/3", body: `{"UserName":"ops","Password":"secret-99","RoleId":"Operator"}`, status: 200},
		{source: "nv-redfish: the first slot is void", method: "PATCH", path: "/redfish/v1/AccountService/Accounts/1", body: `{"UserName":"one"}`, status: 400},

		{source: "reference: without an apply time there is no job", method: "PATCH", path: dellBIOS, body: `{"Attributes":{"LogicalProc":"Disabled"}}`, status: 200},
		{source: "the same", method: "POST", path: dellS + resetting, body: `{"ResetType":"On"}`, status: 204},
		{source: "K: a server that is on", method: "POST", path: dellS + resetting, body: `{"ResetType":"On"}`, status: 409, says: "PSU501", wait: 10 * time.Minute,
			shows: map[string]any{dellS + "/Bios#Attributes/LogicalProc": "Enabled", dellBIOS + "#Attributes/LogicalProc": "Disabled"}},
		{source: "Dell's scripts: a job by POST to the queue", method: "POST", path: dellM + "/Jobs", body: toJob, status: 200, says: "JID_000000000001", shows: map[string]any{
			dellM + "/Jobs/JID_000000000001#Message": "Task successfully scheduled.", dellOEM + "/Jobs/JID_000000000001#JobState": "Scheduled",
			"/redfish/v1/JobService/Jobs/JID_000000000001#JobState": "New", dellTask + "1#Oem/Dell/JobType": "BIOSConfiguration",
		}},
		{source: "badfish#30: SYS011 while it waits", method: "PATCH", path: dellBIOS, body: `{"Attributes":{"NumLock":"Off"}}`, status: 400, says: "IDRAC.2.8.SYS011"},
		{source: "sushy: LC068 while it waits", method: "POST", path: dellM + "/Actions/Oem/OemManager.ImportSystemConfiguration", body: vcd, status: 400, says: "IDRAC.2.8.LC068"},
		{source: "sushy: the task is read 202", method: "GET", path: dellTask + "1", status: 202},
		{source: "the reset applies it", method: "POST", path: dellS + resetting, body: `{"ResetType":"ForceRestart"}`, status: 204},
		{source: "sushy: and then 200", method: "GET", path: dellTask + "1", status: 200, wait: 10 * time.Minute, says: `"JobState":"Completed"`, shows: map[string]any{
			dellS + "/Bios#Attributes/LogicalProc": "Disabled", dellM + "/Jobs/JID_000000000001#Message": "Job completed successfully.",
		}},
		{source: "reference: with an apply time 202", method: "PATCH", path: dellBIOS, body: `{"Attributes":{"NumLock":"Off"}` + onReset, status: 202, says: "JID_000000000002"},
		{source: "badfish#30: a queue is cleared", method: "POST", path: clearing, body: `{"JobID":"JID_CLEARALL"}`, status: 200, says: "SUP020", shows: map[string]any{
			dellOEM + "/Jobs#Members@odata.count": 0, dellBIOS + "#Attributes/NumLock": nil,
		}},
		{source: "K: a job that is not there", method: "POST", path: clearing, body: `{"JobID":"JID_1"}`, status: 400, says: "SUP020"},
		{source: "reference: ClearPending", method: "PATCH", path: dellBIOS, body: `{"Attributes":{"NumLock":"Off"}}`, status: 200},
		{source: "reference: ClearPending", method: "POST", path: dellBIOS + "/Actions/Oem/DellManager.ClearPending", body: `{}`, status: 204,
			shows: map[string]any{dellBIOS + "#Attributes/NumLock": nil}},

		{source: "issue 90 of Dell's scripts: Target is a text", method: "POST", path: dellM + "/Actions/Oem/OemManager.ImportSystemConfiguration", body: strings.Replace(vcd, `["ALL"]`, `"ALL"`, 1), status: 202},
		{source: "sushy: one job at a time", method: "POST", path: dellM + "/Actions/Oem/OemManager.ImportSystemConfiguration", body: vcd, status: 400, says: "RAC0679"},
		{source: "sushy: boot from virtual media", method: "GET", path: dellTask + "3", status: 200, says: `"JobState":"Completed"`, wait: time.Minute, shows: map[string]any{
			dellS + "#Boot/BootSourceOverrideTarget": "Cd", dellS + "#Boot/BootSourceOverrideEnabled": "Once", toGroup + "#Attributes/ServerBoot.1.FirstBootDevice": "VCD-DVD",
		}},
		{source: "sushy: whitespace that means nothing", method: "POST", path: dellM + "/Actions/Oem/OemManager.ImportSystemConfiguration", body: strings.Replace(vcd, "<Attribute", "  <Attribute", 1), status: 400, says: "SYS051"},
		{source: "reference: SCP changes BIOS and RAID", method: "POST", path: dellM + "/Actions/Oem/OemManager.ImportSystemConfiguration", body: scpImport, status: 202},
		{source: "reference: SCP changes BIOS and RAID", method: "GET", path: dellTask + "4", status: 200, says: `"JobState":"Completed"`, wait: 20 * time.Minute, shows: map[string]any{
			dellS + "/Bios#Attributes/NumLock": "Off", dellS + "/Bios#Attributes/AcPwrRcvry": "On", dellS + "/Bios#Attributes/MemTest": "Disabled",
			r650RAID + "/Volumes#Members@odata.count": 1, r650RAID + "/Volumes/Disk.Virtual.1:RAID.SL.3-1#RAIDType": "RAID1",
			r650RAID + "/Drives/Disk.Bay.4" + r650Disk + "#Oem/Dell/DellPhysicalDisk/RaidStatus": "Online",
		}},
		{source: "sushy: a profile is the task's answer", method: "POST", path: dellM + "/Actions/Oem/OemManager.ExportSystemConfiguration", body: exported("JSON"), status: 202},
		{source: "sushy: a profile is the task's answer", method: "GET", path: dellTask + "5", status: 200, wait: time.Minute, says: `"FQDD":"Disk.Virtual.1:RAID.SL.3-1"`},
		{source: "Dell's scripts: and in XML", method: "POST", path: dellM + "/Actions/Oem/OemManager.ExportSystemConfiguration", body: strings.Replace(exported("XML"), `["ALL"]`, `"IDRAC, BIOS"`, 1), status: 202},
		{source: "Dell's scripts: and in XML", method: "GET", path: dellTask + "6", status: 200, wait: time.Minute, says: `<Component FQDD="BIOS.Setup.1-1"><Attribute Name="MemTest">Disabled</Attribute>`},
		{source: "sushy fix-volume-delete", method: "DELETE", path: r650RAID + "/Volumes/Disk.Virtual.1:RAID.SL.3-1", body: `{"@Redfish.OperationApplyTime":"OnReset"}`, status: 400},
		{source: "sushy fix-volume-delete", method: "DELETE", path: r650RAID + "/Volumes/Disk.Virtual.1:RAID.SL.3-1", status: 202},
		{source: "reference: names of POST to Volumes", method: "POST", path: r650RAID + "/Volumes", status: 202, wait: time.Hour,
			body: `{"RAIDType":"RAID0","Name":"v","OptimumIOSizeBytes":131072,"@Redfish.OperationApplyTime":"Immediate","Links":{"Drives":[{"@odata.id":"` + r650RAID + `/Drives/Disk.Bay.0` + r650Disk + `"}]}}`},

		{source: "sushy: nothing foreign is STOR018", method: "POST", path: dellS + "/Oem/Dell/DellRaidService/Actions/DellRaidService.ClearForeignConfig", body: `{"TargetFQDD":"RAID.SL.3-1"}`, status: 400, says: "STOR018"},
		{source: "sushy: modes of drives", method: "POST", path: dellS + "/Oem/Dell/DellRaidService/Actions/DellRaidService.ConvertToNonRAID", body: `{"PDArray":["Disk.Bay.7` + r650Disk + `"]}`, status: 202, shows: map[string]any{
			r650RAID + "/Drives/Disk.Bay.7" + r650Disk + "#Oem/Dell/DellPhysicalDisk/RaidStatus": "NonRAID", r650RAID + "/Drives/Disk.Bay.6" + r650Disk + "#Oem/Dell/DellPhysicalDisk/RaidStatus": "Ready",
		}},
		{source: "sushy: modes of drives", method: "POST", path: dellS + "/Oem/Dell/DellRaidService/Actions/DellRaidService.ConvertToRAID", body: `{"PDArray":["Disk.Bay.7` + r650Disk + `"]}`, status: 202, wait: time.Hour, shows: map[string]any{
			r650RAID + "/Drives/Disk.Bay.7" + r650Disk + "#Oem/Dell/DellPhysicalDisk/RaidStatus": "Ready",
		}},
		{source: "no step of the vendor's is a client's", method: "POST", path: r650RAID + "/Actions/Storage.ClearForeign", body: `{}`, status: 404},

		{source: "reference: attributes are written", method: "PATCH", path: toGroup, body: `{"Attributes":{"VNCServer.1.Enable":"Enabled","ServerBoot.1.FirstBootDevice":"PXE","ServerBoot.1.BootOnce":"Disabled"}}`, status: 200, shows: map[string]any{
			toGroup + "#Attributes/VNCServer.1.Enable": "Enabled", dellS + "#Boot/BootSourceOverrideTarget": "Pxe", dellS + "#Boot/BootSourceOverrideEnabled": "Continuous",
		}},
		{source: "community.general, idrac_redfish_config: iDRAC 9 has them at the manager too", method: "PATCH", path: dellM + "/Attributes", status: 200,
			body: `{"Attributes":{"NTPConfigGroup.1.NTPEnable":"Enabled","NTPConfigGroup.1.NTP2":"ntp2.test","NTPConfigGroup.1.NTP3":"ntp3.test"}}`, shows: map[string]any{
				dellM + "/Attributes#Attributes/NTPConfigGroup.1.NTP2": "ntp2.test", toGroup + "#Attributes/NTPConfigGroup.1.NTP1": "", toGroup + "#Attributes/NTPConfigGroup.1.NTP3": "ntp3.test",
				toGroup + "#Attributes/NTPConfigGroup.1.NTPEnable": "Enabled", dellM + "/NetworkProtocol#NTP/NTPServers": "[ntp2.test ntp3.test]", dellM + "/NetworkProtocol#NTP/ProtocolEnabled": true,
				"/redfish/v1/Managers/System.Embedded.1/Attributes#Id": "System.Embedded.1", "/redfish/v1/Managers/LifecycleController.Embedded.1/Attributes#Id": "LifecycleController.Embedded.1",
			}},
		{source: "the standard's property is the same", method: "PATCH", path: dellM + "/NetworkProtocol", status: 200, body: `{"NTP":{"NTPServers":["ntp9.test"],"ProtocolEnabled":false}}`, shows: map[string]any{
			toGroup + "#Attributes/NTPConfigGroup.1.NTP1": "ntp9.test", toGroup + "#Attributes/NTPConfigGroup.1.NTP2": "", toGroup + "#Attributes/NTPConfigGroup.1.NTPEnable": "Disabled",
		}},
		{source: "libredfish, mockup; dellemc.openmanage", method: "GET", path: toGroup, status: 200, shows: map[string]any{
			toGroup + "#Attributes/Info.1.Type": "15G Monolithic", toGroup + "#Attributes/Info.1.ServerGen": "15G", toGroup + "#Attributes/Info.1.HWModel": "iDRAC 9",
			dellM + "#Oem/Dell/@odata.type": "#DellManager.v1_2_0.DellManager",
		}},
		{source: "iDRAC-Redfish-Scripting#262: the code, and both messages", method: "GET", path: "/redfish/v1/Nothing", status: 404, says: `"code":"Base.1.12.GeneralError"`},
		{source: "iDRAC-Redfish-Scripting#262: lists with counts", method: "GET", path: "/redfish/v1/Nothing", status: 404, says: `"RelatedProperties@odata.count":0`},
		{source: "iDRAC-Redfish-Scripting#262: IDRAC", method: "GET", path: "/redfish/v1/Nothing", status: 404, says: `"IDRAC.2.8.SYS403"`},
		{source: "iDRAC-Redfish-Scripting#262: Base", method: "GET", path: "/redfish/v1/Nothing", status: 404, says: `"Base.1.12.ResourceMissingAtURI"`},
		{source: "dellemc.openmanage#132: IDRAC alone", method: "POST", path: dellS + resetting, body: `{"ResetType":"On"}`, status: 409, says: `IDRAC.2.8.PSU501","MessageSeverity":"Critical","RelatedProperties":["#/ResetType"],"RelatedProperties@odata.count":1,"Resolution":"Mend what the message tells of, and send the request again.","Severity":"Critical"}],"code":"Base.1.12.GeneralError"`},
		{source: "attributes have their values", method: "PATCH", path: toGroup, body: `{"Attributes":{"VNCServer.1.Enable":"Perhaps"}}`, status: 400, says: "PropertyValueNotInList"},
		{source: "and some nobody writes", method: "PATCH", path: toGroup, body: `{"Attributes":{"Info.1.Name":"x"}}`, status: 400},
		{source: "IPMI is switched by one", method: "PATCH", path: toGroup, body: `{"Attributes":{"IPMILan.1.Enable":"Disabled"}}`, status: 200,
			shows: map[string]any{dellM + "/NetworkProtocol#IPMI/ProtocolEnabled": false}},
		{source: "sushy waits for Ready", method: "POST", path: isReady, body: `{}`, status: 200, says: `"LCStatus":"Ready"`},
		{source: "reference: power is taken away", method: "POST", path: "/redfish/v1/Chassis/System.Embedded.1/Actions/Oem/DellOemChassis.ExtendedReset", body: `{"ResetType":"PowerCycle","FinalPowerState":"On"}`, status: 204},
		{source: "the controller comes up", method: "GET", path: "/redfish/v1", status: 200, wait: 190 * time.Second},
		{source: "sushy waits for Ready", method: "POST", path: isReady, body: `{}`, status: 200, says: `"LCStatus":"NotReady"`},
		{source: "sushy waits for Ready", method: "POST", path: isReady, body: `{}`, status: 200, wait: 2 * time.Minute, says: `"LCStatus":"Ready"`},
		{source: "sushy: iDRACReset", method: "POST", path: dellOEM + "/DelliDRACCardService/Actions/DelliDRACCardService.iDRACReset", body: `{"Force":"Graceful"}`, status: 204},
	}},
	{"dell-r640", []habit{
		{source: "reference: before 6.00 media are at the manager", method: "GET", path: dellS + "/VirtualMedia", status: 404},
		{source: "reference: before 6.00 media are at the manager", method: "POST", path: dellM + "/VirtualMedia/CD" + inserting, body: `{"Image":"IMAGE"}`, status: 204},
		{source: "sushy, sample of a manager", method: "POST", path: dellM + "/Actions/Oem/EID_674_Manager.ImportSystemConfiguration", body: vcd, status: 202,
			shows: map[string]any{dellM + "#Model": "14G Monolithic"}},
		{source: "idrac_bios: reset_bios sends a text", method: "POST", path: dellS + "/Bios/Actions/Bios.ResetBios", body: `"{}"`, status: 204},
		{source: "idrac_bios: which has an object", method: "POST", path: dellS + "/Bios/Actions/Bios.ResetBios", body: `"x"`, status: 400},
	}},
	{"dell-r730", []habit{
		{source: "reference: no Vendor, no ForceRestart", method: "GET", path: "/redfish/v1", status: 200, shows: map[string]any{
			"/redfish/v1#Vendor": nil, dellM + "#Model": "13G Monolithic",
			dellS + "#Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues": "[On ForceOff GracefulRestart GracefulShutdown PushPowerButton Nmi]",
		}},
		{source: "badfish#447: no sessions", method: "POST", path: "/redfish/v1/Sessions", body: `{"UserName":"a","Password":"b"}`, status: 405, says: "IDRAC.1.6.SYS402"},
		{source: "sushy: ResetBios needs a body", method: "POST", path: dellS + "/Bios/Actions/Bios.ResetBios", status: 400},
		{source: "sushy: ResetBios needs a body", method: "POST", path: dellS + "/Bios/Actions/Bios.ResetBios", body: `{}`, status: 204},
		{source: "reference: accounts at the manager", method: "PATCH", path: dellM + "/Accounts/3", body: `{"UserName":"ops","Password":"secret-99","RoleId":"Operator"}`, status: 200},
		{source: "sushy fix-extended-info: an object", method: "PATCH", path: dellS, body: `{"Nonsense":1}`, status: 400, says: `"@Message.ExtendedInfo":{`},
		{source: "nobody sees UsbCd", method: "PATCH", path: dellS, body: `{"Boot":{"BootSourceOverrideTarget":"UsbCd"}}`, status: 400},
		{source: "reference: attributes at the manager", method: "PATCH", path: dellM + "/Attributes", body: `{"Attributes":{"VNCServer.1.Enable":"Enabled"}}`, status: 200},
	}},
	{"dell-r770", []habit{
		{source: "gofish#511: Boot is read-only", method: "PATCH", path: dellS, body: `{"Boot":{"BootSourceOverrideTarget":"Pxe"}}`, status: 405},
		{source: "gofish#511: but in the settings", method: "PATCH", path: dellS + "/Settings", body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, status: 428},
		{source: "gofish#511: with their ETag", method: "PATCH", path: dellS + "/Settings", body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, match: "ETAG", status: 200,
			shows: map[string]any{dellS + "#Boot/BootSourceOverrideTarget": "Pxe", dellM + "#Model": "17G Monolithic"}},
		{source: "gone: attributes at the manager", method: "GET", path: dellM + "/Attributes", status: 404, shows: map[string]any{toGroup + "#Attributes/Info.1.HWModel": "iDRAC 10"}},
		{source: "reference: one slot", method: "GET", path: dellS + "/VirtualMedia", status: 200, shows: map[string]any{dellS + "/VirtualMedia#Members@odata.count": 1}},
		{source: "launchpad 2162995", method: "POST", path: dellS + resetting, body: `{"ResetType":"On"}`, status: 204},
		{source: "launchpad 2162995", method: "POST", path: dellS + resetting, body: `{"ResetType":"ForceOff"}`, status: 204, wait: 5 * time.Minute},
		{source: "launchpad 2162995: power has to settle", method: "POST", path: dellS + resetting, body: `{"ResetType":"On"}`, status: 409, says: "ActionParameterValueConflict", wait: 4 * time.Second},
		{source: "launchpad 2162995: and then does", method: "POST", path: dellS + resetting, body: `{"ResetType":"On"}`, status: 204, wait: 5 * time.Second},
		{source: "reference: Bios.ClearPending", method: "POST", path: dellBIOS + "/Actions/Bios.ClearPending", body: `{}`, status: 204},
	}},
}

// On iDRAC 8 only the vendor's attribute boots virtual media: Cd is a drive of the
// server [sushy; issue 90 of Dell's scripts].
func TestIDRACVirtualMediaBootAttribute(t *testing.T) {
	l, call := client(t, "dell-r730", "http://127.0.0.1:1")
	call("PATCH", dellS, `{"Boot":{"BootSourceOverrideTarget":"Cd","BootSourceOverrideEnabled":"Once"}}`, "")
	if is := l.First().Machine().Override; is.Target != machine.Cd || !is.LocalDrive {
		t.Errorf("with Cd the server boots %+v, want a drive of its own", is)
	}
	if status, text, _ := call("POST", dellM+"/Actions/Oem/EID_674_Manager.ImportSystemConfiguration", vcd, ""); status != http.StatusAccepted {
		t.Fatalf("the profile is answered %d %s", status, text)
	}
	l.Advance(time.Minute)
	if is := l.First().Machine().Override; is.Target != machine.UsbCd || is.LocalDrive {
		t.Errorf("with VCD-DVD the server boots %+v, want virtual media", is)
	}
}
