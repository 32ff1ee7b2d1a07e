package bmc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOEMValuesAreStoredUntilDeleted(t *testing.T) {
	b := New(mortal(), nil, nil)
	do(t, b, origin, SetOEMValues{Values: map[string]any{"a": "x", "b": map[string]any{"c": 1.5, "d": nil}}})
	was := b.State().OEM
	do(t, b, origin, SetOEMValues{Values: map[string]any{"a": "x"}})
	if b.State().OEM != was {
		t.Error("what is set to what it is has changed")
	}
	do(t, b, origin, SetOEMValues{Values: map[string]any{"a": nil, "e": true}})
	want := map[string]json.RawMessage{"b": json.RawMessage(`{"c":1.5,"d":null}`), "e": json.RawMessage("true")}
	if d := cmp.Diff(want, b.View().OEM.All()); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
	if len(was.Values) != 2 {
		t.Errorf("a state that was handed out has become %v", was.Values)
	}
	raw, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, New(mortal(), nil, &st).View().OEM.All()); d != "" {
		t.Errorf("after a restart (-want +got):\n%s", d)
	}
	do(t, b, origin, ResetToDefaults{Type: PreserveNetworkAndUsers})
	b.Advance(seconds(62))
	if b.State().OEM != nil {
		t.Errorf("after a reset to defaults there is %s", b.State().OEM.Values)
	}
}

func TestOEMValuesAreBounded(t *testing.T) {
	b := New(mortal(), nil, nil)
	all := map[string]any{}
	for i := range 256 {
		all[fmt.Sprint(i)] = i
	}
	do(t, b, origin, SetOEMValues{Values: all})
	was := b.State().OEM
	for _, more := range []map[string]any{
		{"0": 7, "more": 1}, {"0": strings.Repeat("x", 64<<10)}, {strings.Repeat("x", 1<<11): 1},
	} {
		if _, err := b.Apply(origin, SetOEMValues{Values: more}); !errors.Is(err, ErrFull) || b.State().OEM != was {
			t.Errorf("%.20v... more: %v, want ErrFull and nothing changed", more, err)
		}
	}
	do(t, b, origin, SetOEMValues{Values: map[string]any{"0": nil, "more": 1}})
}
