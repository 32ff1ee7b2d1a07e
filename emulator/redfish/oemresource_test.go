package redfish

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

const acmeJobs = "/redfish/v1/Managers/1/Oem/Acme/Jobs"

// owned returns a service whose only host has OEM resources and OEM actions.
func owned(t testing.TB, o dialect.OEM, f dialect.Presentation) (*Service, *host) {
	t.Helper()
	h := newHost(t)
	h.d.Presentation, h.d.OEM = f, o
	if err := h.d.Validate(); err != nil {
		t.Fatal(err)
	}
	return newService(t, h), h
}

// acme is an invented vendor with OEM jobs and OEM actions.
var acme = dialect.OEM{
	Resources: []dialect.Resource{
		{URI: "/redfish/v1/Managers/{manager}/Oem/Acme/Jobs", Type: "AcmeJobCollection.AcmeJobCollection", Name: "Jobs",
			BasedOn: "/redfish/v1/TaskService/Tasks"},
		{URI: "/redfish/v1/Managers/{manager}/Oem/Acme/Jobs/JID_{task:12}", Type: "AcmeJob.v1_2_0.AcmeJob", BasedOn: "/redfish/v1/TaskService/Tasks/{task}",
			Set: []dialect.PropertyRule{
				{Path: "JobState", From: "TaskState", Map: map[string]any{"Exception": "Failed"}, Value: "Fine"},
				{Path: "Power", From: "/redfish/v1/Systems/{system}#PowerState"},
				{Path: "Mood", From: "=Mood"}, {Path: "Self", Value: "{self}"},
			}, Remove: []string{"TaskState"}, PassedMethods: []string{"DELETE"}},
		{URI: "/redfish/v1/Managers/{manager}/Oem/Acme", Type: "AcmeService.v1_0_0.AcmeService", Name: "Acme", Privilege: "ConfigureUsers",
			Read: func(l dialect.HookContext) map[string]any {
				return map[string]any{"Tag": l.Standard("/redfish/v1/Systems/1")["AssetTag"], "Kept": len(l.Stored), "Power": string(l.Machine.Power)}
			}},
		{URI: "/redfish/v1/Systems/{system}/Oem/Acme/Firmware/{firmware}", Type: "AcmeFirmware.v1_0_0.AcmeFirmware", Name: "Firmware"},
	},
	Actions: []dialect.Action{
		{ResourceURI: "/redfish/v1/Managers/{manager}/Oem/Acme", Name: "AcmeService.Kick", Privilege: "Login", Parameters: []dialect.Parameter{
			{Name: "How", Required: true, AllowableValues: []string{"Softly", "Hard", "Never"}}, {Name: "Where/Bay", Type: dialect.IntegerParameter},
		}, Effects: []dialect.Effect{
			{When: map[string][]string{"How": {"Softly"}}, Requests: []dialect.StandardRequest{
				{Method: "PATCH", URI: "/redfish/v1/Systems/{system}", Body: map[string]any{"AssetTag": "bay {$Where/Bay}", "HostName": "$Host"}},
				{Method: "POST", URI: "/redfish/v1/Systems/{system}/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": "On"}}}},
			{When: map[string][]string{"How": {"Hard"}}, Reject: &dialect.VendorMessage{Registry: "Acme", Version: "1.0.0", Key: "Ouch", Text: "%1 is %2."}, Status: 403},
		}},
		{ResourceURI: "/redfish/v1/Managers/{manager}", Name: "AcmeManager.Ask", Parameters: []dialect.Parameter{{Name: "Of", AllowableValues: []string{"Time", "Mood"}}},
			Effects: []dialect.Effect{{Body: map[string]any{"Answer": "{manager} has no {$Of}", "At": "/redfish/v1/Systems/{system}"}}}},
		{ResourceURI: "/redfish/v1/Managers/{manager}", Name: "AcmeManager.Hide", Target: "/hidden", Hidden: true, Effects: []dialect.Effect{{}}},
		{ResourceURI: "/redfish/v1/Managers/{manager}/Oem/Acme/Jobs", Name: "AcmeJobs.Make", Target: "/", Hidden: true, Parameters: []dialect.Parameter{{Name: "Bad", Type: dialect.BooleanParameter}},
			Effects: []dialect.Effect{{Task: "make", Requests: []dialect.StandardRequest{
				{Method: "PATCH", URI: "/redfish/v1/Systems/{system}", Body: map[string]any{"AssetTag": "made"}},
				{Method: "POST", URI: "/redfish/v1/Systems/{system}/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": "On", "Bad": "$Bad"}}}}}},
	},
	URIAliases: []dialect.URIMapping{{From: "/redfish/v1/Acme/{slot}/Media", To: "/redfish/v1/Systems/{system}/VirtualMedia/{slot}"}},
}

func TestOEMResources(t *testing.T) {
	s, h := owned(t, acme, dialect.Presentation{TrailingSlash: true})
	o, tag := get(t, s, "/redfish/v1/Managers/1/Oem/Acme/")
	if o["@odata.type"] != "#AcmeService.v1_0_0.AcmeService" || o["Tag"] != "" || o["Id"] != "Acme" || o["Power"] != "Off" || o["@odata.id"] != "/redfish/v1/Managers/1/Oem/Acme/" {
		t.Errorf("%v", o)
	}
	kick := o["Actions"].(map[string]any)["#AcmeService.Kick"].(map[string]any)
	if kick["target"] != "/redfish/v1/Managers/1/Oem/Acme/Actions/AcmeService.Kick/" || len(kick["How@Redfish.AllowableValues"].([]any)) != 3 {
		t.Errorf("the action is %v", kick)
	}
	if info, _ := get(t, s, kick["@Redfish.ActionInfo"].(string)); len(info["Parameters"].([]any)) != 2 {
		t.Errorf("%v", info)
	}
	if w := call(t, s, "admin", "GET", "/redfish/v1/Managers/1/Oem/Acme", "", "If-None-Match", tag); w.Code != http.StatusNotModified {
		t.Errorf("with its ETag the status is %d", w.Code)
	}
	w := call(t, s, "admin", "POST", "/redfish/v1/Managers/1/Oem/Acme/Jobs", `{}`)
	if at := w.Header().Get("Location"); w.Code != 202 || !strings.HasPrefix(at, "/redfish/v1/TaskService/TaskMonitors/1") {
		t.Fatal(shape("POST", acmeJobs, "", w))
	}
	h.carrying.Wait()
	all, _ := get(t, s, acmeJobs)
	member := all["Members"].([]any)[0].(map[string]any)["@odata.id"]
	if all["@odata.type"] != "#AcmeJobCollection.AcmeJobCollection" || member != acmeJobs+"/JID_000000000001/" {
		t.Errorf("%v", all)
	}
	job, _ := get(t, s, member.(string))
	if job["Id"] != "JID_000000000001" || job["JobState"] != "Fine" || job["TaskState"] != nil || job["Power"] != "PoweringOn" || job["Mood"] != nil || job["Self"] != member {
		t.Errorf("%v", job)
	}
	full, _ := get(t, s, acmeJobs+"?$expand=.")
	if full["Members"].([]any)[0].(map[string]any)["JobState"] != "Fine" {
		t.Errorf("%v", full)
	}
	answersWith(t, s,
		step{"", "GET", acmeJobs, "", nil, 401, ""},
		step{"reader", "GET", acmeJobs, "", nil, 200, ""},
		step{"reader", "POST", acmeJobs, "{}", nil, 403, ""},
		step{"admin", "PUT", acmeJobs, "{}", nil, 405, ""},
		step{"admin", "GET", acmeJobs + "/JID_000000000007", "", nil, 404, ""},
		step{"admin", "GET", acmeJobs + "/JID_1", "", nil, 404, ""},
		step{"reader", "DELETE", member.(string), "", nil, 403, ""},
		step{"admin", "DELETE", member.(string), "", nil, 204, ""},
		step{"admin", "GET", member.(string), "", nil, 404, ""},
		step{"admin", "GET", "/redfish/v1/TaskService/Tasks/1", "", nil, 404, ""},
		step{"admin", "GET", "/redfish/v1/Acme/Cd/Media", "", nil, 200, ""},
		step{"admin", "POST", "/redfish/v1/Acme/Cd/Media/Actions/VirtualMedia.EjectMedia/", "", nil, 204, ""},
		step{"admin", "GET", "/redfish/v1/Acme/Tape/Media", "", nil, 404, ""},
		step{"admin", "GET", sys + "/Oem/Acme/Firmware/BIOS", "", nil, 200, ""},
		step{"admin", "GET", sys + "/Oem/Acme/Firmware/None", "", nil, 404, ""},
	)
	for _, path := range []string{acmeJobs, "/redfish/v1/Managers/1/Oem/Acme"} {
		if allow := call(t, s, "admin", "HEAD", path, "").Header().Get("Allow"); strings.Contains(allow, "POST") != (path == acmeJobs) {
			t.Errorf("%s allows %s", path, allow)
		}
	}
}

func TestOEMActions(t *testing.T) {
	s, h := owned(t, acme, dialect.Presentation{})
	kick := "/redfish/v1/Managers/1/Oem/Acme/Actions/AcmeService.Kick"
	answersWith(t, s,
		step{"admin", "POST", kick, `{}`, nil, 400, "ActionParameterMissing"},
		step{"admin", "POST", kick, `{"How":"Twice"}`, nil, 400, "ActionParameterValueNotInList"},
		step{"admin", "POST", kick, `{"How":"Softly","Where":{"Bay":"one"}}`, nil, 400, "ActionParameterValueTypeError"},
		step{"admin", "POST", kick, `{"How":"Softly","Why":1}`, nil, 400, "ActionParameterUnknown"},
		step{"admin", "POST", kick, `{"How":"Hard"}`, nil, 403, "Ouch"},
		step{"admin", "POST", kick, `{"How":"Never"}`, nil, 400, "ActionParameterValueError"},
		step{"reader", "POST", kick, `{"How":"Softly","Where":{"Bay":3}}`, nil, 403, "InsufficientPrivilege"},
		step{"", "POST", kick, `{"How":"Softly"}`, nil, 401, ""},
		step{"admin", "GET", kick, "", nil, 405, ""},
		step{"admin", "POST", kick, `{"How":"Softly","Where":{"Bay":3}}`, nil, 204, ""},
	)
	system, _ := get(t, s, sys)
	if system["AssetTag"] != "bay 3" || h.machine.View().Power == "Off" {
		t.Errorf("after its steps the system is %v, tag %v", h.machine.View().Power, system["AssetTag"])
	}
	manager, _ := get(t, s, "/redfish/v1/Managers/1")
	oem := manager["Actions"].(map[string]any)["Oem"].(map[string]any)
	ask, _ := oem["#AcmeManager.Ask"].(map[string]any)
	if len(oem) != 1 || ask["target"] != "/redfish/v1/Managers/1/Actions/Oem/AcmeManager.Ask" || len(ask["Of@Redfish.AllowableValues"].([]any)) != 2 {
		t.Errorf("the manager shows %v", oem)
	}
	w := call(t, s, "admin", "POST", ask["target"].(string), `{"Of":"Mood"}`)
	if b := decoded(t, w); w.Code != 200 || b["Answer"] != "1 has no Mood" || b["At"] != sys {
		t.Error(shape("POST", "", "", w))
	}
	answersWith(t, s,
		step{"admin", "POST", "/redfish/v1/Managers/1/hidden", "", nil, 204, ""},
		step{"admin", "POST", "/redfish/v1/Managers/2/hidden", "", nil, 404, ""},
		step{"operator", "POST", "/redfish/v1/Managers/1/hidden", "", nil, 403, ""},
	)
	if w := call(t, s, "admin", "POST", "/redfish/v1/Managers/1/hidden", "", "If-Match", `"0"`); w.Code != http.StatusPreconditionFailed {
		t.Errorf("an action with a stale ETag has status %d", w.Code)
	}
}

func TestOEMTaskFailsWithItsRequest(t *testing.T) {
	s, h := owned(t, acme, dialect.Presentation{})
	w := call(t, s, "admin", "POST", acmeJobs, `{"Bad":true}`)
	h.carrying.Wait()
	task, _ := get(t, s, "/redfish/v1/TaskService/Tasks/1")
	if text := string(resource.Encode(task)); w.Code != 202 || task["TaskState"] != "Exception" || task["Name"] != "make" || !strings.Contains(text, "parameter Bad") {
		t.Errorf("%d, %v", w.Code, text)
	}
	job, _ := get(t, s, acmeJobs+"/JID_000000000001")
	if job["JobState"] != "Failed" {
		t.Errorf("%v", job)
	}
}

func TestEjectAfterBoots(t *testing.T) {
	s, h := owned(t, dialect.OEM{WritableProperties: []dialect.WritableProperty{{
		ResourceType: "VirtualMedia", Path: "Oem/Acme/Once", Type: dialect.BooleanParameter,
		Effects: []dialect.Effect{{When: map[string][]string{"$": {"true"}}, EjectAfterBoots: 1}, {EjectAfterBoots: -1}},
	}}}, dialect.Presentation{})
	slot := sys + "/VirtualMedia/Cd"
	on := step{"admin", "POST", sys + "/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`, nil, 204, ""}
	answersWith(t, s,
		step{"admin", "POST", slot + "/Actions/VirtualMedia.InsertMedia", `{"Image":"http://images.test/a.iso"}`, nil, 204, ""},
		step{"admin", "PATCH", slot, `{"Oem":{"Acme":{"Once":true}}}`, nil, 200, ""}, on)
	h.pass(10 * time.Second)
	if o, _ := get(t, s, slot); o["Inserted"] != false {
		t.Errorf("after the start it is still there: %v", o["Image"])
	}
}
