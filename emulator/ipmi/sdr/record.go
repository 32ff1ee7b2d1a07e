// Package sdr encodes sensor data records (IPMI v2.0 rev 1.1, §43), and
// converts raw sensor bytes to readings. It does not know which sensors there
// are.
package sdr

// Version is the SDR version of the records and of the commands that serve them
// (§33.9), in BCD, least significant digit first.
const Version = 0x51

// Record types (§43).
const (
	kindFull    = 0x01
	kindCompact = 0x02
	kindEvents  = 0x03
	kindFRU     = 0x11
	kindMC      = 0x12
)

// HeaderSize is the length of a record header: ID, version, type and length of
// the rest.
const HeaderSize = 5

// MaxName is the longest name in bytes.
const MaxName = 16

// Entity is the entity that a sensor or a FRU belongs to (§43.14).
type Entity struct{ ID, Instance byte }

// Thresholds are raw thresholds in the order of their bits in the commands
// (§35.8).
type Thresholds struct {
	Has byte // bit 1<<LowCaution and so on
	At  [6]byte
}

// Indexes of thresholds.
const (
	LowCaution  = 0 // "lower non-critical"
	LowCritical = 1
	LowFatal    = 2 // "lower non-recoverable"
	Caution     = 3
	Critical    = 4
	Fatal       = 5
)

// Events returns the event bits of the thresholds (§35.10): going low for the
// lower ones, going high for the upper ones.
func (t Thresholds) Events() uint16 {
	var out uint16
	for i := range t.At {
		if t.Has&(1<<i) != 0 {
			out |= Event(i)
		}
	}
	return out
}

// Event returns the event bit of a threshold.
func Event(threshold int) uint16 {
	if threshold <= LowFatal {
		return 1 << (2 * threshold)
	}
	return 1 << (2*threshold + 1)
}

// Event/reading type codes (table 42-1): of threshold sensors, of redundancy,
// and of sensors with sensor-specific states.
const (
	ThresholdReading  = 0x01
	RedundancyReading = 0x0b
	SpecificReading   = 0x6f
)

// Key identifies a sensor and describes it.
type Key struct {
	Owner   byte // slave address
	Number  byte
	Entity  Entity
	Type    byte // table 42-3
	Reading byte // event/reading type
	Name    string
}

// Full is a full sensor record (§43.1), for a sensor with numeric readings.
type Full struct {
	Key
	Unit      byte // table 43-15
	Direction byte // 0 none, 1 input, 2 output
	Factors
	Nominal                        *byte
	Thresholds                     Thresholds
	Hysteresis, NegativeHysteresis byte // counts
}

// Append appends the record.
func (f Full) Append(out []byte, id uint16) []byte {
	start := len(out)
	out = f.append(header(out, id, kindFull))
	t := f.Thresholds
	events := t.Events()
	// Initialization: scanning is on and settable; with thresholds also events,
	// thresholds and hysteresis. Capabilities: auto re-arm; hysteresis and
	// thresholds are readable and settable, events individually controllable,
	// or there are none.
	initial, can := byte(0x41), byte(0x43)
	if t.Has != 0 {
		initial, can = 0x7b, 0x68
	}
	out = append(out, initial, can, f.Type, f.Reading)
	low, high := uint16(t.Has&7)<<12, uint16(t.Has>>3&7)<<12
	out = le(out, low|events)
	out = le(out, high|events)
	out = append(out, t.Has, t.Has)
	format, most, least := byte(0), byte(0xff), byte(0)
	if f.Signed {
		format, most, least = 0x80, 0x7f, 0x80
	}
	out = append(out, format, f.Unit, 0, 0) // linear
	out = append(out, f.m()...)
	out = append(out, 0, 0, f.Direction, byte(f.Exp)<<4)
	var known, nominal byte
	if f.Nominal != nil {
		known, nominal = 1, *f.Nominal
	}
	out = append(out, known, nominal, 0, 0, most, least)
	for _, i := range []int{Fatal, Critical, Caution, LowFatal, LowCritical, LowCaution} {
		out = append(out, t.At[i])
	}
	out = append(out, f.Hysteresis, f.NegativeHysteresis, 0, 0, 0)
	return finish(name(out, f.Name), start)
}

// AsDiscrete returns a full sensor record that describes its sensor as
// discrete, as some BMCs do: the event/reading type is a discrete one, and
// thresholds and events are missing. Other records are returned unchanged.
func AsDiscrete(rec []byte) []byte {
	const (
		kind, capabilities, reading, events, thresholds, end = 3, 11, 13, 14, 18, 20
		severity                                             = 0x07 // table 42-2
		access                                               = 0x0f // to thresholds, and event control
	)
	if len(rec) < end || rec[kind] != kindFull {
		return rec
	}
	out := append([]byte(nil), rec...)
	out[capabilities] &^= access
	out[reading] = severity
	clear(out[events:thresholds])
	clear(out[thresholds:end])
	return out
}

// AsForeign returns a sensor record whose owner is a controller that does not
// exist, as some BMCs have. Other records are returned unchanged.
func AsForeign(rec []byte) []byte {
	const kind, owner, nobody = 3, 5, 0x24
	if len(rec) <= owner || rec[kind] != kindFull && rec[kind] != kindCompact {
		return rec
	}
	out := append([]byte(nil), rec...)
	out[owner] = nobody
	return out
}

// m returns M and the tolerance, which is only that of rounding.
func (f Factors) m() []byte {
	m := uint16(f.M)
	return []byte{byte(m), byte(m >> 8 & 3 << 6)}
}

// ReadingFactors returns the factors as Get Sensor Reading Factors answers them
// (§35.5), after the next reading.
func (f Factors) ReadingFactors() []byte { return append(f.m(), 0, 0, 0, byte(f.Exp)<<4) }

// Compact is a compact sensor record (§43.2), for a discrete sensor.
type Compact struct {
	Key
	Asserts, Deasserts uint16 // states that generate events
	States             uint16 // states that can be read
}

// Append appends the record.
func (c Compact) Append(out []byte, id uint16) []byte {
	start := len(out)
	out = c.append(header(out, id, kindCompact))
	// The sensor comes up scanning and with events enabled, which can only be
	// disabled for all sensors together; it re-arms itself.
	out = append(out, 0x03, 0x42, c.Type, c.Reading)
	out = le(le(le(out, c.Asserts), c.Deasserts), c.States)
	out = append(out, 0xc0, 0, 0) // no number
	out = append(out, 1, 0)       // not shared
	out = append(out, 0, 0, 0, 0, 0, 0)
	return finish(name(out, c.Name), start)
}

// EventOnly is an event-only record (§43.3), for a sensor that has no reading.
type EventOnly struct{ Key }

// Append appends the record.
func (e EventOnly) Append(out []byte, id uint16) []byte {
	start := len(out)
	out = append(e.append(header(out, id, kindEvents)), e.Type, e.Reading)
	out = append(out, 1, 0) // not shared
	out = append(out, 0, 0)
	return finish(name(out, e.Name), start)
}

// FRU is a FRU device locator record (§43.8), for a FRU device behind a
// controller.
type FRU struct {
	Owner  byte
	ID     byte
	Entity Entity
	Name   string
}

// Append appends the record.
func (f FRU) Append(out []byte, id uint16) []byte {
	start := len(out)
	// Logical device; type 10h, IPMI FRU inventory behind a controller.
	out = append(header(out, id, kindFRU), f.Owner, f.ID, 0x80, 0, 0, 0x10, 0, f.Entity.ID, f.Entity.Instance, 0)
	return finish(name(out, f.Name), start)
}

// Controller is a management controller device locator record (§43.9).
type Controller struct {
	Address byte
	Global  byte // power state notification, global initialization
	Devices byte // capabilities
	Entity  Entity
	Name    string
}

// Append appends the record.
func (c Controller) Append(out []byte, id uint16) []byte {
	start := len(out)
	out = append(header(out, id, kindMC), c.Address, 0, c.Global, c.Devices, 0, 0, 0, c.Entity.ID, c.Entity.Instance, 0)
	return finish(name(out, c.Name), start)
}

func header(out []byte, id uint16, kind byte) []byte { return append(le(out, id), Version, kind, 0) }

// append appends a sensor's key and its entity.
func (k Key) append(out []byte) []byte {
	return append(out, k.Owner, 0, k.Number, k.Entity.ID, k.Entity.Instance)
}

// name appends a name in 8-bit ASCII of at least two characters (§43.15).
func name(out []byte, s string) []byte {
	if len(s) == 1 {
		s += " "
	}
	s = s[:min(len(s), MaxName)]
	return append(append(out, 0xc0|byte(len(s))), s...)
}

// finish writes the record's length.
func finish(out []byte, start int) []byte {
	out[start+4] = byte(len(out) - start - HeaderSize)
	return out
}

func le(out []byte, n uint16) []byte { return append(out, byte(n), byte(n>>8)) }
