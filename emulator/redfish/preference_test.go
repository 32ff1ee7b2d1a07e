package redfish

import (
	"net/http"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
)

func TestPreferHeaderParsing(t *testing.T) {
	for header, want := range map[string]preference{
		"":                                      {},
		"return=minimal":                        {returns: "minimal"},
		"Return = \"Minimal\" ; foo=1":          {returns: "minimal"},
		"respond-async, return=representation":  {returns: "representation", async: true},
		"return=representation, return=minimal": {returns: "representation"},
		"return=all, wait=10, handling=lenient": {},
		", =,;":                                 {},
	} {
		if got := parsePrefer([]string{header}); got != want {
			t.Errorf("parsePrefer(%q) = %+v, want %+v", header, got, want)
		}
	}
}

// TestPreferHeaderSelectsResponse shows statement A17.
func TestPreferHeaderSelectsResponse(t *testing.T) {
	reset := sys + "/Actions/ComputerSystem.Reset"
	login := `{"UserName":"reader","Password":"read-secret-3"}`
	for _, tt := range []struct {
		method, path, body string
		prefer             string
		status             int
		applied            string
		shows              string // part of the body; "" for no body
	}{
		{"PATCH", sys, pxe, "", 200, "", `"Pxe"`},
		{"PATCH", sys, pxe, "return=minimal", 204, "return=minimal", ""},
		{"PATCH", sys, pxe, "return=representation", 200, "return=representation", `"Pxe"`},
		{"PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Pxe"},"UUID":""}`, "return=minimal", 200, "", "PropertyNotWritable"},
		{"PATCH", sys, `{"UUID":""}`, "return=minimal", 400, "", "PropertyNotWritable"},
		{"PATCH", sys, pxe, "respond-async", 202, "respond-async", `"TaskState":"Completed"`},
		{"POST", reset, `{"ResetType":"On"}`, "", 204, "", ""},
		{"POST", reset, `{"ResetType":"On"}`, "return=representation", 200, "return=representation", "Base.1.22.Success"},
		{"POST", reset, `{"ResetType":"On"}`, "return=minimal", 204, "return=minimal", ""},
		{"POST", reset, `{"ResetType":"On"}`, "respond-async", 202, "respond-async", `"TaskState":"Completed"`},
		{"POST", reset, `{"ResetType":"Dance"}`, "respond-async", 400, "", "ActionParameterValueNotInList"},
		{"POST", sessions, login, "return=minimal", 201, "return=minimal", ""},
		{"POST", sessions, login, "respond-async, return=representation", 201, "return=representation", `"UserName":"reader"`},
		{"DELETE", sessions + "/1", "", "", 204, "", ""},
		{"DELETE", sessions + "/1", "", "return=representation", 200, "return=representation", `"Id":"1"`},
		{"DELETE", sessions + "/1", "", "respond-async", 202, "respond-async", `"TaskState":"Completed"`},
	} {
		h := newHost(t)
		_, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: accounts[0], Token: "t", From: "192.0.2.9"})
		must(t, err)
		s := newService(t, h)
		w := call(t, s, "admin", tt.method, tt.path, tt.body, "Prefer", tt.prefer)
		body := w.Body.String()
		if w.Code != tt.status || w.Header().Get("Preference-Applied") != tt.applied || !strings.Contains(body, tt.shows) || (tt.shows == "") != (body == "") {
			t.Errorf("Prefer: %s: %s; want %d with %s", tt.prefer, shape(tt.method, tt.path, tt.body, w), tt.status, tt.shows)
		}
		if w.Code == 202 && !strings.HasPrefix(w.Header().Get("Location"), "/redfish/v1/TaskService/TaskMonitors/") {
			t.Errorf("202 leads to %q", w.Header().Get("Location"))
		}
	}
}

// TestRespondAsyncReturnsTaskDuringImageFetch shows statements A17 and A18.
func TestRespondAsyncReturnsTaskDuringImageFetch(t *testing.T) {
	for _, lost := range []bool{false, true} {
		h := newHost(t)
		fetching, arrived := make(chan struct{}), make(chan struct{})
		h.fetch = func() error {
			close(fetching)
			<-arrived
			if lost {
				return &bmc.MediaError{Fault: bmc.Absent, Err: http.ErrMissingFile}
			}
			return nil
		}
		s := newService(t, h)
		insert := sys + "/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
		w := call(t, s, "admin", "POST", insert, `{"Image":"http://images.test/a.iso","UserName":"u","Password":"hush"}`, "Prefer", "respond-async")
		if w.Code != 202 || strings.Contains(w.Body.String(), "hush") {
			t.Fatalf("%s", shape("POST", insert, "", w))
		}
		<-fetching
		monitor := w.Header().Get("Location")
		if w := call(t, s, "admin", "GET", monitor, ""); w.Code != 202 {
			t.Errorf("while the image comes: %s", shape("GET", monitor, "", w))
		}
		close(arrived)
		h.carrying.Wait()
		w = call(t, s, "admin", "GET", monitor, "")
		if failed := w.Code >= 400; failed != lost || w.Code == 202 {
			t.Errorf("image lost: %t; the monitor says %s", lost, shape("GET", monitor, "", w))
		}
		o, _ := get(t, s, sys+"/VirtualMedia/Cd")
		if o["Inserted"] == lost {
			t.Errorf("image lost: %t; Inserted = %v", lost, o["Inserted"])
		}
	}
}

func TestMissingPropertyMessageDependsOnBaseVersion(t *testing.T) {
	for base, want := range map[string]string{"1.13.1": "CreateFailedMissingReqProperties", "1.14.1": "PropertyMissing"} {
		h := hostOf(t, func(p *dialect.Protocol) { p.Registries = map[string]string{"Base": base} })
		w := call(t, newService(t, h), "", "POST", sessions, `{"UserName":"admin"}`)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("Base %s: %s; want %s", base, shape("POST", sessions, "", w), want)
		}
	}
}
