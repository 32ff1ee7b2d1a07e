package v1alpha1

import (
	"encoding/json"
	"testing"
)

func TestUpdatesAvailableIsABooleanOrANumber(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "false": false, "3": true, "0": false} {
		var h HostInfo
		if err := json.Unmarshal([]byte(`{"updatesAvailable":`+text+`}`), &h); err != nil || bool(*h.UpdatesAvailable) != want {
			t.Errorf("%s: %v, %v, want %t", text, h.UpdatesAvailable, err, want)
		}
	}
	if err := json.Unmarshal([]byte(`{"updatesAvailable":"many"}`), new(HostInfo)); err == nil {
		t.Error("a text is accepted")
	}
}
