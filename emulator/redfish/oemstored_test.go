package redfish

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

func TestStoredOEMResourceExistsUntilDeleted(t *testing.T) {
	const at = "/redfish/v1/Managers/1/Oem/Acme/Report"
	s, h := owned(t, dialect.OEM{
		Resources: []dialect.Resource{
			{URI: at, Type: "AcmeReport.v1_0_0.AcmeReport", Name: "Report", StoredAs: "report", PassedMethods: []string{"DELETE"}},
			{URI: "/redfish/v1/Managers/{manager}/Oem/Acme/Mood", Type: "AcmeMood.v1_0_0.AcmeMood", Name: "Mood",
				Set: []dialect.PropertyRule{{Path: "Is", From: "=mood"}, {Path: "Last", From: "/redfish/v1/AccountService/Roles#Members/-1/@odata.id"}}},
		},
		Actions: []dialect.Action{{ResourceURI: "/redfish/v1/Managers/{manager}", Name: "Acme.Report", Target: "/report", Hidden: true, Effects: []dialect.Effect{{
			Hook: func(c dialect.ActionCall) (dialect.Effect, error) {
				return dialect.Effect{
					Store: map[string]any{"report": map[string]any{"About": c.Query.Get("about")}},
					Task:  "report", Body: map[string]any{"Ticket": map[string]any{"Number": "{job}"}},
				}, nil
			},
		}}}},
		WritableProperties: []dialect.WritableProperty{{ResourceType: "AcmeMood", Path: "Is", Effects: []dialect.Effect{{Store: map[string]any{"mood": "$"}}}}},
	}, dialect.Presentation{})
	answersWith(t, s, step{"admin", "GET", at, "", nil, 404, ""}, step{"admin", "DELETE", at, "", nil, 404, ""})
	w := call(t, s, "admin", "POST", "/redfish/v1/Managers/1/report?about=heat", "")
	if ticket := decoded(t, w)["Ticket"].(map[string]any); w.Code != 202 || ticket["Number"] != "1" || !strings.HasSuffix(w.Header().Get("Location"), "/1") {
		t.Error(shape("POST", "report", "", w))
	}
	h.carrying.Wait()
	if o, _ := get(t, s, at); o["About"] != "heat" || o["Name"] != "Report" {
		t.Errorf("%v", o)
	}
	answersWith(t, s, step{"reader", "DELETE", at, "", nil, 403, ""}, step{"admin", "DELETE", at, "", nil, 204, ""}, step{"admin", "GET", at, "", nil, 404, ""},
		// A client may send back the complete representation that it has read.
		step{"admin", "PATCH", "/redfish/v1/Managers/1/Oem/Acme/Mood", `{"@odata.etag":"x","Is":"good"}`, nil, 200, ""})
	if o, _ := get(t, s, "/redfish/v1/Managers/1/Oem/Acme/Mood"); o["Is"] != "good" || o["Last"] != "/redfish/v1/AccountService/Roles/ReadOnly" {
		t.Errorf("%v", o)
	}
}
