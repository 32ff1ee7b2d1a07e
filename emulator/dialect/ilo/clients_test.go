package ilo_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// bench is a rack with one server, as a client sees it.
type bench struct {
	*testing.T
	l *racktest.Rack
	h *rack.Host
}

func serve(t *testing.T, profile string) *bench {
	t.Helper()
	r := rackfile.Default(1)
	r.Hosts[0].Profile = profile
	l := racktest.Start(t, rack.Config{Rack: &r})
	return &bench{t, l, l.First()}
}

// answer is a response that a client got.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

func (b *bench) call(method, path, body string, headers ...string) answer {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.h.URL()+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.SetBasicAuth(b.l.Credentials(b.h))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.l.Client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, text: string(raw)}
	if strings.HasPrefix(a.text, "{") {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			b.Fatalf("%s %s: %v: %s", method, path, err, raw)
		}
	}
	return a
}

// get reads a property of a resource by its path.
func (b *bench) get(at, path string) any {
	b.Helper()
	a := b.call("GET", at, "")
	if a.status != http.StatusOK {
		b.Fatalf("GET %s = %d %s", at, a.status, a.text)
	}
	var v any = a.body
	for name := range strings.SplitSeq(path, "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// shows checks properties: by address and path, what they are.
func (b *bench) shows(want map[string]any) {
	b.Helper()
	for at, v := range want {
		uri, path, _ := strings.Cut(at, "#")
		if is := b.get(uri, path); fmt.Sprint(is) != fmt.Sprint(v) {
			b.Errorf("%s is %v, want %v", at, is, v)
		}
	}
}

// row is a behaviour, with where one knows it from.
type row struct {
	source             string
	method, path, body string
	status             int
	says               string // key of a message
}

func (b *bench) behaves(rows ...row) {
	b.Helper()
	for _, r := range rows {
		a := b.call(r.method, r.path, r.body)
		if a.status != r.status || r.says != "" && !strings.Contains(a.text, "."+r.says+`"`) {
			b.Errorf("%s %s %s = %d %s, want %d %s [%s]", r.method, r.path, r.body, a.status, a.text, r.status, r.says, r.source)
		}
	}
}

// until lets time pass until a property is so.
func (b *bench) until(at, path string, want any) {
	b.Helper()
	for range 600 {
		if b.get(at, path) == want {
			return
		}
		b.l.Advance(time.Second)
	}
	b.Fatalf("%s#%s never became %v: it is %v", at, path, want, b.get(at, path))
}

const (
	system = "/redfish/v1/Systems/1"
	reset  = system + "/Actions/ComputerSystem.Reset"
	cd     = "/redfish/v1/Managers/1/VirtualMedia/2"
	ext    = system + "/Actions/Oem/Hpe/HpeComputerSystemExt."
	table  = "table of vendors' dialects"
	docs   = "HPE's Redfish reference"
)

// images serves an image of nothing.
func images(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 4096)) }))
	t.Cleanup(s.Close)
	return s.URL + "/a.iso"
}

// TestServiceRootNamesTheGeneration shows statement E18.
func TestServiceRootNamesTheGeneration(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			b.shows(map[string]any{
				"/redfish/v1/#Vendor": tt.vendor, "/redfish/v1/#Name": tt.root, "/redfish/v1/#RedfishVersion": tt.redfish,
				"/redfish/v1/Managers/1#Model": tt.model, "/redfish/v1/Managers/1#FirmwareVersion": tt.firmware,
				system + "#Manufacturer": tt.manufacturer,
			})
			if product := b.get("/redfish/v1/", "Product"); tt.product != "" && product != tt.product {
				t.Errorf("the product is %v, want %s", product, tt.product)
			}
		})
	}
}

func TestRedundantResetIsRejected(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			const sushy = "sushy release note retry-ilo-not-ready-error"
			b.behaves(
				row{sushy, "POST", reset, `{"ResetType":"ForceOff"}`, 400, "InvalidOperationForSystemState"},
				row{"github.com/goldyfruit/ansible-ilo/issues/1", "POST", reset, `{"ResetType":"ForceRestart"}`, 400, "InvalidOperationForSystemState"},
				row{table, "POST", reset, `{"ResetType":"PowerCycle"}`, 400, "ActionParameterValueNotInList"},
				row{table, "POST", reset, `{"ResetType":"ForceOn"}`, 400, "ActionParameterValueNotInList"},
				row{table, "POST", reset, `{"ResetType":"On"}`, 200, "Success"},
			)
			b.until(system, "PowerState", "On")
			b.l.Advance(5 * time.Second)
			b.behaves(row{sushy, "POST", reset, `{"ResetType":"On"}`, 400, "InvalidOperationForSystemState"})
		})
	}
}

// TestPostStateFollowsTheBoot shows statement E18.
func TestPostStateFollowsTheBoot(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			post := "Oem/" + tt.oem + "/PostState"
			b.shows(map[string]any{system + "#" + post: "PowerOff"})
			b.behaves(row{docs, "POST", strings.ReplaceAll(ext, "Hpe", tt.oem) + "PowerButton", `{"PushType":"Press"}`, 200, "Success"})
			b.until(system, post, "InPost")
			b.l.Advance(5 * time.Second)
			b.behaves(
				row{"github.com/ironcore-dev/metal-operator/issues/997", "PATCH", system, `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, 400, "UnableToModifyDuringSystemPOST"},
				row{"github.com/ironcore-dev/metal-operator/issues/997", "PATCH", tt.settings, `{"Attributes":{"AdminName":"a"}}`, 400, "UnableToModifyDuringSystemPOST"},
			)
			b.until(system, post, "InPostDiscoveryComplete")
			b.l.Advance(time.Minute) // there is nothing to boot
			b.shows(map[string]any{system + "#" + post: "InPostDiscoveryComplete"})
			b.behaves(
				row{"HPE's developer portal: Master the Redfish Server States", "PATCH", system, `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, 400, "UnableToModifyDuringSystemPOST"},
				row{docs, "POST", strings.ReplaceAll(ext, "Hpe", tt.oem) + "PowerButton", `{"PushType":"PressAndHold"}`, 200, "Success"},
			)
			b.until(system, post, "PowerOff")
			b.behaves(row{table, "PATCH", system, `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Once"}}`, 200, "Success"})
		})
	}
}

func TestBootOverrides(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			b.behaves(
				row{table, "PATCH", system, `{"Boot":{"BootSourceOverrideTarget":"Cd","BootSourceOverrideEnabled":"Once"}}`, 200, "Success"},
				row{table, "PATCH", system, `{"Boot":{"BootSourceOverrideMode":"UEFI"}}`, 400, "PropertyNotWritableOrUnknown"},
				row{"github.com/dsx-ai-factory/libredfish/pull/76", "PATCH", system, `{"Boot":{"HttpBootUri":"http://a.test/b"}}`, 400, "PropertyNotWritableOrUnknown"},
			)
			boot, _ := b.get(system, "Boot").(map[string]any)
			for _, name := range []string{"BootSourceOverrideEnabled@Redfish.AllowableValues", "BootSourceOverrideMode@Redfish.AllowableValues", "HttpBootUri"} {
				if _, has := boot[name]; has {
					t.Errorf("Boot has %s", name)
				}
			}
			if boot["BootSourceOverrideTarget@Redfish.AllowableValues"] == nil || boot["BootSourceOverrideTarget"] != "Cd" {
				t.Errorf("Boot = %v", boot)
			}
		})
	}
}

func TestBIOSSettings(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			if at := b.get(system, "Bios/@odata.id"); at != tt.bios {
				t.Errorf("the BIOS is at %v, want %s", at, tt.bios)
			}
			b.behaves(
				row{table, "PATCH", tt.settings, `{"@Redfish.SettingsApplyTime":{"ApplyTime":"OnReset"},"Attributes":{"AdminName":"joe"}}`, 400, "PropertyNotWritableOrUnknown"},
				row{table, "PATCH", tt.settings, `{"Attributes":{"AdminName":"joe","ProcVirtualization":"Disabled"}}`, 200, "SystemResetRequired"},
				row{table, "PATCH", tt.settings, `{"Attributes":{"NoSuchThing":"x"}}`, 400, "PropertyUnknown"},
				row{table, "POST", reset, `{"ResetType":"On"}`, 200, "Success"},
			)
			if tasks := b.get("/redfish/v1/TaskService/Tasks", "Members@odata.count"); fmt.Sprint(tasks) != "0" {
				t.Errorf("a change of settings has made %v tasks", tasks)
			}
			b.until(tt.bios, "Attributes/AdminName", "joe")
			b.shows(map[string]any{
				tt.bios + "#Attributes/ProcVirtualization": "Disabled", tt.bios + "#Attributes/IntelProcVtd": "Disabled",
			})
			if m, _ := b.get(tt.bios, "@Redfish.Settings/Messages/0/MessageId").(string); !strings.HasSuffix(m, ".Success") {
				t.Errorf("what became of it: %q", m)
			}
			if at := b.get(tt.bios, "@Redfish.Settings/Time"); at == nil || at == "" {
				t.Error("nothing says when")
			}
			// HTTP boot is a setting [github.com/dsx-ai-factory/libredfish/pull/76].
			b.behaves(row{table, "POST", reset, `{"ResetType":"ForceOff"}`, 200, "Success"})
			b.until(system, "PowerState", "Off")
			b.l.Advance(time.Minute)
			b.behaves(
				row{table, "PATCH", tt.settings, `{"Attributes":{"UrlBootFile":"http://boot.test/a.efi"}}`, 200, "SystemResetRequired"},
				row{table, "POST", reset, `{"ResetType":"On"}`, 200, "Success"},
			)
			b.until(tt.bios, "Attributes/UrlBootFile", "http://boot.test/a.efi")
			options, _ := b.get(system+"/BootOptions", "Members").([]any)
			found := false
			for _, o := range options {
				o, _ := o.(map[string]any)
				found = found || strings.Contains(fmt.Sprint(b.get(fmt.Sprint(o["@odata.id"]), "DisplayName")), "boot.test")
			}
			if !found {
				t.Errorf("no boot option is of the address that the BIOS has: %v", options)
			}
		})
	}
}

func TestRegistryWithoutGzipReturns406(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			id, _ := b.get(tt.bios, "AttributeRegistry").(string)
			if !strings.HasPrefix(id, tt.registry) {
				t.Errorf("the registry is %s", id)
			}
			at, _ := b.get("/redfish/v1/Registries/"+id, "Location/0/Uri").(string)
			if a := b.call("GET", at, "", "Accept-Encoding", "identity"); a.status != http.StatusNotAcceptable {
				t.Errorf("to a client that does not unpack: %d", a.status)
			}
			if a := b.call("GET", at, ""); a.status != http.StatusOK || len(a.body) == 0 {
				t.Errorf("to a client that does: %d %.80s", a.status, a.text)
			}
		})
	}
}

func TestVirtualMedia(t *testing.T) {
	image := images(t)
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			oem := func(path string) string { return strings.ReplaceAll(path, "Hpe", tt.oem) }
			b.shows(map[string]any{
				"/redfish/v1/Managers/1/VirtualMedia#Members@odata.count": 2, cd + "#MediaTypes": "[CD DVD]", cd + "#Image": "", cd + "#ConnectedVia": "NotConnected",
				"/redfish/v1/Managers/1/VirtualMedia/1#MediaTypes": "[Floppy USBStick]", cd + oem("#Oem/Hpe/BootOnNextServerReset"): false,
				system + "#VirtualMedia": nil,
			})
			act := cd + "/Actions/VirtualMedia."
			b.behaves(
				row{table, "POST", act + "InsertMedia", `{"Image":"` + image + `"}`, 200, "Success"},
				row{docs, "PATCH", cd, oem(`{"Oem":{"Hpe":{"BootOnNextServerReset":true}}}`), 200, "Success"},
			)
			b.shows(map[string]any{
				cd + "#Image": image, cd + "#Inserted": true, cd + "#ConnectedVia": "URI", cd + oem("#Oem/Hpe/BootOnNextServerReset"): true,
				system + "#Boot/BootSourceOverrideTarget": "Cd", system + "#Boot/BootSourceOverrideEnabled": "Once",
			})
			if a := b.call("POST", act+"EjectMedia", ""); a.status < 400 || a.status >= 500 {
				t.Errorf("ejecting without a body: %d, want 4xx [sushy release note fix-eject-media-empty-dict]", a.status)
			}
			b.behaves(
				row{"sushy release note fix-eject-media-empty-dict", "POST", act + "EjectMedia", `{}`, 200, "Success"},
				row{docs, "POST", oem(cd + "/Actions/Oem/Hpe/HpeiLOVirtualMedia.InsertVirtualMedia"), `{"Image":"` + image + `"}`, 200, "Success"},
			)
			b.shows(map[string]any{cd + "#Inserted": true})
			b.behaves(row{docs, "POST", oem(cd + "/Actions/Oem/Hpe/HpeiLOVirtualMedia.EjectVirtualMedia"), `{}`, 200, "Success"})
			b.shows(map[string]any{cd + "#Inserted": false, cd + "#Image": ""})
		})
	}
}

func TestErrorsAndETags(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			a := b.call("PATCH", system, `{"Nonsense":1}`)
			e, _ := a.body["error"].(map[string]any)
			all, _ := e["@Message.ExtendedInfo"].([]any)
			if a.status != 400 || e["code"] != "iLO.0.10.ExtendedInfo" || len(all) != 1 {
				t.Fatalf("%d %s", a.status, a.text)
			}
			m, _ := all[0].(map[string]any)
			if m["MessageId"] == nil || m["Message"] != nil {
				t.Errorf("a message is %v: want no text", m)
			}
			if tag := b.call("GET", system, "").header.Get("ETag"); !strings.HasPrefix(tag, `W/"`) {
				t.Errorf("the ETag is %s", tag)
			}
			b.behaves(
				row{table, "PATCH", system, `{"AssetTag":"a"}`, 200, "Success"},
				row{table, "GET", "/redfish/v1/SYSTEMS/1/", "", 200, ""},
				row{table, "GET", "/redfish/v1/systems/1/BIOS/Settings", "", 200, ""},
			)
		})
	}
}

func TestAuthenticationIsDelayedAndNotLocked(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			name, _ := b.l.Credentials(b.h)
			wrong := func() int {
				req, err := http.NewRequestWithContext(t.Context(), "GET", b.h.URL()+system, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				req.SetBasicAuth(name, "wrong")
				resp, err := b.l.Client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				return resp.StatusCode
			}
			wrong()
			if s := b.call("GET", system, "").status; s != 200 {
				t.Errorf("after one failure: %d, want 200: one is allowed", s)
			}
			wrong()
			wrong()
			if s := b.call("GET", system, "").status; s != 401 {
				t.Errorf("right after two failures: %d, want 401", s)
			}
			b.l.Advance(11 * time.Second)
			b.shows(map[string]any{
				"/redfish/v1/AccountService#Oem/" + tt.oem + "/AuthFailureDelayTimeSeconds": 10,
				"/redfish/v1/AccountService#Oem/" + tt.oem + "/AuthFailuresBeforeDelay":     1,
				"/redfish/v1/AccountService#AccountLockoutThreshold":                        nil,
			})
		})
	}
}

func TestPrivilegesBecomeARole(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			of := func(p string) string { return `{"Oem":{"` + tt.oem + `":{"Privileges":{` + p + `}}}` }
			a := b.call("POST", "/redfish/v1/AccountService/Accounts", `{"UserName":"joe","Password":"joes-password",`+of(`"UserConfigPriv":false,"RemoteConsolePriv":true`)[1:]+`}`)
			at := a.header.Get("Location")
			if a.status != 201 || at == "" {
				t.Fatalf("%d %s", a.status, a.text)
			}
			b.shows(map[string]any{at + "#RoleId": "Operator", at + "#Oem/" + tt.oem + "/Privileges/UserConfigPriv": false})
			b.behaves(row{docs, "PATCH", at, of(`"UserConfigPriv":true`) + "}", 200, "Success"})
			b.shows(map[string]any{at + "#RoleId": "Administrator", at + "#Oem/" + tt.oem + "/Privileges/iLOConfigPriv": true, at + "#Locked": nil})
		})
	}
}

func TestResourceDirectoryLinksExist(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			at, _ := b.get("/redfish/v1/", "Oem/"+tt.oem+"/Links/ResourceDirectory/@odata.id").(string)
			all, _ := b.get(at, "Instances").([]any)
			if len(all) < 15 {
				t.Errorf("%d instances", len(all))
			}
			for _, x := range all {
				i, _ := x.(map[string]any)
				id, _ := i["@odata.id"].(string)
				if s := b.call("GET", id, "").status; s != 200 {
					t.Errorf("%s = %d", id, s)
				}
			}
			b.shows(map[string]any{"/redfish/v1/Managers/1/LicenseService/1#License": "iLO Advanced"})
		})
	}
}

func TestPersistentBootOrderIsWrittenBelowTheBIOS(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			at, _ := b.get(tt.bios, "Oem/"+tt.oem+"/Links/Boot/@odata.id").(string)
			at = strings.TrimSuffix(at, "/")
			all, _ := b.get(at, "PersistentBootConfigOrder").([]any)
			first := b.get(system, "Boot/BootOrder/0")
			if len(all) < 3 {
				t.Fatalf("the order is %v", all)
			}
			last := all[len(all)-1]
			b.behaves(
				row{docs, "PATCH", system, `{"Boot":{"BootOrder":[]}}`, 400, "PropertyNotWritableOrUnknown"},
				row{docs, "PATCH", at + "/settings", `{"PersistentBootConfigOrder":["NIC.No.Such"]}`, 400, "PropertyValueBadParam"},
				row{docs, "PATCH", at + "/settings/", fmt.Sprintf(`{"PersistentBootConfigOrder":[%q]}`, last), 200, "SystemResetRequired"},
			)
			b.shows(map[string]any{at + "#PersistentBootConfigOrder/0": last})
			if is := b.get(system, "Boot/BootOrder/0"); is == first {
				t.Errorf("the first is still %v", is)
			}
		})
	}
}

func TestFirmwareUpdateFetchesImageURI(t *testing.T) {
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			const update = "/redfish/v1/UpdateService"
			add := update + "/Actions/Oem/Hpe/HpeiLOUpdateServiceExt.AddFromUri"
			b.shows(map[string]any{
				update + "#Oem/Hpe/State": "Idle", update + "#MultipartHttpPushUri": nil, update + "#Oem/Hpe/Actions/#HpeiLOUpdateServiceExt.AddFromUri/target": add,
				"/redfish/v1/Managers/1/DateTime#DateTime": b.get("/redfish/v1/Managers/1", "DateTime"),
			})
			b.behaves(
				row{table, "POST", update + "/Actions/UpdateService.SimpleUpdate", `{"ImageURI":"tftp://127.0.0.1/a.bin"}`, 400, "PropertyValueBadParam"},
				row{docs, "POST", add, `{"ImageURI":"http://127.0.0.1:9/a.bin","UpdateRepository":true}`, 400, "UnsupportedOperation"},
				row{docs, "POST", add, `{"ImageURI":"http://127.0.0.1:9/a.bin","UpdateTarget":true}`, 202, ""},
				row{table, "GET", "/redfish/v1/EventService/SSE", "", 404, ""},
			)
			b.shows(map[string]any{"/redfish/v1/EventService#ServerSentEventUri": nil})
		})
	}
}

func TestBootOnNextServerResetEjectsAtTheBootAfter(t *testing.T) {
	image := images(t)
	for _, tt := range generations {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.profile)
			b.behaves(
				row{table, "PATCH", cd, `{"Image":"` + image + `","Oem":{"Hpe":{"BootOnNextServerReset":true}}}`, 200, "Success"},
				row{table, "POST", reset, `{"ResetType":"On"}`, 200, "Success"},
			)
			b.until(system, "Oem/Hpe/PostState", "InPost")
			b.shows(map[string]any{cd + "#Inserted": true})
			b.l.Advance(10 * time.Second)
			b.behaves(row{docs, "POST", reset, `{"ResetType":"ForceRestart"}`, 200, "Success"})
			b.until(cd, "Inserted", false)
			b.behaves(row{table, "POST", cd + "/Actions/VirtualMedia.InsertMedia", `{"Image":"` + image + `"}`, 200, "Success"})
			b.behaves(row{docs, "POST", reset, `{"ResetType":"ForceRestart"}`, 200, "Success"})
			b.l.Advance(30 * time.Second)
			b.shows(map[string]any{cd + "#Inserted": true}) // nobody has said that this one goes
		})
	}
}
