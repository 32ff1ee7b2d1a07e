package command

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// The numbers of some sensors of the generic server.
const (
	inletTemp  = "01"
	cpuTemp    = "02"
	fan1       = "30"
	twelve     = "40" // 12 V
	totalPower = "67"
	psuStatus  = "70"
)

func force(t *testing.T, h *host, sensor string, x float64) {
	t.Helper()
	h.do(t, machine.Thermal{Command: thermal.Force{Sensor: sensor, Reading: &x}})
}

func TestSensorReadings(t *testing.T) {
	h := newHost(t)
	off := exchanges{
		{"inlet, off", inletTemp, Completed, "16c0c0"},
		{"processor, off", cpuTemp, Completed, "00e0c0"},
		{"fan, off", fan1, Completed, "00e0c0"},
		{"supply", psuStatus, Completed, "00c00180"},
		{"none such", "fe", NotPresent, ""},
		{"event-only", "7d", IllegalForRecord, ""},
		{"reserved", "ff", InvalidDataField, ""},
	}
	off.try(t, h, wire.SensorEvent, 0x2d)
	h.running(t)
	force(t, h, "InletTemp", 42)
	force(t, h, "CPU1Temp", 84)
	force(t, h, "Fan1", 0)
	force(t, h, "12V", 12)
	exchanges{
		{"inlet, too warm", inletTemp, Completed, "2ac0d8"},
		{"processor", cpuTemp, Completed, "54c0c0"},
		{"fan that stands", fan1, Completed, "00c0c2"},
	}.try(t, h, wire.SensorEvent, 0x2d)
	force(t, h, "InletTemp", -3)
	h.do(t, machine.Thermal{Command: thermal.SetSupply{ID: "PSU1", Fault: thermal.Failed}})
	exchanges{{"inlet, freezing", inletTemp, Completed, "fdc0c3"}, {"supply that has failed", psuStatus, Completed, "00c00380"}}.try(t, h, wire.SensorEvent, 0x2d)
	h.do(t, machine.Thermal{Command: thermal.SetSupply{ID: "PSU1"}})
	h.do(t, machine.Thermal{Command: thermal.SetSupply{ID: "PSU2", Fault: thermal.Absent}})
	exchanges{
		{"supply that is not there", "71", Completed, "00c00080"},
		{"what reads of it", "59", Completed, "00e0c0"},
	}.try(t, h, wire.SensorEvent, 0x2d)
}

// Get Sensor Reading compares without hysteresis; the event status has it
// (§35.13).
func TestHysteresisOfSensors(t *testing.T) {
	h := newHost(t).running(t)
	exchanges{{"inlet", inletTemp + "ff", Completed, "0101"}, {"processor", cpuTemp + "ff", Completed, "0202"}, {"fan", fan1 + "ff", Completed, "0000"}, {"total power", totalPower + "ff", IllegalForRecord, ""}}.
		try(t, h, wire.SensorEvent, 0x25)
	for _, step := range []struct {
		at             float64
		reading, event string
	}{
		{37, "25c0c0", "c000000000"}, {38, "26c0c8", "c080000000"}, {37, "25c0c0", "c080000000"}, {36, "24c0c0", "c000000000"},
		{42, "2ac0d8", "c080020000"}, {5, "05c0c1", "c001000000"}, {6, "06c0c0", "c001000000"}, {7, "07c0c0", "c000000000"},
	} {
		force(t, h, "InletTemp", step.at)
		exchanges{{fmt.Sprint("at ", step.at), inletTemp, Completed, step.reading}}.try(t, h, wire.SensorEvent, 0x2d)
		exchanges{{fmt.Sprint("at ", step.at), inletTemp, Completed, step.event}}.try(t, h, wire.SensorEvent, 0x2b)
	}
	exchanges{
		{"set", inletTemp + "ff0400", Completed, ""},
		{"not a number", psuStatus + "ff0400", IllegalForRecord, ""},
		{"no thresholds", totalPower + "ff0400", IllegalForRecord, ""},
		{"none such", "feff0400", NotPresent, ""},
	}.try(t, h, wire.SensorEvent, 0x24)
	exchanges{{"inlet", inletTemp + "ff", Completed, "0400"}}.try(t, h, wire.SensorEvent, 0x25)
	if l := h.Machine().Thermal.Thresholds("InletTemp"); l.Hysteresis != 5 || l.LowHysteresis == nil || *l.LowHysteresis != 1 {
		t.Errorf("hysteresis is %v and %v", l.Hysteresis, l.LowHysteresis)
	}
	force(t, h, "InletTemp", 38)
	force(t, h, "InletTemp", 34)
	exchanges{{"34 is not yet out", inletTemp, Completed, "c080000000"}}.try(t, h, wire.SensorEvent, 0x2b)
	force(t, h, "InletTemp", 33)
	exchanges{{"33 is", inletTemp, Completed, "c000000000"}}.try(t, h, wire.SensorEvent, 0x2b)
	exchanges{{"set back", inletTemp + "ff0101", Completed, ""}}.try(t, h, wire.SensorEvent, 0x24)
	if l := h.Machine().Thermal.Thresholds("InletTemp"); l.Hysteresis != 2 || l.LowHysteresis != nil {
		t.Errorf("hysteresis is %v and %v", l.Hysteresis, l.LowHysteresis)
	}
}

func TestThresholdsOfSensors(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"inlet", inletTemp, Completed, "1b050000262a00"},
		{"processor", cpuTemp, Completed, "38000000555d67"},
		{"12 V", twelve, Completed, "1200b40000dc00"},
		{"none", totalPower, Completed, "00000000000000"},
		{"not a number", psuStatus, IllegalForRecord, ""},
		{"none such", "fe", NotPresent, ""},
	}.try(t, h, wire.SensorEvent, 0x27)
	before := h.Machine().Thermal.Thresholds("12V")
	exchanges{
		{"one", cpuTemp + "1000000000 5b00", Completed, ""},
		{"as it is", twelve + "10 00000000dc00", Completed, ""},
		{"negative", inletTemp + "02 00f600000000", Completed, ""},
		{"that it has not", inletTemp + "20 00000000003c", InvalidDataField, ""},
		{"reserved bit", inletTemp + "40 000000000000", InvalidDataField, ""},
		{"no thresholds", totalPower + "10 000000001000", IllegalForRecord, ""},
		{"not a number", psuStatus + "10 000000001000", IllegalForRecord, ""},
		{"none such", "fe10 000000001000", NotPresent, ""},
	}.try(t, h, wire.SensorEvent, 0x26)
	exchanges{
		{"inlet", inletTemp, Completed, "1b05f600262a00"}, {"processor", cpuTemp, Completed, "38000000555b67"}, {"12 V", twelve, Completed, "1200b40000dc00"},
	}.try(t, h, wire.SensorEvent, 0x27)
	if l := h.Machine().Thermal.Thresholds("12V"); *l.Critical != *before.Critical {
		t.Errorf("setting 12 V as it is makes %v of %v", *l.Critical, *before.Critical)
	}
	if l := h.Machine().Thermal.Thresholds("CPU1Temp"); *l.Critical != 91 {
		t.Errorf("the processor is critical at %v", *l.Critical)
	}
}

// kinds are what the log has of a sensor.
func kinds(h *host, id string) []event.Kind {
	var out []event.Kind
	for e := range h.BMC().Log.Entries() {
		if e.Subject.ID == id {
			out = append(out, e.Kind)
		}
	}
	return out
}

func TestEventsOfSensors(t *testing.T) {
	h := newHost(t).running(t)
	logged := func(step string, want ...event.Kind) {
		t.Helper()
		n := len(kinds(h, "InletTemp"))
		force(t, h, "InletTemp", 50)
		force(t, h, "InletTemp", 20)
		if got := kinds(h, "InletTemp")[n:]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", step, got, want)
		}
	}
	enable := func(e exchanges) { t.Helper(); e.try(t, h, wire.SensorEvent, 0x28) }
	is := func(step, want string) {
		t.Helper()
		exchanges{{step, inletTemp, Completed, want}}.try(t, h, wire.SensorEvent, 0x29)
	}
	is("at first", "c085028502")
	enable(exchanges{{"fewer", inletTemp + "e0 0002 8000", Completed, ""}})
	is("fewer", "c085000502")
	logged("fewer", event.SensorHigh, event.SensorBetter)
	enable(exchanges{{"silent", inletTemp + "40", Completed, ""}})
	is("silent", "4085000502")
	logged("silent")
	enable(exchanges{{"all again", inletTemp + "d0 ff0f ff0f", Completed, ""}})
	is("all again", "c085028502")
	logged("all again", event.SensorHigh, event.SensorTooHigh, event.SensorBetter, event.SensorNormal)
	enable(exchanges{{"not scanned", inletTemp + "80", Completed, ""}})
	is("not scanned", "8085028502")
	exchanges{{"not scanned", inletTemp, Completed, "00a0c0"}}.try(t, h, wire.SensorEvent, 0x2d)
	enable(exchanges{
		{"scanned", inletTemp + "c0", Completed, ""},
		{"reserved way", inletTemp + "f0 ffff", InvalidDataField, ""},
		{"reserved bits", inletTemp + "c1", InvalidDataField, ""},
		{"with states", psuStatus + "c0", IllegalForRecord, ""},
		{"none such", "fec0", NotPresent, ""},
		{"short", inletTemp, DataLengthInvalid, ""},
	})
	exchanges{{"with states", psuStatus, Completed, "c00b000b00"}, {"none such", "fe", NotPresent, ""}}.try(t, h, wire.SensorEvent, 0x29)
	exchanges{{"with states", psuStatus, Completed, "c001000000"}, {"none such", "fe", NotPresent, ""}}.try(t, h, wire.SensorEvent, 0x2b)
}

func TestSensorsAreRearmed(t *testing.T) {
	h := newHost(t).running(t)
	force(t, h, "InletTemp", 38)
	logged := func() int { return len(kinds(h, "InletTemp")) }
	for _, step := range []struct {
		data string
		code Code
		more int
	}{
		{inletTemp + "00", Completed, 1}, {inletTemp + "80 8000", Completed, 1}, {inletTemp + "80 0002", Completed, 0}, {inletTemp + "80", Completed, 0},
		{inletTemp + "81", InvalidDataField, 0}, {psuStatus + "00", IllegalForRecord, 0}, {"fe00", NotPresent, 0}, {cpuTemp + "00", Completed, 0},
	} {
		n := logged()
		exchanges{{"rearm", step.data, step.code, ""}}.try(t, h, wire.SensorEvent, 0x2a)
		if got := logged() - n; got != step.more {
			t.Errorf("%s: logged %d more, want %d", step.data, got, step.more)
		}
	}
}

func TestSetSensorTypeAndReadingAreRefused(t *testing.T) {
	h := newHost(t)
	exchanges{{"event-only", "7d", IllegalForRecord, ""}}.try(t, h, wire.SensorEvent, 0x29)
	exchanges{{"event-only", "7d", IllegalForRecord, ""}}.try(t, h, wire.SensorEvent, 0x2b)
	exchanges{{"event-only", "7d", Completed, "136f"}, {"inlet", inletTemp, Completed, "0101"}, {"supply", psuStatus, Completed, "086f"}, {"none such", "fe", NotPresent, ""}}.try(t, h, wire.SensorEvent, 0x2f)
	exchanges{{"inlet", inletTemp + "0101", IllegalForRecord, ""}, {"none such", "fe0101", NotPresent, ""}}.try(t, h, wire.SensorEvent, 0x2e)
	exchanges{{"inlet", inletTemp + "0116", IllegalForRecord, ""}, {"none such", "fe0116", NotPresent, ""}}.try(t, h, wire.SensorEvent, 0x30)
	exchanges{
		{"inlet", inletTemp + "16", Completed, "16010000000000"}, {"12 V", twelve + "c8", Completed, "c80600000000e0"},
		{"supply", psuStatus + "00", IllegalForRecord, ""}, {"none such", "fe00", NotPresent, ""},
	}.try(t, h, wire.SensorEvent, 0x23)
}

// A sensor's reading over IPMI is Redfish's, within half a count.
func TestSensorReadingsAgreeWithRedfish(t *testing.T) {
	for _, profile := range []string{"generic", "raid"} {
		h := newHostOf(t, profile).running(t)
		h.do(t, machine.Thermal{Command: thermal.SetLoad{Load: new(0.83)}})
		h.advance(7 * time.Second)
		r := repositoryOf(h.Machine().Profile)
		n := 0
		for i := range r.sensors {
			s := &r.sensors[i]
			if s.numeric == nil {
				continue
			}
			n++
			want, ok := h.Machine().Thermal.Reading(s.numeric.ID, h.Now())
			code, got := ask(t, h, wire.SensorEvent, 0x2d, s.Number)
			if code != Completed || !ok || len(got) != 3 || got[1]&unavailable != 0 {
				t.Errorf("%s %s: %v % x", profile, s.Name, code, got)
				continue
			}
			if y, half := s.factors.Value(got[0]), s.factors.Difference(1)/2; math.Abs(y-want) > half*1.0001 {
				t.Errorf("%s %s: %v, Redfish shows %v", profile, s.Name, y, want)
			}
		}
		if want := len(h.Machine().Profile.Thermal.Sensors) - 1; n != want { // without energy
			t.Errorf("%s: %d sensors, want %d", profile, n, want)
		}
	}
}

func TestDiscreteSensorStates(t *testing.T) {
	h := newHostOf(t, "raid").running(t)
	state := func(of sel.Sensor, part event.Subject) uint16 {
		t.Helper()
		s := repositoryOf(h.Machine().Profile).sensorOf(of, part)
		if s == nil {
			t.Fatalf("no sensor of type %#x of %v", of, part)
		}
		code, got := ask(t, h, wire.SensorEvent, 0x2d, s.Number)
		if code != Completed || len(got) != 4 || got[3]&0x80 == 0 {
			t.Fatalf("%s: %v % x", s.Name, code, got)
		}
		return uint16(got[2]) | uint16(got[3]&0x7f)<<8
	}
	system, chassis := event.Subject{Part: event.System}, event.Subject{Part: event.Chassis}
	drive := func(n int) event.Subject { return event.Subject{Part: event.Drive, ID: fmt.Sprint("Disk.", n)} }
	check := func(step string, of sel.Sensor, part event.Subject, want uint16) {
		t.Helper()
		if got := state(of, part); got != want {
			t.Errorf("%s: states %#x, want %#x", step, got, want)
		}
	}
	check("on", sel.ACPI, system, stateBits(0))
	check("a drive", sel.Drive, drive(3), stateBits(0))
	check("a processor", sel.Processor, event.Subject{Part: event.System, ID: "CPU2"}, stateBits(7))
	check("a module", sel.Memory, event.Subject{Part: event.System, ID: "DIMM16"}, stateBits(6))
	check("both supplies", sel.PowerUnit, chassis, stateBits(0))
	check("shut", sel.Intrusion, chassis, 0)
	h.do(t, machine.OpenCover{Open: true})
	check("open", sel.Intrusion, chassis, stateBits(0))
	h.do(t, machine.Thermal{Command: thermal.SetSupply{ID: "PSU2", Fault: thermal.NoInput}})
	check("no input", sel.Supply, event.Subject{Part: event.Supply, ID: "PSU2"}, stateBits(0, 3))
	check("one supply", sel.PowerUnit, chassis, stateBits(1))
	h.do(t, machine.Thermal{Command: thermal.FailFan{ID: "Fan1", Failed: true}})
	h.advance(time.Hour)
	check("a fan less", sel.Cooling, chassis, stateBits(1))
	least, _ := h.Machine().Profile.Thermal.Limits()
	h.do(t, machine.Thermal{Command: thermal.SetLoad{Load: new(1.0)}})
	h.do(t, machine.Thermal{Command: thermal.SetLimit{Watts: least}})
	check("held back", sel.Processor, event.Subject{Part: event.System, ID: "CPU1"}, stateBits(7, 10))
	h.do(t, machine.Reset{Kind: machine.ForceOff})
	h.advance(time.Minute)
	check("off", sel.ACPI, system, stateBits(6))
}

// The SEL record of a threshold event has the sensor's number, and its reading
// and the threshold as raw bytes.
func TestEventRecordsNameTheirSensors(t *testing.T) {
	h := newHostOf(t, "raid").running(t)
	force(t, h, "CPU2Temp", 94)
	force(t, h, "CPU2Temp", 50)
	h.do(t, machine.Thermal{Command: thermal.SetSupply{ID: "PSU2", Fault: thermal.Failed}})
	want := []string{"0103 01 57 5e 55", "0103 01 59 5e 5d", "0103 81 59 32 5d", "0103 81 57 32 55", "0871 6f 01 ff ff", "0984 0b 01 ff ff"}
	var got []string
	for e := range h.BMC().Log.Entries() {
		is := selEvent(h.Machine(), &e.Note)
		if is.Number == 0 {
			continue
		}
		r := is.Record()
		if e.Subject.ID == "CPU2Temp" || is.Sensor == sel.Supply || is.Sensor == sel.PowerUnit {
			got = append(got, fmt.Sprintf("%02x%02x %02x %02x %02x %02x", r[10], r[11], r[12], r[13], r[14], r[15]))
		}
		if of, ok := eventSubject(h.Machine(), is); !ok || of.Part == event.Sensor && of != e.Subject {
			t.Errorf("%s of %v is read back as of %v", e.Kind, e.Subject, of)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("records %q, want %q", got, want)
	}
}
