package redfish

import (
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestHTTPRedirectsToHTTPS(t *testing.T) {
	for _, tt := range []struct {
		method, url string
		port        uint16 // 0: no BMC there
		status      int
		location    string
	}{
		{"GET", "http://127.64.0.1/redfish/v1/Systems?$top=1", 443, 301, "https://127.64.0.1/redfish/v1/Systems?$top=1"},
		{"HEAD", "http://bmc.test:80/redfish", 8443, 301, "https://bmc.test:8443/redfish"},
		{"POST", "http://bmc.test/redfish/v1/SessionService/Sessions", 8443, 308, "https://bmc.test:8443/redfish/v1/SessionService/Sessions"},
		{"GET", "http://bmc.test/redfish", 0, 404, ""},
	} {
		h := Redirect(func(netip.AddrPort) (uint16, bool) { return tt.port, tt.port != 0 })
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.url, nil))
		if w.Code != tt.status || w.Header().Get("Location") != tt.location || w.Body.Len() > 0 {
			t.Errorf("%s %s = %d, Location %q, want %d, %q", tt.method, tt.url, w.Code, w.Header().Get("Location"), tt.status, tt.location)
		}
	}
}
