package command

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/ibmc"
	"github.com/metalab-dev/metalab/emulator/dialect/idrac"
	"github.com/metalab-dev/metalab/emulator/dialect/ilo"
	"github.com/metalab-dev/metalab/emulator/dialect/irmc"
	"github.com/metalab-dev/metalab/emulator/dialect/megarac"
	"github.com/metalab-dev/metalab/emulator/dialect/openbmc"
	"github.com/metalab-dev/metalab/emulator/dialect/supermicro"
	"github.com/metalab-dev/metalab/emulator/dialect/xcc"
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

// TestSupermicroFanZones sets the duty cycle of zones of fans as tools for Supermicro's boards
// do, and shows that sub-commands of 68h, 70h and 3Ch without evidence are invalid (I72).
func TestSupermicroFanZones(t *testing.T) {
	for _, d := range []*dialect.Record{&supermicro.X11, &supermicro.X13} {
		h := newHost(t)
		h.d = d
		for i, row := range []struct {
			cmd  byte
			data []byte
			want Code
			out  []byte
		}{
			{0x70, []byte{0x66, 0, 0}, Completed, []byte{50}},
			{0x70, []byte{0x66, 1, 0, 100}, Completed, nil},
			{0x70, []byte{0x66, 1, 1, 40}, Completed, nil},
			{0x70, []byte{0x66, 0, 0}, Completed, []byte{100}},
			{0x70, []byte{0x66, 0, 1}, Completed, []byte{40}},
			{0x70, []byte{0x66, 1, 0}, DataLengthInvalid, nil},
			{0x70, []byte{0x26, 2}, InvalidCommand, nil},
			{0x68, []byte{0x28, 3}, InvalidCommand, nil},
			{0x3c, nil, InvalidCommand, nil},
		} {
			if code, out := ask(t, h, wire.OEM, row.cmd, row.data...); code != row.want || !bytes.Equal(out, row.out) {
				t.Errorf("%s: %d: %02X % X = %02X % X, want %02X % X", d.Name, i, row.cmd, row.data, byte(code), out, byte(row.want), row.out)
			}
		}
		if code, _ := askAs(t, h, wire.User, wire.OEM, 0x70, 0x66, 1, 0, 30); code != InsufficientPrivilege {
			t.Errorf("%s: a user sets the duty cycle: %02X", d.Name, byte(code))
		}
	}
}

// TestFirewallListsExactlyTheCommandsOfADialect asks every command of every network
// function, listed or not, and shows that Get NetFn Support and Get Command Support list
// those that the BMC has (§21.2, §21.3).
func TestFirewallListsExactlyTheCommandsOfADialect(t *testing.T) {
	type server struct {
		name string
		h    *host
	}
	all := []server{{"generic", newHost(t)}, {"with OEM commands", vendor(t)}}
	for _, record := range []dialect.Record{
		idrac.Nine, idrac.Ten, ilo.ILO5, ilo.ILO7, xcc.First, xcc.Second, supermicro.X11, supermicro.X13, openbmc.Record, megarac.Record, irmc.S5, irmc.S6, ibmc.Record,
	} {
		h := newHost(t)
		h.d = &record
		all = append(all, server{record.Name, h})
	}
	for _, of := range all {
		of.h.state.Commands = NewTable()
		_, fns := ask(t, of.h, wire.App, 0x09, presentInterface)
		for fn := wire.NetFn(0); fn < 0x40; fn += 2 {
			bodies, served := [][]byte{nil}, false
			switch fn {
			case wire.Group:
				bodies = [][]byte{{dcmi}, {0xdd}}
			case wire.OEMGroup:
				bodies = [][]byte{{0, 0, 0}, {0xaa, 0xbb, 0xcc}}
			}
			for _, body := range bodies {
				for half := range 2 {
					code, mask := ask(t, of.h, wire.App, 0x0a, append([]byte{presentInterface, byte(fn) | byte(half)<<6, 0}, body...)...)
					if code != Completed || len(mask) != 16 {
						t.Fatalf("%s: Get Command Support of %02Xh = %02X [% x]", of.name, byte(fn), byte(code), mask)
					}
					for n := range 0x80 {
						cmd := byte(half<<7 | n)
						listed := mask[n/8]>>(n%8)&1 == 0
						served = served || listed
						if has := isDispatched(t, of.h, fn, cmd, body); listed != has {
							t.Errorf("%s: command %02X/%02X % x: listed %t, answered %t", of.name, byte(fn), cmd, body, listed, has)
						}
					}
				}
			}
			if in := fns[1+fn/16]>>(fn/2%8)&1 == 1; in != served {
				t.Errorf("%s: network function %02Xh: listed %t, and has commands %t", of.name, byte(fn), in, served)
			}
		}
	}
}

// isDispatched reports whether a BMC answers a command otherwise than with "invalid
// command". The requests come from a user without any privilege, so that none is carried
// out.
func isDispatched(t *testing.T, h *host, fn wire.NetFn, cmd byte, body []byte) bool {
	t.Helper()
	requests := [][]byte{body}
	for _, c := range h.d.IPMI.OEMCommands { // a command of a vendor has the bytes that it begins with
		requests = append(requests, c.Prefix)
	}
	for _, data := range requests {
		if bytes.HasPrefix(data, body) {
			if code, _ := askAs(t, h, wire.Callback, fn, cmd, data...); code != InvalidCommand {
				return true
			}
		}
	}
	return false
}
