package redfish

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

const mgr = "/redfish/v1/Managers/1"

func TestManagerReset(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	reset := mgr + "/Actions/Manager.Reset"
	for body, want := range map[string]int{`{"ResetType":"Nmi"}`: 400, `{"ResetType":7}`: 400, `{"Reset":"x"}`: 400} {
		if w := call(t, s, "admin", "POST", reset, body); w.Code != want {
			t.Errorf("%s; want %d", shape("POST", reset, body, w), want)
		}
	}
	if w := call(t, s, "operator", "POST", reset, `{}`); w.Code != 403 {
		t.Errorf("%s", shape("POST", reset, "", w))
	}
	token, _ := logIn(t, s, "admin")
	if w := call(t, s, "admin", "POST", reset, `{"ResetType":"GracefulRestart"}`); w.Code != 204 {
		t.Fatalf("%s", shape("POST", reset, "", w))
	}
	if w := call(t, s, "admin", "POST", reset, ``); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("again: %s", shape("POST", reset, "", w))
	}
	h.pass(43 * time.Second)
	for _, uri := range []string{"/redfish", "/redfish/v1/", mgr, "/nothing"} {
		w := call(t, s, "admin", "GET", uri, "")
		if keys, _ := errorOf(t, w); w.Code != 503 || keys[0] != "ServiceTemporarilyUnavailable" || w.Header().Get("Retry-After") != "10" {
			t.Errorf("while it starts: %s", shape("GET", uri, "", w))
		}
	}
	h.pass(15 * time.Second)
	if w := call(t, s, "admin", "GET", mgr, ""); w.Header().Get("Retry-After") != "4" {
		t.Errorf("a little later: %s", shape("GET", mgr, "", w))
	}
	h.pass(time.Minute)
	body, _ := get(t, s, mgr)
	if body["LastResetTime"] != "2026-03-01T12:01:02Z" {
		t.Errorf("manager = %v", body)
	}
	if w := call(t, s, "", "GET", mgr, "", "X-Auth-Token", token); w.Code != 401 {
		t.Errorf("with the session of before: %s", shape("GET", mgr, "", w))
	}
	if body, _ := get(t, s, auditLog+"/Entries"); !strings.Contains(fmt.Sprint(body), "/Entries/") {
		t.Errorf("the log has %v", body)
	}
}

func TestManagerResetToDefaults(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	if w := call(t, s, "admin", "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":90}`); w.Code != 200 {
		t.Fatalf("%s", shape("PATCH", "SessionService", "", w))
	}
	reset := mgr + "/Actions/Manager.ResetToDefaults"
	if w := call(t, s, "admin", "POST", reset, `{}`); w.Code != 400 {
		t.Errorf("%s", shape("POST", reset, "", w))
	}
	if w := call(t, s, "admin", "POST", reset, `{"ResetType":"ResetAll"}`); w.Code != 204 {
		t.Fatalf("%s", shape("POST", reset, "", w))
	}
	h.pass(5 * time.Minute)
	if body, _ := get(t, s, "/redfish/v1/SessionService"); body["SessionTimeout"] != 1800.0 {
		t.Errorf("SessionTimeout = %v, want the default", body["SessionTimeout"])
	}
}

func TestManagerDateTime(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	body, tag := get(t, s, mgr)
	if body["DateTime"] != "2026-03-01T12:00:00Z" || body["DateTimeLocalOffset"] != "+00:00" {
		t.Errorf("DateTime %v %v", body["DateTime"], body["DateTimeLocalOffset"])
	}
	h.pass(time.Second)
	if body, again := get(t, s, mgr); body["DateTime"] != "2026-03-01T12:00:01Z" || again != tag {
		t.Errorf("a second later DateTime %v, ETag %s, want %s", body["DateTime"], again, tag)
	}
	for _, step := range []struct {
		body          string
		status        int
		time, offset  string
		name, pointer string
	}{
		{`{"DateTime":"2027-01-02T03:04:05+02:00"}`, 200, "2027-01-02T01:04:05Z", "+00:00", "", ""},
		{`{"DateTimeLocalOffset":"-03:30"}`, 200, "2027-01-01T21:34:05-03:30", "-03:30", "", ""},
		{`{"TimeZoneName":"America/St_Johns"}`, 200, "2027-01-01T21:34:05-03:30", "-03:30", "America/St_Johns", ""},
		{`{"DateTime":"2026-05-05T00:00:00Z","DateTimeLocalOffset":"+05:45"}`, 200, "2026-05-05T05:45:00+05:45", "+05:45", "America/St_Johns", ""},
		{`{"DateTime":"yesterday"}`, 400, "2026-05-05T05:45:00+05:45", "+05:45", "America/St_Johns", "#/DateTime"},
		{`{"DateTimeLocalOffset":"25:00"}`, 400, "2026-05-05T05:45:00+05:45", "+05:45", "America/St_Johns", "#/DateTimeLocalOffset"},
		{`{"TimeZoneName":"nowhere at all"}`, 400, "2026-05-05T05:45:00+05:45", "+05:45", "America/St_Johns", "#/TimeZoneName"},
	} {
		w := call(t, s, "admin", "PATCH", mgr, step.body)
		if w.Code != step.status || step.pointer != "" && !strings.Contains(w.Body.String(), step.pointer) {
			t.Errorf("%s; want %d", shape("PATCH", mgr, step.body, w), step.status)
		}
		body, _ := get(t, s, mgr)
		name, _ := body["TimeZoneName"].(string)
		if body["DateTime"] != step.time || body["DateTimeLocalOffset"] != step.offset || name != step.name {
			t.Errorf("after %s: %v %v %q, want %s %s %q", step.body, body["DateTime"], body["DateTimeLocalOffset"], name, step.time, step.offset, step.name)
		}
	}
	_, err := h.ApplyBMC(t.Context(), bmc.SkewClock{By: -time.Hour})
	must(t, err)
	if body, _ := get(t, s, mgr); body["DateTime"] != "2026-05-05T04:45:00+05:45" {
		t.Errorf("DateTime %v, want it an hour behind", body["DateTime"])
	}
}
