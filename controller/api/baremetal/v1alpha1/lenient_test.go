package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Statuses that another version has written are read, and the newer form is written.
func TestOtherTypesOfFieldsAreRead(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"cpu":8,"ram":"16384Mi","storage":[{"name":"a","size":"100Gi"}]}`, `{"cpu":8,"ram":16,"storage":[{"name":"a","size":100}]}`},
		{`{"ram":16,"storage":[{"name":"a","size":100.7,"type":"ssd"}]}`, `{"ram":16,"storage":[{"name":"a","size":100,"type":"ssd"}]}`},
	} {
		var h MachineHardware
		if err := json.Unmarshal([]byte(tt.text), &h); err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		if got, err := json.Marshal(h); err != nil || string(got) != tt.want {
			t.Errorf("%s is written as %s, %v, want %s", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{`{"ram":"much"}`, `{"ram":[]}`} {
		if err := json.Unmarshal([]byte(text), new(MachineHardware)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	want := NotReadyObjects{Machines: []ObjectReference{{Name: "a", Namespace: "lab"}}}
	for _, text := range []string{`[{"name":"a","namespace":"lab"}]`, `{"machines":[{"name":"a","namespace":"lab"}]}`} {
		var got NotReadyObjects
		if err := json.Unmarshal([]byte(text), &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
