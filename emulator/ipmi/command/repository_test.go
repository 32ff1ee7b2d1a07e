package command

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/sdr"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

func TestRepositoryIsShared(t *testing.T) {
	p := profileOf(t, "generic")
	if a, b := repositoryOf(p), repositoryOf(p); a != b {
		t.Error("made twice")
	}
	other := repositoryOf(profileOf(t, "raid"))
	if a := repositoryOf(p); a.timestamp == other.timestamp {
		t.Error("two servers' records are of the same time: who keeps them would take one for the other")
	}
}

// Every record is well formed, no sensor number is used twice, and record IDs
// ascend.
func TestRecords(t *testing.T) {
	for _, profile := range []string{"generic", "raid"} {
		r := newRepository(profileOf(t, profile))
		numbers, names := map[byte]bool{}, map[string]bool{}
		for i, rec := range r.records {
			if len(rec) > 64 || int(rec[4]) != len(rec)-sdr.HeaderSize || rec[2] != sdr.Version || int(le16(rec)) != i+1 {
				t.Errorf("%s: record % x", profile, rec)
			}
		}
		for i := range r.sensors {
			s := &r.sensors[i]
			if numbers[s.Number] || s.Number == 0 || s.Number == 0xff || names[s.Name] || s.Name == "" || len(s.Name) > sdr.MaxName {
				t.Errorf("%s: sensor %d %q", profile, s.Number, s.Name)
			}
			numbers[s.Number], names[s.Name] = true, true
			if rec := r.records[s.record-1]; rec[7] != s.Number {
				t.Errorf("%s: the record of %s is % x", profile, s.Name, rec)
			}
		}
	}
}

// A server with more parts than sensor numbers has parts without a sensor.
func TestSensorNumbersRunOut(t *testing.T) {
	p := *profileOf(t, "generic")
	p.Memory.Modules = 400
	r := newRepository(&p)
	numbers := map[byte]bool{}
	for i := range r.sensors {
		n := r.sensors[i].Number
		if numbers[n] || n == 0 || n == 0xff {
			t.Errorf("number %d", n)
		}
		numbers[n] = true
	}
	if len(r.sensors) != numberLast {
		t.Errorf("%d sensors", len(r.sensors))
	}
}

// TestRepositoryCommands shows statements I51, I52 and I53.
func TestRepositoryCommands(t *testing.T) {
	h := newHost(t)
	r := repositoryOf(h.Machine().Profile)
	n := len(r.records)
	code, info := ask(t, h, wire.Storage, 0x20)
	if code != Completed || len(info) != 14 || info[0] != 0x51 || int(le16(info[1:])) != n || le32(info[5:]) != r.timestamp || info[13] != 3 {
		t.Errorf("info: %v % x", code, info)
	}
	code, allocation := ask(t, h, wire.Storage, 0x21)
	if code != Completed || len(allocation) != 9 || le16(allocation[2:]) != 16 || allocation[8] != 4 || int(le16(allocation)) <= n {
		t.Errorf("allocation: %v % x", code, allocation)
	}
	exchanges{{"reserve", "", Completed, "0100"}, {"again", "", Completed, "0200"}}.try(t, h, wire.Storage, 0x22)
	exchanges{{"reserve", "", Completed, "0100"}}.try(t, h, wire.SensorEvent, 0x22)
	first, last := r.records[0], r.records[n-1]
	for _, read := range []struct {
		fn  wire.NetFn
		cmd byte
	}{{wire.Storage, 0x23}, {wire.SensorEvent, 0x21}} {
		held := map[byte]string{0x23: "0200", 0x21: "0100"}[read.cmd]
		exchanges{
			{"the first", "0000 0000 00ff", Completed, "0200" + tohex(first)},
			{"its header", "0000 0000 0005", Completed, "0200" + tohex(first[:5])},
			{"the rest", held + "0100 0506", Completed, "0200" + tohex(first[5:11])},
			{"the rest, unreserved", "0000 0100 0506", Completed, "0200" + tohex(first[5:11])},
			{"the rest, of another reservation", "0900 0100 0506", ReservationCanceled, ""},
			{"header, of another reservation", "0900 0100 0005", Completed, "0200" + tohex(first[:5])},
			{"the last", "0000 ffff 00ff", Completed, "ffff" + tohex(last)},
			{"more than there is", "0000 0000 0541", CannotReturnBytes, ""},
			{"behind it", "0000 0000 ff01", ParameterOutOfRange, ""},
			{"none such", "0000 0002 0005", NotPresent, ""},
			{"short", "0000 0000 00", DataLengthInvalid, ""},
		}.try(t, h, read.fn, read.cmd)
	}
	// A walk meets all of them.
	met := 0
	for id := uint16(0); id != 0xffff; met++ {
		code, got := ask(t, h, wire.Storage, 0x23, 0, 0, byte(id), byte(id>>8), 0, 0xff)
		if code != Completed {
			t.Fatalf("record %d: %v", id, code)
		}
		id = le16(got)
	}
	if met != n {
		t.Errorf("a walk meets %d records of %d", met, n)
	}
	exchanges{{"sensors", "", Completed, tohex([]byte{byte(len(r.sensors)), 1})}, {"sensors", "00", Completed, tohex([]byte{byte(len(r.sensors)), 1})},
		{"records", "01", Completed, tohex([]byte{byte(n), 1})}, {"what", "02", InvalidDataField, ""}}.try(t, h, wire.SensorEvent, 0x20)
	exchanges{{"run", "01", Completed, "01"}, {"has it run", "00", Completed, "01"}, {"reserved bit", "02", InvalidDataField, ""}}.try(t, h, wire.Storage, 0x2c)
	code, now := ask(t, h, wire.Storage, 0x28)
	if code != Completed || len(now) != 4 || int64(le32(now)) != h.Now().Unix() {
		t.Errorf("time: %v % x", code, now)
	}
	exchanges{{"another time", "00112233", Completed, ""}, {"short", "001122", DataLengthInvalid, ""}}.try(t, h, wire.Storage, 0x29)
	h.advance(time.Second)
	exchanges{{"a second after it was set", "", Completed, "01112233"}}.try(t, h, wire.Storage, 0x28)
	h.advance(time.Second)
}
