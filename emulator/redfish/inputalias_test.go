package redfish

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

func TestInputAliases(t *testing.T) {
	const target, mode = "Boot/BootSourceOverrideTarget", "Boot/BootSourceOverrideMode"
	s, h := newPresentedService(t, dialect.Presentation{InputAliases: []dialect.InputAlias{
		{ResourceType: "ComputerSystem", Method: "PATCH", Path: target, Values: map[string]any{"AcmeDisc": "Cd", "Cd": "Usb"}},
		{ResourceType: "ComputerSystem", Method: "PATCH", Path: mode, Default: "Legacy", DefaultWith: []string{target}},
		{ResourceType: "ComputerSystem", Method: "PATCH", Path: "Oem/Acme/Label", To: "AssetTag"},
		{ResourceType: "ComputerSystem", Method: "PATCH", Path: "Oem/Acme/Colour", To: dialect.Discard},
	}})
	for _, tt := range []struct {
		name, body string
		want       int
		is         machine.Override
		tag        string
	}{
		{"vendor value and default", `{"Boot":{"BootSourceOverrideTarget":"AcmeDisc","BootSourceOverrideEnabled":"Once"}}`, 200,
			machine.Override{Enabled: machine.Once, Target: machine.Cd, Mode: machine.Legacy}, ""},
		{"standard value with vendor meaning", `{"Boot":{"BootSourceOverrideMode":"UEFI","BootSourceOverrideTarget":"Cd"}}`, 200,
			machine.Override{Enabled: machine.Once, Target: machine.Usb, Mode: machine.UEFI}, ""},
		{"no alias applies", `{"Boot":{"BootSourceOverrideEnabled":"Continuous"}}`, 200,
			machine.Override{Enabled: machine.Continuous, Target: machine.Usb, Mode: machine.UEFI}, ""},
		{"aliased path and discarded property", `{"Oem":{"Acme":{"Colour":"red","Label":"r7"}}}`, 200,
			machine.Override{Enabled: machine.Continuous, Target: machine.Usb, Mode: machine.UEFI}, "r7"},
		{"unknown property is still rejected", `{"Oem":{"Acme":{"Colour":"red","Taste":"sour"}}}`, 400,
			machine.Override{Enabled: machine.Continuous, Target: machine.Usb, Mode: machine.UEFI}, "r7"},
	} {
		w := call(t, s, "admin", "PATCH", sys, tt.body)
		if w.Code != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, w.Code, w.Body, tt.want)
		}
		if is := h.Machine().Override; is != tt.is || h.Machine().Asset.Tag != tt.tag {
			t.Errorf("%s: the override is %+v, the tag %q; want %+v, %q", tt.name, is, h.Machine().Asset.Tag, tt.is, tt.tag)
		}
	}
}

func TestTransformOmitsEmptyProperty(t *testing.T) {
	s, _ := newPresentedService(t, dialect.Presentation{Transforms: []dialect.Transform{{ResourceType: "Bios", URI: sys + "/Bios/Settings", OmitEmpty: []string{"Attributes"}}}})
	body, _ := get(t, s, sys+"/Bios/Settings")
	if _, has := body["Attributes"]; has {
		t.Errorf("nothing is pending, and the settings show Attributes: %v", body)
	}
	answersWith(t, s, step{"admin", "PATCH", sys + "/Bios/Settings", `{"Attributes":{"NumLock":"Off"}}`, nil, 200, ""})
	body, _ = get(t, s, sys+"/Bios/Settings")
	if got, _ := body["Attributes"].(map[string]any); got["NumLock"] != "Off" {
		t.Errorf("Attributes = %v, want what is pending", body["Attributes"])
	}
}

func TestMonitorReadOnceReturns404OnSecondRead(t *testing.T) {
	for _, once := range []bool{false, true} {
		h := newHost(t)
		h.d.Tasks.MonitorReadOnce = once
		s := newService(t, h)
		id := begin(t, h, bmc.Request{Method: "POST", Target: sys})
		answersWith(t, s, step{"admin", "GET", resource.TaskMonitorURI(id), "", nil, 202, ""})
		h.pass(time.Second)
		closeJob(t, h, bmc.CloseTask{ID: id})
		answersWith(t, s, step{"admin", "GET", resource.TaskMonitorURI(id), "", nil, 204, ""})
		want := 204
		if once {
			want = 404
		}
		answersWith(t, s,
			step{"admin", "GET", resource.TaskMonitorURI(id), "", nil, want, ""},
			step{"admin", "GET", resource.TaskURI(id), "", nil, 200, ""})
	}
}

func TestBIOSSettingsShowAllAttributes(t *testing.T) {
	h := newHost(t)
	h.d.BIOS.SettingsShowAll = true
	s := newService(t, h)
	shown := func() map[string]any {
		body, _ := get(t, s, sys+"/Bios/Settings")
		return body["Attributes"].(map[string]any)
	}
	bios, _ := get(t, s, sys+"/Bios")
	if diff := cmp.Diff(bios["Attributes"], any(shown())); diff != "" {
		t.Errorf("nothing is pending, and the settings differ from what is (-is +will be):\n%s", diff)
	}
	answersWith(t, s, step{"admin", "PATCH", sys + "/Bios/Settings", `{"Attributes":{"NumLock":"Off"}}`, nil, 200, ""})
	if got := shown(); got["NumLock"] != "Off" || len(got) != len(bios["Attributes"].(map[string]any)) {
		t.Errorf("NumLock will be %v, of %d attributes", got["NumLock"], len(got))
	}
}

func TestVendorSuccessProperty(t *testing.T) {
	s, _ := newPresentedService(t, dialect.Presentation{Errors: dialect.ErrorFormat{SuccessProperty: "Success", Success: &dialect.VendorMessage{Registry: "Base", Version: "1.4.0", Key: "Success", Text: "Done."}}})
	w := call(t, s, "admin", "PATCH", sys, `{"AssetTag":"a"}`)
	if is, ok := decoded(t, w)["Success"].(map[string]any); !ok || is["code"] != "Base.1.4.Success" || w.Code != 200 {
		t.Errorf("%d %s, want 200 and the success", w.Code, w.Body)
	}
}

func TestDeleteWithoutIfMatch(t *testing.T) {
	h := newHost(t)
	h.d.Protocol.ETags.IfMatchRequired, h.d.Protocol.ETags.DeleteWithoutIfMatch = []string{"*"}, true
	s := newService(t, h)
	account := "/redfish/v1/AccountService/Accounts/3"
	answersWith(t, s,
		step{"admin", "PATCH", account, `{"Enabled":false}`, nil, 428, ""},
		step{"admin", "DELETE", account, "", nil, 204, ""})
}

func TestRejectRulesByStoredValue(t *testing.T) {
	const lock = "/redfish/v1/Managers/1/Actions/Oem/Acme.Lock"
	s, _ := owned(t, dialect.OEM{Actions: []dialect.Action{{
		ResourceURI: "/redfish/v1/Managers/{manager}", Name: "Acme.Lock", Parameters: []dialect.Parameter{{Name: "On", Type: dialect.BooleanParameter, Required: true}},
		Effects: []dialect.Effect{{Store: map[string]any{"Locked": "$On"}}},
	}}}, dialect.Presentation{RejectRules: []dialect.RejectRule{{ResourceType: "ComputerSystem", Method: "PATCH", Stored: map[string][]string{"Locked": {"true"}}, Status: 403, Message: refusal400}}})
	for _, st := range []step{
		{"admin", "PATCH", sys, `{"AssetTag":"a"}`, nil, 200, ""},
		{"admin", "POST", lock, `{"On":true}`, nil, 204, ""},
		{"admin", "PATCH", sys, `{"AssetTag":"b"}`, nil, 403, "Busy"},
		{"admin", "POST", lock, `{"On":false}`, nil, 204, ""},
		{"admin", "PATCH", sys, `{"AssetTag":"b"}`, nil, 200, ""},
	} {
		answersWith(t, s, st)
	}
}

func TestVolatileETagReturns412(t *testing.T) {
	h := newHost(t)
	h.d.Protocol.ETags.Volatile = []string{"ComputerSystem"}
	s := newService(t, h)
	patch := func(uri string, header ...string) int {
		return call(t, s, "admin", "PATCH", uri, `{"AssetTag":"a"}`, header...).Code
	}
	_, system := get(t, s, sys)
	_, chassis := get(t, s, "/redfish/v1/Chassis/1")
	for _, tt := range []struct {
		uri, tag string
		want     int
	}{{sys, system, 412}, {sys, "*", 200}, {"/redfish/v1/Chassis/1", chassis, 200}} {
		if got := patch(tt.uri, "If-Match", tt.tag); got != tt.want {
			t.Errorf("PATCH %s with If-Match %s = %d, want %d", tt.uri, tt.tag, got, tt.want)
		}
	}
	if got := patch(sys); got != 200 {
		t.Errorf("PATCH without If-Match = %d", got)
	}
}

func TestMessageIDsWithFullVersions(t *testing.T) {
	s, h := newPresentedService(t, dialect.Presentation{Errors: dialect.ErrorFormat{
		FullVersions: true, SuccessProperty: "Success", Success: &dialect.VendorMessage{Registry: "Base", Version: "1.4.0", Key: "Success", Text: "Done."},
	}})
	h.d.Protocol.Registries = map[string]string{"Base": "1.4.0"}
	for body, want := range map[string]string{`{"AssetTag":"a"}`: `"Base.1.4.0.Success"`, `{"Nonsense":1}`: `"Base.1.4.0.PropertyUnknown"`} {
		if w := call(t, s, "admin", "PATCH", sys, body); strings.Count(w.Body.String(), want) != 2 {
			t.Errorf("PATCH %s = %s, want %s as the code and the message", body, w.Body, want)
		}
	}
}

func TestMultipartPushTargetsUseMappedURIs(t *testing.T) {
	b := newUpdate(t)
	b.h.d.Presentation = dialect.Presentation{URIMappings: []dialect.URIMapping{{From: resource.FirmwareURI("BIOS"), To: resource.FirmwareURI("Acme")}}}
	parameters := form{"UpdateParameters", "application/json", "", []byte(`{"Targets":["` + resource.FirmwareURI("Acme") + `"]}`)}
	w := multipartPushOf(t, b, parameters, form{"UpdateFile", "application/octet-stream", "bios.img", built(t, biosImage)})
	if w.Code != 202 {
		t.Errorf("a push to %s = %d %s, want 202", resource.FirmwareURI("Acme"), w.Code, w.Body)
	}
}
