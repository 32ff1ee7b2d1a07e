package redfish

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// System and manager show the same console, which exists while IPMI is enabled
// (statement C11).
func TestSerialConsole(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	const lists = resource.WriteableProperties
	shown := func(on bool, port float64) {
		t.Helper()
		system, _ := get(t, s, sys)
		want := map[string]any{"MaxConcurrentSessions": 1.0, "IPMI": map[string]any{"ServiceEnabled": on, "Port": port, lists: []any{"ServiceEnabled"}}, lists: []any{"IPMI"}}
		if d := cmp.Diff(want, system["SerialConsole"]); d != "" {
			t.Errorf("the system's console (-want +got):\n%s", d)
		}
		manager, _ := get(t, s, mgr)
		want = map[string]any{"MaxConcurrentSessions": 1.0, "ServiceEnabled": on, "ConnectTypesSupported": []any{"IPMI"}, lists: []any{"ServiceEnabled"}}
		if d := cmp.Diff(want, manager["SerialConsole"]); d != "" {
			t.Errorf("the manager's console (-want +got):\n%s", d)
		}
	}
	patch := func(uri, body string, status int, key string) {
		t.Helper()
		converse(t, s, step{"admin", "PATCH", uri, body, nil, status, key})
	}
	port := float64(h.BMC().Network().IPMI.Port)
	shown(true, port)
	patch(mgr, `{"SerialConsole":{"ServiceEnabled":false}}`, 200, "")
	shown(false, port)
	patch(sys, `{"SerialConsole":{"IPMI":{"ServiceEnabled":true}}}`, 200, "")
	shown(true, port)
	patch(protocols, `{"IPMI":{"ProtocolEnabled":false}}`, 200, "")
	shown(false, port)
	for uri, body := range map[string]string{mgr: `{"SerialConsole":{"ServiceEnabled":true}}`, sys: `{"SerialConsole":{"IPMI":{"ServiceEnabled":true}}}`} {
		patch(uri, body, 409, "PropertyValueConflict")
	}
	patch(protocols, `{"IPMI":{"ProtocolEnabled":true}}`, 200, "")
	shown(true, port)
	patch(sys, `{"SerialConsole":{"IPMI":{"Port":2000}}}`, 400, "PropertyNotWritable")
}
