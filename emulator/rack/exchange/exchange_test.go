package exchange

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestSecretsAreMasked(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"account", `{"UserName":"root","Password":"calvin"}`, `{"Password":"***","UserName":"root"}`},
		{"session", `{"Token":"abc","Id":"1"}`, `{"Id":"1","Token":"***"}`},
		{"within", `{"Members":[{"Oem":{"AdminPwd":"x"}}]}`, `{"Members":[{"Oem":{"AdminPwd":"***"}}]}`},
		{"headers of a subscription", `{"HttpHeaders":[{"Authorization":"Basic eA=="}]}`, `{"HttpHeaders":"***"}`},
		{"community", `{"SNMP":{"CommunityStrings":[{"CommunityString":"public"}]}}`, `{"SNMP":{"CommunityStrings":"***"}}`},
		{"BIOS password", `{"Attributes":{"SetupPassword":"x","BootMode":"Uefi"}}`, `{"Attributes":{"BootMode":"Uefi","SetupPassword":"***"}}`},
		{"whether there is one", `{"PasswordSet":true,"MinPasswordLength":8,"Password":null}`, `{"MinPasswordLength":8,"Password":null,"PasswordSet":true}`},
		{"URL", `{"Image":"http://me:secret@192.0.2.1/a.iso"}`, `{"Image":"http://me:xxxxx@192.0.2.1/a.iso"}`},
		{"a large number", `{"CapacityBytes":9007199254740993}`, `{"CapacityBytes":9007199254740993}`},
		{"no JSON", "user=root&password=calvin", "(25 bytes that are no JSON)"},
		{"two values", `{"a":1} {"Password":"x"}`, "(24 bytes that are no JSON)"},
		{"nothing", " \n", ""},
	} {
		got := strings.Join(strings.Fields(strings.NewReplacer(": ", ":", "\n", "", "  ", "").Replace(masked([]byte(tt.in), false))), " ")
		if got != tt.want {
			t.Errorf("%s: masked(%s) = %s, want %s", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestWatchersGetExchanges(t *testing.T) {
	var w Watchers
	at := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	serve := func(body, answer string, note bool) {
		t.Helper()
		h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if b, err := io.ReadAll(r.Body); err != nil || string(b) != body {
				t.Errorf("the handler reads %d bytes, %v, want %d", len(b), err, len(body))
			}
			if err := http.NewResponseController(rw).Flush(); err != nil {
				t.Errorf("Flush() = %v", err)
			}
			if note {
				Note(r.Context(), at.Add(time.Second), http.StatusAccepted)
			}
			io.WriteString(rw, answer)
		})
		rec := httptest.NewRecorder()
		w.Serve("node-0", func() time.Time { return at }, h, rec, httptest.NewRequest(http.MethodPost, "/redfish/v1/a?b", strings.NewReader(body)))
		if rec.Body.String() != answer {
			t.Errorf("the client gets %d bytes, want %d", rec.Body.Len(), len(answer))
		}
	}
	var got []Exchange
	stop := w.Watch(func(e Exchange) { got = append(got, e) })
	other := w.Watch(func(Exchange) {})
	serve(`{"Password":"x"}`, `{"Id":"1"}`, false)
	serve("", "", true)
	serve(strings.Repeat("x", MaxBody+1), strings.Repeat(" ", MaxBody+1), false)
	want := []Exchange{
		{At: at, Host: "node-0", Method: "POST", Path: "/redfish/v1/a", Status: 200, Request: "{\n  \"Password\": \"***\"\n}", Response: "{\n  \"Id\": \"1\"\n}"},
		{At: at.Add(time.Second), Host: "node-0", Method: "POST", Path: "/redfish/v1/a", Status: 202},
		{At: at, Host: "node-0", Method: "POST", Path: "/redfish/v1/a", Status: 200, Request: "(more than 65536 bytes)"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d exchanges, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("exchange %d = %+v, want %+v", i, got[i], want[i])
		}
	}
	stop()
	if !w.Any() {
		t.Error("Any() = false while another watches")
	}
	other()
	if w.Any() {
		t.Error("Any() = true when nobody watches")
	}
	serve("", "", false)
	if len(got) != len(want) {
		t.Error("an exchange came after stop")
	}
}
