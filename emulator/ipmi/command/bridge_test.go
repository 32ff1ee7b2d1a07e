package command

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// inBand sends the requests over the system interface, and compares the
// responses.
func (all exchanges) inBand(t *testing.T, h *host, fn wire.NetFn, cmd byte) {
	t.Helper()
	for _, e := range all {
		code, got := askAs(t, h, system, fn, cmd, unhex(t, e.data)...)
		if code != e.code || tohex(got) != e.want {
			t.Errorf("%s: %02x/%02x [%s] = %02X [%s], want %02X [%s]", e.name, byte(fn), cmd, e.data, byte(code), tohex(got), byte(e.code), e.want)
		}
	}
}

func TestEventReceiver(t *testing.T) {
	h := newHost(t)
	exchanges{{"the BMC itself", "", Completed, "20 00"}}.try(t, h, wire.SensorEvent, 0x01)
	exchanges{
		{"another", "22 01", Completed, ""}, {"odd address", "23 00", InvalidDataField, ""}, {"no such LUN", "22 04", InvalidDataField, ""}, {"short", "22", DataLengthInvalid, ""},
	}.try(t, h, wire.SensorEvent, 0x00)
	exchanges{{"as set", "", Completed, "22 01"}}.try(t, h, wire.SensorEvent, 0x01)
	exchanges{{"nobody", "ff 00", Completed, ""}}.try(t, h, wire.SensorEvent, 0x00)
	exchanges{{"nobody", "", Completed, "ff 00"}}.try(t, h, wire.SensorEvent, 0x01)
}

func TestPlatformEvents(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"as ipmitool sends it", "04 01 30 01 09 ff ff", Completed, ""},
		{"of IPMI 1.0, with one byte of data", "03 08 31 ef 01", Completed, ""},
		{"of no version", "05 01 30 01 09 ff ff", InvalidDataField, ""},
		{"with a generator", "41 04 01 30 01 09 ff ff", DataLengthInvalid, ""},
		{"short", "04 01 30 01", DataLengthInvalid, ""},
	}.try(t, h, wire.SensorEvent, 0x02)
	exchanges{
		{"with a generator", "41 04 01 30 01 09 ff ff", Completed, ""},
		{"without data", "41 04 01 30 01", DataLengthInvalid, ""},
	}.inBand(t, h, wire.SensorEvent, 0x02)
	exchanges{
		{"from who asks, over LAN", "00 00 01 00 00 ff", Completed, "02 00 01 00 02 " + march1 + " 81 10 04 01 30 01 09 ff ff"},
		{"in the form of today", "00 00 02 00 07 09", ReservationCanceled, ""},
		{"in the form of today", "00 00 02 00 00 ff", Completed, "03 00 02 00 02 " + march1 + " 81 10 04 08 31 ef 01 ff ff"},
		{"from software", "00 00 03 00 00 ff", Completed, "ff ff 03 00 02 " + march1 + " 41 00 04 01 30 01 09 ff ff"},
	}.try(t, h, wire.Storage, 0x43)
	if e, ok := h.BMC().Log.Entry(1); !ok || e.Kind != event.SELRecordAddedCritical {
		t.Errorf("Redfish shows %+v", e)
	}
	if e, ok := h.BMC().Log.Entry(2); !ok || e.Kind != event.SELRecordAdded {
		t.Errorf("Redfish shows %+v", e)
	}
}

func TestGlobalEnables(t *testing.T) {
	h := newHost(t)
	exchanges{{"at first", "", Completed, "08"}}.try(t, h, wire.App, 0x2f)
	exchanges{{"all", "0f", Completed, ""}, {"OEM", "28", InvalidDataField, ""}}.inBand(t, h, wire.App, 0x2e)
	exchanges{{"all", "", Completed, "0f"}}.try(t, h, wire.App, 0x2f)
	exchanges{{"no log", "00", Completed, ""}}.inBand(t, h, wire.App, 0x2e)
	if h.BMC().Log.Takes() {
		t.Error("the log takes events all the same")
	}
	h.observe(event.Note{At: h.now, Kind: event.PowerOn, Subject: systemSubject})
	exchanges{{"over LAN", "04 01 30 01 09 ff ff", Completed, ""}}.try(t, h, wire.SensorEvent, 0x02)
	exchanges{{"in band", "41 04 01 30 01 09 ff ff", Completed, ""}}.inBand(t, h, wire.SensorEvent, 0x02)
	if n := h.BMC().Log.Len(); n != 1 {
		t.Errorf("the log has %d entries, want only what came in band", n)
	}
	_, err := h.ApplyBMC(t.Context(), bmc.EnableLog{Log: bmc.EventLog, On: true}) // as Redfish does
	must(t, err)
	exchanges{{"Redfish has switched it on", "", Completed, "08"}}.try(t, h, wire.App, 0x2f)
	exchanges{{"buffer", "0c", Completed, ""}}.inBand(t, h, wire.App, 0x2e)
	h.running(t)
	exchanges{{"after a start of the system", "", Completed, "08"}}.try(t, h, wire.App, 0x2f)
}

func TestEventMessageBuffer(t *testing.T) {
	h := newHost(t)
	h.observe(event.Note{At: h.now, Kind: event.PowerOff, Subject: systemSubject})
	exchanges{{"off", "", bufferEmpty, ""}}.inBand(t, h, wire.App, 0x35)
	exchanges{{"on", "0c", Completed, ""}}.inBand(t, h, wire.App, 0x2e)
	exchanges{{"empty", "", bufferEmpty, ""}}.inBand(t, h, wire.App, 0x35)
	exchanges{{"no flag", "", Completed, "00"}}.inBand(t, h, wire.App, 0x31)
	for range 2 {
		_, _ = ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
	}
	exchanges{{"full", "", Completed, "02"}}.inBand(t, h, wire.App, 0x31)
	exchanges{
		{"the first of them", "", Completed, "02 00 02 " + march1 + " 41 00 04 01 30 01 09 ff ff"}, {"the second was not kept", "", bufferEmpty, ""},
	}.inBand(t, h, wire.App, 0x35)
	_, _ = ask(t, h, wire.Storage, 0x44, unhex(t, aRecord)...)
	exchanges{{"cleared", "02", Completed, ""}}.inBand(t, h, wire.App, 0x30)
	exchanges{{"empty", "", bufferEmpty, ""}}.inBand(t, h, wire.App, 0x35)
}

func TestWatchdogFlag(t *testing.T) {
	h := newHost(t).running(t)
	h.do(t, machine.ProgramWatchdog{Use: machine.WatchdogSMSOS, Action: machine.NoAction, Warning: machine.WarnByMessageOnly, PreTimeout: 10 * time.Second, Countdown: time.Minute})
	h.do(t, machine.StartWatchdog{})
	exchanges{{"not yet", "", Completed, "00"}}.inBand(t, h, wire.App, 0x31)
	h.advance(55 * time.Second)
	exchanges{{"it has warned", "", Completed, "08"}}.inBand(t, h, wire.App, 0x31)
	exchanges{{"seen", "08", Completed, ""}}.inBand(t, h, wire.App, 0x30)
	exchanges{{"seen", "", Completed, "00"}}.inBand(t, h, wire.App, 0x31)
}

// sent asks over LAN and returns what follows the answer.
func sent(t *testing.T, h *host, who wire.Privilege, data ...byte) (Code, [][]byte) {
	t.Helper()
	code, out, more := askMore(t, h, who, 0, wire.App, 0x34, data...)
	if len(out) > 0 {
		t.Errorf("Send Message answers % x", out)
	}
	return code, more
}

func TestMessagesAreBridged(t *testing.T) {
	h := newHost(t)
	// As ipmitool -t 0x2c asks for the device ID.
	track := unhex(t, "40 2c 18 bc 81 18 01 66")
	code, more := sent(t, h, wire.Operator, track...)
	if code != Completed || len(more) != 1 || tohex(more[0]) != "81 1c 63 2c 18 01 00 50 01 06 01 02 20 d9 7e 00 4c 4d 51" {
		t.Errorf("bridged: %02X % x", byte(code), more)
	}
	if code, more := sent(t, h, wire.User, track...); code != InsufficientPrivilege || more != nil {
		t.Errorf("as a user: %02X % x", byte(code), more)
	}
	_, id := ask(t, h, wire.App, 0x01)
	for _, tt := range []struct {
		name, data string
		code       Code
		more       string // "": none
	}{
		{"self test", "40 2c 18 bc 81 18 04 63", Completed, "81 1c 63 2c 18 04 00 55 00 63"},
		{"untracked", "00 2c 18 bc 81 18 01 66", Completed, ""},
		{"unknown command", "40 2c 18 bc 81 18 70 f7", Completed, "81 1c 63 2c 18 70 c1 8b"},
		{"another LUN", "40 2c 19 bb 81 18 01 66", Completed, "81 1c 63 2c 19 01 c2 f8"},
		{"too long", "40 2c 18 bc 81 18 01 00 66", Completed, "81 1c 63 2c 18 01 c7 f4"},
		{"bad checksum", "40 2c 18 bc 81 18 01 67", Completed, ""},
		{"nobody there", "40 30 18 b8 81 18 01 66", nakOnWrite, ""},
		{"raw", "80 2c 18 bc 81 18 01 66", InvalidDataField, ""},
		{"reserved tracking", "c0 2c 18 bc 81 18 01 66", InvalidDataField, ""},
		{"encrypted", "60 2c 18 bc 81 18 01 66", InvalidDataField, ""},
		{"no such channel", "43 2c 18 bc 81 18 01 66", InvalidDataField, ""},
		{"LAN, of no session", "41 09 81 18 67 20 18 01 c7", invalidHandle, ""},
		{"to the BMC", "40 20 18 c8 81 18 01 66", Completed, tohex(seal(t, "81 1c", "20 18 01 00 "+tohex(id)))},
		{"a change of the BMC", "40 20 28 b8 81 18 44 23", Completed, "81 2c 53 20 18 44 d4 b0"},
		{"short", "40 2c 18 bc 81 18 01", DataLengthInvalid, ""},
	} {
		code, more := sent(t, h, wire.Administrator, unhex(t, tt.data)...)
		got := ""
		for _, m := range more {
			got += tohex(m)
		}
		if code != tt.code || got != tt.more {
			t.Errorf("%s: [%s] = %02X [%s], want %02X [%s]", tt.name, tt.data, byte(code), got, byte(tt.code), tt.more)
		}
	}
}

// A Send Message within a Send Message reaches a second controller; its response
// is the data of the first one's response.
func TestNestedSendMessage(t *testing.T) {
	h := newHost(t)
	inner := "20 18 c8 2c 18 01 bb" // Get Device ID, from 2Ch to 20h
	outer := seal(t, "2c 18", "81 18 34 40 "+inner)
	code, more := sent(t, h, wire.Administrator, append([]byte{0x40}, outer...)...)
	_, id := ask(t, h, wire.App, 0x01)
	want := seal(t, "81 1c", "2c 18 34 00 "+tohex(seal(t, "2c 1c", "20 18 01 00 "+tohex(id))))
	if code != Completed || len(more) != 1 || tohex(more[0]) != tohex(want) {
		t.Errorf("%02X % x, want % x", byte(code), more, want)
	}
	for _, tt := range []struct {
		name, inner string
		code        Code
	}{
		{"nobody there", "40 30 18 b8 2c 18 01 bb", nakOnWrite},
		{"another channel", "42 20 18 c8 2c 18 01 bb", InvalidDataField},
		{"bad checksum", "40 20 18 c8 2c 18 01 bc", Timeout},
		{"round and round", "40 2c 18 bc 2c 18 34 88", InsufficientPrivilege},
		{"short", "40 20", DataLengthInvalid},
	} {
		_, more := sent(t, h, wire.Administrator, append([]byte{0x40}, seal(t, "2c 18", "81 18 34 "+tt.inner)...)...)
		if len(more) != 1 || Code(more[0][6]) != tt.code || len(more[0]) != 8 {
			t.Errorf("%s: % x, want %02X", tt.name, more, byte(tt.code))
		}
	}
}

// seal puts the checksums into a message.
func seal(t *testing.T, head, body string) []byte {
	t.Helper()
	sum := func(b []byte) []byte {
		n := byte(0)
		for _, x := range b {
			n += x
		}
		return append(b, -n)
	}
	return append(sum(unhex(t, head)), sum(unhex(t, body))...)
}

// Messages for LUN 2 wait in the receive message queue until system software
// gets them (§6.13.1).
func TestReceiveMessageQueue(t *testing.T) {
	h := newHost(t)
	exchanges{{"none", "", bufferEmpty, ""}}.inBand(t, h, wire.App, 0x33)
	code, out, more := askMore(t, h, wire.Operator, softwareLUN, wire.OEMGroup, 0x01, 0xaa)
	if code != Completed || out != nil || more != nil {
		t.Errorf("a message for system software = %02X [% x]", byte(code), out)
	}
	if code, _, _ := askMore(t, h, wire.Operator, 1, wire.App, 0x01); code != InvalidForLUN {
		t.Errorf("Get Device ID at LUN 1 = %02X", byte(code))
	}
	if code, _, _ := askMore(t, h, 0, softwareLUN, wire.App, 0x01); code != InvalidForLUN {
		t.Errorf("a message for system software outside of a session = %02X", byte(code))
	}
	if code, _, _ := askMore(t, h, wire.Callback, softwareLUN, wire.App, 0x01); code != InsufficientPrivilege {
		t.Errorf("a message for system software at callback level = %02X", byte(code))
	}
	exchanges{{"waits", "", Completed, "01"}}.inBand(t, h, wire.App, 0x31)
	exchanges{{"it", "", Completed, "31 01 20 ba 26 81 04 01 aa d0"}, {"no other", "", bufferEmpty, ""}}.inBand(t, h, wire.App, 0x33)
	exchanges{{"deaf", "01 00", Completed, "01 00"}, {"asked", "01 02", Completed, "01 00"}, {"no such channel", "05 01", InvalidDataField, ""}, {"no such state", "01 03", InvalidDataField, ""}}.inBand(t, h, wire.App, 0x32)
	if code, _, _ := askMore(t, h, wire.Operator, softwareLUN, wire.App, 0x01); code != DestinationUnavailable {
		t.Errorf("a message that nobody wants = %02X", byte(code))
	}
	exchanges{{"hears again", "01 01", Completed, "01 01"}}.inBand(t, h, wire.App, 0x32)
	for n := range maxMessages + 1 {
		code, _, _ := askMore(t, h, wire.Operator, softwareLUN, wire.App, 0x01)
		if want := map[bool]Code{true: Completed, false: DestinationUnavailable}[n < maxMessages]; code != want {
			t.Errorf("message %d = %02X, want %02X", n+1, byte(code), byte(want))
		}
	}
	exchanges{{"all of them", "01", Completed, ""}}.inBand(t, h, wire.App, 0x30)
	exchanges{{"none", "", bufferEmpty, ""}}.inBand(t, h, wire.App, 0x33)

	// Responses over IPMB are queued, too.
	exchanges{{"sent", "00 2c 18 bc 22 1a 04 c0", Completed, ""}}.inBand(t, h, wire.App, 0x34)
	exchanges{{"answered", "", Completed, "00 1e c0 2c 18 04 00 55 00 63"}}.inBand(t, h, wire.App, 0x33)
}

func TestFirewallListsSupportedCommands(t *testing.T) {
	h := newHost(t)
	h.d.IPMI.AddedSDRBytes = 1 // so that all are known
	exchanges{{"no such channel", "03", InvalidDataField, ""}, {"reserved", "1e", InvalidDataField, ""}}.try(t, h, wire.App, 0x09)
	code, got := ask(t, h, wire.App, 0x09, presentInterface)
	if code != Completed || len(got) != 17 {
		t.Fatalf("Get NetFn Support = %02X [% x]", byte(code), got)
	}
	has := map[wire.NetFn]bool{}
	for _, row := range commands() {
		has[row.fn] = true
	}
	for fn := wire.NetFn(0); fn < 0x40; fn += 2 {
		if listed := got[1+fn/16]>>(fn/2%8)&1 == 1; listed != has[fn] {
			t.Errorf("network function %02Xh is there: %t", byte(fn), listed)
		}
	}
	for _, row := range commands() {
		body := []byte(nil)
		if row.group != 0 {
			body = []byte{row.group}
		}
		half := row.cmd >> 7 << 6
		_, off := ask(t, h, wire.App, 0x0a, append([]byte{presentInterface, byte(row.fn) | half, 0}, body...)...)
		_, on := ask(t, h, wire.App, 0x61, append([]byte{lanChannel, byte(row.fn) | half, 0}, body...)...)
		n := row.cmd & 0x7f
		if len(off) != 16 || len(on) != 16 || off[n/8]>>(n%8)&1 != 0 || on[n/8]>>(n%8)&1 != 1 {
			t.Errorf("%s is not listed: % x, % x", row.name, off, on)
		}
		at := append([]byte{presentInterface, byte(row.fn) | 1, 0, row.cmd}, body...)
		if code, got := ask(t, h, wire.App, 0x0b, at...); code != Completed || tohex(got) != "07 20 11 00 00 00 00" {
			t.Errorf("%s: sub-functions %02X [% x]", row.name, byte(code), got)
		}
		for _, cmd := range []byte{0x0d, 0x63} {
			if code, got := ask(t, h, wire.App, cmd, at...); code != Completed || tohex(got) != "00 00 00 00" {
				t.Errorf("%s: configurable sub-functions %02X [% x]", row.name, byte(code), got)
			}
		}
	}
	zeros := "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
	exchanges{
		{"nothing on LUN 1", "0e 06 01", Completed, zeros},
		{"no such LUN", "0e 06 04", InvalidDataField, ""},
		{"no such half", "0e 86 00", InvalidDataField, ""},
		{"no such group", "0e 2c 00 dd", Completed, zeros},
		{"short", "0e 06", DataLengthInvalid, ""},
		{"a group that needs none", "0e 06 00 dc", DataLengthInvalid, ""},
		{"half of an IANA number", "0e 2e 00 01 02", DataLengthInvalid, ""},
	}.try(t, h, wire.App, 0x61)
	exchanges{{"none", "0e 06 00", Completed, zeros}, {"no such channel", "05 06 00", InvalidDataField, ""}}.try(t, h, wire.App, 0x0c)
	exchanges{{"no such command", "0e 06 00 ee", InvalidDataField, ""}, {"reserved", "0e 46 00 01", InvalidDataField, ""}, {"another LUN", "0e 06 02 01", InvalidDataField, ""}}.try(t, h, wire.App, 0x0b)
}

// A SEL record whose sensor is one of this server has that sensor's part as its
// subject.
func TestSELRecordNamesItsSensorsPart(t *testing.T) {
	h := newHost(t)
	of := event.Subject{Part: event.Supply, ID: "PSU1"}
	logged := selEvent(h.Machine(), &event.Note{Kind: event.SupplyFailed, Subject: of})
	r := logged.Record()
	_, _ = ask(t, h, wire.Storage, 0x44, r[:]...)
	if e, ok := h.BMC().Log.Last(); !ok || logged.Number == 0 || e.Subject != of {
		t.Errorf("the entry's subject is %+v, want %+v", e.Subject, of)
	}
}

// Clients look for extensions of other vendors (PICMG, HPM.1): the response is
// Invalid Command at every privilege level.
func TestUnknownOEMGroupReturnsInvalidCommand(t *testing.T) {
	h := newHost(t)
	for _, who := range []wire.Privilege{wire.Callback, wire.User, wire.Administrator} {
		for _, probe := range []struct {
			fn   wire.NetFn
			cmd  byte
			data string
		}{{wire.Group, 0x3e, "00 02"}, {wire.Group, 0x00, "00"}, {wire.Group, 0x00, "03"}, {0x30, 0x70, ""}, {wire.OEMGroup, 0x21, "2a 00 00"}, {wire.App, 0x0e, ""}, {wire.App, 0x60, ""}} {
			if code, _ := askAs(t, h, who, probe.fn, probe.cmd, unhex(t, probe.data)...); code != InvalidCommand {
				t.Errorf("%02x/%02x [%s] at privilege %d = %02X, want %02X", byte(probe.fn), probe.cmd, probe.data, who, byte(code), byte(InvalidCommand))
			}
		}
	}
}
