// Package sel converts notes to IPMI SEL records of 16 bytes (IPMI v2.0 rev
// 1.1, §32). It owns the sensor type and offset of each kind of event, and the
// severity of records that clients write. It knows neither a server's sensors
// nor the services that show the records.
package sel

import "github.com/metalab-dev/metalab/emulator/machine/event"

// Size is the size of a record in bytes.
const Size = 16

// Record types (§32.1 to §32.3).
const (
	SystemEvent = 0x02
	OEMTimed    = 0xc0 // to DFh: OEM, with timestamp and enterprise number
	OEM         = 0xe0 // and up: OEM, without timestamp
)

// BMC is the generator ID of the BMC's own events: its address, LUN 0.
const BMC uint16 = 0x0020

// Unspecified is the value of unused event data bytes.
const Unspecified = 0xff

// Event is the content of a system event record (table 32-1).
type Event struct {
	Generator uint16
	Sensor    Sensor
	Number    byte
	Type      Type
	Gone      bool // deassertion
	Data      [3]byte
}

// Offset returns the event offset.
func (e *Event) Offset() byte { return e.Data[0] & 0x0f }

// Parse parses a record; false when it is not a system event record.
func Parse(b []byte) (Event, bool) {
	if len(b) != Size || b[2] >= OEMTimed {
		return Event{}, false
	}
	return Event{
		Generator: uint16(b[7]) | uint16(b[8])<<8,
		Sensor:    Sensor(b[10]), Number: b[11], Type: Type(b[12] & 0x7f), Gone: b[12]&0x80 != 0,
		Data: [3]byte(b[13:16]),
	}, true
}

// Record returns the event as a record without ID and timestamp.
func (e *Event) Record() [Size]byte {
	dir := byte(e.Type)
	if e.Gone {
		dir |= 0x80
	}
	return [Size]byte{
		2: SystemEvent, 7: byte(e.Generator), 8: byte(e.Generator >> 8), 9: 0x04, 10: byte(e.Sensor), 11: e.Number, 12: dir,
		13: e.Data[0], 14: e.Data[1], 15: e.Data[2],
	}
}

// Stamp sets the ID and the timestamp of a record. A record type without
// timestamp gets none.
func Stamp(b *[Size]byte, id uint16, at uint32) {
	b[0], b[1] = byte(id), byte(id>>8)
	if b[2] < OEM {
		b[3], b[4], b[5], b[6] = byte(at), byte(at>>8), byte(at>>16), byte(at>>24)
	}
}

// bad holds the severities of generic event types (table 42-2) by offset.
var bad = map[Type][]event.Severity{
	Threshold: {
		event.Warning, event.Warning, event.Critical, event.Critical, event.Critical, event.Critical,
		event.Warning, event.Warning, event.Critical, event.Critical, event.Critical, event.Critical,
	},
	Predictive: {event.OK, event.Warning},
	Limit:      {event.OK, event.Warning},
	Performing: {event.OK, event.Warning},
	Severity: {
		event.OK, event.Warning, event.Critical, event.Critical, event.Warning, event.Critical, event.Critical, event.OK, event.OK,
	},
	Redundancy: {
		event.OK, event.Warning, event.Warning, event.Warning, event.Warning, event.Critical, event.Warning, event.Warning,
	},
}

// Severity returns the severity of an event: OK for deassertions;
// sensor-specific events are looked up in worst.
func (e *Event) Severity() event.Severity {
	if e.Gone {
		return event.OK
	}
	if of := bad[e.Type]; int(e.Offset()) < len(of) {
		return of[e.Offset()]
	}
	if is, ok := worst[state{e.Sensor, e.Offset()}]; ok && e.Type == Specific {
		return is
	}
	return event.OK
}

// state is a sensor-specific event.
type state struct {
	sensor Sensor
	offset byte
}

// worst holds the severities of sensor-specific events; others are OK. An event
// that FreeIPMI does not call nominal (freeipmi_interpret_sel.conf) is at least a
// Warning, but for changes that somebody asked for, such as of the configuration.
var worst = map[state]event.Severity{
	{Intrusion, 0}: event.Critical, {Intrusion, 1}: event.Warning, {Intrusion, 2}: event.Warning, {Intrusion, 3}: event.Warning,
	{Intrusion, 4}: event.Warning, {Intrusion, 5}: event.Warning, {Intrusion, 6}: event.Warning,
	{Violation, 0}: event.Warning, {Violation, 1}: event.Warning, {Violation, 2}: event.Warning, {Violation, 3}: event.Warning,
	{Violation, 4}: event.Warning, {Violation, 5}: event.Warning,
	{Processor, 0}: event.Critical, {Processor, 1}: event.Critical, {Processor, 2}: event.Critical, {Processor, 3}: event.Critical,
	{Processor, 4}: event.Critical, {Processor, 5}: event.Critical, {Processor, 6}: event.Critical, {Processor, 8}: event.Warning,
	{Processor, 10}: event.Warning, {Processor, 11}: event.Critical, {Processor, 12}: event.Warning,
	{Supply, 1}: event.Critical, {Supply, 2}: event.Warning, {Supply, 3}: event.Warning, {Supply, 4}: event.Warning,
	{Supply, 5}: event.Warning, {Supply, 6}: event.Warning,
	{PowerUnit, 2}: event.Warning, {PowerUnit, 3}: event.Warning, {PowerUnit, 4}: event.Critical, {PowerUnit, 5}: event.Critical,
	{PowerUnit, 6}: event.Critical, {PowerUnit, 7}: event.Warning,
	{Memory, 0}: event.Warning, {Memory, 1}: event.Critical, {Memory, 2}: event.Warning, {Memory, 3}: event.Critical,
	{Memory, 4}: event.Warning, {Memory, 5}: event.Warning, {Memory, 7}: event.Critical, {Memory, 9}: event.Warning,
	{Memory, 10}: event.Critical,
	{Drive, 1}:   event.Critical, {Drive, 2}: event.Warning, {Drive, 5}: event.Warning, {Drive, 6}: event.Critical, {Drive, 8}: event.Warning,
	{Firmware, 0}: event.Critical, {Firmware, 1}: event.Critical,
	{Logging, 0}: event.Warning, {Logging, 1}: event.Warning, {Logging, 3}: event.Warning, {Logging, 4}: event.Warning,
	{Logging, 5}: event.Warning, {Logging, 6}: event.Warning,
	{System, 2}:    event.Critical,
	{Interrupt, 0}: event.Warning, {Interrupt, 1}: event.Critical, {Interrupt, 2}: event.Critical, {Interrupt, 3}: event.Warning,
	{Interrupt, 4}: event.Critical, {Interrupt, 5}: event.Critical, {Interrupt, 6}: event.Critical, {Interrupt, 7}: event.Warning,
	{Interrupt, 8}: event.Critical, {Interrupt, 9}: event.Critical, {Interrupt, 10}: event.Critical, {Interrupt, 11}: event.Warning,
	{BootError, 0}: event.Critical, {BootError, 1}: event.Warning, {BootError, 2}: event.Warning, {BootError, 3}: event.Critical,
	{BootError, 4}: event.Warning,
	{OSBoot, 9}:    event.Warning, {OSBoot, 10}: event.Critical,
	{OSStop, 0}: event.Critical, {OSStop, 1}: event.Critical, {OSStop, 5}: event.Warning,
	{Slot, 0}: event.Critical, {Slot, 7}: event.Warning, {Slot, 8}: event.Warning,
	{Watchdog, 0}: event.Critical, {Watchdog, 1}: event.Critical, {Watchdog, 2}: event.Critical, {Watchdog, 3}: event.Critical, {Watchdog, 8}: event.Warning,
	{Presence, 1}: event.Warning, {Presence, 2}: event.Warning,
	{LAN, 0}:        event.Warning,
	{Management, 0}: event.Warning, {Management, 1}: event.Warning, {Management, 2}: event.Critical, {Management, 3}: event.Critical,
	{Management, 4}: event.Warning, {Management, 5}: event.Warning,
	{Battery, 0}: event.Warning, {Battery, 1}: event.Critical,
	{Sessions, 2}: event.Warning, {Sessions, 3}: event.Warning,
	{Version, 2}: event.Critical, {Version, 3}: event.Critical, {Version, 4}: event.Critical, {Version, 5}: event.Critical,
	{FRUState, 0}: event.Warning, {FRUState, 1}: event.Warning, {FRUState, 7}: event.Critical,
}
