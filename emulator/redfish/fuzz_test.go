package redfish

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"testing"
)

// fuzzed sends a body and checks that the answer is one that DSP0266 knows:
// never a failure of the service, and an error response when it is an error.
func fuzzed(t *testing.T, s *Service, method, path, body string) {
	t.Helper()
	w := call(t, s, "admin", method, path, body)
	switch {
	case w.Code >= 500 || w.Code < 200:
		t.Fatalf("%s", shape(method, path, body, w))
	case w.Code >= 400:
		errorOf(t, w)
	case w.Code == 200 && !json.Valid(w.Body.Bytes()):
		t.Fatalf("%s", shape(method, path, body, w))
	}
}

func FuzzPatch(f *testing.F) {
	for _, body := range []string{
		`{"Boot":{"BootSourceOverrideTarget":"Pxe"}}`, `{"Boot":{"BootSourceOverrideEnabled":"Once"},"X/~":[{}]}`, `{"SessionTimeout":3e1}`,
		`{"SessionTimeout":1e999}`, `{"@odata.id":1}`, `{"":{}}`, `{"Boot":{"":null}}`, `[]`, `{"a":1,"a":2}`, "{\"\xff\":\"\xff\"}", `{"Name":{"Boot":[[[]]]}}`,
		`{"Boot":{"BootSourceOverrideTarget":"Pxe"},"Status":{"State":"x"}}`, `{"Boot":{"BootSourceOverrideTarget":"Pxe"},"Boot":1}`,
	} {
		f.Add(body)
	}
	s := newService(f, newHost(f))
	f.Fuzz(func(t *testing.T, body string) {
		fuzzed(t, s, "PATCH", sys, body)
		fuzzed(t, s, "PATCH", "/redfish/v1/SessionService", body)
	})
}

func FuzzAction(f *testing.F) {
	for _, body := range []string{
		`{"ResetType":"On"}`, `{"ResetType":"Nmi","x":1}`, `{"Image":"http://a/b.iso"}`, `{"Image":"https://u:p@[::1]:8/b.iso","Password":"x"}`,
		`{"Image":"http://%zz/","Inserted":0}`, `{"Image":"://@"}`, `{"UserName":"admin","Password":"adm-secret-1"}`, ``, `null`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := newService(t, newHost(t))
		fuzzed(t, s, "POST", sys+"/Actions/ComputerSystem.Reset", body)
		fuzzed(t, s, "POST", sys+"/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", body)
		fuzzed(t, s, "POST", sys+"/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia", body)
		fuzzed(t, s, "POST", sessions, body)
	})
}

func FuzzPath(f *testing.F) {
	for _, path := range []string{"/redfish/v1/", "/redfish/v1/Systems/1/Storage/1/Drives/Disk.0", "/redfish/v1/Systems/1/", "/redfish/v1/%2f", "/redfish/v1/Systems/1?$top", "/{system}"} {
		f.Add(path)
	}
	s := newService(f, newHost(f))
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			t.Skip()
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = u
		r.SetBasicAuth(accounts[0].Name, accounts[0].Password)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != 501 {
			t.Fatalf("%s", shape("GET", path, "", w))
		}
	})
}
