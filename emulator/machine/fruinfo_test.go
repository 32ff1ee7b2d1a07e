package machine

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestFRUOverrides(t *testing.T) {
	b := newBench(t)
	made := b.m.View().Identity
	b.do(SetFRUOverrides{FRUOverrides{FRUInfo: FRUInfo{Serial: "X1", Model: "Other"}, Image: []byte{1}}})
	v := b.m.View()
	if is := v.Identity; is.Serial != "X1" || is.Model != "Other" || is.Manufacturer != made.Manufacturer || is.ChassisSerial != made.Serial || is.UUID != made.UUID {
		t.Errorf("labelled %+v", is.FRUInfo)
	}
	if made.Serial == "X1" {
		t.Error("what was shown before has changed")
	}
	raw, err := json.Marshal(b.m.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	again, err := New(b.m.profile, *made, &st)
	if err != nil || again.View().Identity.Serial != "X1" || string(again.View().FRUOverrides.Image) != "\x01" {
		t.Errorf("restored: %v, %+v", err, again.View().Identity.FRUInfo)
	}
	before := b.m.State()
	b.do(SetFRUOverrides{})
	if v := b.m.View(); v.Identity != made || v.FRUOverrides != nil {
		t.Errorf("as it was made: %+v, %+v", v.Identity.FRUInfo, v.FRUOverrides)
	}
	b.m.Restore(before)
	if is := b.m.View().Identity.Serial; is != "X1" {
		t.Errorf("put back: %s", is)
	}
	if _, err := b.m.Apply(b.now, SetFRUOverrides{FRUOverrides{Image: make([]byte, 1<<17)}}); !errors.Is(err, ErrUnknown) {
		t.Errorf("too much: %v", err)
	}
}
