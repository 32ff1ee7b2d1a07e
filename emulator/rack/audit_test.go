package rack_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// send sends a request as a host's administrator, and returns the status.
func send(t *testing.T, l *racktest.Rack, h *rack.Host, method, path, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(l.Credentials(h))
	r.Header.Set("Content-Type", "application/json")
	w, err := l.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	w.Body.Close()
	return w.StatusCode
}

func audited(h *rack.Host) []string {
	var out []string
	for e := range h.BMC().Audit.Entries() {
		if e.Kind == event.RequestAudited {
			out = append(out, strings.Join(e.Args[:4], " "))
		}
	}
	return out
}

// A change and its audit entry are one step. A request that changes nothing, or
// fails late, is logged with the status of its answer.
func TestWritesAreInTheAuditLog(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	h := l.First()
	const sys = "/redfish/v1/Systems/1"
	reset := sys + "/Actions/ComputerSystem.Reset"
	insert := sys + "/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
	var want []string
	for _, tt := range []struct {
		method, path, body string
		status             string
	}{
		{"PATCH", sys, `{"AssetTag":"x"}`, "200"},
		{"PATCH", sys, `{"Bogus":"x"}`, "400"},
		{"POST", reset, `{"ResetType":"On"}`, "204"},
		{"POST", reset, `{"ResetType":"Dance"}`, "400"},
		{"POST", insert, `{"Image":"http://127.0.0.1:1/x.iso"}`, "400"},
		{"DELETE", sys, "", "405"},
	} {
		if got := send(t, l, h, tt.method, tt.path, tt.body); strconv.Itoa(got) != tt.status {
			t.Errorf("%s %s %s = %d, want %s", tt.method, tt.path, tt.body, got, tt.status)
		}
		want = append(want, tt.method+" "+tt.path+" "+tt.status+" admin")
	}
	if diff := cmp.Diff(want, audited(h)); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
	l.Stop()
	l = racktest.Start(t, rack.Config{Dir: dir})
	if diff := cmp.Diff(want, audited(l.First())); diff != "" {
		t.Errorf("audit log after a restart (-want +got):\n%s", diff)
	}
	if _, err := l.First().ApplyBMC(t.Context(), bmc.ClearLog{Log: bmc.AuditLog}); err != nil || len(audited(l.First())) != 0 {
		t.Errorf("ClearLog: %v, %q", err, audited(l.First()))
	}
}
