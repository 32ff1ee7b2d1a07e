package command

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// hex16 returns a number as on the wire, in hex.
func hex16(n int) string { return tohex([]byte{byte(n), byte(n >> 8)}) }

// TestRecordsAreWritten shows statement I52.
func TestRecordsAreWritten(t *testing.T) {
	h := newHost(t)
	for cmd, data := range map[byte]string{0x24: "0000510000", 0x25: "00000000000100", 0x26: "00000100", 0x27: "0000434c52aa"} {
		exchanges{{"where that cannot be", data, InvalidCommand, ""}}.try(t, h, wire.Storage, cmd)
	}
	h.d.IPMI.AddedSDRBytes = 100
	n := len(repositoryOf(h.Machine().Profile).records)
	record := func(id int) string { return hex16(id) + "51c007 4d4c00 01020304" }
	count := func(step string, records, free int, added bool) {
		t.Helper()
		code, got := ask(t, h, wire.Storage, 0x20)
		if code != Completed || int(le16(got[1:])) != records || int(le16(got[3:])) != free || got[13] != 0x2f || (int64(le32(got[5:])) == h.Now().Unix()) != added {
			t.Errorf("%s: %v % x, want %d records and %d bytes", step, code, got, records, free)
		}
	}
	count("at first", n, 100, false)
	exchanges{
		{"added", record(0), Completed, hex16(n + 1)},
		{"another", record(0x7777), Completed, hex16(n + 2)},
		{"shorter than it says", "0000 51c007 4d4c00 010203", DataLengthInvalid, ""},
		{"too long", "0000 51c0ff" + strings.Repeat("00", 255), DataLengthInvalid, ""},
		{"no room", "0000 51c03b" + strings.Repeat("00", 59), Completed, hex16(n + 3)},
		{"no room", "0000 51c03b" + strings.Repeat("00", 59), OutOfSpace, ""},
		{"no header", "0000 51c0", DataLengthInvalid, ""},
	}.try(t, h, wire.Storage, 0x24)
	count("added", n+3, 100-12-12-64, true)
	exchanges{
		{"the last but two", "0000" + hex16(n+1) + "00ff", Completed, hex16(n+2) + record(n+1)},
		{"the last", "0000 ffff 00ff", Completed, "ffff" + hex16(n+3) + "51c03b" + strings.Repeat("00", 59)},
	}.try(t, h, wire.Storage, 0x23)
	exchanges{{"one of those that it came with", "0000" + hex16(n+1) + "00ff", NotPresent, ""}}.try(t, h, wire.SensorEvent, 0x21)
	exchanges{{"reserve", "", Completed, "0400"}}.try(t, h, wire.Storage, 0x22)
	exchanges{
		{"deleted", "0400" + hex16(n+3), Completed, hex16(n + 3)},
		{"the reservation is over", "0400" + hex16(n+2), ReservationCanceled, ""},
		{"without one", "0000 0200", Completed, "0200"},
		{"again", "0000 0200", NotPresent, ""},
		{"the first", "0000 0000", Completed, "0100"},
		{"none such", "0000 ff7f", NotPresent, ""},
	}.try(t, h, wire.Storage, 0x26)
	exchanges{{"the first there is", "0000 0000 0002", Completed, "0400 0300"}, {"what is gone", "0000 0200 0002", NotPresent, ""}}.try(t, h, wire.Storage, 0x23)
	count("deleted", n, 100-12-12, true)
	full := strings.ReplaceAll(record(0), " ", "")
	exchanges{
		{"its beginning", "0000 0000 00 00" + full[:10], Completed, hex16(n + 3)},
		{"a gap", "0000 0000 06 00 00", ParameterOutOfRange, ""},
		{"the rest", "0000 0000 05 01" + full[10:], Completed, hex16(n + 3)},
		{"the rest alone", "0000 0000 05 01" + full[10:], ParameterOutOfRange, ""},
		{"all at once", "0000 0000 00 01" + full, Completed, hex16(n + 4)},
		{"less than it says", "0000 0000 00 01" + full[:20], Code(0x80), ""},
		{"another way", "0000 0000 00 02" + full, InvalidDataField, ""},
		{"another's reservation", "ffff 0000 00 01" + full, ReservationCanceled, ""},
	}.try(t, h, wire.Storage, 0x25)
	exchanges{
		{"not clear", "0000 434c53 aa", InvalidDataField, ""}, {"another way", "0000 434c52 55", InvalidDataField, ""}, {"another's reservation", "ffff 434c52 aa", ReservationCanceled, ""},
		{"status", "0000 434c52 00", Completed, "01"}, {"erase", "0000 434c52 aa", Completed, "01"},
	}.try(t, h, wire.Storage, 0x27)
	count("cleared", 0, 100, true)
	exchanges{{"nothing", "0000 0000 00ff", NotPresent, ""}}.try(t, h, wire.Storage, 0x23)
	exchanges{{"the sensor stays", "01", Completed, "0101"}}.try(t, h, wire.SensorEvent, 0x2f)
	exchanges{{"added again", record(0), Completed, hex16(n + 1)}}.try(t, h, wire.Storage, 0x24)
	count("added again", 1, 100-12, true)
}

// Get Command Support does not list a command that the BMC does not have
// (statement I52).
func TestUnsupportedSDRCommandsAreNotListed(t *testing.T) {
	h := newHost(t)
	const add = 0x24
	for _, room := range []int{0, 1} {
		h.d.IPMI.AddedSDRBytes = room
		code, got := ask(t, h, wire.App, 0x0a, 0x0e, byte(wire.Storage), 0)
		if code != Completed || len(got) != 16 || got[add/8]&(1<<(add%8)) == 0 != (room > 0) { // a bit that is set is a command that is not there
			t.Errorf("room for %d: %v % x", room, code, got)
		}
	}
}
