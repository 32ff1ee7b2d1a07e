// Package sdr owns the bytes of sensor data records (IPMI v2.0 rev 1.1, §43),
// and how the byte of a sensor becomes a reading. It refuses to know which
// sensors there are.
package sdr

// Version is that of the records and of the commands that serve them (§33.9),
// BCD, least digit first.
const Version = 0x51

// The kinds of records (§43).
const (
	kindFull    = 0x01
	kindCompact = 0x02
	kindEvents  = 0x03
	kindFRU     = 0x11
	kindMC      = 0x12
)

// HeaderSize is how long the header of a record is: ID, version, kind and the
// length of the rest.
const HeaderSize = 5

// MaxName is how long a name can be, in bytes.
const MaxName = 16

// Entity is what a sensor or a FRU is of (§43.14).
type Entity struct{ ID, Instance byte }

// Thresholds are in the order of their bits in the commands (§35.8).
type Thresholds struct {
	Has byte // bit set, of 1<<LowCaution and so on
	At  [6]byte
}

// The places of thresholds.
const (
	LowCaution  = 0 // "lower non-critical"
	LowCritical = 1
	LowFatal    = 2 // "lower non-recoverable"
	Caution     = 3
	Critical    = 4
	Fatal       = 5
)

// Events are the bits of the events that thresholds make (§35.10): low ones as
// they are gone below, others as they are gone above.
func (t Thresholds) Events() uint16 {
	var out uint16
	for i := range t.At {
		if t.Has&(1<<i) != 0 {
			out |= Event(i)
		}
	}
	return out
}

// Event is the bit of the event of a threshold.
func Event(threshold int) uint16 {
	if threshold <= LowFatal {
		return 1 << (2 * threshold)
	}
	return 1 << (2*threshold + 1)
}

// ThresholdReading is the event/reading type of sensors with thresholds, and
// SpecificReading that of those whose states are their type's (table 42-1).
const (
	ThresholdReading  = 0x01
	RedundancyReading = 0x0b
	SpecificReading   = 0x6f
)

// Key is what tells a sensor from others, and what it is.
type Key struct {
	Owner   byte // slave address
	Number  byte
	Entity  Entity
	Type    byte // table 42-3
	Reading byte // event/reading type
	Name    string
}

// Full is a full sensor record (§43.1): of a sensor that reads a number.
type Full struct {
	Key
	Unit      byte // table 43-15
	Direction byte // 0 none, 1 input, 2 output
	Factors
	Nominal              *byte
	Thresholds           Thresholds
	Hysteresis, LowSlack byte // counts
}

// Append appends the record.
func (f Full) Append(out []byte, id uint16) []byte {
	start := len(out)
	out = f.append(header(out, id, kindFull))
	t := f.Thresholds
	events := t.Events()
	// Initialisation: scanning is on and can be switched; with thresholds also
	// events, thresholds and hysteresis. Capabilities: rearms itself;
	// hysteresis and thresholds can be read and set, events one by one, or
	// there are none of them.
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
	out = append(out, f.Hysteresis, f.LowSlack, 0, 0, 0)
	return finish(name(out, f.Name), start)
}

// Discrete is a record as a BMC has it that says of sensors with numbers that
// they have states: the event/reading type is one of states, and of thresholds
// and events there is nothing. Others stay as they are.
func Discrete(rec []byte) []byte {
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

// Foreign is a record as a BMC has it that says of its sensors that they are of
// a controller which there is not. Others stay as they are.
func Foreign(rec []byte) []byte {
	const kind, owner, nobody = 3, 5, 0x24
	if len(rec) <= owner || rec[kind] != kindFull && rec[kind] != kindCompact {
		return rec
	}
	out := append([]byte(nil), rec...)
	out[owner] = nobody
	return out
}

// m is M and the tolerance, which is none beside rounding.
func (f Factors) m() []byte {
	m := uint16(f.M)
	return []byte{byte(m), byte(m >> 8 & 3 << 6)}
}

// Answer are the factors as Get Sensor Reading Factors has them (§35.5), after
// the next reading.
func (f Factors) Answer() []byte { return append(f.m(), 0, 0, 0, byte(f.Exp)<<4) }

// Compact is a compact sensor record (§43.2): of a sensor that has states.
type Compact struct {
	Key
	Asserts, Deasserts uint16 // states of which events are made
	States             uint16 // that can be read
}

// Append appends the record.
func (c Compact) Append(out []byte, id uint16) []byte {
	start := len(out)
	out = c.append(header(out, id, kindCompact))
	// It comes up scanning and making events, which only all sensors together
	// can be kept from; it rearms itself.
	out = append(out, 0x03, 0x42, c.Type, c.Reading)
	out = le(le(le(out, c.Asserts), c.Deasserts), c.States)
	out = append(out, 0xc0, 0, 0) // no number
	out = append(out, 1, 0)       // a record of its own
	out = append(out, 0, 0, 0, 0, 0, 0)
	return finish(name(out, c.Name), start)
}

// EventOnly is an event-only record (§43.3): of a sensor that can be heard, and
// not asked.
type EventOnly struct{ Key }

// Append appends the record.
func (e EventOnly) Append(out []byte, id uint16) []byte {
	start := len(out)
	out = append(e.append(header(out, id, kindEvents)), e.Type, e.Reading)
	out = append(out, 1, 0) // a record of its own
	out = append(out, 0, 0)
	return finish(name(out, e.Name), start)
}

// FRU is a FRU device locator record (§43.8), of one that its controller is
// asked for.
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
	Global  byte // power state notification, global initialisation
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

// append appends the key of a sensor and its entity.
func (k Key) append(out []byte) []byte {
	return append(out, k.Owner, 0, k.Number, k.Entity.ID, k.Entity.Instance)
}

// name appends a name: 8 bits ASCII, of at least two characters (§43.15).
func name(out []byte, s string) []byte {
	if len(s) == 1 {
		s += " "
	}
	s = s[:min(len(s), MaxName)]
	return append(append(out, 0xc0|byte(len(s))), s...)
}

// finish writes the length.
func finish(out []byte, start int) []byte {
	out[start+4] = byte(len(out) - start - HeaderSize)
	return out
}

func le(out []byte, n uint16) []byte { return append(out, byte(n), byte(n>>8)) }
