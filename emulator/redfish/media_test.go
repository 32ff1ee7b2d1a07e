package redfish

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

const usb = sys + "/VirtualMedia/Usb"

func TestInsertMediaParametersAreShown(t *testing.T) {
	s := newService(t, newHost(t))
	converse(t, s, step{"admin", "POST", usb + "/Actions/VirtualMedia.InsertMedia",
		`{"Image":"https://images.test/a.img","WriteProtected":false,"TransferMethod":"Stream","TransferProtocolType":"HTTPS","UserName":"u","Password":"hush"}`, nil, 204, ""})
	w := call(t, s, "admin", "GET", usb, "")
	got := decoded(t, w)
	for name, want := range map[string]any{
		"WriteProtected": false, "TransferMethod": "Stream", "TransferProtocolType": "HTTPS", "UserName": "u", "Password": nil, "Inserted": true,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if strings.Contains(w.Body.String(), "hush") {
		t.Errorf("the slot shows a password: %s", w.Body)
	}
}

func TestMediaInsertByPatch(t *testing.T) {
	for _, patched := range []bool{false, true} {
		h := newHost(t)
		h.d.Media.InsertByPatch = patched
		s := newService(t, h)
		slot := sys + "/VirtualMedia/Cd"
		body, _ := get(t, s, slot)
		if _, has := body["Actions"]; has == patched {
			t.Errorf("actions: %t in a dialect that patches: %t", has, patched)
		}
		if patched {
			converse(t, s, step{"admin", "POST", slot + "/Actions/VirtualMedia.EjectMedia", "", nil, 404, ""})
		}
		converse(t, s,
			step{"operator", "PATCH", slot, `{"Image":"http://images.test/a.iso"}`, nil, 403, "InsufficientPrivilege"},
			step{"admin", "PATCH", slot, `{"Inserted":true}`, nil, 400, "PropertyValueConflict"},
			step{"admin", "PATCH", slot, `{"WriteProtected":true}`, nil, 400, "PropertyValueConflict"},
			step{"admin", "PATCH", slot, `{"Image":"http://images.test/a.iso","Inserted":false}`, nil, 400, "PropertyValueConflict"},
			step{"admin", "PATCH", slot, `{"Image":"http://images.test/a.iso","WriteProtected":false}`, nil, 400, "PropertyValueConflict"},
			step{"admin", "PATCH", slot, `{"Image":"cifs://images.test/a.iso"}`, nil, 400, "SourceDoesNotSupportProtocol"},
			step{"admin", "PATCH", slot, `{"Image":"a.iso"}`, nil, 400, "PropertyValueFormatError"},
			step{"admin", "PATCH", slot, `{"Image":"http://images.test/a.iso","Inserted":true,"WriteProtected":true}`, nil, 200, ""},
			step{"admin", "PATCH", slot, `{"Image":"http://images.test/b.iso"}`, nil, 409, "ResourceInUse"},
			step{"admin", "PATCH", slot, `{"Inserted":true}`, nil, 200, ""},
		)
		if body, _ := get(t, s, slot); body["Image"] != "http://images.test/a.iso" || body["Inserted"] != true {
			t.Errorf("after the insertion: %v", body)
		}
		// gofish sends the last of these to a slot without EjectMedia.
		for _, eject := range []string{`{"Image":null}`, `{"Inserted":false}`, `{"Inserted":false,"WriteProtected":false}`} {
			converse(t, s,
				step{"admin", "PATCH", slot, eject, nil, 200, ""},
				step{"admin", "PATCH", slot, eject, nil, 200, ""},
			)
			if body, _ := get(t, s, slot); body["Image"] != nil || body["Inserted"] != false {
				t.Errorf("after %s: %v", eject, body)
			}
			converse(t, s, step{"admin", "PATCH", slot, `{"Image":"http://images.test/a.iso"}`, nil, 200, ""})
		}
	}
}

func TestVerifyCertificateSurvivesEject(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	slot := sys + "/VirtualMedia/Cd"
	converse(t, s,
		step{"admin", "PATCH", slot, `{"VerifyCertificate":true}`, nil, 200, ""},
		step{"admin", "POST", slot + "/Actions/VirtualMedia.InsertMedia", `{"Image":"https://images.test/a.iso"}`, nil, 204, ""},
		step{"admin", "POST", slot + "/Actions/VirtualMedia.EjectMedia", "", nil, 204, ""},
	)
	if body, _ := get(t, s, slot); body["VerifyCertificate"] != true {
		t.Errorf("VerifyCertificate = %v", body["VerifyCertificate"])
	}
	if body, _ := get(t, s, usb); body["VerifyCertificate"] != false {
		t.Errorf("VerifyCertificate of another slot = %v", body["VerifyCertificate"])
	}
}

// A BMC that answers InsertMedia with 202 reports the result in a task.
func TestAsyncInsertMediaReturnsTask(t *testing.T) {
	for _, fault := range []error{nil, &bmc.MediaError{Fault: bmc.Absent, Err: errors.New("404")}} {
		h := newHost(t)
		h.d.Media.AsyncInsert = true
		hold := make(chan struct{})
		h.fetch = func() error { <-hold; return fault }
		s := newService(t, h)
		w := call(t, s, "admin", "POST", usb+"/Actions/VirtualMedia.InsertMedia", `{"Image":"http://images.test/a.img","Password":"hush"}`)
		if w.Code != 202 || w.Header().Get("Location") == "" || w.Header().Get("Preference-Applied") != "" {
			t.Fatalf("%s", shape("POST", usb, "", w))
		}
		monitor := w.Header().Get("Location")
		if w := call(t, s, "admin", "GET", monitor, ""); w.Code != 202 {
			t.Errorf("%s; want 202 while the image comes", shape("GET", monitor, "", w))
		}
		close(hold)
		want := 204
		if fault != nil {
			want = 500 // OperationFailed, with the message of the synchronous response
		}
		var end int
		for range 10_000 { // until the background work has ended
			w = call(t, s, "admin", "GET", monitor, "")
			if end = w.Code; end != 202 {
				break
			}
		}
		if end != want && !(want == 204 && end == 200) {
			t.Errorf("%v: %s; want %d", fault, shape("GET", monitor, "", w), want)
		}
		if strings.Contains(w.Body.String(), "hush") {
			t.Errorf("the response shows a secret: %s", w.Body)
		}
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
