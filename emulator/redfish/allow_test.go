package redfish

import (
	"net/http"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect/idrac"
	"github.com/metalab-dev/metalab/emulator/dialect/openbmc"
)

// TestAllowOmitsMethodsThatAVendorRefuses shows that a 405 of a dialect's rule has
// Allow, and that neither it nor that of a GET lists the method (RFC 9110, §15.5.6).
func TestAllowOmitsMethodsThatAVendorRefuses(t *testing.T) {
	for _, tt := range []struct {
		s           *Service
		method, uri string
		allow       string
	}{
		{s: first(newVendorHost(t, &idrac.Eight, "dell-r730")), method: "POST", uri: "/redfish/v1/Sessions", allow: "GET, HEAD, OPTIONS"},
		{s: first(newVendorHost(t, &idrac.Nine, "dell-r640")), method: "BREW", uri: "/redfish/v1/", allow: "GET, HEAD, OPTIONS"},
		{s: first(newVendorHost(t, &idrac.Ten, "dell-r770")), method: "TRACE", uri: "/redfish/v1/Systems/System.Embedded.1", allow: "GET, HEAD, PATCH, OPTIONS"},
		{s: first(newVendorHost(t, &openbmc.Record, "openbmc-tiogapass")), method: "PATCH", uri: "/redfish/v1/Systems/system/Bios", allow: "GET, HEAD, OPTIONS"},
	} {
		if w := call(t, tt.s, "admin", tt.method, tt.uri, `{"UserName":"a","Password":"b"}`); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s, Allow %q, want %q", shape(tt.method, tt.uri, "", w), w.Header().Get("Allow"), tt.allow)
		}
		for _, method := range []string{"GET", "OPTIONS"} {
			if w := call(t, tt.s, "admin", method, tt.uri, ""); w.Code >= 300 || strings.Contains(w.Header().Get("Allow"), tt.method) {
				t.Errorf("%s %s: Allow %q", method, tt.uri, w.Header().Get("Allow"))
			}
		}
	}
}

func first(s *Service, _ *host) *Service { return s }
