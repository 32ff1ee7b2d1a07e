package redfish

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

const (
	selURI   = sys + "/LogServices/SEL"
	auditLog = "/redfish/v1/Managers/1/LogServices/Log"
)

func TestLogEntriesDescribeMachineEvents(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	_, err := h.ApplyBMC(t.Context(), bmc.SetZone{UTCOffset: 60})
	must(t, err)
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	h.pass(10 * time.Second)
	body, _ := get(t, s, selURI+"/Entries/1")
	link := body["Links"].(map[string]any)["OriginOfCondition"].(map[string]any)["@odata.id"]
	if body["MessageId"] != "ResourceEvent.1.4.ResourcePoweredOn" || link != sys || body["Severity"] != "OK" || body["EntryType"] != "Event" ||
		!strings.HasPrefix(body["Created"].(string), "2026-03-01T13:00:") || !strings.HasSuffix(body["Created"].(string), "+01:00") || body["SensorType"] != nil {
		t.Errorf("entry = %v", body)
	}
	d := *h.d
	d.Logs.SEL = true
	h.d = &d
	body, _ = get(t, s, selURI+"/Entries/1")
	if body["EntryType"] != "SEL" || body["SensorType"] != "System ACPI PowerState" || body["EntryCode"] != "Assert" || body["MessageId"] != nil {
		t.Errorf("record of the event log = %v", body)
	}
	if _, err := openBundle(); err == nil {
		walk(t, s, newSchemas(t))
	}
}

func TestMissingOriginOfConditionIsUnavailable(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	h.bmc.ObserveMachine(h.now, []event.Event{event.Note{At: h.now, Kind: event.PowerOn, Subject: event.Subject{Part: event.Account, ID: "99"}}})
	h.bmcChanged()
	if body, _ := get(t, s, selURI+"/Entries/1"); body["Links"] != nil || body["OriginOfConditionUnavailable"] != true {
		t.Errorf("entry = %v", body)
	}
}

func TestLogEntryResolveAndDelete(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	states[1].make(t, h)
	one := selURI + "/Entries/1"
	if w := call(t, s, "operator", "PATCH", one, `{"Resolved":true}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"Resolved":true`) {
		t.Errorf("%s", shape("PATCH", one, "", w))
	}
	if w := call(t, s, "admin", "PATCH", one, `{"Message":"x"}`); w.Code != 400 {
		t.Errorf("%s", shape("PATCH", one, "", w))
	}
	if w := call(t, s, "reader", "DELETE", one, ""); w.Code != 403 {
		t.Errorf("%s", shape("DELETE", one, "", w))
	}
	d := *h.d
	d.Logs.DeletableEntries = false
	h.d = &d
	if w := call(t, s, "admin", "DELETE", one, ""); w.Code != 405 || strings.Contains(w.Header().Get("Allow"), "DELETE") {
		t.Errorf("where entries stay: %s", shape("DELETE", one, "", w))
	}
	d.Logs.DeletableEntries = true
	if w := call(t, s, "operator", "DELETE", one, ""); w.Code != 204 {
		t.Errorf("%s", shape("DELETE", one, "", w))
	}
	for _, id := range []string{"1", "01", "+2", "x", "99999999999999999999"} {
		if w := call(t, s, "admin", "GET", selURI+"/Entries/"+id, ""); w.Code != 404 {
			t.Errorf("%s", shape("GET", id, "", w))
		}
	}
}

func TestClearLogWithStaleETagReturns428(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	states[1].make(t, h)
	_, tag := get(t, s, selURI+"/Entries")
	wipe := selURI + "/Actions/LogService.ClearLog"
	for _, step := range []struct {
		body string
		want int
		left float64
	}{{`{"LogEntriesETag":"\"old\""}`, 428, 1}, {fmt.Sprintf(`{"LogEntriesETag":%q}`, tag), 204, 0}, {"", 204, 0}} {
		w := call(t, s, "operator", "POST", wipe, step.body)
		body, _ := get(t, s, selURI+"/Entries")
		if w.Code != step.want || body["Members@odata.count"] != step.left {
			t.Errorf("%s: %v entries are left, want %v", shape("POST", wipe, step.body, w), body["Members@odata.count"], step.left)
		}
	}
	if body, _ := get(t, s, auditLog+"/Entries/1"); body["MessageId"] != "LogService.1.1.LogCleared" || fmt.Sprint(body["MessageArgs"]) != "[SEL]" {
		t.Errorf("entry of the clearing = %v", body)
	}
}

func TestLogServiceShowsOverWritePolicy(t *testing.T) {
	h := newHost(t)
	h.d.BMC.Log = bmc.LogSpec{Size: 2, Full: bmc.Stays}
	h.bmc = bmc.New(&h.d.BMC, accounts, nil)
	h.bmcChanged()
	s := newService(t, h)
	if body, _ := get(t, s, selURI); body["MaxNumberOfRecords"] != 2.0 || body["OverWritePolicy"] != "NeverOverWrites" || body["Overflow"] != false {
		t.Errorf("log service = %v", body)
	}
	for range 3 {
		h.bmc.ObserveMachine(h.now, []event.Event{event.Note{At: h.now, Kind: event.PowerOn}})
	}
	h.bmcChanged()
	if body, _ := get(t, s, selURI); body["Overflow"] != true {
		t.Errorf("log service = %v", body)
	}
}

func TestCollectDiagnosticData(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	collect := auditLog + "/Actions/LogService.CollectDiagnosticData"
	if w := call(t, s, "admin", "POST", collect, `{"DiagnosticDataType":"OS"}`); w.Code != 400 {
		t.Errorf("%s", shape("POST", collect, "", w))
	}
	w := call(t, s, "admin", "POST", collect, `{"DiagnosticDataType":"Manager"}`)
	monitor := w.Header().Get("Location")
	if w.Code != 202 {
		t.Fatalf("%s", shape("POST", collect, "", w))
	}
	if w := call(t, s, "admin", "GET", monitor, ""); w.Code != 202 {
		t.Errorf("at once: %s", shape("GET", monitor, "", w))
	}
	h.pass(time.Minute)
	w = call(t, s, "admin", "GET", monitor, "")
	var entry map[string]any
	must(t, json.Unmarshal(w.Body.Bytes(), &entry))
	if w.Code != 201 || w.Header().Get("Location") != auditLog+"/Entries/1" || entry["MessageId"] != "LogService.1.1.DiagnosticDataCollected" {
		t.Fatalf("%s", shape("GET", monitor, "", w))
	}
	uri := entry["AdditionalDataURI"].(string)
	if w := call(t, s, "", "GET", uri, ""); w.Code != 401 {
		t.Errorf("without login: %s", shape("GET", uri, "", w))
	}
	w = call(t, s, "admin", "GET", uri, "")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/gzip" || float64(w.Body.Len()) != entry["AdditionalDataSizeBytes"] {
		t.Fatalf("GET %s = %d %v", uri, w.Code, w.Header())
	}
	z, err := gzip.NewReader(w.Body)
	must(t, err)
	var all map[string]any
	must(t, json.NewDecoder(z).Decode(&all))
	if text := fmt.Sprint(all); !strings.Contains(text, "operator") || strings.Contains(text, "-secret-") {
		t.Errorf("the dump shows %s", text)
	}
	if w := call(t, s, "admin", "DELETE", auditLog+"/Entries/1", ""); w.Code != 204 {
		t.Errorf("%s", shape("DELETE", "entry", "", w))
	}
	if w := call(t, s, "admin", "GET", uri, ""); w.Code != 404 {
		t.Errorf("%s", shape("GET", uri, "", w))
	}
}

// A client that follows nextLink sees each of thousands of entries once.
func TestLongLogIsPaged(t *testing.T) {
	h := newHost(t)
	h.d.Protocol.PageSize = 100
	h.d.Protocol.Queries = dialect.AllQueries
	s := newService(t, h)
	for range 2500 { // more than the log holds
		h.bmc.ObserveMachine(h.now, []event.Event{event.Note{At: h.now, Kind: event.PowerOn, Subject: event.Subject{Part: event.System}}})
	}
	h.bmcChanged()
	seen := map[string]bool{}
	next := selURI + "/Entries"
	for pages := 0; next != ""; pages++ {
		w := call(t, s, "reader", "GET", next, "")
		var body struct {
			Count   int    `json:"Members@odata.count"`
			Next    string `json:"Members@odata.nextLink"`
			Members []struct {
				ID string `json:"@odata.id"`
			} `json:"Members"`
		}
		must(t, json.Unmarshal(w.Body.Bytes(), &body))
		if w.Code != http.StatusOK || body.Count != 2000 || len(body.Members) != 100 || pages > 20 {
			t.Fatalf("%s has %d of %d", next, len(body.Members), body.Count)
		}
		for _, m := range body.Members {
			if seen[m.ID] {
				t.Fatalf("%s is listed twice", m.ID)
			}
			seen[m.ID] = true
		}
		next = body.Next
	}
	if len(seen) != 2000 || seen[selURI+"/Entries/500"] || !seen[selURI+"/Entries/2500"] {
		t.Errorf("%d entries were listed, want the newest 2000", len(seen))
	}
}
