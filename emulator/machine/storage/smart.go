package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Attribute is a SMART attribute.
type Attribute string

// The attributes. Values are stored.
const (
	PowerOnHours    Attribute = "powerOnHours"
	PowerCycles     Attribute = "powerCycles"
	UnsafeShutdowns Attribute = "unsafeShutdowns"
	Temperature     Attribute = "temperature"    // °C
	PercentageUsed  Attribute = "percentageUsed" // percent of an SSD's endurance that is used
	AvailableSpare  Attribute = "availableSpare" // percent of an SSD's spare blocks
	Reallocated     Attribute = "reallocated"    // reallocated sectors
	Uncorrectable   Attribute = "uncorrectable"  // read errors
	Corrected       Attribute = "corrected"      // read errors
	WriteErrors     Attribute = "writeErrors"
	ReadKiB         Attribute = "readKiB"
	WrittenKiB      Attribute = "writtenKiB"
)

// Reading is the value of an attribute.
type Reading struct {
	Attribute Attribute `json:"attribute"`
	Value     int64     `json:"value"`
}

// attributes describes each attribute: which drives have it, its range, and
// when it predicts a failure.
var attributes = map[Attribute]struct {
	media    MediaType // "": all
	min, max int64
	bad      func(value int64) bool // nil: never
	base     int64                  // default of the attribute
	spread   int64                  // largest random addition to base
}{
	PowerOnHours:    {max: 1 << 40, base: 200, spread: 4000},
	PowerCycles:     {max: 1 << 40, base: 10, spread: 40},
	UnsafeShutdowns: {max: 1 << 40, spread: 5},
	Temperature:     {min: -40, max: 125, base: 28, spread: 8},
	PercentageUsed:  {media: SSD, max: 255, bad: func(v int64) bool { return v >= 100 }, spread: 3},
	AvailableSpare:  {media: SSD, max: 100, bad: func(v int64) bool { return v < SpareThreshold }, base: 100},
	Reallocated:     {max: 1 << 40, bad: func(v int64) bool { return v > ReallocatedThreshold }},
	Uncorrectable:   {max: 1 << 40, bad: func(v int64) bool { return v > UncorrectableThreshold }},
	Corrected:       {max: 1 << 60, spread: 20},
	WriteErrors:     {max: 1 << 40},
	ReadKiB:         {max: 1 << 60, base: 1 << 30, spread: 1 << 32},
	WrittenKiB:      {max: 1 << 60, base: 1 << 30, spread: 1 << 32},
}

// Thresholds of failure predictions.
const (
	SpareThreshold         = 10 // percent
	ReallocatedThreshold   = 100
	UncorrectableThreshold = 10
)

// Attributes lists all attributes in the order of display.
var Attributes = []Attribute{
	PowerOnHours, PowerCycles, UnsafeShutdowns, Temperature, PercentageUsed, AvailableSpare, Reallocated, Uncorrectable,
	Corrected, WriteErrors, ReadKiB, WrittenKiB,
}

// has reports whether a drive model has an attribute.
func (m *Model) has(a Attribute) bool {
	row, ok := attributes[a]
	return ok && (row.media == "" || row.media == m.Media)
}

// reading returns a drive's value of an attribute. Values that were not set
// derive from its serial number.
func (u *Unit) reading(a Attribute) int64 {
	if i := slices.IndexFunc(u.SMART, func(r Reading) bool { return r.Attribute == a }); i >= 0 {
		return u.SMART[i].Value
	}
	row := attributes[a]
	sum := sha256.Sum256([]byte(u.Serial + "/" + string(a)))
	return row.base + int64(binary.BigEndian.Uint64(sum[:])%uint64(row.spread+1))
}

func (u *Unit) set(a Attribute, value int64) {
	u.SMART = slices.DeleteFunc(u.SMART, func(x Reading) bool { return x.Attribute == a })
	u.SMART = append(u.SMART, Reading{a, value})
}

// predicted reports whether a drive predicts its failure.
func (u *Unit) predicted(m *Model) bool {
	return u.Predicted || slices.ContainsFunc(u.SMART, func(r Reading) bool {
		bad := attributes[r.Attribute].bad
		return m.has(r.Attribute) && bad != nil && bad(r.Value)
	})
}

// SetSMART sets a drive's attributes. A value beyond its threshold predicts a
// failure.
type SetSMART struct {
	Drive  string // bay
	Values []Reading
}

func (c SetSMART) apply(s *step) error {
	u, m, err := s.drive(c.Drive)
	if err != nil {
		return err
	}
	before := u.predicted(m)
	for i, r := range c.Values {
		row := attributes[r.Attribute]
		switch {
		case !m.has(r.Attribute):
			return &RuleError{Field: FieldSMART, Index: i, Value: string(r.Attribute), Why: Unknown}
		case r.Value < row.min:
			return &RuleError{Field: FieldSMART, Index: i, Value: string(r.Attribute), Why: TooSmall, Limit: row.min}
		case r.Value > row.max:
			return &RuleError{Field: FieldSMART, Index: i, Value: string(r.Attribute), Why: TooLarge, Limit: row.max}
		}
		u.set(r.Attribute, r.Value)
	}
	s.prediction(c.Drive, before, u.predicted(m))
	return nil
}
