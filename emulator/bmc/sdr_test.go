package bmc

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func TestAddAndRemoveSensorRecords(t *testing.T) {
	b := newBMC()
	add := func(id uint16, size int) error {
		_, err := b.Apply(origin, AddSensorRecord{SensorRecord{id, make([]byte, size)}, 100})
		return err
	}
	if v := b.View(); !v.SDRs.Has(7) {
		t.Error("what it came with is gone")
	}
	for _, step := range []struct {
		id   uint16
		size int
		err  error
	}{{9, 40, nil}, {8, 40, nil}, {8, 5, ErrInUse}, {10, 40, ErrFull}, {10, 20, nil}} {
		if err := add(step.id, step.size); !errors.Is(err, step.err) {
			t.Errorf("add %d: %v, want %v", step.id, err, step.err)
		}
	}
	before := b.View().SDRs
	remove := func(id uint16) error {
		_, err := b.Apply(origin.Add(time.Minute), RemoveSensorRecord{id})
		return err
	}
	for _, step := range []struct {
		id  uint16
		err error
	}{{9, nil}, {3, nil}, {3, ErrNotFound}, {2, nil}} {
		if err := remove(step.id); !errors.Is(err, step.err) {
			t.Errorf("remove %d: %v, want %v", step.id, err, step.err)
		}
	}
	if len(before.Added) != 3 || before.Removed != nil || before.Added[0].ID != 8 {
		t.Errorf("what was shown has changed: %+v", before)
	}
	r := b.View().SDRs
	if r.Has(3) || !r.Has(1) || len(r.Added) != 2 || r.Size() != 60 || !r.AddedAt.Equal(origin) || !r.Erased.Equal(origin.Add(time.Minute)) {
		t.Errorf("records %+v", r)
	}
	raw, err := json.Marshal(b.State())
	var st State
	if err != nil || json.Unmarshal(raw, &st) != nil || st.SDRs.Has(2) {
		t.Errorf("restored: %v, %+v", err, st.SDRs)
	}
	if _, err := b.Apply(origin, ClearSensorRecords{}); err != nil {
		t.Fatal(err)
	}
	if r := b.View().SDRs; r.Has(1) || len(r.Added) != 0 {
		t.Errorf("emptied: %+v", r)
	}
}
