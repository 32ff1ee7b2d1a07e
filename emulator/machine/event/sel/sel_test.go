package sel

import (
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// audited holds the prefixes of the kinds that no event log holds: logins,
// changes of accounts, and the messages of an update's task.
var audited = []string{"asked", "login", "account.", "role.", "update.", "record"}

func TestEveryKindIsRecorded(t *testing.T) {
	order := []event.Severity{event.OK, event.Warning, event.Critical}
	for kind, row := range event.Kinds {
		_, ok := shapes[kind]
		never := kind != event.UpdateFailed && slices.ContainsFunc(audited, func(p string) bool { return strings.HasPrefix(string(kind), p) })
		if ok == never {
			t.Errorf("%s has a shape: %t, is never recorded: %t", kind, ok, never)
		}
		if !ok {
			continue
		}
		e := Of(event.Note{Kind: kind, Args: []string{"a", "1", "Cel"}})
		r := e.Record()
		if again, ok := Parse(r[:]); !ok || again != e {
			t.Errorf("%s: % x is read as %+v, want %+v", kind, r, again, e)
		}
		if slices.Index(order, e.Severity()) > slices.Index(order, row.Severity) {
			t.Errorf("%s is %s, its record %s", kind, row.Severity, e.Severity())
		}
		if most := offsets(e); int(e.Offset()) >= most {
			t.Errorf("%s: sensor type %02X, event type %02X has %d offsets, not %d", kind, byte(e.Sensor), byte(e.Type), most, e.Offset())
		}
	}
	for kind := range shapes {
		if _, ok := event.Kinds[kind]; !ok {
			t.Errorf("%s has a shape, and there is no such kind", kind)
		}
	}
}

// offsets are how many a type of events has (table 42-2 and 42-3).
func offsets(e Event) int {
	if e.Type != Specific {
		return map[Type]int{Threshold: 12, Asserting: 2, Severity: 9, Redundancy: 8}[e.Type]
	}
	return map[Sensor]int{
		Intrusion: 7, Processor: 13, Supply: 8, PowerUnit: 8, Drive: 9, Logging: 7, System: 6, Interrupt: 12, BootError: 5, OSStop: 6,
		ACPI: 15, Watchdog: 9, LAN: 2, Management: 6, Version: 8,
	}[e.Sensor]
}

func TestNotesBecomeSELRecords(t *testing.T) {
	for _, tt := range []struct {
		kind event.Kind
		args []string
		want Event
	}{
		{event.SensorHigh, []string{"Inlet", "39", "Cel", "38"}, Event{Sensor: Temperature, Type: Threshold, Data: [3]byte{0x07, 0xff, 0xff}}},
		{event.SensorTooLow, []string{"12 V", "10", "V", "10.8"}, Event{Sensor: Voltage, Type: Threshold, Data: [3]byte{0x02, 0xff, 0xff}}},
		{event.SensorBetter, []string{"Inlet", "41", "Cel", "critical", "42"}, Event{Sensor: Temperature, Type: Threshold, Gone: true, Data: [3]byte{0x09, 0xff, 0xff}}},
		{event.SensorNormal, []string{"Inlet", "20", "Cel", "low caution", "10"}, Event{Sensor: Temperature, Type: Threshold, Gone: true, Data: [3]byte{0x00, 0xff, 0xff}}},
		{event.SensorNormal, []string{"Total", "20", "W"}, Event{Sensor: Units, Type: Threshold, Gone: true, Data: [3]byte{0x07, 0xff, 0xff}}},
		{event.WatchdogExpired, []string{"PowerCycle", "SMS/OS", "None"}, Event{Sensor: Watchdog, Type: Specific, Data: [3]byte{0xc3, 0x04, 0xff}}},
		{event.WatchdogExpired, []string{"None", "", "SMI"}, Event{Sensor: Watchdog, Type: Specific, Data: [3]byte{0xc0, 0x1f, 0xff}}},
		{event.WatchdogWarned, []string{"DiagnosticInterrupt", "OEM"}, Event{Sensor: Watchdog, Type: Specific, Data: [3]byte{0xc8, 0x25, 0xff}}},
		{event.ComponentUpdated, []string{"BMC", "1", "2"}, Event{Sensor: Version, Type: Specific, Data: [3]byte{0xc7, 0x02, 0xff}}},
		{event.ComponentUpdated, []string{"NIC.1", "1", "2"}, Event{Sensor: Version, Type: Specific, Data: [3]byte{0x07, 0xff, 0xff}}},
		{"of.a.later.release", nil, Event{Sensor: System, Type: Specific, Data: [3]byte{0x02, 0xff, 0xff}}},
	} {
		tt.want.Generator = BMC
		if got := Of(event.Note{Kind: tt.kind, Args: tt.args}); got != tt.want {
			t.Errorf("%s %q = %+v, want %+v", tt.kind, tt.args, got, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	r := [Size]byte{2: SystemEvent, 7: 0x81, 8: 0x10, 9: 4, 10: 1, 11: 0x30, 12: 0x81, 13: 0x09, 14: 0xff, 15: 0xff}
	want := Event{Generator: 0x1081, Sensor: Temperature, Number: 0x30, Type: Threshold, Gone: true, Data: [3]byte{0x09, 0xff, 0xff}}
	if got, ok := Parse(r[:]); !ok || got != want {
		t.Errorf("Parse(% x) = %+v, %t", r, got, ok)
	}
	if again := want.Record(); again != r {
		t.Errorf("% x, want % x", again, r)
	}
	r[2] = OEMTimed
	if _, ok := Parse(r[:]); ok {
		t.Error("an OEM record was read as a system event")
	}
	if _, ok := Parse(r[:15]); ok {
		t.Error("15 bytes were read as a record")
	}
	Stamp(&r, 0x0102, 0x03040506)
	if r[0] != 2 || r[1] != 1 || r[3] != 6 || r[6] != 3 {
		t.Errorf("stamped: % x", r)
	}
	r[2] = OEM
	Stamp(&r, 0x0304, 0)
	if r[0] != 4 || r[3] != 6 {
		t.Errorf("a record without time was stamped: % x", r)
	}
}

func TestSeverity(t *testing.T) {
	for _, tt := range []struct {
		e    Event
		want event.Severity
	}{
		{Event{Type: Threshold, Data: [3]byte{0x59}}, event.Critical},
		{Event{Type: Threshold, Data: [3]byte{0x57}}, event.Warning},
		{Event{Type: Threshold, Gone: true, Data: [3]byte{0x59}}, event.OK},
		{Event{Type: Threshold, Data: [3]byte{0x0f}}, event.OK},
		{Event{Type: Severity, Data: [3]byte{0x02}}, event.Critical},
		{Event{Type: Specific, Sensor: Supply, Data: [3]byte{0x01}}, event.Critical},
		{Event{Type: Specific, Sensor: Supply, Data: [3]byte{0x00}}, event.OK},
		{Event{Type: 0x70, Sensor: 0xc0, Data: [3]byte{0x01}}, event.OK},
	} {
		if got := tt.e.Severity(); got != tt.want {
			t.Errorf("%+v is %s, want %s", tt.e, got, tt.want)
		}
	}
}
