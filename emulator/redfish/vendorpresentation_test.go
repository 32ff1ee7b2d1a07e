package redfish

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

var refusal400 = dialect.VendorMessage{Registry: "Acme", Version: "1.0.0", Key: "Busy", Text: "This cannot be now.", Resolution: "Try later."}

// answersWith sends requests and checks the status of each response and, of an error, its message.
func answersWith(t *testing.T, s *Service, all ...step) {
	t.Helper()
	for _, st := range all {
		w := call(t, s, st.who, st.method, st.path, st.body)
		if w.Code != st.want || st.key != "" && !strings.Contains(w.Body.String(), "."+st.key+`"`) {
			t.Errorf("%s %s %s = %d %s, want %d %s", st.method, st.path, st.body, w.Code, w.Body, st.want, st.key)
		}
	}
}

// newPresentedService returns a service whose only host has a vendor's presentation.
func newPresentedService(t *testing.T, f dialect.Presentation) (*Service, *host) {
	t.Helper()
	h := newHost(t)
	h.d.Presentation = f
	if err := h.d.Validate(); err != nil {
		t.Fatal(err)
	}
	return newService(t, h), h
}

func TestURIMappingsMoveResources(t *testing.T) {
	s, _ := newPresentedService(t, dialect.Presentation{
		URIMappings: []dialect.URIMapping{
			{From: "/redfish/v1/Systems/{system}/VirtualMedia", To: "/redfish/v1/Managers/{manager}/VirtualMedia"},
			{From: "/redfish/v1/Systems/{system}/Bios/Settings", To: "/redfish/v1/Systems/{system}/Bios/Pending"},
			{From: "/redfish/v1/TaskService/Tasks/{task}", To: "/redfish/v1/TaskService/Tasks/JID_{task:12}"},
			{From: "/redfish/v1/TaskService/TaskMonitors/{task}", To: "/redfish/v1/TaskService/TaskMonitors/JID_{task:12}"},
		},
		TrailingSlash: true, IgnoreURICase: true,
		Hidden: []string{"/redfish/v1/TelemetryService"},
	})
	system, _ := get(t, s, sys+"/")
	if at := system["VirtualMedia"].(map[string]any)["@odata.id"]; at != "/redfish/v1/Managers/1/VirtualMedia/" {
		t.Errorf("the system links to its media at %v", at)
	}
	bios, _ := get(t, s, sys+"/Bios")
	if at := bios["@Redfish.Settings"].(map[string]any)["SettingsObject"].(map[string]any)["@odata.id"]; at != sys+"/Bios/Pending/" {
		t.Errorf("the settings are at %v", at)
	}
	slot, _ := get(t, s, "/redfish/v1/Managers/1/VirtualMedia/Cd/")
	target := slot["Actions"].(map[string]any)["#VirtualMedia.InsertMedia"].(map[string]any)["target"].(string)
	if target != "/redfish/v1/Managers/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia/" {
		t.Errorf("the target is %s", target)
	}
	converse(t, s,
		step{"admin", "POST", target, `{"Image":"http://images.test/a.iso"}`, nil, 204, ""},
		step{"admin", "GET", sys + "/VirtualMedia/Cd", "", nil, 404, ""},
		step{"admin", "GET", "/redfish/v1/TelemetryService", "", nil, 404, ""},
		step{"admin", "GET", "/redfish/v1/TelemetryService/MetricDefinitions", "", nil, 404, ""},
		step{"admin", "GET", "/redfish/v1/systems/1/bios/pending/", "", nil, 200, ""},
		step{"admin", "GET", "/redfish/v1/MANAGERS/1/virtualmedia/Cd", "", nil, 200, ""},
		step{"admin", "GET", "/redfish/v1/Systems/1/Bios/Settings", "", nil, 404, ""},
	)
	w := call(t, s, "admin", "POST", "/redfish/v1/Managers/1/VirtualMedia/Usb/Actions/VirtualMedia.InsertMedia", `{"Image":"http://images.test/a.iso"}`, "Prefer", "respond-async")
	if at := w.Header().Get("Location"); w.Code != http.StatusAccepted || !strings.Contains(at, "JID_000000000001") {
		t.Fatalf("%d, Location %q, want 202 and a job", w.Code, at)
	}
	task, _ := get(t, s, "/redfish/v1/TaskService/Tasks/JID_000000000001")
	if task["Id"] != "JID_000000000001" {
		t.Errorf("the task calls itself %v", task["Id"])
	}
}

func TestHiddenResourcesAreNotLinked(t *testing.T) {
	insert := "/redfish/v1/Systems/{system}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
	s, _ := newPresentedService(t, dialect.Presentation{
		Hidden: []string{"/redfish/v1/TelemetryService", insert, "/redfish/v1/AccountService/Roles/Operator", "/redfish/v1/Systems/{system}/ResetActionInfo"},
	})
	root, _ := get(t, s, "/redfish/v1")
	if root["TelemetryService"] != nil || root["Systems"] == nil {
		t.Errorf("the root links to %v", root)
	}
	slot, _ := get(t, s, sys+"/VirtualMedia/Cd")
	if all := slot["Actions"].(map[string]any); all["#VirtualMedia.InsertMedia"] != nil || all["#VirtualMedia.EjectMedia"] == nil {
		t.Errorf("the slot has the actions %v", all)
	}
	system, _ := get(t, s, sys)
	reset := system["Actions"].(map[string]any)["#ComputerSystem.Reset"].(map[string]any)
	if reset["@Redfish.ActionInfo"] != nil || reset["target"] == nil {
		t.Errorf("the reset is %v", reset)
	}
	roles, _ := get(t, s, "/redfish/v1/AccountService/Roles")
	if n := len(roles["Members"].([]any)); n != 2 || roles["Members@odata.count"] != 2.0 {
		t.Errorf("%d roles, but the count is %v", n, roles["Members@odata.count"])
	}
	converse(t, s,
		step{"admin", "POST", sys + "/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", `{"Image":"http://images.test/a.iso"}`, nil, 404, ""},
		step{"admin", "POST", sys + "/VirtualMedia/Usb/Actions/VirtualMedia.InsertMedia", `{"Image":"http://images.test/a.iso"}`, nil, 204, ""},
	)
}

func TestTransformsSetAndRemoveProperties(t *testing.T) {
	s, _ := newPresentedService(t, dialect.Presentation{Transforms: []dialect.Transform{{
		ResourceType: "ComputerSystem", Remove: []string{"PowerOnDelaySeconds", "Boot/BootOrder"},
		Set: []dialect.PropertyRule{
			{Path: "Oem/Acme/PowerIs", From: "PowerState", Map: map[string]any{"Off": "dark"}, Value: "bright"},
			{Path: "Oem/Acme/Tag", From: "SKU"},
			{Path: "Oem/Acme/Manager", Value: map[string]any{"@odata.id": "/redfish/v1/Managers/{manager}"}},
		},
	}}})
	body, _ := get(t, s, sys)
	acme := body["Oem"].(map[string]any)["Acme"].(map[string]any)
	if acme["PowerIs"] != "dark" || acme["Tag"] != body["SKU"] || acme["Manager"].(map[string]any)["@odata.id"] != "/redfish/v1/Managers/1" {
		t.Errorf("Oem %v", acme)
	}
	if _, has := body["PowerOnDelaySeconds"]; has || body["Boot"].(map[string]any)["BootOrder"] != nil {
		t.Errorf("the system shows what was dropped")
	}
	converse(t, s, step{"admin", "POST", sys + "/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`, nil, 204, ""})
	body, _ = get(t, s, sys)
	if is := body["Oem"].(map[string]any)["Acme"].(map[string]any)["PowerIs"]; is != "bright" {
		t.Errorf("once it is on the vendor says %v", is)
	}
	body, _ = get(t, s, "/redfish/v1/Systems?$expand=.")
	member := body["Members"].([]any)[0].(map[string]any)
	if member["Oem"] == nil {
		t.Errorf("a member that is expanded is not shaped: %v", member)
	}
}

func TestRejectRules(t *testing.T) {
	boot := `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"%"}}`
	for _, tt := range []struct {
		name   string
		rule   dialect.RejectRule
		refuse string // message of a PATCH of the system
		take   string
	}{
		{"a property", dialect.RejectRule{SendsAny: []string{"AssetTag"}}, `{"AssetTag":"a"}`, `{"HostName":"a"}`},
		{"a value", dialect.RejectRule{OneOf: map[string][]string{"Boot/BootSourceOverrideEnabled": {"Continuous"}}}, strings.Replace(boot, "%", "Continuous", 1), strings.Replace(boot, "%", "Once", 1)},
		{"value outside the list", dialect.RejectRule{NotOneOf: map[string][]string{"Boot/BootSourceOverrideEnabled": {"Once", "Disabled"}}}, strings.Replace(boot, "%", "Continuous", 1), strings.Replace(boot, "%", "Once", 1)},
		{"incomplete set of properties", dialect.RejectRule{SendsIncomplete: []string{"Boot/BootSourceOverrideTarget", "Boot/BootSourceOverrideEnabled"}}, `{"Boot":{"BootSourceOverrideTarget":"Pxe"}}`, strings.Replace(boot, "%", "Once", 1)},
		{"more properties than the maximum", dialect.RejectRule{SendsAny: []string{"Boot"}, MaxProperties: 1}, strings.Replace(boot, "%", "Once", 1), `{"Boot":{"BootSourceOverrideTarget":"Pxe"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.ResourceType, tt.rule.Method, tt.rule.Message = "ComputerSystem", "PATCH", refusal400
			s, _ := newPresentedService(t, dialect.Presentation{RejectRules: []dialect.RejectRule{tt.rule}})
			answersWith(t, s, step{"admin", "PATCH", sys, tt.refuse, nil, 400, "Busy"}, step{"admin", "PATCH", sys, tt.take, nil, 200, ""})
		})
	}
}

func TestRejectRulesDuringState(t *testing.T) {
	on, offNow := `{"ResetType":"On"}`, `{"ResetType":"ForceOff"}`
	reset := sys + "/Actions/ComputerSystem.Reset"
	s, h := newPresentedService(t, dialect.Presentation{RejectRules: []dialect.RejectRule{
		{ResourceType: "ComputerSystem", Method: "ComputerSystem.Reset", OneOf: map[string][]string{"ResetType": {"On"}}, While: dialect.AfterOff, For: 20 * time.Second, Status: 409, Message: refusal400},
		{ResourceType: "ComputerSystem", Method: "PATCH", While: dialect.InPOST, Message: refusal400},
		{ResourceType: "VirtualMedia", Method: "VirtualMedia.InsertMedia", While: dialect.AfterEject, For: 5 * time.Second, Status: 500, Message: refusal400},
	}})
	slot := sys + "/VirtualMedia/Cd/Actions/VirtualMedia."
	image := `{"Image":"http://images.test/a.iso"}`
	answersWith(t, s, step{"admin", "POST", reset, on, nil, 204, ""})
	for h.Machine().Phase != machine.POST {
		h.pass(time.Second)
	}
	answersWith(t, s, step{"admin", "PATCH", sys, `{"AssetTag":"a"}`, nil, 400, "Busy"}, step{"admin", "POST", reset, offNow, nil, 204, ""})
	for h.Machine().Phase != machine.Off {
		h.pass(time.Second)
	}
	answersWith(t, s,
		step{"admin", "PATCH", sys, `{"AssetTag":"a"}`, nil, 200, ""},
		step{"admin", "POST", reset, on, nil, 409, "Busy"},
		step{"admin", "POST", slot + "InsertMedia", image, nil, 204, ""},
		step{"admin", "POST", slot + "EjectMedia", "", nil, 204, ""},
		step{"admin", "POST", slot + "InsertMedia", image, nil, 500, "Busy"},
	)
	h.pass(20 * time.Second)
	answersWith(t, s, step{"admin", "POST", reset, on, nil, 204, ""}, step{"admin", "POST", slot + "InsertMedia", image, nil, 204, ""})
}

func TestVendorErrorFormat(t *testing.T) {
	done := dialect.VendorMessage{Registry: "Base", Version: "1.4.0", Key: "Success", Text: "Done."}
	s, _ := newPresentedService(t, dialect.Presentation{Errors: dialect.ErrorFormat{Code: "Acme.0.10.ExtendedInfo", IDsOnly: true, SingleObject: true, Success: &done}})
	w := call(t, s, "admin", "PATCH", sys, `{"Nonsense":1}`)
	e := decoded(t, w)["error"].(map[string]any)
	info := e["@Message.ExtendedInfo"].(map[string]any)
	if e["code"] != "Acme.0.10.ExtendedInfo" || info["MessageId"] == nil || info["Message"] != nil || w.Code != 400 {
		t.Errorf("%d %v", w.Code, e)
	}
	w = call(t, s, "admin", "PATCH", sys, `{"AssetTag":"a"}`)
	e = decoded(t, w)["error"].(map[string]any)
	if w.Code != 200 || e["@Message.ExtendedInfo"].(map[string]any)["MessageId"] != "Base.1.4.Success" {
		t.Errorf("a PATCH that was done: %d %v", w.Code, e)
	}
}

func TestTransformCopiesPropertiesOfOtherResources(t *testing.T) {
	s, h := newPresentedService(t, dialect.Presentation{Transforms: []dialect.Transform{{
		ResourceType: "ServiceRoot", Set: []dialect.PropertyRule{
			{Path: "Product", From: "/redfish/v1/Systems/{system}#Model"},
			{Path: "Oem/Acme/Managers", Value: []any{map[string]any{"Kind": "Acme"}}},
			{Path: "Oem/Acme/Managers/0/Firmware", From: "/redfish/v1/Managers/{manager}#FirmwareVersion", Format: "Acme v%"},
			{Path: "Oem/Acme/Power", From: "/redfish/v1/Systems/{system}#PowerState"},
			{Path: "Oem/Acme/Lost", From: "/redfish/v1/Systems/other#PowerState"},
		},
	}}})
	body, _ := get(t, s, "/redfish/v1/")
	acme := body["Oem"].(map[string]any)["Acme"].(map[string]any)
	if body["Product"] != h.Machine().Profile.Model || acme["Power"] != "Off" || acme["Lost"] != nil {
		t.Errorf("%v %v", body["Product"], acme)
	}
	if is := acme["Managers"].([]any)[0].(map[string]any)["Firmware"]; is != "Acme v"+h.Machine().BMCVersion() {
		t.Errorf("the firmware is %v", is)
	}
	before := body["@odata.etag"]
	if w := call(t, s, "admin", "GET", "/redfish/v1/", "", "If-None-Match", before.(string)); w.Code != 304 {
		t.Errorf("unchanged, but %d", w.Code)
	}
	converse(t, s, step{"admin", "POST", sys + "/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`, nil, 204, ""})
	body, _ = get(t, s, "/redfish/v1/")
	if is := body["Oem"].(map[string]any)["Acme"].(map[string]any)["Power"]; is == "Off" || body["@odata.etag"] == before {
		t.Errorf("once the system is on the root shows %v, ETag %v", is, body["@odata.etag"])
	}
}

func TestURIMappingWithTrailingSlash(t *testing.T) {
	s, _ := newPresentedService(t, dialect.Presentation{IgnoreURICase: true, URIMappings: []dialect.URIMapping{
		{From: "/redfish/v1/Systems/{system}/Bios", To: "/redfish/v1/systems/{system}/bios", TrailingSlash: true},
		{From: "/redfish/v1/Systems/{system}/Bios/Settings", To: "/redfish/v1/systems/{system}/bios/settings", TrailingSlash: true},
	}})
	system, _ := get(t, s, sys)
	at := system["Bios"].(map[string]any)["@odata.id"].(string)
	if at != "/redfish/v1/systems/1/bios/" || system["@odata.id"] != sys {
		t.Fatalf("the system is %v, its BIOS %v", system["@odata.id"], at)
	}
	bios, _ := get(t, s, at)
	if bios["@odata.id"] != at || bios["Id"] != "bios" {
		t.Errorf("the BIOS is %v, %v", bios["@odata.id"], bios["Id"])
	}
	if to := bios["Actions"].(map[string]any)["#Bios.ResetBios"].(map[string]any)["target"]; to != at+"Actions/Bios.ResetBios/" {
		t.Errorf("it is reset at %v", to)
	}
	answersWith(t, s, step{"admin", "GET", sys + "/Bios/Settings", "", nil, 200, ""}, step{"admin", "POST", at + "Actions/Bios.ResetBios/", "", nil, 204, ""})
}

func TestVendorSuccessMessagePerResource(t *testing.T) {
	say := func(key string) dialect.VendorMessage {
		return dialect.VendorMessage{Registry: "Acme", Version: "1.2.0", Key: key, Text: "Done.", Resolution: "None."}
	}
	done := say("Success")
	s, _ := newPresentedService(t, dialect.Presentation{Errors: dialect.ErrorFormat{Success: &done, SuccessMessages: []dialect.SuccessMessage{
		{ResourceType: "Bios", URI: "/redfish/v1/Systems/{system}/Bios/Settings", Method: "PATCH", Message: say("Restart")},
	}}})
	answersWith(t, s,
		step{"admin", "PATCH", sys, `{"AssetTag":"a"}`, nil, 200, "Success"},
		step{"admin", "PATCH", sys + "/Bios/Settings", `{"Attributes":{"BootMode":"LegacyBios"}}`, nil, 200, "Restart"},
	)
}

func TestGzipOnlyReturns406WithoutAcceptEncoding(t *testing.T) {
	h := newHost(t)
	h.d.Protocol.GzipOnly = []string{"/redfish/v1/Registries/{registry}/{document}"}
	s := newService(t, h)
	bios, _ := get(t, s, sys+"/Bios")
	file, _ := get(t, s, "/redfish/v1/Registries/"+bios["AttributeRegistry"].(string))
	at := file["Location"].([]any)[0].(map[string]any)["Uri"].(string)
	if w := call(t, s, "admin", "GET", at, "", "Accept-Encoding", "identity"); w.Code != http.StatusNotAcceptable {
		t.Errorf("to a client that does not unpack: %d", w.Code)
	}
	if w := call(t, s, "admin", "GET", at, "", "Accept-Encoding", "gzip"); w.Code != 200 || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("to a client that does: %d, %s", w.Code, w.Header().Get("Content-Encoding"))
	}
}
