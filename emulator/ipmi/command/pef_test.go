package command

import (
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// TestPEFParameters shows statement I45.
func TestPEFParameters(t *testing.T) {
	h := newHost(t)
	exchanges{{"capabilities", "", Completed, "51 2f 14"}}.try(t, h, wire.SensorEvent, 0x10)
	zeros := strings.Repeat(" 00", stringBlock)
	exchanges{
		{"progress", "00 00 00", Completed, "11 00"},
		{"control", "01 00 00", Completed, "11 00"},
		{"revision alone", "81 00 00", Completed, "11"},
		{"actions", "02 00 00", Completed, "11 00"},
		{"delay", "03 00 00", Completed, "11 3c"},
		{"delay of alerts", "04 00 00", Completed, "11 3c"},
		{"number of filters", "05 00 00", Completed, "11 14"},
		{"a filter", "06 01 00", Completed, "11 01 c0 01 01 08 ff ff 01 ff 01 81 00 00 00 00 00 00 00 00 00 00"},
		{"an empty one", "06 14 00", Completed, "11 14 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"},
		{"filter 0", "06 00 00", ParameterOutOfRange, ""},
		{"filter 21", "06 15 00", ParameterOutOfRange, ""},
		{"its first byte", "07 01 00", Completed, "11 01 c0"},
		{"number of policies", "08 00 00", Completed, "11 10"},
		{"a policy", "09 01 00", Completed, "11 01 10 11 00"},
		{"policy 17", "09 11 00", ParameterOutOfRange, ""},
		{"GUID", "0a 00 00", Completed, "11 00" + zeros},
		{"number of strings", "0b 00 00", Completed, "11 08"},
		{"key", "0c 08 00", Completed, "11 08 00 00"},
		{"key 9", "0c 09 00", ParameterOutOfRange, ""},
		{"string", "0d 08 04", Completed, "11 08 04" + zeros},
		{"block 0", "0d 08 00", ParameterOutOfRange, ""},
		{"block 5", "0d 08 05", ParameterOutOfRange, ""},
		{"group control", "0e 00 00", pefParamUnsupported, ""},
		{"OEM", "60 00 00", pefParamUnsupported, ""},
		{"OEM, revision", "e0 00 00", pefParamUnsupported, ""},
		{"short", "01 00", DataLengthInvalid, ""},
	}.try(t, h, wire.SensorEvent, 0x13)
	exchanges{
		{"begun", "00 01", Completed, ""},
		{"begun twice", "00 01", setAlreadyInProgress, ""},
		{"what is set holds", "00 02", Completed, ""},
		{"reserved", "00 03", InvalidDataField, ""},
		{"control", "01 0f", Completed, ""},
		{"reserved control", "01 10", InvalidDataField, ""},
		{"too long", "01 01 01", DataLengthInvalid, ""},
		{"all actions that there are", "02 3f", Completed, ""},
		{"reserved action", "02 40", InvalidDataField, ""},
		{"read-only", "05 01", pefParamReadOnly, ""},
		{"read-only", "08 01", pefParamReadOnly, ""},
		{"no such parameter", "0e 01", pefParamUnsupported, ""},
		{"revision", "81 01", InvalidDataField, ""},
		{"filter", "06 0c 80 3f 22 10 20 00 01 30 01 00 02 00 ff 00 00 ff 00 00 ff 00", Completed, ""},
		{"filter 0", "06 00 80 3f 22 10 20 00 01 30 01 00 02 00 ff 00 00 ff 00 00 ff 00", ParameterOutOfRange, ""},
		{"short filter", "06 0c 80", DataLengthInvalid, ""},
		{"nothing of it", "06", DataLengthInvalid, ""},
		{"reserved type", "06 0c a0 3f 22 10 20 00 01 30 01 00 02 00 ff 00 00 ff 00 00 ff 00", InvalidDataField, ""},
		{"off", "07 01 40", Completed, ""},
		{"policy", "09 02 28 12 81", Completed, ""},
		{"GUID", "0a 01 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff", Completed, ""},
		{"key", "0c 02 0c 01", Completed, ""},
		{"reserved key", "0c 02 8c 01", InvalidDataField, ""},
		{"string", "0d 02 01 61 62 63", Completed, ""},
		{"its end", "0d 02 02 64 00", Completed, ""},
		{"empty block", "0d 02 02", DataLengthInvalid, ""},
		{"key 0", "0c 00 01 02", Completed, ""},
		{"string 0", "0d 00 01 78 79", Completed, ""},
		{"nothing", "", DataLengthInvalid, ""},
	}.try(t, h, wire.SensorEvent, 0x12)
	want := exchanges{
		{"progress", "00 00 00", Completed, "11 01"},
		{"control", "01 00 00", Completed, "11 0f"},
		{"actions", "02 00 00", Completed, "11 2f"},
		{"filter", "06 0c 00", Completed, "11 0c 80 2f 22 10 20 00 01 30 01 00 02 00 ff 00 00 ff 00 00 ff 00"},
		{"off", "06 01 00", Completed, "11 01 40 01 01 08 ff ff 01 ff 01 81 00 00 00 00 00 00 00 00 00 00"},
		{"policy", "09 02 00", Completed, "11 02 28 12 81"},
		{"GUID", "0a 00 00", Completed, "11 01 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff"},
		{"key", "0c 02 00", Completed, "11 02 0c 01"},
		{"string", "0d 02 01", Completed, "11 02 01 61 62 63" + zeros[9:]},
		{"its end", "0d 02 02", Completed, "11 02 02 64" + zeros[3:]},
		{"key 0", "0c 00 00", Completed, "11 00 01 02"},
		{"string 0", "0d 00 01", Completed, "11 00 01 78 79" + zeros[6:]},
	}
	want.try(t, h, wire.SensorEvent, 0x13)
	// A restart of the BMC clears only the volatile parameters.
	_, err := h.ApplyBMC(t.Context(), bmc.Restart{Kind: bmc.ForceRestart})
	must(t, err)
	h.advance(time.Hour)
	want[0].want, want[10].want, want[11].want = "11 00", "11 00 00 00", "11 00 01"+zeros
	want.try(t, h, wire.SensorEvent, 0x13)
}

func TestPEFSetInProgressEndsWithARestart(t *testing.T) {
	h := newHost(t)
	exchanges{{"begun", "00 01", Completed, ""}}.try(t, h, wire.SensorEvent, 0x12)
	h.running(t)
	exchanges{{"complete", "00 00 00", Completed, "11 00"}}.try(t, h, wire.SensorEvent, 0x13)
}

// TestPostponeTimer shows statement I45.
func TestPostponeTimer(t *testing.T) {
	h := newHost(t)
	exchanges{{"nobody has armed it", "ff", Completed, "00"}, {"armed", "3c", Completed, "3c"}}.try(t, h, wire.SensorEvent, 0x11)
	h.observe(event.Note{At: h.now, Kind: event.PowerOn, Subject: systemSubject})
	h.advance(10 * time.Second)
	exchanges{{"it runs", "ff", Completed, "32"}}.try(t, h, wire.SensorEvent, 0x11)
	exchanges{{"waits", "", Completed, march1 + " 01 00 ff ff ff ff"}}.try(t, h, wire.SensorEvent, 0x15)
	exchanges{{"seen to", "00 01 00", Completed, ""}}.try(t, h, wire.SensorEvent, 0x14)
	exchanges{{"it stands", "ff", Completed, "3c"}, {"all off", "fe", Completed, "fe"}, {"asked", "ff", Completed, "fe"}, {"on", "00", Completed, "00"}}.try(t, h, wire.SensorEvent, 0x11)
}

// TestLastProcessedEvent shows statement I46.
func TestLastProcessedEvent(t *testing.T) {
	h := newHost(t)
	exchanges{{"empty", "", Completed, "ff ff ff ff ff ff ff ff ff ff"}}.try(t, h, wire.SensorEvent, 0x15)
	for range 3 {
		_, _ = ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
	}
	exchanges{{"three", "", Completed, march1 + " 03 00 ff ff 03 00"}}.try(t, h, wire.SensorEvent, 0x15)
	exchanges{
		{"software", "00 02 00", Completed, ""}, {"BMC", "01 01 00", Completed, ""}, {"no such record", "00 09 00", NotPresent, ""}, {"reserved", "02 01 00", InvalidDataField, ""},
	}.try(t, h, wire.SensorEvent, 0x14)
	exchanges{{"as was said", "", Completed, march1 + " 03 00 02 00 01 00"}}.try(t, h, wire.SensorEvent, 0x15)
	_, _ = ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
	exchanges{{"one more", "", Completed, march1 + " 04 00 02 00 04 00"}}.try(t, h, wire.SensorEvent, 0x15)
	_, err := h.ApplyBMC(t.Context(), bmc.ClearLog{Log: bmc.EventLog}) // as Redfish does
	must(t, err)
	exchanges{{"cleared", "", Completed, march1 + " ff ff ff ff ff ff"}}.try(t, h, wire.SensorEvent, 0x15)
}

// TestFilters shows statement I45.
func TestFilters(t *testing.T) {
	e := sel.Event{Generator: 0x0020, Sensor: sel.Temperature, Number: 0x30, Type: sel.Threshold, Data: [3]byte{0x59, 0x5c, 0x5a}}
	for _, tt := range []struct {
		name  string
		at    int // byte of a filter that matches all, counted from 0
		value []byte
		want  bool
	}{
		{"all", 0, []byte{0x80}, true},
		{"off", 0, []byte{0x00}, false},
		{"generator", 4, []byte{0x20, 0x00}, true},
		{"another generator", 4, []byte{0x41}, false},
		{"another channel", 5, []byte{0x10}, false},
		{"sensor type", 6, []byte{0x01, 0x30, 0x01}, true},
		{"another type", 6, []byte{0x02}, false},
		{"another number", 7, []byte{0x31}, false},
		{"deassertion", 8, []byte{0x81}, false},
		{"offset", 9, []byte{0x00, 0x02}, true},
		{"another offset", 9, []byte{0xff, 0xfd}, false},
		{"reading exactly", 14, []byte{0xff, 0xff, 0x5c}, true},
		{"another reading", 14, []byte{0xff, 0xff, 0x5d}, false},
		{"bits of it", 14, []byte{0x0f, 0xff, 0x0c}, true},
		{"one bit of two is set", 14, []byte{0x06, 0xf9, 0x06}, true},
		{"neither bit is set", 14, []byte{0x22, 0xdd, 0x22}, false},
		{"one bit of two is clear", 14, []byte{0x06, 0xf9, 0x00}, true},
		{"high half exactly, any of the low", 14, []byte{0xff, 0xf0, 0x5f}, true},
		{"high half differs", 14, []byte{0xff, 0xf0, 0xaf}, false},
		{"threshold", 17, []byte{0xff, 0xff, 0x5a}, true},
		{"another threshold", 17, []byte{0xff, 0xff, 0x5b}, false},
	} {
		f := filter{0: 0x80, 4: 0xff, 5: 0xff, 6: 0xff, 7: 0xff, 8: 0xff, 9: 0xff, 10: 0xff}
		copy(f[tt.at:], tt.value)
		if got := f.matches(e); got != tt.want {
			t.Errorf("%s: matches = %t, want %t", tt.name, got, tt.want)
		}
	}
}
