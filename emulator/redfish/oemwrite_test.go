package redfish

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

const acmeSettings = "/redfish/v1/Managers/1/Oem/Acme/Settings"

var ouch = dialect.VendorMessage{Registry: "Acme", Version: "1.0.0", Key: "Ouch", Text: "%1 cannot be %2."}

// settings is an invented vendor with writable OEM properties.
var settings = dialect.OEM{
	Resources: []dialect.Resource{
		{URI: "/redfish/v1/Managers/{manager}/Oem/Acme/Settings", Type: "AcmeSettings.v1_0_0.AcmeSettings", Name: "Settings",
			Set: []dialect.PropertyRule{
				{Path: "Attributes", Value: map[string]any{"A.1": "On", "B.2": 7, "A.1@Redfish.AllowableValues": []any{"On", "Off"}}},
				{Path: "Boot/First", Value: nil}, {Path: "Boot/Fixed", Value: true}, {Path: "Once", From: "=Once/{manager}"},
			},
			Writable: []string{"Attributes/*", "Boot/First"}},
		{URI: "/redfish/v1/Systems/{system}/Oem/Acme/Bios", Type: "AcmeBios.v1_0_0.AcmeBios", BasedOn: "/redfish/v1/Systems/{system}/Bios",
			Set: []dialect.PropertyRule{{Path: "Oem/Acme/Mark", Value: "none"}}, Writable: []string{"Oem/Acme/Mark"}},
		{URI: "/redfish/v1/Systems/{system}/Oem/Acme/Self", Type: "AcmeSelf.v1_0_0.AcmeSelf", BasedOn: "/redfish/v1/Systems/{system}", PassedMethods: []string{"PATCH"},
			Set: []dialect.PropertyRule{{Path: "Oem/Acme/Mark", Value: "none"}}, Writable: []string{"Oem/Acme/Mark"}},
	},
	WritableProperties: []dialect.WritableProperty{
		{ResourceType: "ComputerSystem", Path: "Oem/Acme/BootOnce", Type: dialect.BooleanParameter, Effects: []dialect.Effect{
			{When: map[string][]string{"$": {"true"}}, Store: map[string]any{"Once/{manager}": "$"}, Requests: []dialect.StandardRequest{
				{Method: "PATCH", URI: "/redfish/v1/Systems/{system}", Body: map[string]any{"Boot": map[string]any{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}}}},
			{Store: map[string]any{"Once/{manager}": nil}},
		}},
		{ResourceType: "ComputerSystem", Path: "Oem/Acme/Mood", Effects: []dialect.Effect{
			{When: map[string][]string{"": {"bad"}}, Reject: &ouch},
			{Hook: func(c dialect.ActionCall) (dialect.Effect, error) {
				switch c.Body["Oem"].(map[string]any)["Acme"].(map[string]any)["Mood"] {
				case "worse":
					return dialect.Effect{}, &dialect.Rejection{Status: 409, Message: ouch, Args: []string{"Mood"}}
				case "broken":
					return dialect.Effect{}, errors.New("acme: broken")
				case "mad":
					panic("acme: mad")
				}
				return dialect.Effect{Store: map[string]any{"Mood": "very {$}"}}, nil
			}},
		}},
	},
}

var moody = dialect.Presentation{Transforms: []dialect.Transform{{ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{{Path: "Oem/Acme/Mood", From: "=Mood"}}}}}

func TestOEMPropertyWritesAreStored(t *testing.T) {
	s, h := owned(t, settings, moody)
	_, tag := get(t, s, sys)
	answersWith(t, s,
		step{"admin", "PATCH", acmeSettings, `{"Attributes":{"A.1":"Maybe"}}`, nil, 400, "PropertyValueNotInList"},
		step{"admin", "PATCH", acmeSettings, `{"Attributes":{"B.2":"x"}}`, nil, 400, "PropertyValueTypeError"},
		step{"admin", "PATCH", acmeSettings, `{"Attributes":{"C.3":"x"}}`, nil, 400, "PropertyUnknown"},
		step{"admin", "PATCH", acmeSettings, `{"Boot":{"Fixed":false}}`, nil, 400, "PropertyNotWritable"},
		step{"admin", "PATCH", acmeSettings, `{"Boot":{"First":"x","First":"y"}}`, nil, 400, "PropertyDuplicate"},
		step{"admin", "PATCH", acmeSettings, `{"@odata.id":"x"}`, nil, 400, "NoOperation"},
		step{"operator", "PATCH", acmeSettings, `{"Boot":{"First":"x"}}`, nil, 403, ""},
		step{"admin", "PATCH", acmeSettings, `{"Boot":{"First":"Disk"},"Attributes":{"A.1":"Off"}}`, nil, 200, ""},
		step{"admin", "PATCH", acmeSettings, `{"Attributes":{"B.2":8}}`, nil, 200, ""},
		step{"admin", "PATCH", sys, `{"Oem":{"Acme":{"BootOnce":"yes"}}}`, nil, 400, "PropertyValueTypeError"},
		step{"admin", "PATCH", sys, `{"Oem":{"Acme":{"BootTwice":true}}}`, nil, 400, "PropertyUnknown"},
		step{"admin", "PATCH", sys, `{"Oem":{"Acme":{"Mood":"bad"}}}`, nil, 400, "Ouch"},
		step{"admin", "PATCH", sys, `{"Oem":{"Acme":{"Mood":"worse"}}}`, nil, 409, "Ouch"},
		step{"admin", "PATCH", sys, `{"Oem":{"Acme":{"Mood":"broken"}}}`, nil, 500, "InternalError"},
		step{"reader", "PATCH", sys, `{"Oem":{"Acme":{"Mood":"good"}}}`, nil, 403, ""},
		step{"admin", "PATCH", sys, `{"AssetTag":"both","Oem":{"Acme":{"BootOnce":true,"Mood":"good"}}}`, nil, 200, ""},
	)
	system, now := get(t, s, sys)
	boot := system["Boot"].(map[string]any)
	if system["AssetTag"] != "both" || boot["BootSourceOverrideTarget"] != "Pxe" || system["Oem"].(map[string]any)["Acme"].(map[string]any)["Mood"] != "very good" || now == tag {
		t.Errorf("the system is %v", system)
	}
	answersWith(t, s, step{"admin", "PATCH", sys, `{"Oem":{"Acme":{"Mood":"fine"}}}`, nil, 200, ""})
	if _, after := get(t, s, sys); after == now {
		t.Error("what the vendor keeps and shows has changed, and the ETag has not")
	}
	check := func(want map[string]any, once any) {
		t.Helper()
		o, _ := get(t, s, acmeSettings)
		is := o["Attributes"].(map[string]any)
		if is["A.1"] != want["A.1"] || is["B.2"] != want["B.2"] || o["Boot"].(map[string]any)["First"] != want["First"] || o["Once"] != once {
			t.Errorf("%v, want %v and %v", o, want, once)
		}
	}
	check(map[string]any{"A.1": "Off", "B.2": 8.0, "First": "Disk"}, true)
	answersWith(t, s, step{"admin", "PATCH", sys, `{"Oem":{"Acme":{"BootOnce":false}}}`, nil, 200, ""})
	check(map[string]any{"A.1": "Off", "B.2": 8.0, "First": "Disk"}, nil)
	if _, err := h.ApplyBMC(t.Context(), bmc.ResetToDefaults{Type: bmc.PreserveNetworkAndUsers}); err != nil {
		t.Fatal(err)
	}
	h.pass(2 * time.Minute)
	check(map[string]any{"A.1": "On", "B.2": 7.0}, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a panic is not logged")
			}
		}()
		call(t, s, "admin", "PATCH", sys, `{"Oem":{"Acme":{"Mood":"mad"}}}`)
	}()
	answersWith(t, s, step{"admin", "PATCH", sys, `{"AssetTag":"still served"}`, nil, 200, ""})
}

func TestOEMResourceBasedOnStandardResource(t *testing.T) {
	s, _ := owned(t, settings, dialect.Presentation{})
	at := sys + "/Oem/Acme/Bios"
	o, _ := get(t, s, at)
	standard, _ := get(t, s, sys+"/Bios")
	if o["Id"] != "Bios" || o["AttributeRegistry"] != standard["AttributeRegistry"] || o["@odata.type"] != "#AcmeBios.v1_0_0.AcmeBios" {
		t.Errorf("%v", o)
	}
	below := o["@Redfish.Settings"].(map[string]any)["SettingsObject"].(map[string]any)["@odata.id"]
	if below != at+"/Settings" {
		t.Errorf("its settings are at %v", below)
	}
	answersWith(t, s,
		step{"admin", "GET", at + "/Settings", "", nil, 200, ""},
		step{"admin", "PATCH", at, `{"Attributes":{}}`, nil, 400, ""},
		step{"admin", "PATCH", at, `{"Oem":{"Acme":{"Mark":"x"}}}`, nil, 200, ""},
		step{"admin", "PATCH", sys + "/Oem/Acme/Self", `{"Oem":{"Acme":{"Mark":"y"}},"AssetTag":"self"}`, nil, 200, ""},
		step{"admin", "PATCH", sys + "/Oem/Acme/Self", `{"Nonsense":"y"}`, nil, 400, "PropertyUnknown"},
	)
	if o, _ = get(t, s, at); o["Oem"].(map[string]any)["Acme"].(map[string]any)["Mark"] != "x" {
		t.Errorf("%v", o["Oem"])
	}
	if o, _ = get(t, s, sys); o["AssetTag"] != "self" {
		t.Errorf("the system's tag is %v", o["AssetTag"])
	}
}

// timed is an invented vendor with an action that takes time.
var timed = dialect.OEM{Actions: []dialect.Action{{
	ResourceURI: "/redfish/v1/Systems/{system}", Name: "AcmeSystem.Later",
	Effects: []dialect.Effect{{Task: "later", TaskDuration: time.Minute, Store: map[string]any{"Asked": true}, Requests: []dialect.StandardRequest{
		{Method: "PATCH", URI: "/redfish/v1/Systems/{system}", Body: map[string]any{"AssetTag": "late"}}}}},
}}}

func TestOEMTaskDurationFollowsLabClock(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, h *host)
		tag  string
	}{
		{"task ends", func(*testing.T, *host) {}, "late"},
		{"BMC restarts before the end", func(t *testing.T, h *host) {
			if _, err := h.ApplyBMC(t.Context(), bmc.Restart{Kind: bmc.ForceRestart}); err != nil {
				t.Fatal(err)
			}
			h.pass(2 * time.Minute)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			h.d.OEM = timed
			must(t, h.d.Validate())
			c := clock.NewVirtual(h.now)
			h.clock = c
			s, err := New(Config{Rack: rack{h}, Clock: c})
			must(t, err)
			at := sys + "/Actions/Oem/AcmeSystem.Later"
			if w := call(t, s, "admin", "POST", at, ""); w.Code != http.StatusAccepted {
				t.Fatal(shape("POST", at, "", w))
			}
			task, _ := get(t, s, "/redfish/v1/TaskService/Tasks/1")
			if task["TaskState"] != "Running" || task["EstimatedDuration"] != "PT60S" || h.bmc.View().OEM.All()["Asked"] == nil {
				t.Errorf("%v", task)
			}
			must(t, c.Walk(t.Context(), 59*time.Second))
			tt.do(t, h)
			if tag := h.machine.View().Asset.Tag; tag != "" {
				t.Errorf("before its time the tag is %q", tag)
			}
			must(t, c.Walk(t.Context(), time.Second))
			h.carrying.Wait()
			if tag := h.machine.View().Asset.Tag; tag != tt.tag {
				t.Errorf("after its time the tag is %q, want %q", tag, tt.tag)
			}
		})
	}
}

// FuzzOEMRequestBodies checks that no body sent to an OEM resource or action crashes the service.
func FuzzOEMRequestBodies(f *testing.F) {
	f.Add(`{"How":"Softly","Where":{"Bay":3}}`, `{"Oem":{"Acme":{"BootOnce":true,"Mood":"x"}},"AssetTag":"y"}`)
	f.Add(`{"How":{"a":[]},"Where":[{"Bay":1e9}],"Where":null}`, `{"Attributes":{"A.1":null,"B.2":[{}]},"Boot":{"First":{"x":[1]}},"Oem":{"Acme":[]}}`)
	o := acme
	o.Resources = append(o.Resources[:len(o.Resources):len(o.Resources)], settings.Resources...)
	o.WritableProperties = settings.WritableProperties
	s, h := owned(f, o, moody)
	f.Fuzz(func(t *testing.T, action, patch string) {
		if strings.Contains(patch, "mad") {
			t.Skip("which panics by intent")
		}
		for _, at := range []string{"/redfish/v1/Managers/1/Oem/Acme/Actions/AcmeService.Kick", acmeJobs, "/redfish/v1/Managers/1/Actions/Oem/AcmeManager.Ask"} {
			if w := call(t, s, "admin", "POST", at, action); w.Code >= 500 {
				t.Error(shape("POST", at, action, w))
			}
		}
		for _, at := range []string{acmeSettings, sys, sys + "/Oem/Acme/Self"} {
			if w := call(t, s, "admin", "PATCH", at, patch); w.Code >= 500 && !strings.Contains(patch, "broken") {
				t.Error(shape("PATCH", at, patch, w))
			}
		}
		h.carrying.Wait()
		for _, at := range []string{acmeSettings, sys, acmeJobs + "?$expand=.", "/redfish/v1/Managers/1/Oem/Acme"} {
			if w := call(t, s, "admin", "GET", at, ""); w.Code != 200 {
				t.Error(shape("GET", at, "", w))
			}
		}
		if h.machine.View().Phase == machine.Phase("") {
			t.Error("the machine is nowhere")
		}
	})
}
