package command

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// vendor returns a host whose dialect has OEM commands and OEM system info
// parameters.
func vendor(t *testing.T) *host {
	t.Helper()
	h := newHost(t)
	d := *h.d
	d.IPMI.OEMCommands = []dialect.OEMCommand{
		{NetFn: 0x30, Cmd: 1, Name: "Get Mode", Privilege: 2, Response: []dialect.OEMField{{Stored: 1, Bytes: []byte{7, 8}}}},
		{NetFn: 0x30, Cmd: 2, Name: "Set Mode", Privilege: 4, Prefix: []byte{0xaa}, MinLength: 3, MaxLength: 3, StoreAs: 1},
		{NetFn: 0x30, Cmd: 3, Name: "Get Power", Privilege: 3, Response: []dialect.OEMField{{Value: dialect.OEMPower, Size: 2}, {Bytes: []byte{0xee}}}},
		{NetFn: 0x30, Cmd: 3, Name: "never", Privilege: 3, Response: []dialect.OEMField{{Bytes: []byte{1}}}},
	}
	d.IPMI.OEMSystemInfo = []dialect.OEMInfo{
		{Param: 0xc5, Text: dialect.OEMSerial}, {Param: 0xda, NICs: true}, {Param: 0xdd, Response: []dialect.OEMField{{Bytes: []byte{0x20}}}},
		{Param: 0xc4, Text: dialect.OEMSerial, Short: true},
		{Param: 0xde, Blocks: true, Response: []dialect.OEMField{
			{Bytes: []byte{1, 2}}, {Value: dialect.OEMStatic, Size: 1}, {Value: dialect.OEMAddress, Size: 4}, {Text: dialect.OEMBMC, Size: 10}, {Bytes: []byte{7}},
		}},
	}
	must(t, d.Validate())
	h.d = &d
	return h
}

// TestOEMCommandsFromDialect shows statement I73.
func TestOEMCommandsFromDialect(t *testing.T) {
	h := vendor(t)
	for _, tt := range []struct {
		who  wire.Privilege
		cmd  byte
		data string
		code Code
		want string
	}{
		{wire.User, 1, "", Completed, "0708"},
		{wire.User, 2, "aa0102", InsufficientPrivilege, ""},
		{wire.Administrator, 2, "bb0102", InvalidCommand, ""}, // not what it begins with
		{wire.Administrator, 2, "aa01", DataLengthInvalid, ""},
		{wire.Administrator, 2, "aa0102", Completed, ""},
		{wire.User, 1, "", Completed, "0102"},
		{wire.User, 3, "", InsufficientPrivilege, ""},
		{wire.Operator, 4, "", InvalidCommand, ""},
	} {
		data, err := hex.DecodeString(tt.data)
		must(t, err)
		code, got := askAs(t, h, tt.who, 0x30, tt.cmd, data...)
		if code != tt.code || hex.EncodeToString(got) != tt.want {
			t.Errorf("%d: 30/%02x [%s] = %v [% x], want %v [%s]", tt.who, tt.cmd, tt.data, code, got, tt.code, tt.want)
		}
	}
	h.do(t, machine.Reset{Kind: machine.ResetOn})
	h.advance(time.Minute)
	code, got := askAs(t, h, wire.Operator, 0x30, 3)
	watts := uint16(h.Machine().Thermal.Watts())
	if code != Completed || len(got) != 3 || le16(got) < watts-5 || le16(got) > watts+5 || got[2] != 0xee {
		t.Errorf("30/03 = %v [% x], want about %d W and EEh", code, got, watts)
	}
}

// TestOEMSystemInfoFromDialect shows statements I31 and I71.
func TestOEMSystemInfoFromDialect(t *testing.T) {
	h := vendor(t)
	id := h.Machine().Identity
	if code, got := ask(t, h, wire.App, 0x59, 0, 0xc5, 0, 0); code != Completed || !strings.Contains(string(got), id.Serial) || len(got) != 18 {
		t.Errorf("C5h = %v %q, want %q in a block", code, got, id.Serial)
	}
	if code, got := ask(t, h, wire.App, 0x59, 0, 0xdd, 2, 0); code != Completed || string(got) != "\x11\x20" {
		t.Errorf("DDh = %v [% x]", code, got)
	}
	if code, got := ask(t, h, wire.App, 0x59, 0, 0xda, 0, 0, 0, 0); code != Completed || len(got) != 2 || int(got[1]) != 8*len(id.NICs) {
		t.Errorf("DAh = %v [% x], want the length of %d ports", code, got, len(id.NICs))
	}
	code, got := ask(t, h, wire.App, 0x59, 0, 0xda, 0, 0, 8, 8)
	if mac := strings.ReplaceAll(id.NICs[1].MAC, ":", ""); code != Completed || len(got) != 9 || hex.EncodeToString(got[3:]) != mac {
		t.Errorf("DAh, second = %v [% x], want %s", code, got, mac)
	}
	if code, got := ask(t, h, wire.App, 0x59, 0, 0xc4, 0, 0); code != Completed || string(got) != "\x11"+string(rune(len(id.Serial)))+id.Serial {
		t.Errorf("C4h = %v %q, want the length of %q and the text", code, got, id.Serial)
	}
	h.bmc.SetNetworkDefaults(spot)
	h.changed()
	version := h.Machine().BMCVersion()
	record := "\x01\x02\x00\x7f\x40\x00\x01" + version + strings.Repeat("\x00", 10-len(version)) + "\x07"
	for set, want := range []string{"\x11\x00" + record[:16], "\x11\x01" + record[16:]} {
		if code, got := ask(t, h, wire.App, 0x59, 0, 0xde, byte(set), 0); code != Completed || string(got) != want {
			t.Errorf("DEh, block %d = %v % x, want % x", set, code, got, want)
		}
	}
	for _, bad := range [][]byte{{0, 0xda, 0, 0, 16, 8}, {0, 0xc5, 9, 0}, {0, 0xde, 2, 0}} {
		if code, _ := ask(t, h, wire.App, 0x59, bad...); code != ParameterOutOfRange {
			t.Errorf("06/59 [% x] = %v, want out of range", bad, code)
		}
	}
	if code, _ := ask(t, newHost(t), wire.App, 0x59, 0, 0xdd, 2, 0); code != noParameter {
		t.Errorf("DDh of another vendor = %v", code)
	}
	if code, _ := ask(t, h, wire.App, 0x59, 0, 2, 0, 0, 0); code != DataLengthInvalid {
		t.Errorf("a parameter of the standard with a byte more = %v", code)
	}
}
