package redfish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

const sessions = "/redfish/v1/SessionService/Sessions"

// logIn opens a session and returns its token and address.
func logIn(t testing.TB, s http.Handler, who as) (token, uri string) {
	t.Helper()
	for _, a := range accounts {
		if a.Name == string(who) {
			w := call(t, s, "", "POST", sessions, fmt.Sprintf(`{"UserName":%q,"Password":%q}`, a.Name, a.Password))
			if w.Code != 201 {
				t.Fatalf("%s", shape("POST", sessions, "", w))
			}
			return w.Header().Get("X-Auth-Token"), w.Header().Get("Location")
		}
	}
	t.Fatalf("no account %s", who)
	return "", ""
}

// get reads a resource as admin.
func get(t testing.TB, s http.Handler, uri string) (body map[string]any, etag string) {
	t.Helper()
	w := call(t, s, "admin", "GET", uri, "")
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 200 {
		t.Fatalf("%v: %s", err, shape("GET", uri, "", w))
	}
	return body, w.Header().Get("ETag")
}

func TestSessionIsValidFromLoginToLogout(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for _, path := range []string{sessions, sessions + "/", sessions + "/Members"} {
		w := call(t, s, "", "POST", path, `{"UserName":"reader","Password":"read-secret-3"}`)
		token, uri := w.Header().Get("X-Auth-Token"), w.Header().Get("Location")
		if w.Code != 201 || len(token) < 20 || !strings.HasPrefix(uri, sessions+"/") || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("%s", shape("POST", path, "", w))
		}
		read := call(t, s, "", "GET", uri, "", "X-Auth-Token", token)
		if read.Code != 200 || read.Body.String() != w.Body.String() {
			t.Errorf("%s; want what the login answered:\n%s", shape("GET", uri, "", read), w.Body)
		}
		if strings.Contains(w.Body.String(), token) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("the session shows a secret: %s", w.Body)
		}
		if w := call(t, s, "", "DELETE", uri, "", "X-Auth-Token", token); w.Code != 204 {
			t.Errorf("%s", shape("DELETE", uri, "", w))
		}
		if w := call(t, s, "", "GET", sys, "", "X-Auth-Token", token); w.Code != 401 {
			t.Errorf("after logout %s", shape("GET", sys, "", w))
		}
	}
}

func TestSessionExpiresAfterTimeout(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	if w := call(t, s, "admin", "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":60}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"SessionTimeout":60`) {
		t.Fatalf("%s", shape("PATCH", "SessionService", "", w))
	}
	token, _ := logIn(t, s, "operator")
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{59 * time.Second, 200}, {59 * time.Second, 200}, {60 * time.Second, 401}} {
		h.pass(step.pass)
		if w := call(t, s, "", "GET", sys, "", "X-Auth-Token", token); w.Code != step.want {
			t.Errorf("after %s: %d, want %d", step.pass, w.Code, step.want)
		}
	}
}

func TestSessionLimitReturns503(t *testing.T) {
	h := newHost(t)
	h.d.BMC.Sessions = 2
	h.bmc = bmc.New(&h.d.BMC, accounts, nil)
	s := newService(t, h)
	logIn(t, s, "admin")
	logIn(t, s, "admin")
	w := call(t, s, "", "POST", sessions, `{"UserName":"admin","Password":"adm-secret-1"}`)
	if keys, _ := errorOf(t, w); w.Code != 503 || keys[0] != "SessionLimitExceeded" {
		t.Errorf("%s", shape("POST", sessions, "", w))
	}
}

func TestReadOnlyUserReadsOwnSessionAndAccountOnly(t *testing.T) {
	s := newService(t, newHost(t))
	mine, mineURI := logIn(t, s, "reader")
	_, othersURI := logIn(t, s, "operator")
	for _, tt := range []struct {
		method, uri string
		want        int
	}{
		{"GET", mineURI, 200}, {"GET", othersURI, 403}, {"DELETE", othersURI, 403},
		{"GET", "/redfish/v1/AccountService/Accounts/3", 200}, {"GET", "/redfish/v1/AccountService/Accounts/2", 403},
		{"DELETE", mineURI, 204},
	} {
		if w := call(t, s, "", tt.method, tt.uri, "", "X-Auth-Token", mine); w.Code != tt.want {
			t.Errorf("%s; want %d", shape(tt.method, tt.uri, "", w), tt.want)
		}
	}
	if w := call(t, s, "admin", "DELETE", othersURI, ""); w.Code != 204 {
		t.Errorf("%s", shape("DELETE", othersURI, "", w))
	}
}

func TestResetChangesPower(t *testing.T) {
	type step struct {
		kind   machine.ResetKind
		status int
		key    string // of the refusal
		power  string // right after it
	}
	// Between two steps the machine settles.
	tests := []struct {
		policy dialect.RedundantReset
		steps  []step
	}{
		{dialect.AcceptRedundant, []step{
			{"ForceOff", 204, "", "Off"}, {"GracefulShutdown", 204, "", "Off"}, {"ForceRestart", 409, "ChassisPowerStateOnRequired", "Off"},
			{"Nmi", 409, "ChassisPowerStateOnRequired", "Off"}, {"On", 204, "", "PoweringOn"}, {"On", 204, "", "On"}, {"ForceOn", 204, "", "On"},
			{"Nmi", 204, "", "On"}, {"ForceRestart", 204, "", "On"}, {"PowerCycle", 204, "", "PoweringOff"}, {"ForceOff", 204, "", "PoweringOff"},
			{"PushPowerButton", 204, "", "PoweringOn"},
		}},
		{dialect.RejectRedundant, []step{
			{"ForceOff", 409, "ResourceInUse", "Off"}, {"ForceOn", 204, "", "PoweringOn"}, {"On", 409, "ResourceInUse", "On"}, {"ForceOff", 204, "", "PoweringOff"},
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.policy), func(t *testing.T) {
			h := newHost(t)
			h.d.RedundantReset = tt.policy
			s := newService(t, h)
			for i, st := range tt.steps {
				body := fmt.Sprintf(`{"ResetType":%q}`, st.kind)
				w := call(t, s, "operator", "POST", sys+"/Actions/ComputerSystem.Reset", body)
				if w.Code != st.status {
					t.Fatalf("step %d: %s; want %d", i, shape("POST", "Reset", body, w), st.status)
				}
				if st.key != "" {
					if keys, _ := errorOf(t, w); keys[0] != st.key {
						t.Errorf("step %d: %s: %s, want %s", i, body, keys[0], st.key)
					}
				}
				if got, _ := get(t, s, sys); got["PowerState"] != st.power {
					t.Errorf("step %d: PowerState after %s = %v, want %s", i, body, got["PowerState"], st.power)
				}
				h.pass(10 * time.Minute)
			}
		})
	}
}

func TestResetDuringPowerTransitionIsRejected(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	reset := func(kind string) *httptest.ResponseRecorder {
		return call(t, s, "admin", "POST", sys+"/Actions/ComputerSystem.Reset", fmt.Sprintf(`{"ResetType":%q}`, kind))
	}
	reset("On")
	if w := reset("On"); w.Code != 204 {
		t.Errorf("On while powering on = %d, want 204", w.Code)
	}
	if w := reset("GracefulRestart"); w.Code != 409 {
		t.Errorf("GracefulRestart while powering on = %d, want 409", w.Code)
	}
	reset("ForceOff")
	w := reset("On")
	if keys, _ := errorOf(t, w); w.Code != 409 || keys[0] != "ResourceInUse" {
		t.Errorf("On while powering off: %s", shape("POST", "Reset", "", w))
	}
}

func TestBootOverrideOnceIsClearedByBoot(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	want := map[string]any{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Cd", "BootSourceOverrideMode": "Legacy"}
	body, err := json.Marshal(map[string]any{"Boot": want})
	must(t, err)
	w := call(t, s, "operator", "PATCH", sys, string(body))
	if w.Code != 200 {
		t.Fatalf("%s", shape("PATCH", sys, string(body), w))
	}
	read := func() map[string]any {
		all, _ := get(t, s, sys)
		got := map[string]any{}
		for name := range want {
			got[name] = all["Boot"].(map[string]any)[name]
		}
		return got
	}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("Boot after PATCH (-want +got):\n%s", diff)
	}
	call(t, s, "operator", "POST", sys+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
	h.pass(10 * time.Minute)
	want = map[string]any{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "Legacy"}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("Boot after a boot (-want +got):\n%s", diff)
	}
}

func TestPatchWithSomeInvalidPropertiesReturns200WithExtendedInfo(t *testing.T) {
	s := newService(t, newHost(t))
	w := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Pxe"},"BogusProp":"x","PowerState":"On"}`)
	var got struct {
		ETag     string `json:"@odata.etag"`
		All      []info `json:"@Message.ExtendedInfo"`
		Bogus    []info `json:"BogusProp@Message.ExtendedInfo"`
		Readonly []info `json:"PowerState@Message.ExtendedInfo"`
		Boot     struct{ BootSourceOverrideTarget string }
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &got))
	if w.Code != 200 || len(got.All) != 2 || len(got.Bogus) != 1 || len(got.Readonly) != 1 || got.Boot.BootSourceOverrideTarget != "Pxe" {
		t.Fatalf("%s", shape("PATCH", sys, "", w))
	}
	if _, etag := get(t, s, sys); etag != got.ETag || etag != w.Header().Get("ETag") {
		t.Errorf("ETag %s, in the answer %s and %s", etag, got.ETag, w.Header().Get("ETag"))
	}
	if _, err := openBundle(); err == nil {
		newSchemas(t).check(t, "partial success", "ComputerSystem.v1_27_0", w.Body.Bytes())
	}
}

func TestBootOverrideWithInvalidTargetChangesNothing(t *testing.T) {
	s := newService(t, newHost(t))
	_, before := get(t, s, sys)
	w := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideTarget":"Moon"}}`)
	if _, after := get(t, s, sys); w.Code != 400 || after != before {
		t.Errorf("%s; ETag %s before, %s after", shape("PATCH", sys, "", w), before, after)
	}
}

func TestVirtualMediaInsertAndEject(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	slot := sys + "/VirtualMedia/Cd"
	insert, eject := slot+"/Actions/VirtualMedia.InsertMedia", slot+"/Actions/VirtualMedia.EjectMedia"
	do := func(uri, body string, want int) *httptest.ResponseRecorder {
		t.Helper()
		w := call(t, s, "admin", "POST", uri, body)
		if w.Code != want {
			t.Fatalf("%s; want %d", shape("POST", uri, body, w), want)
		}
		return w
	}
	_, empty := get(t, s, slot)
	do(eject, "", 204)
	do(insert, `{"Image":"http://images.test/live.iso?x=1","Inserted":true,"WriteProtected":true,"TransferMethod":"Stream","TransferProtocolType":"HTTP"}`, 204)
	got, _ := get(t, s, slot)
	for name, want := range map[string]any{
		"Image": "http://images.test/live.iso?x=1", "ImageName": "live.iso", "Inserted": true, "ConnectedVia": "URI", "WriteProtected": true, "TransferProtocolType": "HTTP",
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if keys, _ := errorOf(t, do(insert, `{"Image":"http://images.test/other.iso"}`, 409)); keys[0] != "ResourceInUse" {
		t.Errorf("insert into a slot in use: %s", keys[0])
	}
	do(eject, `{}`, 204)
	if _, etag := get(t, s, slot); etag != empty {
		t.Errorf("ETag of the slot after eject %s, before insert %s", etag, empty)
	}
}

func TestInsertMediaReportsWhyImageIsUnavailable(t *testing.T) {
	for _, tt := range []struct {
		fails error
		key   string
	}{
		{bmc.ErrMedia, "CouldNotEstablishConnection"},
		{&bmc.MediaError{Fault: bmc.Unreachable, Err: errors.New("refused")}, "CouldNotEstablishConnection"},
		{&bmc.MediaError{Fault: bmc.Absent, Err: errors.New("404 Not Found")}, "ResourceMissingAtURI"},
		{&bmc.MediaError{Fault: bmc.Denied, Err: errors.New("401 Unauthorized")}, "ResourceAtUriUnauthorized"},
		{&bmc.MediaError{Fault: bmc.Protocol, Err: errors.New("no TLS")}, "SourceDoesNotSupportProtocol"},
		{&bmc.MediaError{Fault: bmc.Format, Err: errors.New("a web page")}, "ResourceAtUriInUnknownFormat"},
	} {
		h := newHost(t)
		h.fetch = func() error { return tt.fails }
		s := newService(t, h)
		_, before := get(t, s, sys+"/VirtualMedia/Cd")
		w := call(t, s, "admin", "POST", sys+"/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", `{"Image":"https://u:hush@images.test/x.iso"}`)
		keys, infos := errorOf(t, w)
		if w.Code != 400 || keys[0] != tt.key || infos[0].Related[0] != "#/Image" || strings.Contains(w.Body.String(), "hush") {
			t.Errorf("%v: %s; want 400 and %s", tt.fails, shape("POST", "InsertMedia", "", w), tt.key)
		}
		if _, after := get(t, s, sys+"/VirtualMedia/Cd"); after != before {
			t.Errorf("%v: the slot has changed", tt.fails)
		}
	}
}

func TestRequestsAreServedWhileImageIsFetched(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	begun, end := make(chan struct{}), make(chan struct{})
	h.fetch = func() error { close(begun); <-end; return nil }
	done := make(chan int)
	go func() {
		done <- call(t, s, "admin", "POST", sys+"/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", `{"Image":"http://images.test/x.iso"}`).Code
	}()
	<-begun
	if w := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`); w.Code != 200 {
		t.Errorf("%s", shape("PATCH", sys, "", w))
	}
	if got, _ := get(t, s, sys+"/VirtualMedia/Cd"); got["Inserted"] != false || got["Image"] != nil {
		t.Errorf("while being fetched: Inserted %v, Image %v", got["Inserted"], got["Image"])
	}
	close(end)
	if code := <-done; code != 204 {
		t.Errorf("insert = %d", code)
	}
}

func TestIfMatchAndIfNoneMatch(t *testing.T) {
	for _, tt := range []struct {
		header string // %s is the ETag
		want   int
	}{
		{`%s`, 200}, {`*`, 200}, {`"a", %s`, 200}, {`"a" , W/"b",%s`, 200},
		{`"bogus"`, 412}, {`W/%s`, 412}, {`bogus`, 412}, {`"`, 412}, {`"a","b"`, 412},
	} {
		s := newService(t, newHost(t))
		_, etag := get(t, s, sys)
		header := strings.ReplaceAll(tt.header, "%s", etag)
		w := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`, "If-Match", header)
		if w.Code != tt.want {
			t.Errorf("If-Match: %s: %s; want %d", header, shape("PATCH", sys, "", w), tt.want)
		}
		if _, now := get(t, s, sys); (now != etag) != (tt.want == 200) {
			t.Errorf("If-Match: %s: ETag %s before, %s after", header, etag, now)
		}
		if tt.want == 412 {
			errorOf(t, w)
		}
	}
}

func TestConcurrentPatchesWithSameETagOneSucceeds(t *testing.T) {
	s := newService(t, newHost(t))
	_, etag := get(t, s, sys)
	codes := make(chan int, 50)
	var wg sync.WaitGroup
	for i := range cap(codes) {
		wg.Go(func() {
			target := []string{"Pxe", "Cd", "Hdd"}[i%3]
			call(t, s, "reader", "GET", sys, "") // beside the writers
			codes <- call(t, s, "admin", "PATCH", sys, fmt.Sprintf(`{"Boot":{"BootSourceOverrideTarget":%q}}`, target), "If-Match", etag).Code
		})
	}
	wg.Wait()
	close(codes)
	got := map[int]int{}
	for c := range codes {
		got[c]++
	}
	if diff := cmp.Diff(map[int]int{200: 1, 412: cap(codes) - 1}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestETagChangesOnlyWithRepresentation(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	_, before := get(t, s, sys)
	logIn(t, s, "admin") // changes the BMC, which the system does not show
	if _, now := get(t, s, sys); now != before {
		t.Errorf("ETag of the system after a login %s, before %s", now, before)
	}
	call(t, s, "admin", "POST", sys+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
	_, on := get(t, s, sys)
	if on == before {
		t.Error("ETag of the system is the same when it is switched on")
	}
	if _, etag := get(t, newService(t, newHost(t)), sys); etag != before {
		t.Errorf("ETag of a twin %s, want %s", etag, before)
	}
}

func TestHostFailureReturns500AndIsLogged(t *testing.T) {
	h := newHost(t)
	h.fail = errors.New("store: disk full")
	var log bytes.Buffer
	var entries []Entry
	entered, left := 0, 0
	s, err := New(Config{
		Rack: rack{h}, Log: slog.New(slog.NewTextHandler(&log, nil)), Journal: func(_ context.Context, e Entry) { entries = append(entries, e) },
		Enter: func() { entered++ }, Leave: func() { left++ },
	})
	must(t, err)
	w := call(t, s, "operator", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`)
	if keys, _ := errorOf(t, w); w.Code != 500 || keys[0] != "InternalError" || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("%s", shape("PATCH", sys, "", w))
	}
	if !strings.Contains(log.String(), "disk full") || strings.Contains(log.String(), "secret") {
		t.Errorf("log:\n%s", log.String())
	}
	want := []Entry{{
		At: h.now, Host: h, From: "192.0.2.1", Method: "PATCH", Path: sys, Status: 500, User: "operator",
		In: int64(len(`{"Boot":{"BootSourceOverrideTarget":"Cd"}}`)), Out: int64(w.Body.Len()),
	}}
	if !slices.Equal(entries, want) {
		t.Errorf("journal: %+v, want %+v", entries, want)
	}
	if entered != 1 || left != 1 {
		t.Errorf("entered %d, left %d", entered, left)
	}
}

func TestHostErrorsMapToHTTPStatus(t *testing.T) {
	for _, tt := range []struct {
		fails  error
		status int
		key    string
	}{
		{fmt.Errorf("lab: %w", ErrBusy), 503, "ServiceTemporarilyUnavailable"},
		{context.Canceled, 503, "ServiceTemporarilyUnavailable"},
		{context.DeadlineExceeded, 503, "OperationTimeout"},
		{bmc.ErrNotFound, 404, "ResourceMissingAtURI"},
	} {
		h := newHost(t)
		h.fail = tt.fails
		w := call(t, newService(t, h), "admin", "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":60}`)
		keys, _ := errorOf(t, w)
		if w.Code != tt.status || keys[0] != tt.key || (w.Header().Get("Retry-After") != "") != (tt.status == 503) {
			t.Errorf("%v: %s; want %d %s", tt.fails, shape("PATCH", "SessionService", "", w), tt.status, tt.key)
		}
	}
}
