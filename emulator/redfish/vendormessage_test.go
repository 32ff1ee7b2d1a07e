package redfish

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
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
