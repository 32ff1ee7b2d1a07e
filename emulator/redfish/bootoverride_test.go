package redfish

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBootOverrideOnceIsClearedByBoot(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	want := map[string]any{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Cd", "BootSourceOverrideMode": "Legacy"}
	body, err := json.Marshal(map[string]any{"Boot": want})
	must(t, err)
	w := call(t, s, "operator", "PATCH", sys, string(body))
	if w.Code != 200 {
		t.Fatalf("%s", shape("PATCH", sys, string(body), w))
	}
	read := func() map[string]any {
		all, _ := get(t, s, sys)
		got := map[string]any{}
		for name := range want {
			got[name] = all["Boot"].(map[string]any)[name]
		}
		return got
	}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("Boot after PATCH (-want +got):\n%s", diff)
	}
	call(t, s, "operator", "POST", sys+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
	h.pass(10 * time.Minute)
	want = map[string]any{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "Legacy"}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("Boot after a boot (-want +got):\n%s", diff)
	}
}

func TestBootOverrideWithInvalidTargetChangesNothing(t *testing.T) {
	s := newService(t, newHost(t))
	_, before := get(t, s, sys)
	w := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideTarget":"Moon"}}`)
	if _, after := get(t, s, sys); w.Code != 400 || after != before {
		t.Errorf("%s; ETag %s before, %s after", shape("PATCH", sys, "", w), before, after)
	}
}
