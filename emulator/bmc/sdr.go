package bmc

import (
	"fmt"
	"slices"
	"time"
)

// SDRChanges are the differences of a BMC's SDR repository from the records
// that its server came with.
type SDRChanges struct {
	Added   []SensorRecord `json:"added,omitempty"`   // by ID
	Removed []uint16       `json:"removed,omitempty"` // IDs of removed original records, sorted
	Emptied bool           `json:"emptied,omitempty"` // all original records are removed
	AddedAt time.Time      `json:"addedAt,omitzero"`
	Erased  time.Time      `json:"erased,omitzero"`
}

// SensorRecord is a sensor data record as a client wrote it, including its ID.
type SensorRecord struct {
	ID    uint16 `json:"id"`
	Bytes []byte `json:"bytes"`
}

// Has reports whether an original record still exists.
func (r *SDRChanges) Has(id uint16) bool {
	return r == nil || !r.Emptied && !slices.Contains(r.Removed, id)
}

// Size returns the size of the added records in bytes.
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
	Room int // total size of added records, in bytes
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

// RemoveSensorRecord removes an added or original record.
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

// ClearSensorRecords removes all records.
type ClearSensorRecords struct{}

func (ClearSensorRecords) apply(b *BMC, now time.Time) ([]Event, error) {
	b.st.SDRs = &SDRChanges{Emptied: true, AddedAt: b.forkRecords().AddedAt, Erased: now}
	return nil, nil
}
