package redfish_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// The error contains the message of the service, whatever its form.
func TestErrorTextAndKind(t *testing.T) {
	s := newServer(t)
	c := s.open()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		err    error  // nil: no error that callers branch on
		text   string // at the end of the message
	}{
		{"standard", 403,
			`{"error":{"message":"see below","@Message.ExtendedInfo":[{"MessageId":"Base.1.8.InsufficientPrivilege","Message":"There are insufficient privileges."},{"MessageId":"Base.1.8.X","Message":"And more."}]}}`,
			bmc.ErrUnauthorized, ": 403 Forbidden: There are insufficient privileges.; And more."},
		{"no list (iDRAC)", 400,
			`{"error":{"@Message.ExtendedInfo":{"MessageId":"IDRAC.1.6.SWC0242","Message":"A required license is missing."}}}`,
			nil, ": 400 Bad Request: A required license is missing."},
		{"text for a list (iDRAC)", 400,
			`{"error":{"@Message.ExtendedInfo":"Something is wrong."}}`,
			nil, ": 400 Bad Request: Something is wrong."},
		{"no text (iLO)", 400,
			`{"error":{"code":"iLO.0.10.ExtendedInfo","@Message.ExtendedInfo":[{"MessageId":"iLO.2.14.InvalidOperationForSystemState","MessageArgs":["a",1]}]}}`,
			bmc.ErrBusy, ": 400 Bad Request: iLO.2.14.InvalidOperationForSystemState a, 1"},
		{"no licence (iLO)", 403,
			`{"error":{"@Message.ExtendedInfo":[{"MessageId":"iLO.2.14.LicenseKeyRequired"}]}}`,
			bmc.ErrUnsupported, ": 403 Forbidden: iLO.2.14.LicenseKeyRequired"},
		{"two documents", 403,
			`{"error":{"@Message.ExtendedInfo":[{"MessageId":"SMC.1.0.OemLicenseNotPassed","Message":"Not licensed to perform this request."}]}} {"error":{}}`,
			bmc.ErrUnsupported, ": 403 Forbidden: Not licensed to perform this request."},
		{"not ready, as 400 (iDRAC)", 400,
			`{"error":{"@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.8.SWC0700","Message":"iDRAC is not ready."}]}}`,
			bmc.ErrUnreachable, ": 400 Bad Request: iDRAC is not ready."},
		{"message alone", 500, `{"error":{"message":"internal"}}`, nil, ": 500 Internal Server Error: internal"},
		{"text", 500, "no\nmemory\x00", nil, ": 500 Internal Server Error: no memory"},
		{"a web page", 502, "<html>Bad gateway</html>", bmc.ErrUnreachable, ": 502 Bad Gateway"},
		{"nothing", 500, "", nil, ": 500 Internal Server Error"},
		{"the password", 400, `{"error":{"message":"login admin:s3cret-Pa55 failed"}}`, nil, "login admin:… failed"},
		{"a medium's token", 400, `{"error":{"message":"cannot fetch http://192.0.2.1/boot/b/agent.iso?token=abc&filename=agent.iso, nor https://u:p@h/x"}}`, nil, "cannot fetch http://192.0.2.1/boot/b/agent.iso?… nor https://…@h/x"},
		{"long", 500, strings.Repeat("ä", 1000), nil, "ä…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.route("GET "+systemPath, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			_, err := c.System(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "redfish: ") || !strings.HasSuffix(err.Error(), tt.text) {
				t.Fatalf("System() error = %v, want one that ends in %q", err, tt.text)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("System() error has %d bytes", len(err.Error()))
			}
			for _, kind := range []error{bmc.ErrUnauthorized, bmc.ErrUnreachable, bmc.ErrUntrusted, bmc.ErrNoSystem, bmc.ErrUnsupported} {
				if errors.Is(err, kind) != errors.Is(tt.err, kind) {
					t.Errorf("System() error = %v, want kind %v", err, tt.err)
				}
			}
		})
	}
}
