package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// march1 is the time of the host under test as a SEL timestamp.
const march1 = "40 2a a4 69"

// aRecord is a SEL record that a client adds: a temperature above its upper
// critical threshold.
const aRecord = "00 00 02 00 00 00 00 41 00 04 01 30 01 09 ff ff"

func TestSELInfo(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"empty", "", Completed, "51 00 00 00 7d ff ff ff ff ff ff ff ff 0f"},
		{"too long", "00", DataLengthInvalid, ""},
	}.try(t, h, wire.Storage, 0x40)
	exchanges{{"empty", "", Completed, "d0 07 10 00 d0 07 d0 07 01"}}.try(t, h, wire.Storage, 0x41)
	h.observe(event.Note{At: h.now, Kind: event.PowerOn, Subject: systemSubject})
	exchanges{{"one entry", "", Completed, "51 01 00 f0 7c " + march1 + " ff ff ff ff 0f"}}.try(t, h, wire.Storage, 0x40)
	exchanges{{"one entry", "", Completed, "d0 07 10 00 cf 07 cf 07 01"}}.try(t, h, wire.Storage, 0x41)
	_, err := h.ApplyBMC(t.Context(), bmc.RemoveEntry{Log: bmc.EventLog, ID: 1}) // as Redfish does
	must(t, err)
	exchanges{{"none again", "", Completed, "51 00 00 00 7d " + march1 + " " + march1 + " 0f"}}.try(t, h, wire.Storage, 0x40)
}

func TestSELOverflow(t *testing.T) {
	h := newHost(t)
	h.d.BMC.Log = bmc.LogSpec{Size: 1, Full: bmc.Stays}
	h.bmc = bmc.New(&h.d.BMC, accounts, nil)
	h.changed()
	exchanges{{"fits", aRecord, Completed, "01 00"}, {"does not", aRecord, OutOfSpace, ""}}.try(t, h, wire.Storage, 0x44)
	exchanges{{"overflow", "", Completed, "51 01 00 00 00 " + march1 + " ff ff ff ff 8f"}}.try(t, h, wire.Storage, 0x40)
}

func TestSELEntries(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"empty", "00 00 00 00 00 ff", NotPresent, ""},
		{"empty", "00 00 ff ff 00 ff", NotPresent, ""},
	}.try(t, h, wire.Storage, 0x43)
	exchanges{
		{"event", aRecord, Completed, "01 00"},
		{"timed OEM", "aa bb c5 11 22 33 44 d9 7e 00 01 02 03 04 05 06", Completed, "02 00"},
		{"OEM", "aa bb e0 11 22 33 44 d9 7e 00 01 02 03 04 05 06", Completed, "03 00"},
		{"no such type", "00 00 03 00 00 00 00 41 00 04 01 30 01 09 ff ff", selNoSuchType, ""},
		{"short", "00 00", DataLengthInvalid, ""},
	}.try(t, h, wire.Storage, 0x44)
	exchanges{
		{"first", "00 00 00 00 00 ff", Completed, "02 00 01 00 02 " + march1 + " 41 00 04 01 30 01 09 ff ff"},
		{"by ID", "00 00 02 00 00 10", Completed, "03 00 02 00 c5 " + march1 + " d9 7e 00 01 02 03 04 05 06"},
		{"last", "00 00 ff ff 00 ff", Completed, "ff ff 03 00 e0 11 22 33 44 d9 7e 00 01 02 03 04 05 06"},
		{"begin of one", "00 00 01 00 00 03", Completed, "02 00 01 00 02"},
		{"part without reservation", "00 00 01 00 03 04", ReservationCanceled, ""},
		{"too much", "00 00 01 00 00 11", CannotReturnBytes, ""},
		{"no such record", "00 00 04 00 00 ff", NotPresent, ""},
	}.try(t, h, wire.Storage, 0x43)
	exchanges{{"reserve", "", Completed, "01 00"}}.try(t, h, wire.Storage, 0x42)
	exchanges{
		{"part", "01 00 01 00 03 04", Completed, "02 00 " + march1},
		{"rest", "01 00 01 00 0a ff", Completed, "02 00 01 30 01 09 ff ff"},
		{"nothing", "01 00 01 00 0f 00", Completed, "02 00"},
		{"too much", "01 00 01 00 0f 02", CannotReturnBytes, ""},
		{"behind", "01 00 01 00 10 01", ParameterOutOfRange, ""},
		{"another reservation", "02 00 01 00 03 04", ReservationCanceled, ""},
	}.try(t, h, wire.Storage, 0x43)
}

// A reservation is canceled by the next one, and by each entry that is added or
// removed, over IPMI or not (§31.4).
func TestSELReservationIsCanceled(t *testing.T) {
	redfish := func(c bmc.Command) func(*testing.T, *host) {
		return func(t *testing.T, h *host) {
			_, err := h.ApplyBMC(t.Context(), c)
			must(t, err)
		}
	}
	for name, does := range map[string]func(*testing.T, *host){
		"an event":             func(t *testing.T, h *host) { h.observe(event.Note{At: h.now, Kind: event.PowerOn}) },
		"a record":             func(t *testing.T, h *host) { _, _ = ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...) },
		"another reservation":  func(t *testing.T, h *host) { _, _ = ask(t, h, wire.Storage, 0x42) },
		"Redfish removes one":  redfish(bmc.RemoveEntry{Log: bmc.EventLog, ID: 1}),
		"Redfish clears":       redfish(bmc.ClearLog{Log: bmc.EventLog}),
		"the BMC restarts":     func(t *testing.T, h *host) { redfish(bmc.Restart{Kind: bmc.ForceRestart})(t, h); h.advance(time.Hour) },
		"":                     func(*testing.T, *host) {},
		" (resolved)":          redfish(bmc.ResolveEntry{Log: bmc.EventLog, ID: 2, Resolved: true}),
		" (that is refused)":   func(t *testing.T, h *host) { _, _ = ask(t, h, wire.Storage, 0x46, 9, 9, 1, 0) },
		" (of the other log)":  redfish(bmc.ClearLog{Log: bmc.AuditLog}),
		" (that was answered)": func(t *testing.T, h *host) { _, _ = ask(t, h, wire.Storage, 0x40) },
	} {
		h := newHost(t)
		for range 3 {
			_, _ = ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
		}
		_, _ = ask(t, h, wire.Storage, 0x42)
		does(t, h)
		want := ReservationCanceled
		if name == "" || strings.HasPrefix(name, " ") {
			want = Completed
		}
		if code, _ := ask(t, h, wire.Storage, 0x43, 1, 0, 3, 0, 1, 1); code != want && !(name == "Redfish clears" && code == ReservationCanceled) {
			t.Errorf("after %q a partial read = %02X, want %02X", name, byte(code), byte(want))
		}
	}
}

func TestSELPartialAdd(t *testing.T) {
	h := newHost(t)
	exchanges{{"without reservation", "00 00 00 00 00 00 aa", ReservationCanceled, ""}}.try(t, h, wire.Storage, 0x45)
	_, _ = ask(t, h, wire.Storage, 0x42)
	exchanges{
		{"first part", "01 00 00 00 00 00 00 00 02 00 00 00 00 41", Completed, "01 00"},
		{"gap", "01 00 01 00 09 00 00", ParameterOutOfRange, ""},
		{"second part", "01 00 01 00 08 00 00 04 01 30", Completed, "01 00"},
		{"last part", "01 00 01 00 0c 01 01 09 ff ff", Completed, "01 00"},
	}.try(t, h, wire.Storage, 0x45)
	exchanges{{"it is there", "00 00 00 00 00 ff", Completed, "ff ff 01 00 02 " + march1 + " 41 00 04 01 30 01 09 ff ff"}}.try(t, h, wire.Storage, 0x43)
	exchanges{{"the reservation is over", "01 00 00 00 00 00 00", ReservationCanceled, ""}}.try(t, h, wire.Storage, 0x45)
	_, _ = ask(t, h, wire.Storage, 0x42)
	exchanges{
		{"too short at the end", "02 00 00 00 00 01 00 00 02", selPartialLength, ""},
		{"first part", "02 00 00 00 00 00 " + aRecord, Completed, "02 00"},
		{"too long", "02 00 02 00 10 01 00", selPartialLength, ""},
		{"reserved state", "02 00 00 00 00 02 00", InvalidDataField, ""},
		{"no such type", "02 00 00 00 00 01 00 00 03 00 00 00 00 41 00 04 01 30 01 09 ff ff", selNoSuchType, ""},
		{"all at once", "02 00 00 00 00 01 " + aRecord, Completed, "02 00"},
	}.try(t, h, wire.Storage, 0x45)
	if n := h.BMC().Log.Len(); n != 2 {
		t.Errorf("%d entries", n)
	}
}

func TestDeleteSELEntry(t *testing.T) {
	h := newHost(t)
	for range 4 {
		_, _ = ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
	}
	reserve := func() { _, _ = ask(t, h, wire.Storage, 0x42) }
	exchanges{{"without reservation", "00 00 01 00", ReservationCanceled, ""}}.try(t, h, wire.Storage, 0x46)
	reserve()
	exchanges{{"first", "01 00 00 00", Completed, "01 00"}, {"the reservation is over", "01 00 02 00", ReservationCanceled, ""}}.try(t, h, wire.Storage, 0x46)
	reserve()
	exchanges{{"last", "02 00 ff ff", Completed, "04 00"}}.try(t, h, wire.Storage, 0x46)
	reserve()
	exchanges{{"once more", "03 00 04 00", NotPresent, ""}, {"by ID", "03 00 03 00", Completed, "03 00"}}.try(t, h, wire.Storage, 0x46)
	if e, ok := h.BMC().Log.Last(); !ok || e.ID != 2 || h.BMC().Log.Len() != 1 {
		t.Errorf("what Redfish shows: %+v", e)
	}
}

func TestClearSEL(t *testing.T) {
	h := newHost(t)
	h.d.IPMI.ClearSELDuration = time.Second
	_, _ = ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
	const clr = " 43 4c 52 "
	exchanges{{"without reservation", "00 00" + clr + "aa", ReservationCanceled, ""}, {"progress without", "00 00" + clr + "00", ReservationCanceled, ""}}.try(t, h, wire.Storage, 0x47)
	_, _ = ask(t, h, wire.Storage, 0x42)
	exchanges{
		{"another word", "01 00 43 4c 53 aa", InvalidDataField, ""},
		{"another operation", "01 00" + clr + "ab", InvalidDataField, ""},
		{"nothing is erased", "01 00" + clr + "00", Completed, "01"},
		{"begin", "01 00" + clr + "aa", Completed, "00"},
		{"progress", "01 00" + clr + "00", Completed, "00"},
		{"once more", "01 00" + clr + "aa", ReservationCanceled, ""},
	}.try(t, h, wire.Storage, 0x47)
	for _, c := range []struct {
		fn   wire.NetFn
		cmd  byte
		data string
	}{
		{wire.Storage, 0x40, ""}, {wire.Storage, 0x42, ""}, {wire.Storage, 0x43, "00 00 00 00 00 ff"}, {wire.Storage, 0x44, aRecord},
		{wire.Storage, 0x45, "01 00 00 00 00 00 00"}, {wire.Storage, 0x46, "01 00 01 00"},
		{wire.SensorEvent, 0x14, "00 00 00"}, {wire.SensorEvent, 0x15, ""},
	} {
		if code, _ := ask(t, h, c.fn, c.cmd, unhex(t, c.data)...); code != selErasing {
			t.Errorf("%02x/%02x while the log is erased = %02X, want %02X", byte(c.fn), c.cmd, byte(code), byte(selErasing))
		}
	}
	h.advance(time.Second)
	exchanges{{"it is done", "01 00" + clr + "00", Completed, "01"}}.try(t, h, wire.Storage, 0x47)
	exchanges{
		{"the log tells it", "00 00 00 00 00 ff", Completed, "ff ff 02 00 02 " + march1 + " 20 00 04 10 7b 6f 02 ff ff"},
		{"what was is gone", "00 00 01 00 00 ff", NotPresent, ""},
	}.try(t, h, wire.Storage, 0x43)
}

// Record IDs have 16 bits and wrap around; present entries are found by their
// IDs.
func TestSELRecordIDsWrapAround(t *testing.T) {
	h := newHost(t)
	st := h.bmc.State()
	st.Log = &bmc.Log{Next: recordIDs - 1, First: recordIDs - 1}
	h.bmc = bmc.New(&h.d.BMC, accounts, &st)
	h.changed()
	for i, want := range []string{"fd ff", "fe ff", "01 00", "02 00"} {
		exchanges{{fmt.Sprint("record ", i), aRecord, Completed, want}}.try(t, h, wire.Storage, 0x44)
	}
	var ids []string
	for next := "00 00"; next != "ff ff"; {
		code, got := ask(t, h, wire.Storage, 0x43, unhex(t, "00 00 "+next+" 00 02")...)
		if code != Completed {
			t.Fatalf("Get SEL Entry %s = %02X", next, byte(code))
		}
		next = tohex(got[:2])
		ids = append(ids, tohex(got[2:4]))
	}
	if got := strings.Join(ids, ", "); got != "fd ff, fe ff, 01 00, 02 00" {
		t.Errorf("walked %s", got)
	}
	exchanges{{"between", "00 00 03 00 00 ff", NotPresent, ""}, {"0001h", "00 00 01 00 00 02", Completed, "02 00 01 00"}}.try(t, h, wire.Storage, 0x43)
}

func TestSELTime(t *testing.T) {
	h := newHost(t)
	exchanges{{"as the lab has it", "", Completed, march1}}.try(t, h, wire.Storage, 0x48)
	exchanges{{"nobody has said", "", Completed, "ff 07"}}.try(t, h, wire.Storage, 0x5c)
	exchanges{
		{"an hour ahead", "3c 00", Completed, ""},
		{"further than there is", "a1 05", ParameterOutOfRange, ""},
		{"further than Redfish knows", "b0 04", ParameterOutOfRange, ""},
	}.try(t, h, wire.Storage, 0x5d)
	exchanges{{"offset", "", Completed, "3c 00"}}.try(t, h, wire.Storage, 0x5c)
	exchanges{{"local time", "", Completed, "50 38 a4 69"}}.try(t, h, wire.Storage, 0x48)
	if c := h.BMC().Clock; c.UTCOffset != 60 {
		t.Errorf("Redfish shows the time zone %+v", c)
	}
	exchanges{{"an hour on", "50 38 a4 69", Completed, ""}, {"no time", "ff ff ff ff", InvalidDataField, ""}, {"two hours on", "70 54 a4 69", Completed, ""}}.try(t, h, wire.Storage, 0x49)
	exchanges{{"what was set", "", Completed, "70 54 a4 69"}}.try(t, h, wire.Storage, 0x48)
	exchanges{{"forgotten", "", Completed, "ff 07"}}.try(t, h, wire.Storage, 0x5c)
	v := h.BMC()
	if got, want := v.Clock.Local(h.now.Add(v.Clock.Skew())), "2026-03-01T15:00:00+01:00"; got.Format(time.RFC3339) != want {
		t.Errorf("Redfish shows %v, want %s", got, want)
	}
	exchanges{{"said again", "c4 ff", Completed, ""}, {"and taken back", "ff 07", Completed, ""}}.try(t, h, wire.Storage, 0x5d)
	exchanges{{"forgotten", "", Completed, "ff 07"}}.try(t, h, wire.Storage, 0x5c)

	// The time that Redfish sets is that of the log.
	_, err := h.ApplyBMC(t.Context(), bmc.SetZone{})
	must(t, err)
	_, err = h.ApplyBMC(t.Context(), bmc.SetTime{To: h.now})
	must(t, err)
	exchanges{{"Redfish's", "", Completed, march1}}.try(t, h, wire.Storage, 0x48)
	exchanges{{"Redfish's", "", Completed, "00 00"}}.try(t, h, wire.Storage, 0x5c)
	n := h.BMC().Network()
	n.NTP.On, n.TimeServers = true, []string{"ntp.test"}
	_, err = h.ApplyBMC(t.Context(), bmc.SetNetwork{Network: n})
	must(t, err)
	exchanges{{"it follows time servers", march1, NotSupportedInState, ""}}.try(t, h, wire.Storage, 0x49)
}

// Events of the server are log entries of IPMI and of Redfish.
func TestEventsAreLoggedAsSELRecords(t *testing.T) {
	h := newHost(t)
	notes := []event.Note{
		{Kind: event.PowerOn, Subject: systemSubject},
		{Kind: event.SupplyFailed, Subject: event.Subject{Part: event.Supply, ID: "PSU1"}, Args: []string{"PSU1"}},
		{Kind: event.DriveFailed, Subject: event.Subject{Part: event.Drive, ID: "Disk.0", In: "RAID.1"}, Args: []string{"Disk.0", "RAID.1"}},
		{Kind: event.SensorHigh, Subject: event.Subject{Part: event.Sensor, ID: "InletTemp"}, Args: []string{"Inlet Temp", "39", "Cel", "38"}},
		{Kind: event.SensorNormal, Subject: event.Subject{Part: event.Sensor, ID: "InletTemp"}, Args: []string{"Inlet Temp", "30", "Cel", "caution", "38"}},
	}
	for _, n := range notes {
		n.At = h.now
		h.observe(n)
	}
	for i, n := range notes {
		code, got := ask(t, h, wire.Storage, 0x43, 0, 0, byte(i+1), 0, 0, 0xff)
		if code != Completed {
			t.Fatalf("record %d: %02X", i+1, byte(code))
		}
		is, ok := sel.Parse(got[2:])
		want := sel.Of(n)
		if !ok || is.Sensor != want.Sensor || is.Type != want.Type || is.Gone != want.Gone || is.Offset() != want.Offset() || is.Generator != sel.BMC {
			t.Errorf("%s is recorded as %+v", n.Kind, is)
		}
	}
}
