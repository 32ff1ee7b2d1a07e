package bmc

import (
	"fmt"
	"slices"
	"time"
)

// SDRChanges are how the sensor data records of a BMC differ from those that its
// server came with.
type SDRChanges struct {
	Added   []SensorRecord `json:"added,omitempty"`   // by ID
	Removed []uint16       `json:"removed,omitempty"` // IDs of those it came with, sorted
	Emptied bool           `json:"emptied,omitempty"` // all of those are removed
	AddedAt time.Time      `json:"addedAt,omitzero"`
	Erased  time.Time      `json:"erased,omitzero"`
}

// SensorRecord is a record as somebody has written it, with its ID in it.
type SensorRecord struct {
	ID    uint16 `json:"id"`
	Bytes []byte `json:"bytes"`
}

// Has says whether a record that the server came with is still there.
func (r *SDRChanges) Has(id uint16) bool {
	return r == nil || !r.Emptied && !slices.Contains(r.Removed, id)
}

// Size is how much the records take that were added, in bytes.
func (r *SDRChanges) Size() int {
	n := 0
	for _, a := range r.Added {
		n += len(a.Bytes)
	}
	return n
}

func (b *BMC) forkRecords() *SDRChanges {
	r := new(SDRChanges)
	if b.st.SDRs != nil {
		*r = *b.st.SDRs
	}
	return r
}

// AddSensorRecord adds a record.
type AddSensorRecord struct {
	SensorRecord
	Room int // that all records which are added have, in bytes
}

func (c AddSensorRecord) apply(b *BMC, now time.Time) ([]Event, error) {
	r := b.forkRecords()
	if slices.ContainsFunc(r.Added, func(a SensorRecord) bool { return a.ID == c.ID }) {
		return nil, fmt.Errorf("%w: sensor data record %d", ErrInUse, c.ID)
	}
	if r.Size()+len(c.Bytes) > c.Room {
		return nil, fmt.Errorf("%w: for a sensor data record of %d bytes", ErrFull, len(c.Bytes))
	}
	r.Added = append(slices.Clone(r.Added), c.SensorRecord)
	slices.SortFunc(r.Added, func(a, b SensorRecord) int { return int(a.ID) - int(b.ID) })
	r.AddedAt = now
	b.st.SDRs = r
	return nil, nil
}

// RemoveSensorRecord removes a record, be it one that the server came with.
type RemoveSensorRecord struct{ ID uint16 }

func (c RemoveSensorRecord) apply(b *BMC, now time.Time) ([]Event, error) {
	r := b.forkRecords()
	n := len(r.Added)
	r.Added = slices.DeleteFunc(slices.Clone(r.Added), func(a SensorRecord) bool { return a.ID == c.ID })
	if len(r.Added) == n {
		if !r.Has(c.ID) {
			return nil, fmt.Errorf("%w: sensor data record %d", ErrNotFound, c.ID)
		}
		r.Removed = append(slices.Clone(r.Removed), c.ID)
		slices.Sort(r.Removed)
	}
	r.Erased = now
	b.st.SDRs = r
	return nil, nil
}

// ClearSensorRecords removes all of them.
type ClearSensorRecords struct{}

func (ClearSensorRecords) apply(b *BMC, now time.Time) ([]Event, error) {
	b.st.SDRs = &SDRChanges{Emptied: true, AddedAt: b.forkRecords().AddedAt, Erased: now}
	return nil, nil
}
