package redfish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

const (
	biosURI     = sys + "/Bios"
	settingsURI = biosURI + "/Settings"
)

func setting(name string, value any) firmware.SetAttributes {
	v, ok := firmware.ValueOf(value)
	if !ok {
		panic(value)
	}
	return firmware.SetAttributes{Settings: []firmware.Setting{{Name: name, Value: v}}}
}

// bench is a host and its service, for requests of one administrator.
type bench struct {
	t *testing.T
	h *host
	s *Service
}

func newBench(t *testing.T) *bench {
	t.Helper()
	h := newHost(t)
	return &bench{t: t, h: h, s: newService(t, h)}
}

// send sends a request whose response must have a status, and returns the body.
func (b *bench) send(want int, method, path, body string, header ...string) map[string]any {
	b.t.Helper()
	w := call(b.t, b.s, "admin", method, path, body, header...)
	if w.Code != want {
		b.t.Fatalf("%s\nwant %d", shape(method, path, body, w), want)
	}
	var out map[string]any
	if w.Body.Len() > 0 {
		must(b.t, json.Unmarshal(w.Body.Bytes(), &out))
	}
	return out
}

func (b *bench) get(path string) map[string]any {
	b.t.Helper()
	return b.send(http.StatusOK, "GET", path, "")
}

// at returns the value at a path of a body.
func at(body any, path ...string) any {
	for _, name := range path {
		body = body.(map[string]any)[name]
	}
	return body
}

func (b *bench) attributes(uri string) map[string]any {
	b.t.Helper()
	return at(b.get(uri), "Attributes").(map[string]any)
}

// restart switches the system off and on, and waits until POST is over.
func (b *bench) restart() {
	b.t.Helper()
	if b.h.Machine().Power != machine.PowerOff {
		must(b.t, b.h.Apply(b.t.Context(), machine.Reset{Kind: machine.ForceOff}))
		b.h.pass(time.Minute)
	}
	must(b.t, b.h.Apply(b.t.Context(), machine.Reset{Kind: machine.ResetOn}))
	b.h.pass(30 * time.Minute)
}

// messages returns the messages of an error: key and arguments.
func messages(body map[string]any) []string {
	info, _ := body["@Message.ExtendedInfo"].([]any)
	if e, ok := body["error"].(map[string]any); ok {
		info, _ = e["@Message.ExtendedInfo"].([]any)
	}
	var out []string
	for _, m := range info {
		m := m.(map[string]any)
		id := m["MessageId"].(string)
		s := id[strings.LastIndexByte(id, '.')+1:]
		args, _ := m["MessageArgs"].([]any)
		for _, a := range args {
			s += " " + a.(string)
		}
		if r, ok := m["RelatedProperties"].([]any); ok && len(r) > 0 {
			s += " @" + r[0].(string)
		}
		out = append(out, s)
	}
	return out
}

func TestBIOSSettingsApplyAtReset(t *testing.T) {
	b := newBench(t)
	before := b.get(biosURI)
	w := call(t, b.s, "admin", "PATCH", settingsURI, `{"Attributes":{"BootMode":"LegacyBios","SetupPromptSeconds":7,"SerialAfterBoot":false}}`)
	if w.Code != http.StatusOK {
		t.Fatal(shape("PATCH", settingsURI, "", w))
	}
	want := map[string]any{"BootMode": "LegacyBios", "SetupPromptSeconds": 7.0, "SerialAfterBoot": false}
	if d := cmp.Diff(want, b.attributes(settingsURI)); d != "" {
		t.Errorf("settings (-want +got):\n%s", d)
	}
	if d := cmp.Diff(before, b.get(biosURI)); d != "" {
		t.Errorf("the BIOS before a reset (-want +got):\n%s", d)
	}
	b.restart()
	after := b.get(biosURI)
	for name, v := range want {
		if got := at(after, "Attributes", name); got != v {
			t.Errorf("%s = %v, want %v", name, got, v)
		}
	}
	if got := at(after, "Attributes", "HttpBoot"); got != "Disabled" {
		t.Errorf("HttpBoot = %v, which legacy BIOS does not have", got)
	}
	if got := b.attributes(settingsURI); len(got) != 0 {
		t.Errorf("settings = %v after the reset, want none", got)
	}
	applied := at(after, "@Redfish.Settings").(map[string]any)
	if applied["ETag"] != after["@odata.etag"] || applied["Time"] != "2026-03-01T12:00:02Z" {
		t.Errorf("@Redfish.Settings = %v; the ETag is %v", applied, after["@odata.etag"])
	}
	related := at(applied["Messages"].([]any)[0], "RelatedProperties").([]any)
	if d := cmp.Diff([]any{"#/Attributes/BootMode", "#/Attributes/SerialAfterBoot", "#/Attributes/SetupPromptSeconds"}, related); d != "" {
		t.Errorf("what was applied (-want +got):\n%s", d)
	}
	if got := at(b.get(sys), "Boot", "BootSourceOverrideMode"); got != "Legacy" {
		t.Errorf("BootSourceOverrideMode = %v, want that of the BIOS", got)
	}
}

// The ETag in @Redfish.Settings is that of the settings at their application; later
// changes of the BIOS resource do not change it.
func TestSettingsAnnotationETagIsThatOfApplication(t *testing.T) {
	b := newBench(t)
	b.send(200, "PATCH", settingsURI, `{"Attributes":{"NumLock":"Off"}}`)
	b.restart()
	applied := b.get(biosURI)
	b.send(204, "POST", biosURI+"/Actions/Bios.ResetBios", "{}")
	pending := b.get(biosURI)
	if pending["ResetBiosToDefaultsPending"] != true || pending["@odata.etag"] == applied["@odata.etag"] {
		t.Errorf("the BIOS with a reset to the defaults pending is as before: %v", pending["@odata.etag"])
	}
	if got := at(pending, "@Redfish.Settings", "ETag"); got != applied["@odata.etag"] {
		t.Errorf("ETag = %v, want %v", got, applied["@odata.etag"])
	}
}

func TestInvalidBIOSAttributeIsRejected(t *testing.T) {
	for body, want := range map[string]string{
		`{"Attributes":{"Colour":"red"}}`:                                                         "PropertyUnknown Colour @#/Attributes/Colour",
		`{"Attributes":{"a/b~":"red"}}`:                                                           "PropertyUnknown a/b~ @#/Attributes/a~1b~0",
		`{"Attributes":{"SystemSerialNumber":"1"}}`:                                               "PropertyNotWritable SystemSerialNumber @#/Attributes/SystemSerialNumber",
		`{"Attributes":{"ProcTurbo":"Disabled"}}`:                                                 "PropertyValueConflict ProcTurbo SystemProfile @#/Attributes/ProcTurbo",
		`{"Attributes":{"AdminPassword":"secret-x"}}`:                                             "PropertyNotWritable AdminPassword @#/Attributes/AdminPassword",
		`{"Attributes":{"BootMode":1}}`:                                                           "PropertyValueTypeError 1 BootMode @#/Attributes/BootMode",
		`{"Attributes":{"BootMode":null}}`:                                                        "PropertyValueTypeError null BootMode @#/Attributes/BootMode",
		`{"Attributes":{"SetupPromptSeconds":2.5}}`:                                               "PropertyValueTypeError 2.5 SetupPromptSeconds @#/Attributes/SetupPromptSeconds",
		`{"Attributes":{"BootMode":["Uefi"]}}`:                                                    "PropertyValueTypeError […] BootMode @#/Attributes/BootMode",
		`{"Attributes":{"BootMode":"Both"}}`:                                                      "PropertyValueNotInList Both BootMode @#/Attributes/BootMode",
		`{"Attributes":{"SetupPromptSeconds":31}}`:                                                "PropertyValueOutOfRange 31 SetupPromptSeconds @#/Attributes/SetupPromptSeconds",
		`{"Attributes":{"HttpBootUri":"ftp://x"}}`:                                                "PropertyValueFormatError ftp://x HttpBootUri @#/Attributes/HttpBootUri",
		`{"Attributes":{"AssetTag":"` + strings.Repeat("x", 64) + `"}}`:                           "StringValueTooLong " + strings.Repeat("x", 64) + " 63 @#/Attributes/AssetTag",
		`{"Attributes":"BootMode"}`:                                                               "PropertyValueTypeError BootMode Attributes @#/Attributes",
		`{"BootMode":"Uefi"}`:                                                                     "PropertyUnknown BootMode @#/BootMode",
		`{"AttributeRegistry":"x"}`:                                                               "PropertyNotWritable AttributeRegistry @#/AttributeRegistry",
		`{"Attributes":{"NumLock":"Off"},"@Redfish.SettingsApplyTime":{"ApplyTime":"Soon"}}`:      "PropertyValueNotInList Soon ApplyTime @#/@Redfish.SettingsApplyTime/ApplyTime",
		`{"Attributes":{"NumLock":"Off"},"@Redfish.SettingsApplyTime":{"ApplyTime":"Immediate"}}`: "PropertyValueConflict NumLock @Redfish.SettingsApplyTime @#/Attributes/NumLock",
		`{"Attributes":{"NumLock":"Off"},"@Redfish.SettingsApplyTime":{"ApplyTime":"AtMaintenanceWindowStart"}}`:                                                                                             "PropertyMissing MaintenanceWindowStartTime @#/@Redfish.SettingsApplyTime/MaintenanceWindowStartTime",
		`{"Attributes":{"NumLock":"Off"},"@Redfish.SettingsApplyTime":{"ApplyTime":"AtMaintenanceWindowStart","MaintenanceWindowStartTime":"2020-01-01T00:00:00Z","MaintenanceWindowDurationInSeconds":60}}`: "PropertyValueOutOfRange 2020-01-01T00:00:00Z MaintenanceWindowStartTime @#/@Redfish.SettingsApplyTime/MaintenanceWindowStartTime",
		`{"Attributes":{"NumLock":"Off"},"@Redfish.SettingsApplyTime":{"ApplyTime":"OnReset","MaintenanceWindowStartTime":"noon"}}`:                                                                          "PropertyValueFormatError noon MaintenanceWindowStartTime @#/@Redfish.SettingsApplyTime/MaintenanceWindowStartTime",
	} {
		b := newBench(t)
		w := call(t, b.s, "admin", "PATCH", settingsURI, body)
		var got map[string]any
		must(t, json.Unmarshal(w.Body.Bytes(), &got))
		if m := messages(got); w.Code != http.StatusBadRequest && w.Code != http.StatusOK || len(m) == 0 || m[0] != want {
			t.Errorf("PATCH %s = %d %q, want %q", body, w.Code, m, want)
		}
		if strings.Contains(w.Body.String(), "secret-x") {
			t.Errorf("PATCH %s repeats the password", body)
		}
		if w.Code == http.StatusBadRequest && len(b.attributes(settingsURI)) > 0 {
			t.Errorf("PATCH %s was rejected, but settings are pending", body)
		}
	}
}

// A number of JSON is an Integer by its value, however it is written (RFC 8259, section
// 6); text is none, and no Boolean.
func TestBIOSAttributesAreJudgedByType(t *testing.T) {
	for value, want := range map[string]float64{"5.0": 5, "1e1": 10, "0.5e1": 5, "50E-1": 5, "-0": 0, "7": 7} {
		b := newBench(t)
		b.send(200, "PATCH", settingsURI, `{"Attributes":{"SetupPromptSeconds":`+value+`}}`)
		if got := b.attributes(settingsURI); len(got) != 1 || got["SetupPromptSeconds"] != want {
			t.Errorf("PATCH of %s: settings %v, want %v", value, got, want)
		}
	}
	present := newBench(t).attributes(biosURI)
	for body, want := range map[string]string{
		`"SetupPromptSeconds":"5"`:    "PropertyValueTypeError 5 SetupPromptSeconds",
		`"SetupPromptSeconds":"05"`:   "PropertyValueTypeError 05 SetupPromptSeconds",
		`"SetupPromptSeconds":true`:   "PropertyValueTypeError true SetupPromptSeconds",
		`"SetupPromptSeconds":5.5`:    "PropertyValueTypeError 5.5 SetupPromptSeconds",
		`"SetupPromptSeconds":1e30`:   "PropertyValueOutOfRange 9223372036854775807 SetupPromptSeconds",
		`"SetupPromptSeconds":-1e400`: "PropertyValueOutOfRange -9223372036854775808 SetupPromptSeconds",
		`"SerialAfterBoot":"true"`:    "PropertyValueTypeError true SerialAfterBoot",
		`"SerialAfterBoot":1`:         "PropertyValueTypeError 1 SerialAfterBoot",
		`"AssetTag":5`:                "PropertyValueTypeError 5 AssetTag",
	} {
		b := newBench(t)
		w := call(t, b.s, "admin", "PATCH", settingsURI, `{"Attributes":{`+body+`}}`)
		var got map[string]any
		must(t, json.Unmarshal(w.Body.Bytes(), &got))
		if m := messages(got); w.Code != http.StatusBadRequest || len(m) != 1 || !strings.HasPrefix(m[0], want+" @") {
			t.Errorf("PATCH of %s = %d %q, want %q", body, w.Code, m, want)
		}
	}
	b := newBench(t) // the value that there is, written otherwise, changes nothing
	b.send(200, "PATCH", settingsURI, fmt.Sprintf(`{"Attributes":{"SetupPromptSeconds":%v.0}}`, present["SetupPromptSeconds"]))
	if p := b.h.Machine().Firmware.Pending(); p != nil {
		t.Errorf("%+v waits, want nothing", p)
	}
}

func TestAllInvalidBIOSAttributesAreReported(t *testing.T) {
	b := newBench(t)
	got := messages(b.send(400, "PATCH", settingsURI, `{"Attributes":{"NumLock":"Off","BootMode":7,"Colour":"red"}}`))
	want := []string{"PropertyUnknown Colour @#/Attributes/Colour", "PropertyValueTypeError 7 BootMode @#/Attributes/BootMode"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestPendingBIOSSettingsAreDiscarded(t *testing.T) {
	for _, how := range [][2]string{{"DELETE", ""}, {"PATCH", `{"Attributes":{}}`}} {
		b := newBench(t)
		b.send(200, "PATCH", settingsURI, `{"Attributes":{"NumLock":"Off"}}`)
		b.send(204, "POST", biosURI+"/Actions/Bios.ResetBios", "{}")
		w := call(t, b.s, "admin", how[0], settingsURI, how[1])
		if w.Code/100 != 2 {
			t.Errorf("%s", shape(how[0], settingsURI, how[1], w))
		}
		if p := b.h.Machine().Firmware.Pending(); p != nil {
			t.Errorf("%s: %+v still waits", how[0], p)
		}
	}
	b := newBench(t)
	b.send(405, "PATCH", biosURI, `{"Attributes":{"NumLock":"Off"}}`) // a PATCH goes to the settings resource
	b.send(405, "DELETE", biosURI, "")
}

func TestSettingsApplyTime(t *testing.T) {
	b := newBench(t)
	b.send(200, "PATCH", settingsURI, `{"Attributes":{"AssetTag":"A7"},"@Redfish.SettingsApplyTime":{"ApplyTime":"Immediate"}}`)
	if got := b.attributes(biosURI)["AssetTag"]; got != "A7" {
		t.Errorf("AssetTag = %v at once", got)
	}
	window := `{"Attributes":{"NumLock":"Off"},"@Redfish.SettingsApplyTime":{"ApplyTime":"InMaintenanceWindowOnReset",` +
		`"MaintenanceWindowStartTime":"2026-03-01T18:00:00+00:00","MaintenanceWindowDurationInSeconds":3600}}`
	got := b.send(200, "PATCH", settingsURI, window)
	want := map[string]any{
		"@odata.type": "#Settings.v1_4_0.PreferredApplyTime", "ApplyTime": "InMaintenanceWindowOnReset",
		"MaintenanceWindowStartTime": "2026-03-01T18:00:00Z", "MaintenanceWindowDurationInSeconds": 3600.0,
	}
	shown := at(got, "@Redfish.SettingsApplyTime").(map[string]any)
	if times := shown["ApplyTime"+resource.AllowableValues].([]any); len(times) != 4 {
		t.Errorf("apply times = %v", times)
	}
	delete(shown, "ApplyTime"+resource.AllowableValues)
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("@Redfish.SettingsApplyTime (-want +got):\n%s", d)
	}
	b.restart()
	if got := b.attributes(biosURI)["NumLock"]; got != "On" {
		t.Errorf("NumLock = %v before the window", got)
	}
	b.h.pass(6 * time.Hour)
	b.restart()
	if got := b.attributes(biosURI)["NumLock"]; got != "Off" {
		t.Errorf("NumLock = %v in the window", got)
	}
	b.send(200, "PATCH", settingsURI, strings.ReplaceAll(strings.Replace(window, "Off", "On", 1), "18:00", "20:00"))
	b.h.pass(12 * time.Hour)
	if m := at(b.get(biosURI), "@Redfish.Settings", "Messages").([]any); !strings.HasSuffix(at(m[0], "MessageId").(string), ".OperationTimeout") {
		t.Errorf("messages after a window without a reset = %v", m)
	}
}

// TestResetBiosRestoresDefaults shows statement C6.
func TestResetBiosRestoresDefaults(t *testing.T) {
	b := newBench(t)
	b.send(200, "PATCH", settingsURI, `{"Attributes":{"NumLock":"Off","AssetTag":"A7"}}`)
	b.restart()
	b.send(204, "POST", biosURI+"/Actions/Bios.ResetBios", "")
	for _, uri := range []string{biosURI, settingsURI} {
		if got := b.get(uri)["ResetBiosToDefaultsPending"]; got != true {
			t.Errorf("%s: ResetBiosToDefaultsPending = %v", uri, got)
		}
	}
	b.restart()
	got := b.get(biosURI)
	if got["ResetBiosToDefaultsPending"] != false || at(got, "Attributes", "NumLock") != "On" || at(got, "Attributes", "AssetTag") != "A7" {
		t.Errorf("after the reset: %v", got)
	}
}

// TestBIOSPasswordProtectsSettings shows statement C6.
func TestBIOSPasswordProtectsSettings(t *testing.T) {
	b := newBench(t)
	change := func(want int, name, oldPassword, newPassword string) []string {
		t.Helper()
		body, err := json.Marshal(map[string]string{"PasswordName": name, "OldPassword": oldPassword, "NewPassword": newPassword})
		must(t, err)
		w := call(t, b.s, "admin", "POST", biosURI+"/Actions/Bios.ChangePassword", string(body))
		if w.Code != want {
			t.Errorf("%s", shape("POST", "ChangePassword", string(body), w))
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("the response repeats a password: %s", w.Body)
		}
		var out map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &out) // a response may have no body
		return messages(out)
	}
	change(400, "Colour", "", "secret-1")
	change(204, "AdminPassword", "", "secret-1")
	if got := change(400, "AdminPassword", "guess", "secret-2"); len(got) != 1 || !strings.HasPrefix(got[0], "ActionParameterValueError OldPassword") {
		t.Errorf("wrong old password: %q", got)
	}
	if got := change(400, "AdminPassword", "secret-1", "x"); len(got) != 1 || !strings.HasPrefix(got[0], "ActionParameterValueError NewPassword") {
		t.Errorf("short new password: %q", got)
	}
	patch := func(want int, body string) []string { return messages(b.send(want, "PATCH", settingsURI, body)) }
	if got := patch(400, `{"Attributes":{"NumLock":"Off"}}`); got[0] != "PropertyMissing AdminPassword @#/Attributes/AdminPassword" {
		t.Errorf("without the password: %q", got)
	}
	if got := patch(400, `{"Attributes":{"NumLock":"Off","AdminPassword":"guess"}}`); got[0] != "PropertyValueError AdminPassword @#/Attributes/AdminPassword" {
		t.Errorf("with a wrong one: %q", got)
	}
	patch(200, `{"Attributes":{"NumLock":"Off","AdminPassword":"secret-1"}}`)
	if got := b.attributes(settingsURI); len(got) != 1 || got["NumLock"] != "Off" {
		t.Errorf("settings = %v", got)
	}
	if got := b.attributes(biosURI)["AdminPassword"]; got != nil {
		t.Errorf("AdminPassword = %v, want null", got)
	}
	change(204, "AdminPassword", "secret-1", "")
	patch(200, `{"Attributes":{"NumLock":"On"}}`)
}

func TestAttributeRegistryDescribesEveryAttribute(t *testing.T) {
	b := newBench(t)
	id := b.get(biosURI)["AttributeRegistry"].(string)
	file := b.get("/redfish/v1/Registries/" + id)
	if file["Registry"] != id {
		t.Errorf("Registry = %v, want %s: clients look for it by that", file["Registry"], id)
	}
	uri := at(file["Location"].([]any)[0], "Uri").(string)
	registry := b.get(uri)
	if _, err := openBundle(); err == nil {
		w := call(t, b.s, "admin", "GET", uri, "")
		newSchemas(t).check(t, uri, "AttributeRegistry.v1_4_0", w.Body.Bytes())
	}
	known := map[string]map[string]any{}
	for _, a := range at(registry, "RegistryEntries", "Attributes").([]any) {
		known[at(a, "AttributeName").(string)] = a.(map[string]any)
	}
	values := b.attributes(biosURI)
	if len(values) != len(known) || len(known) < 60 {
		t.Errorf("%d attributes, but the registry has %d", len(values), len(known))
	}
	types := map[string]string{"Enumeration": "string", "String": "string", "Integer": "float64", "Boolean": "bool", "Password": "<nil>"}
	for name, v := range values {
		if got, want := kindOf(v), types[known[name]["Type"].(string)]; got != want {
			t.Errorf("%s is a %s, and its value %v a %s", name, known[name]["Type"], v, got)
		}
	}
	for _, d := range at(registry, "RegistryEntries", "Dependencies").([]any) {
		for _, name := range []any{at(d, "DependencyFor"), at(d, "Dependency", "MapToAttribute")} {
			if known[name.(string)] == nil {
				t.Errorf("a dependency speaks of %v", name)
			}
		}
	}
	b.send(404, "GET", "/redfish/v1/Registries/Other.v1_0_0", "")
	b.send(404, "GET", "/redfish/v1/Registries/"+id+"/other.json", "")
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "float64"
	case bool:
		return "bool"
	}
	return "<nil>"
}

func TestBIOSPrivileges(t *testing.T) {
	b := newBench(t)
	for who, want := range map[as]int{"admin": 200, "operator": 200, "reader": 403, "": 401} {
		if w := call(t, b.s, who, "PATCH", settingsURI, `{"Attributes":{"NumLock":"Off"}}`); w.Code != want {
			t.Errorf("PATCH by %q = %d, want %d", who, w.Code, want)
		}
	}
	tag := b.get(settingsURI)["@odata.etag"].(string)
	b.send(200, "PATCH", settingsURI, `{"Attributes":{"FastBoot":"Enabled"}}`, "If-Match", tag)
	b.send(412, "PATCH", settingsURI, `{"Attributes":{"FastBoot":"Disabled"}}`, "If-Match", tag)
}
