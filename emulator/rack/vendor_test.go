package rack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// habit is a behaviour of a vendor's BMC, with its evidence. In a path and a body,
// IMAGE is the URL of an image, HOST that of its server; ETAG is the ETag of the
// resource.
type habit struct {
	source             string
	method, path, body string
	match              string // If-Match header
	status             int
	says               string         // in the response
	shows              map[string]any // afterwards, by path: "/redfish/v1/Systems/1#Boot/BootSourceOverrideTarget"; nil: absent or null
	wait               time.Duration  // before the request
}

const (
	sys1      = "/redfish/v1/Systems/1"
	mgr1      = "/redfish/v1/Managers/1"
	self      = "/redfish/v1/Systems/Self"
	selfM     = "/redfish/v1/Managers/Self"
	inserting = "/Actions/VirtualMedia.InsertMedia"
	ejecting  = "/Actions/VirtualMedia.EjectMedia"
	resetting = "/Actions/ComputerSystem.Reset"
)

// habits are the behaviours of the dialects by profile, in the order in which a
// client meets them.
var habits = []struct {
	profile string
	rows    []habit
}{
	{"lenovo-sr650-v2", []habit{
		{source: "mockup, ServiceRoot", method: "GET", path: "/redfish/v1/", status: 200, shows: map[string]any{
			"/redfish/v1#Vendor": "Lenovo", "/redfish/v1#Product": nil, "/redfish/v1#LicenseService/@odata.id": "/redfish/v1/LicenseService",
			mgr1 + "#Model": "Lenovo XClarity Controller", sys1 + "#EthernetInterfaces/@odata.id": sys1 + "/EthernetInterfaces",
			sys1 + "/EthernetInterfaces/NIC1#Id": "NIC1", "/redfish/v1/SessionService#SessionTimeout": 300,
		}},
		{source: "mockup, Systems/1: Boot", method: "GET", path: sys1, status: 200, shows: map[string]any{
			sys1 + "#Boot/BootSourceOverrideEnabled@Redfish.AllowableValues":          "[Once Disabled]",
			sys1 + "#Boot/BootSourceOverrideTarget@Redfish.AllowableValues":           "[None Pxe Cd Usb Hdd BiosSetup Diags UefiTarget]",
			sys1 + "#Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues": "[On Nmi GracefulShutdown GracefulRestart ForceOn ForceOff ForceRestart]",
		}},
		{source: "bmclib, lenovo/boot.go: overrides do not stay", method: "PATCH", path: sys1, status: 400, says: "PropertyValueNotInList",
			body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Continuous"}}`},
		{source: "pastebin.com/dLZ2vLWN: the code of errors", method: "PATCH", path: sys1, body: `{"Nonsense":1}`, status: 400, says: `"code":"Base.1.12.GeneralError"`},
		{source: "reference: media are under the manager", method: "GET", path: mgr1 + "/VirtualMedia", status: 200, shows: map[string]any{
			sys1 + "#VirtualMedia": nil, mgr1 + "/VirtualMedia#Members@odata.count": 10, mgr1 + "/VirtualMedia/EXT1#Actions": nil,
		}},
		{source: "sushy fix-virtual-media-fallback: no action", method: "POST", path: mgr1 + "/VirtualMedia/EXT1" + inserting, body: `{"Image":"IMAGE"}`, status: 404},
		{source: "pastebin.com/dLZ2vLWN: Inserted is required", method: "PATCH", path: mgr1 + "/VirtualMedia/EXT1", body: `{"Image":"IMAGE"}`, status: 400, says: "PropertyMissing"},
		{source: "reference: RDOC takes none", method: "PATCH", path: mgr1 + "/VirtualMedia/RDOC1", body: `{"Image":"IMAGE","Inserted":true}`, status: 400, says: "PropertyNotWritable"},
		{source: "reference: nor does Remote", method: "PATCH", path: mgr1 + "/VirtualMedia/Remote2", body: `{"Image":"IMAGE","Inserted":true}`, status: 400, says: "PropertyNotWritable"},
		{source: "scripts: EXT takes it", method: "PATCH", path: mgr1 + "/VirtualMedia/EXT1", body: `{"Image":"IMAGE","Inserted":true,"WriteProtected":true}`, match: "ETAG", status: 200,
			shows: map[string]any{mgr1 + "/VirtualMedia/EXT1#Inserted": true}},
		{source: "scripts: Image null ejects it", method: "PATCH", path: mgr1 + "/VirtualMedia/EXT1", body: `{"Image":null}`, status: 200,
			shows: map[string]any{mgr1 + "/VirtualMedia/EXT1#Inserted": false}},
		{source: "scripts: an image is uploaded", method: "POST", path: mgr1 + "/Oem/Lenovo/RemoteControl/Actions/LenovoRemoteControlService.UploadFromURL",
			body: `{"sourceURL":"IMAGE","Type":"HTTP"}`, status: 204},
		{source: "scripts: and mounted", method: "POST", path: mgr1 + "/Oem/Lenovo/RemoteMap/Actions/LenovoRemoteMapService.Mount", body: `{}`, status: 204,
			shows: map[string]any{mgr1 + "/VirtualMedia/RDOC1#Inserted": true}},
		{source: "mockup: settings are Pending, whole", method: "PATCH", path: sys1 + "/Bios/Pending", body: `{"Attributes":{"Processors_HyperThreading":"Disabled"}}`, match: "*", status: 200,
			shows: map[string]any{
				sys1 + "/Bios#@Redfish.Settings/SettingsObject/@odata.id": sys1 + "/Bios/Pending", sys1 + "/Bios#AttributeRegistry": "BiosAttributeRegistry.1.0.0",
				sys1 + "/Bios/Pending#Attributes/Processors_HyperThreading": "Disabled", sys1 + "/Bios/Pending#Attributes/Memory_PatrolScrub": "Enabled",
				sys1 + "/Bios#Attributes/Processors_HyperThreading": "Enabled", sys1 + "/Bios#@Redfish.Settings/SupportedApplyTimes": "[OnReset]",
			}},
		{source: "mockup: and nowhere else", method: "GET", path: sys1 + "/Bios/Settings", status: 404},
		{source: "the firmware applies them", method: "POST", path: sys1 + resetting, body: `{"ResetType":"On"}`, status: 204},
		{source: "the firmware applies them", method: "GET", path: sys1, status: 200, wait: 5 * time.Minute, shows: map[string]any{
			sys1 + "/Bios#Attributes/Processors_HyperThreading": "Disabled",
		}},
		{source: "mockup, UpdateService: where images are pushed", method: "POST", path: "/mfwupdate", body: `{}`, status: 415, shows: map[string]any{
			"/redfish/v1/UpdateService#MultipartHttpPushUri": "/mfwupdate", "/redfish/v1/UpdateService#HttpPushUri": "/fwupdate",
		}},
		{source: "mockup, SystemReset; libredfish", method: "POST", path: sys1 + "/Actions/Oem/LenovoComputerSystem.SystemReset", body: `{"ResetType":"ForceOff"}`, status: 400},
		{source: "scripts: policies of volumes have Lenovo's names", method: "POST", path: sys1 + "/Storage/RAID_Slot3/Volumes", status: 201,
			body: `{"Name":"v1","RAIDType":"RAID1","Links":{"Drives":[{"@odata.id":"/redfish/v1/Systems/1/Storage/RAID_Slot3/Drives/Disk.0"},{"@odata.id":"/redfish/v1/Systems/1/Storage/RAID_Slot3/Drives/Disk.1"}]},` +
				`"Oem":{"Lenovo":{"ReadPolicy":"NoReadAhead","WritePolicy":"AlwaysWriteBack","IOPolicy":"DirectIO"}}}`,
			shows: map[string]any{
				sys1 + "/Storage/RAID_Slot3/Volumes/1#ReadCachePolicy": "Off", sys1 + "/Storage/RAID_Slot3/Volumes/1#WriteCachePolicy": "UnprotectedWriteBack",
			}},
		{source: "mockup, SystemReset; libredfish", method: "POST", path: sys1 + "/Actions/Oem/LenovoComputerSystem.SystemReset", body: `{"ResetType":"ACPowerCycle"}`, status: 204},
	}},
	{"lenovo-sr650-v3", []habit{
		{source: "mockup: media are under the system", method: "GET", path: mgr1 + "/VirtualMedia/EXT1", status: 200, shows: map[string]any{
			sys1 + "#VirtualMedia/@odata.id": sys1 + "/VirtualMedia", sys1 + "/VirtualMedia/EXT1#VerifyCertificate": false,
		}},
		{source: "scripts", method: "PATCH", path: sys1 + "/VirtualMedia/EXT2", body: `{"Image":"IMAGE","Inserted":true}`, status: 200},
		{source: "community.general #11270: 412 with its own ETag", method: "PATCH", path: "/redfish/v1/Chassis/1/Power", match: "ETAG", status: 412,
			body: `{"PowerControl":[{"PowerLimit":{"LimitInWatts":600}}]}`},
		{source: "community.general #11270: and none", method: "PATCH", path: "/redfish/v1/Chassis/1/Power", status: 200, body: `{"PowerControl":[{"PowerLimit":{"LimitInWatts":600}}]}`},
		{source: "mockup: Systems/1/Pending has the boot order", method: "PATCH", path: sys1 + "/Pending", body: `{"Boot":{"BootOrder":["Boot0201","Boot0200"]}}`, status: 200, shows: map[string]any{
			sys1 + "#@Redfish.Settings/SettingsObject/@odata.id": sys1 + "/Pending", sys1 + "#Boot/BootOrder": "[Boot0201 Boot0200]", sys1 + "/Pending#Oem": nil,
		}},
		{source: "mockup, NetworkProtocol: IPMI is off as it comes", method: "GET", path: mgr1, status: 200, shows: map[string]any{mgr1 + "/NetworkProtocol#IPMI/ProtocolEnabled": false}},
		{source: "mockup: drives by their bays", method: "GET", path: sys1 + "/Storage/RAID_Slot1/Drives/Drive.Bay_0", status: 200},
	}},
	{"supermicro-1029u", []habit{
		{source: "jgato: the drive is under VM1", method: "GET", path: mgr1 + "/VM1/CD1", status: 200, shows: map[string]any{
			mgr1 + "#VirtualMedia/@odata.id": mgr1 + "/VM1", mgr1 + "/VM1#Oem/Supermicro/VirtualMediaConfig/@odata.id": mgr1 + "/VM1/CfgCD", "/redfish/v1#Vendor": nil,
		}},
		{source: "jgato, badfish: where the image is", method: "PATCH", path: mgr1 + "/VM1/CfgCD", body: `{"Host":"HOST","Path":"/live.iso","Username":"u","Password":"secret"}`, status: 200,
			says: `"Success":{`, shows: map[string]any{mgr1 + "/VM1/CfgCD#Host": "HOST", mgr1 + "/VM1/CfgCD#Path": "/live.iso", mgr1 + "/VM1/CfgCD#Password": "********"}},
		{source: "jgato, badfish: Mount, without a body", method: "POST", path: mgr1 + "/VM1/CfgCD/Actions/IsoConfig.Mount", status: 200, says: `"code":"Base.1.4.0.Success"`,
			shows: map[string]any{mgr1 + "/VM1/CD1#Inserted": true, mgr1 + "/VM1/CD1#Image": "IMAGE"}},
		{source: "jgato: UnMount", method: "POST", path: mgr1 + "/VM1/CfgCD/Actions/IsoConfig.UnMount", status: 200, shows: map[string]any{mgr1 + "/VM1/CD1#Inserted": false}},
		{source: "sushy fix-insert-media-payload", method: "POST", path: mgr1 + "/VirtualMedia/CD1" + inserting, body: `{"Image":"IMAGE","Inserted":true,"WriteProtected":true}`, status: 400},
		{source: "sushy fix-insert-media-payload; ansible #4839 for the address", method: "POST", path: mgr1 + "/VirtualMedia/CD1" + inserting, body: `{"Image":"IMAGE"}`, status: 200,
			shows: map[string]any{mgr1 + "/VM1/CD1#Inserted": true}},
		{source: "jgato: the mode alone; the code of errors", method: "PATCH", path: sys1, body: `{"Boot":{"BootSourceOverrideMode":"UEFI"}}`, status: 400, says: `"code":"Base.1.4.0.GeneralError"`},
		{source: "story 2008547: without Enabled", method: "PATCH", path: sys1, body: `{"Boot":{"BootSourceOverrideTarget":"UsbCd"}}`, status: 400, says: "PropertyMissing"},
		{source: "story 2008252: the mode flips", method: "PATCH", path: sys1, body: `{"Boot":{"BootSourceOverrideTarget":"UsbCd","BootSourceOverrideEnabled":"Once"}}`, status: 200,
			shows: map[string]any{sys1 + "#Boot/BootSourceOverrideTarget": "UsbCd", sys1 + "#Boot/BootSourceOverrideMode": "Legacy"}},
		{source: "story 2008252: unless it is sent", method: "PATCH", path: sys1, status: 200,
			body:  `{"Boot":{"BootSourceOverrideTarget":"Cd","BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI"}}`,
			shows: map[string]any{sys1 + "#Boot/BootSourceOverrideTarget": "Cd", sys1 + "#Boot/BootSourceOverrideMode": "UEFI"}},
		{source: "what is not in the list", method: "PATCH", path: sys1, body: `{"Boot":{"BootSourceOverrideTarget":"RemoteDrive","BootSourceOverrideEnabled":"Once"}}`, status: 400, says: "PropertyValueNotInList"},
		{source: "ironic: without the licence", method: "POST", path: mgr1 + "/LicenseManager/Actions/LicenseManager.ClearLicense", status: 200},
		{source: "ironic: OemLicenseNotPassed", method: "POST", path: mgr1 + "/VM1/CD1" + ejecting, status: 403, says: "SMC.1.0.OemLicenseNotPassed"},
		{source: "ironic: and with it", method: "POST", path: mgr1 + "/LicenseManager/Actions/LicenseManager.ActivateLicense", body: `{"LicenseKey":"k"}`, status: 200},
		{source: "ironic: and with it", method: "POST", path: mgr1 + "/VM1/CD1" + ejecting, status: 200},
	}},
	{"supermicro-621c", []habit{
		{source: "mockup, Systems/1", method: "GET", path: sys1, status: 200, shows: map[string]any{
			sys1 + "#Boot/BootSourceOverrideTarget@Redfish.AllowableValues":           "[None Pxe Floppy Cd Usb Hdd BiosSetup UsbCd UefiBootNext UefiHttp]",
			sys1 + "#Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues": nil, sys1 + "#Actions/#ComputerSystem.Reset/@Redfish.ActionInfo": sys1 + "/ResetActionInfo",
			sys1 + "#VirtualMedia/@odata.id": mgr1 + "/VirtualMedia", "/redfish/v1/AccountService#AccountLockoutThreshold": 3,
		}},
		{source: "mockup, Bios/SD: nothing is pending", method: "GET", path: sys1 + "/Bios/SD", status: 200, shows: map[string]any{
			sys1 + "/Bios/SD#Attributes": nil, sys1 + "/Bios/SD#Id": "SD", sys1 + "/Bios#AttributeRegistry": "BiosAttributeRegistry.v1_0_0",
		}},
		{source: "mockup, Bios/SD", method: "PATCH", path: sys1 + "/Bios/SD", body: `{"Attributes":{"QuietBoot_002D":false}}`, status: 200, shows: map[string]any{
			sys1 + "/Bios/SD#Attributes/QuietBoot_002D": false, sys1 + "/Bios#Attributes/QuietBoot_002D": true,
		}},
		{source: "mockup, InsertMediaActionInfo", method: "POST", path: mgr1 + "/VirtualMedia/VirtualMedia1" + inserting, body: `{"Image":"IMAGE","Inserted":true,"WriteProtected":true}`, status: 200},
		{source: "sushy change-bootdev-smc", method: "PATCH", path: sys1, body: `{"Boot":{"BootSourceOverrideTarget":"UsbCd","BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI"}}`, status: 200},
		{source: "mockup, UpdateService: where images are pushed", method: "POST", path: "/redfish/v1/UpdateService/upload", body: `{}`, status: 415, shows: map[string]any{
			"/redfish/v1/UpdateService#MultipartHttpPushUri": "/redfish/v1/UpdateService/upload", "/redfish/v1/UpdateService#HttpPushUri": nil,
		}},
		{source: "libredfish, ACCycle", method: "POST", path: sys1 + "/Actions/Oem/OemSystemExtensions.Reset", body: `{"ResetType":"ACCycle"}`, status: 200},
	}},
	{"gigabyte-r282", []habit{
		{source: "mockup, ServiceRoot", method: "GET", path: self, status: 200, shows: map[string]any{
			"/redfish/v1#Product": "AMI Redfish Server", "/redfish/v1#Oem/Ami/RtpVersion": "13.03", self + "#@Redfish.Settings/SettingsObject/@odata.id": self + "/SD",
			self + "/SD#@Redfish.Settings": nil, self + "#Links/Chassis/0/@odata.id": "/redfish/v1/Chassis/Self",
		}},
		{source: "gofish #171", method: "PATCH", path: self, body: `{"AssetTag":"a"}`, status: 428, says: "Ami.1.0.PreconditionHeaderMissing"},
		{source: "gofish #171", method: "PATCH", path: self, body: `{"AssetTag":"a"}`, match: "ETAG", status: 200},
		{source: "libredfish: *", method: "PATCH", path: self, body: `{"AssetTag":"b"}`, match: "*", status: 200},
		{source: "ironic, management.py: all three of ami and asrockrack alone", method: "PATCH", path: self, match: "*", body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, status: 200,
			shows: map[string]any{self + "#Boot/BootSourceOverrideTarget": "Pxe", self + "#Boot/BootSourceOverrideEnabled": "Once"}},
		{source: "libredfish: boots are set at SD", method: "PATCH", path: self + "/SD", match: "ETAG", status: 200,
			body:  `{"Boot":{"BootSourceOverrideTarget":"Cd","BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI"}}`,
			shows: map[string]any{self + "#Boot/BootSourceOverrideTarget": "Cd", self + "/SD#Boot/BootSourceOverrideTarget": "Cd"}},
		{source: "mockup, Bios/SD: as it will be", method: "PATCH", path: self + "/Bios/SD", match: "ETAG", body: `{"Attributes":{"Milan0013":"Disable"}}`, status: 200, shows: map[string]any{
			self + "/Bios/SD#Attributes/Milan0013": "Disable", self + "/Bios/SD#Attributes/SETUP008": "Enabled", self + "/Bios#Attributes/Milan0013": "Auto",
		}},
		{source: "scripts; sushy 4.3: how it comes", method: "POST", path: selfM + "/VirtualMedia/CD1" + inserting, body: `{"Image":"IMAGE"}`, status: 400, says: "Base.1.5.ActionParameterMissing"},
		{source: "scripts: media are off", method: "POST", path: selfM + "/Actions/Oem/AMIVirtualMedia.EnableRMedia", body: `{"RMediaState":"Disable"}`, status: 204,
			shows: map[string]any{selfM + "#Oem/Ami/VirtualMedia/RMediaStatus": "Disabled"}},
		{source: "scripts: media are off", method: "POST", path: selfM + "/VirtualMedia/CD1" + inserting, body: `{"Image":"IMAGE","TransferProtocolType":"HTTP"}`, status: 503},
		{source: "scripts: media are on", method: "POST", path: selfM + "/Actions/Oem/AMIVirtualMedia.EnableRMedia", body: `{"RMediaState":"Enable"}`, status: 204,
			shows: map[string]any{selfM + "#Oem/Ami/VirtualMedia/RMediaStatus": "Enabled"}},
		{source: "scripts: a task", method: "POST", path: selfM + "/VirtualMedia/CD1" + inserting, body: `{"Image":"IMAGE","TransferProtocolType":"HTTP"}`, status: 202},
		{source: "scripts: a task", method: "GET", path: self, status: 200, wait: 10 * time.Second, shows: map[string]any{
			selfM + "/VirtualMedia/CD1#Inserted": true, "/redfish/v1/TaskService/Tasks/1#TaskState": "Completed",
		}},
		{source: "scripts: which is deleted, without an ETag", method: "DELETE", path: "/redfish/v1/TaskService/Tasks/1", status: 204},
	}},
}

// TestVendorDialectsAnswerAsTheirBMCs shows statement E17.
func TestVendorDialectsAnswerAsTheirBMCs(t *testing.T) {
	for _, of := range slices.Concat(habits, idracHabits) {
		t.Run(of.profile, func(t *testing.T) {
			images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<16)) }))
			defer images.Close()
			l, call := client(t, of.profile, images.URL)
			for _, b := range of.rows {
				if b.wait > 0 {
					l.Advance(b.wait)
				}
				match := b.match
				if match == "ETAG" {
					_, _, match = call("GET", b.path, "", "")
				}
				status, text, _ := call(b.method, b.path, b.body, match)
				l.Settle()
				if status != b.status || !strings.Contains(text, b.says) {
					t.Errorf("%s: %s %s %s = %d %s, want %d %s", b.source, b.method, b.path, b.body, status, text, b.status, b.says)
				}
				for at, want := range b.shows {
					uri, path, _ := strings.Cut(at, "#")
					_, text, _ := call("GET", uri, "", "")
					if want = strings.NewReplacer("IMAGE", images.URL+"/live.iso", "HOST", images.URL).Replace(fmt.Sprint(want)); fmt.Sprint(property(t, text, path)) != want {
						t.Errorf("%s: after %s %s %s is %v, want %v", b.source, b.method, b.path, at, property(t, text, path), want)
					}
				}
			}
		})
	}
}

// client starts a rack with one server, and returns a function that sends requests to
// its BMC.
func client(t *testing.T, profile, images string) (*racktest.Rack, func(method, path, body, match string) (status int, text, tag string)) {
	t.Helper()
	r := rackfile.Default(1)
	r.Hosts[0].Profile = profile
	l := racktest.Start(t, rack.Config{Rack: &r})
	h := l.First()
	name, password := l.Credentials(h)
	return l, func(method, path, body, match string) (int, string, string) {
		t.Helper()
		body = strings.NewReplacer("IMAGE", images+"/live.iso", "HOST", images).Replace(body)
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(name, password)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		if match != "" {
			req.Header.Set("If-Match", match)
		}
		resp, err := l.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(raw), resp.Header.Get("Etag")
	}
}

// property returns the value at a path of a JSON text, or nil when there is none. A
// segment may be an index.
func property(t *testing.T, text, path string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for name := range strings.SplitSeq(path, "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i := -1
			if _, err := fmt.Sscan(name, &i); err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// A finished task is gone after its monitor was read [bmclib, providers/lenovo].
func TestTaskMonitorIsGoneAfterItsResult(t *testing.T) {
	l, call := client(t, "lenovo-sr650-v2", "http://127.0.0.1:1")
	status, text, _ := call("POST", sys1+"/Storage/RAID_Slot3/Volumes", `{"RAIDType":"RAID1","@Redfish.OperationApplyTime":"OnReset","Links":{"Drives":[{"@odata.id":"`+
		sys1+`/Storage/RAID_Slot3/Drives/Disk.0"},{"@odata.id":"`+sys1+`/Storage/RAID_Slot3/Drives/Disk.1"}]}}`, "")
	if status != http.StatusAccepted {
		t.Fatalf("a volume at the next start = %d %s, want 202", status, text)
	}
	call("POST", sys1+resetting, `{"ResetType":"On"}`, "")
	l.Advance(10 * time.Minute)
	for i, want := range []int{http.StatusCreated, http.StatusNotFound} {
		if status, text, _ := call("GET", "/redfish/v1/TaskService/TaskMonitors/1", "", ""); status != want {
			t.Errorf("read for the %d. time the monitor is answered %d %s, want %d", i+1, status, text, want)
		}
	}
}

// The virtual media drive boots as UsbCd; Cd is another drive, which does not exist
// [sushy, BootSource.USB_CD].
func TestVirtualMediaBootsWithUsbCdOverride(t *testing.T) {
	for target, want := range map[string]machine.SourceKind{"UsbCd": machine.Cd, "Cd": machine.RemoteDrive} {
		l, call := client(t, "supermicro-621c", "http://127.0.0.1:1")
		call("PATCH", sys1, `{"Boot":{"BootSourceOverrideTarget":"`+target+`","BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"UEFI"}}`, "")
		if is := l.First().Machine().Override.Target; is != want {
			t.Errorf("with %s the server boots %s, want %s", target, is, want)
		}
	}
}
