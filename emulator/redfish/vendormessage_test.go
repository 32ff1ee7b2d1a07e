package redfish

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/idrac"
)

func TestVendorMessagesReplaceStandardOnes(t *testing.T) {
	h := newHost(t)
	h.d.BMC.Sessions = 1
	h.d.Protocol.Messages = map[string]dialect.VendorMessage{
		"SessionLimitExceeded": {Registry: "VENDOR", Version: "2.8.0", Key: "RAC1", Text: "No more logins.", Resolution: "Log out.", Status: 400},
		"PropertyUnknown":      {Registry: "VENDOR", Version: "2.8.0", Key: "SYS2", Text: "What is %1?", Resolution: "None."},
	}
	h.bmc = bmc.New(&h.d.BMC, accounts, nil)
	h.bmcChanged()
	s := newService(t, h)
	logIn(t, s, "admin")
	w := call(t, s, "", "POST", sessions, `{"UserName":"admin","Password":"adm-secret-1"}`)
	if w.Code != 400 || !strings.Contains(w.Body.String(), `"code":"VENDOR.2.8.RAC1","message":"No more logins."`) {
		t.Errorf("%s", shape("POST", sessions, "", w))
	}
	w = call(t, s, "admin", "PATCH", sys, `{"Bogus":1}`)
	if w.Code != 400 || !strings.Contains(w.Body.String(), `"Message":"What is Bogus?","MessageArgs":["Bogus"],"RelatedProperties":["#/Bogus"]`) {
		t.Errorf("%s", shape("PATCH", sys, "", w))
	}
}

// TestIDRAC10ShowsTheMessageOfBaseFirst shows both messages of an error in the order of each
// generation, with their lists (issue 1017 of dellemc.openmanage).
func TestIDRAC10ShowsTheMessageOfBaseFirst(t *testing.T) {
	for _, tt := range []struct {
		d       *dialect.Record
		profile string
		ids     []string
		counts  bool
	}{
		{&idrac.Nine, "dell-r640", []string{"IDRAC.2.8.SYS403", "Base.1.12.ResourceMissingAtURI"}, true},
		{&idrac.Ten, "dell-r770", []string{"Base.1.18.ResourceMissingAtURI", "IDRAC.2.11.SYS403"}, false},
	} {
		s, _ := newVendorHost(t, tt.d, tt.profile)
		var body struct {
			Error struct {
				Info []map[string]any `json:"@Message.ExtendedInfo"`
			}
		}
		must(t, json.Unmarshal(call(t, s, "admin", "GET", "/redfish/v1/None", "").Body.Bytes(), &body))
		var ids []string
		for _, m := range body.Error.Info {
			ids = append(ids, m["MessageId"].(string))
			if _, lists := m["RelatedProperties"].([]any); !lists {
				t.Errorf("%s: %v has no RelatedProperties", tt.d.Name, m)
			}
			if _, counts := m["RelatedProperties@odata.count"]; counts != tt.counts {
				t.Errorf("%s: %v has a count: %v, want %v", tt.d.Name, m, counts, tt.counts)
			}
		}
		if d := cmp.Diff(tt.ids, ids); d != "" {
			t.Errorf("%s: messages (-want +got):\n%s", tt.d.Name, d)
		}
	}
}
