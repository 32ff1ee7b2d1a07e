package redfish

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

func TestResetChangesPower(t *testing.T) {
	type step struct {
		kind   machine.ResetKind
		status int
		key    string // key of the error response's first message
		power  string // right after it
	}
	// Between two steps the machine reaches a stable power state.
	tests := []struct {
		policy dialect.RedundantReset
		steps  []step
	}{
		{dialect.AcceptRedundant, []step{
			{"ForceOff", 204, "", "Off"}, {"GracefulShutdown", 204, "", "Off"},
			{"Nmi", 409, "ChassisPowerStateOnRequired", "Off"}, {"On", 204, "", "PoweringOn"}, {"On", 204, "", "On"}, {"ForceOn", 204, "", "On"},
			{"Nmi", 204, "", "On"}, {"ForceRestart", 204, "", "On"}, {"PowerCycle", 204, "", "PoweringOff"}, {"ForceOff", 204, "", "PoweringOff"},
			{"PushPowerButton", 204, "", "PoweringOn"},
		}},
		{dialect.RejectRedundant, []step{
			{"ForceOff", 409, "ResourceInUse", "Off"}, {"ForceOn", 204, "", "PoweringOn"}, {"On", 409, "ResourceInUse", "On"}, {"ForceOff", 204, "", "PoweringOff"},
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.policy), func(t *testing.T) {
			h := newHost(t)
			h.d.RedundantReset = tt.policy
			s := newService(t, h)
			for i, st := range tt.steps {
				body := fmt.Sprintf(`{"ResetType":%q}`, st.kind)
				w := call(t, s, "operator", "POST", sys+"/Actions/ComputerSystem.Reset", body)
				if w.Code != st.status {
					t.Fatalf("step %d: %s; want %d", i, shape("POST", "Reset", body, w), st.status)
				}
				if st.key != "" {
					if keys, _ := errorOf(t, w); keys[0] != st.key {
						t.Errorf("step %d: %s: %s, want %s", i, body, keys[0], st.key)
					}
				}
				if got, _ := get(t, s, sys); got["PowerState"] != st.power {
					t.Errorf("step %d: PowerState after %s = %v, want %s", i, body, got["PowerState"], st.power)
				}
				h.pass(10 * time.Minute)
			}
		})
	}
}

// TestRestartWhileOffPowersOn checks the restarts that each dialect offers on a system that
// is off: it is then switched on (DSP2046, Resource.ResetType: "If currently in the power
// off state, the resource will transition to a power on state"). Only iLO refuses them
// (emulator/dialect/ilo, rejectRules).
func TestRestartWhileOffPowersOn(t *testing.T) {
	for _, m := range everyModel() {
		for _, kind := range []string{"ForceRestart", "GracefulRestart", "PowerCycle", "ForcePowerCycle"} { // the last is iBMC's name of PowerCycle
			s, h := newVendorHost(t, m.record, m.profile)
			uri := "/redfish/v1/Systems/" + m.record.SystemID
			system, _ := get(t, s, uri)
			reset := system["Actions"].(map[string]any)["#ComputerSystem.Reset"].(map[string]any)
			offered := reset["ResetType@Redfish.AllowableValues"]
			if info, ok := reset["@Redfish.ActionInfo"].(string); ok && offered == nil {
				body, _ := get(t, s, info)
				offered = body["Parameters"].([]any)[0].(map[string]any)["AllowableValues"]
			}
			if all, _ := offered.([]any); !slices.Contains(all, any(kind)) {
				continue
			}
			w := call(t, s, "admin", "POST", reset["target"].(string), `{"ResetType":"`+kind+`"}`)
			h.pass(10 * time.Minute)
			if strings.HasPrefix(m.record.Name, "ilo") {
				if w.Code != 400 || !strings.Contains(w.Body.String(), "InvalidOperationForSystemState") || h.machine.View().Power != machine.PowerOff {
					t.Errorf("%s: %s", m.record.Name, shape("POST", "Reset", kind, w))
				}
				continue
			}
			if w.Code >= 300 || h.machine.View().Power != machine.PowerOn {
				t.Errorf("%s: power is %s after %s", m.record.Name, h.machine.View().Power, shape("POST", "Reset", kind, w))
			}
		}
	}
}

func TestResetDuringPowerTransitionIsRejected(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	reset := func(kind string) *httptest.ResponseRecorder {
		return call(t, s, "admin", "POST", sys+"/Actions/ComputerSystem.Reset", fmt.Sprintf(`{"ResetType":%q}`, kind))
	}
	reset("On")
	if w := reset("On"); w.Code != 204 {
		t.Errorf("On while powering on = %d, want 204", w.Code)
	}
	if w := reset("GracefulRestart"); w.Code != 409 {
		t.Errorf("GracefulRestart while powering on = %d, want 409", w.Code)
	}
	reset("ForceOff")
	w := reset("On")
	if keys, _ := errorOf(t, w); w.Code != 409 || keys[0] != "ResourceInUse" {
		t.Errorf("On while powering off: %s", shape("POST", "Reset", "", w))
	}
}
