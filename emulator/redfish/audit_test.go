package redfish

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// acts returns the requests in the audit log of a host.
func acts(h *host) []string {
	var out []string
	for e := range h.BMC().Audit.Entries() {
		if e.Kind == event.RequestAudited {
			out = append(out, strings.Join(e.Args, " "))
		}
	}
	return out
}

func TestAuditLogRecordsEveryWrite(t *testing.T) {
	h := newHost(t)
	h.audits = true
	s := newService(t, h)
	get(t, s, sys)
	call(t, s, "", "GET", sys, "")
	call(t, s, "admin", "PATCH", sys, `{"AssetTag":"x"}`)
	call(t, s, "admin", "PATCH", sys, `{"Nothing":"x"}`)
	call(t, s, "operator", "PATCH", resource.AccountURI("3"), `{"Password":"hush-hush-9"}`)
	call(t, s, "", "DELETE", resource.AccountURI("3"), "")
	call(t, s, "", "PATCH", sys, `{"AssetTag":"x"}`, basic("admin", "hush-hush-9")...)
	call(t, s, "admin", "PUT", sys, `{}`)
	call(t, s, "admin", "POST", "/redfish/v1/Nothing", `{}`)
	call(t, s, "admin", "PATCH", sys, `{"AssetTag":"y"}`, "If-Match", `"none"`)
	call(t, s, "admin", "POST", sys+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
	call(t, s, "admin", "POST", resource.AccountsURI, `{"UserName":"new","Password":"hush-hush-9","RoleId":"Operator"}`)
	token, session := logIn(t, s, "operator")
	call(t, s, "", "DELETE", session, "", "X-Auth-Token", token)
	const from = " 192.0.2.1"
	want := []string{
		"PATCH " + sys + " 200 admin " + from,
		"PATCH " + sys + " 400 admin " + from,
		"PATCH " + resource.AccountURI("3") + " 403 operator " + from,
		"DELETE " + resource.AccountURI("3") + " 401  " + from,
		"PATCH " + sys + " 401  " + from,
		"PUT " + sys + " 405 admin " + from,
		"POST /redfish/v1/Nothing 404 admin " + from,
		"PATCH " + sys + " 412 admin " + from,
		"POST " + sys + "/Actions/ComputerSystem.Reset 204 admin " + from,
		"POST " + resource.AccountsURI + " 201 admin " + from,
		"POST " + sessions + " 201 operator " + from,
		"DELETE " + session + " 204 operator 1" + from,
	}
	if diff := cmp.Diff(want, acts(h)); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	for e := range h.BMC().Audit.Entries() {
		if strings.Contains(e.Text(), "hush") {
			t.Errorf("the audit log holds a secret: %s", e.Text())
		}
	}
}
