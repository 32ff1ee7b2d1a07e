package command

import (
	"slices"
	"testing"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// lengths holds the length of each command's response data in bytes, without
// completion code and defining body, from the tables of the specification. A
// command that is listed several times has responses of several lengths.
var lengths = []struct {
	fn   wire.NetFn
	cmd  byte
	data string // data of the request, in hex, without the group
	code Code
	want int // bytes
}{
	{wire.App, 0x01, "", Completed, 15},
	{wire.App, 0x02, "", Completed, 0},
	{wire.App, 0x03, "", Completed, 0},
	{wire.App, 0x04, "", Completed, 2},
	{wire.App, 0x05, "", SubFunctionDisabled, 0},
	{wire.App, 0x06, "0000", Completed, 0},
	{wire.App, 0x07, "", Completed, 2},
	{wire.App, 0x08, "", Completed, 16},
	{wire.App, 0x09, "0e", Completed, 17},
	{wire.App, 0x0a, "0e0600", Completed, 16},
	{wire.App, 0x0b, "0e060001", Completed, 7},
	{wire.App, 0x0c, "0e0600", Completed, 16},
	{wire.App, 0x0d, "0e060001", Completed, 4},
	{wire.App, 0x61, "0e0600", Completed, 16},
	{wire.App, 0x63, "0e060001", Completed, 4},
	{wire.App, 0x24, "0400003c0000", Completed, 0},
	{wire.App, 0x22, "", Completed, 0},
	{wire.App, 0x25, "", Completed, 8},
	{wire.App, 0x2e, "0c", Completed, 0},
	{wire.App, 0x2f, "", Completed, 1},
	{wire.App, 0x30, "01", Completed, 0},
	{wire.App, 0x31, "", Completed, 1},
	{wire.App, 0x32, "0102", Completed, 2},
	{wire.App, 0x33, "", bufferEmpty, 0},
	{wire.App, 0x34, "402c18bc811801e6", Completed, 0},
	{wire.App, 0x37, "", Completed, 16},
	{wire.App, 0x38, "8e04", Completed, 8},
	{wire.App, 0x38, "0e04", Completed, 8},
	{wire.App, 0x3b, "00", Completed, 1},
	{wire.App, 0x3c, "01000000", 0x87, 0},
	{wire.App, 0x3d, "00", Completed, 18},
	{wire.App, 0x3d, "05", Completed, 3},
	{wire.App, 0x40, "010000", Completed, 0},
	{wire.App, 0x41, "0180", Completed, 2},
	{wire.App, 0x42, "0e", Completed, 9},
	{wire.App, 0x43, "010304", Completed, 0},
	{wire.App, 0x44, "0102", Completed, 4},
	{wire.App, 0x45, "0500000000000000000000000000000000", Completed, 0},
	{wire.App, 0x46, "02", Completed, 16},
	{wire.App, 0x47, "0300", Completed, 0},
	{wire.App, 0x48, "0101c6000000", Completed, 12},
	{wire.App, 0x49, "010100000000", payloadInactive, 0},
	{wire.App, 0x4a, "01", Completed, 3},
	{wire.App, 0x4b, "0101", Completed, 12},
	{wire.App, 0x4c, "010202000000", Completed, 0},
	{wire.App, 0x4d, "0102", Completed, 4},
	{wire.App, 0x4e, "0e", Completed, 8},
	{wire.App, 0x4f, "0e01", Completed, 1},
	{wire.App, 0x50, "0e200000000000", 0x80, 0},
	{wire.App, 0x54, "0e0080", Completed, 1 + 10}, // two suites
	{wire.App, 0x54, "0e0000", Completed, 1 + 5},  // and what they are made of
	{wire.App, 0x54, "0e0081", Completed, 1},
	{wire.App, 0x56, "010001", Completed, 21},
	{wire.App, 0x58, "0000", Completed, 0},
	{wire.App, 0x59, "00000000", Completed, 2},
	{wire.App, 0x59, "00010000", Completed, 18},
	{wire.App, 0x59, "80010000", Completed, 1},

	{wire.Chassis, 0x00, "", Completed, 6},
	{wire.Chassis, 0x01, "", Completed, 4},
	{wire.Chassis, 0x02, "01", Completed, 0},
	{wire.Chassis, 0x04, "05", Completed, 0},
	{wire.Chassis, 0x05, "0020202020", Completed, 0},
	{wire.Chassis, 0x06, "03", Completed, 1},
	{wire.Chassis, 0x07, "", Completed, 2},
	{wire.Chassis, 0x08, "00", Completed, 0},
	{wire.Chassis, 0x09, "000000", Completed, 2 + 1},
	{wire.Chassis, 0x09, "010000", Completed, 2 + 1},
	{wire.Chassis, 0x09, "020000", Completed, 2 + 1},
	{wire.Chassis, 0x09, "030000", Completed, 2 + 1},
	{wire.Chassis, 0x09, "040000", Completed, 2 + 2},
	{wire.Chassis, 0x09, "050000", Completed, 2 + 5},
	{wire.Chassis, 0x09, "060000", Completed, 2 + 9},
	{wire.Chassis, 0x09, "070000", Completed, 2 + 1 + 16},
	{wire.Chassis, 0x0a, "00", Completed, 0},
	{wire.Chassis, 0x0b, "05", Completed, 0},
	{wire.Chassis, 0x0f, "", Completed, 5},

	{wire.SensorEvent, 0x00, "2000", Completed, 0},
	{wire.SensorEvent, 0x01, "", Completed, 2},
	{wire.SensorEvent, 0x02, "04013001ffffff", Completed, 0},
	{wire.SensorEvent, 0x10, "", Completed, 3},
	{wire.SensorEvent, 0x11, "ff", Completed, 1},
	{wire.SensorEvent, 0x12, "0000", Completed, 0},
	{wire.SensorEvent, 0x13, "000000", Completed, 1 + 1},
	{wire.SensorEvent, 0x13, "010000", Completed, 1 + 1},
	{wire.SensorEvent, 0x13, "020000", Completed, 1 + 1},
	{wire.SensorEvent, 0x13, "030000", Completed, 1 + 1},
	{wire.SensorEvent, 0x13, "040000", Completed, 1 + 1},
	{wire.SensorEvent, 0x13, "050000", Completed, 1 + 1},
	{wire.SensorEvent, 0x13, "060100", Completed, 1 + 21},
	{wire.SensorEvent, 0x13, "070100", Completed, 1 + 2},
	{wire.SensorEvent, 0x13, "080000", Completed, 1 + 1},
	{wire.SensorEvent, 0x13, "090100", Completed, 1 + 4},
	{wire.SensorEvent, 0x13, "0a0000", Completed, 1 + 17},
	{wire.SensorEvent, 0x13, "0b0000", Completed, 1 + 1},
	{wire.SensorEvent, 0x13, "0c0100", Completed, 1 + 3},
	{wire.SensorEvent, 0x13, "0d0101", Completed, 1 + 18},
	{wire.SensorEvent, 0x14, "000000", Completed, 0},
	{wire.SensorEvent, 0x15, "", Completed, 10},
	{wire.SensorEvent, 0x16, "010100", Completed, 0},
	{wire.SensorEvent, 0x17, "010000000000000000000000", Completed, 0},
	{wire.SensorEvent, 0x20, "", Completed, 2}, // the sensors are always the same
	{wire.SensorEvent, 0x21, "000000000005", Completed, 2 + 5},
	{wire.SensorEvent, 0x22, "", Completed, 2},
	{wire.SensorEvent, 0x23, "0180", Completed, 7},
	{wire.SensorEvent, 0x24, "01ff0202", Completed, 0},
	{wire.SensorEvent, 0x25, "01ff", Completed, 2},
	{wire.SensorEvent, 0x26, "0100000000000000", Completed, 0},
	{wire.SensorEvent, 0x27, "01", Completed, 7},
	{wire.SensorEvent, 0x28, "01c0", Completed, 0},
	{wire.SensorEvent, 0x29, "01", Completed, 5},
	{wire.SensorEvent, 0x2a, "0100", Completed, 0},
	{wire.SensorEvent, 0x2b, "01", Completed, 5},
	{wire.SensorEvent, 0x2d, "01", Completed, 3},
	{wire.SensorEvent, 0x2e, "010101", IllegalForRecord, 0},
	{wire.SensorEvent, 0x2f, "01", Completed, 2},
	{wire.SensorEvent, 0x30, "010000", IllegalForRecord, 0},

	{wire.Storage, 0x10, "00", Completed, 3},
	{wire.Storage, 0x11, "00000008", Completed, 1 + 8},
	{wire.Storage, 0x12, "00000001", Completed, 1},
	{wire.Storage, 0x20, "", Completed, 14},
	{wire.Storage, 0x21, "", Completed, 9},
	{wire.Storage, 0x22, "", Completed, 2},
	{wire.Storage, 0x23, "000000000005", Completed, 2 + 5},
	{wire.Storage, 0x24, "000051c00711223344556677", Completed, 2},
	{wire.Storage, 0x25, "000000000001000051c000", Completed, 2},
	{wire.Storage, 0x26, "00000100", Completed, 2},
	{wire.Storage, 0x27, "0000434c5200", Completed, 1},
	{wire.Storage, 0x28, "", Completed, 4},
	{wire.Storage, 0x29, "00f0a069", Completed, 0},
	{wire.Storage, 0x2c, "01", Completed, 1},
	{wire.Storage, 0x40, "", Completed, 14},
	{wire.Storage, 0x41, "", Completed, 9},
	{wire.Storage, 0x42, "", Completed, 2},
	{wire.Storage, 0x43, "0000000000ff", Completed, 2 + 16},
	{wire.Storage, 0x43, "000000000005", Completed, 2 + 5},
	{wire.Storage, 0x44, "00000200000000200004013001ffffff", Completed, 2},
	{wire.Storage, 0x45, "00000000000100000200000000200004013001ffffff", Completed, 2},
	{wire.Storage, 0x46, "00000000", Completed, 2},
	{wire.Storage, 0x47, "0000434c5200", Completed, 1},
	{wire.Storage, 0x48, "", Completed, 4},
	{wire.Storage, 0x49, "00f0a069", Completed, 0},
	{wire.Storage, 0x5c, "", Completed, 2},
	{wire.Storage, 0x5d, "3c00", Completed, 0},

	{wire.Transport, 0x01, "010000", Completed, 0},
	{wire.Transport, 0x03, "0100", Completed, 1},
	{wire.Transport, 0x04, "0100", Completed, 18},
	{wire.Transport, 0x21, "010000", Completed, 0},

	{wire.Group, 0x01, "01", Completed, 3 + 3},
	{wire.Group, 0x01, "02", Completed, 3 + 5},
	{wire.Group, 0x01, "03", Completed, 3 + 2},
	{wire.Group, 0x01, "04", Completed, 3 + 3},
	{wire.Group, 0x02, "010000", Completed, 17},
	{wire.Group, 0x03, "0000", 0x80, 13},
	{wire.Group, 0x04, "000000002c01e8030000" + "00003c00", Completed, 0},
	{wire.Group, 0x05, "000000", Completed, 0},
	{wire.Group, 0x06, "0000", Completed, 1},
	{wire.Group, 0x07, "01400000", Completed, 2 + 2},
	{wire.Group, 0x08, "000161", 0, 1},
	{wire.Group, 0x09, "0010", Completed, 1 + 16},
	{wire.Group, 0x0a, "00026100", Completed, 1},
	{wire.Group, 0x0b, "400120303c00", Completed, 0},
	{wire.Group, 0x0c, "4001", Completed, 4},
	{wire.Group, 0x10, "01400000", Completed, 2 + 2},
	{wire.Group, 0x12, "030078", Completed, 0},
	{wire.Group, 0x13, "0200", Completed, 3 + 1},
}

// parameterSizes are how long LAN and SOL parameters are (tables 23-4, 26-5).
var parameterSizes = []struct {
	cmd   byte
	sizes map[byte]int
}{
	{0x02, map[byte]int{
		0: 1, 1: 1, 2: 5, 3: 4, 4: 1, 5: 6, 6: 4, 7: 3, 10: 1, 12: 4, 13: 6, 14: 4, 15: 6, 16: 18, 17: 1, 18: 4, 19: 13,
		20: 2, 21: 1, 22: 1, 23: 3, 24: 9, 25: 4, 26: 6, 50: 1, 51: 1, 52: 1, 53: 1, 54: 3, 55: 3, 56: 20, 59: 20,
		64: 1, 65: 16, 66: 6, 67: 1, 68: 16, 69: 16, 70: 6, 71: 1, 72: 16,
	}},
	{0x22, map[byte]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 1, 6: 1, 7: 1, 8: 2}},
}

func TestResponseLengthsAsSpecified(t *testing.T) {
	groups := func(fn wire.NetFn, data []byte) []byte {
		if fn == wire.Group {
			return append([]byte{dcmi}, data...)
		}
		return data
	}
	covered := map[commandKey]bool{}
	for _, l := range lengths {
		at := commandKey{fn: l.fn, cmd: l.cmd}
		if l.fn == wire.Group {
			at.group = dcmi
		}
		covered[at] = true
		h := newHost(t) // what one does the next does not see
		h.d.IPMI.AddedSDRBytes = 1 << 10
		if l.fn == wire.Storage && (l.cmd == 0x43 || l.cmd == 0x46) {
			_, _ = ask(t, h, wire.Storage, 0x44, unhex(t, "00000200000000200004013001ffffff")...)
		}
		who := wire.Administrator
		if row := h.state.Commands[at]; row == nil {
			t.Errorf("%02x/%02x: there is no such command", byte(l.fn), l.cmd)
			continue
		} else if row.inBand {
			who = system
		}
		if l.cmd == 0x22 && l.fn == wire.App {
			h.running(t)
			_, _ = ask(t, h, wire.App, 0x24, unhex(t, "0400003c0000")...)
		}
		data := unhex(t, l.data)
		if l.fn == wire.Storage && l.cmd >= 0x45 && l.cmd <= 0x47 {
			_, reservation := ask(t, h, wire.Storage, 0x42)
			copy(data, reservation)
		}
		code, got := askAs(t, h, who, l.fn, l.cmd, groups(l.fn, data)...)
		if code != l.code || len(got) != l.want {
			t.Errorf("%02x/%02x [%s] = %02X [%x], want %02X and %d bytes", byte(l.fn), l.cmd, l.data, byte(code), got, byte(l.code), l.want)
		}
	}
	h := newHost(t)
	for _, p := range parameterSizes {
		covered[commandKey{fn: wire.Transport, cmd: p.cmd}] = true
		for n, want := range p.sizes {
			code, got := ask(t, h, wire.Transport, p.cmd, lanChannel, n, 0, 0)
			if code != Completed || len(got) != 1+want {
				t.Errorf("0c/%02x, parameter %d = %02X [%x], want %d bytes", p.cmd, n, byte(code), got, 1+want)
			}
			if code, got = ask(t, h, wire.Transport, p.cmd, 0x80|lanChannel, n, 0, 0); code != Completed || len(got) != 1 {
				t.Errorf("0c/%02x, revision of parameter %d = %02X [%x], want 1 byte", p.cmd, n, byte(code), got)
			}
		}
	}
	// These have tests of their own: what they answer depends on more than a request.
	elsewhere := []string{"Get Session Challenge", "Activate Session", "Read Event Message Buffer", "Suspend/Resume Payload Encryption"}
	for _, row := range commands() {
		if !covered[commandKey{row.fn, row.cmd, row.group}] && row.group != redfishGroup && !slices.Contains(elsewhere, row.name) {
			t.Errorf("how long is the answer to %s?", row.name)
		}
	}
}

// leastPrivileges are those of table G-1, and of DCMI's table of commands,
// written once more: the rows of the commands must say the same. Commands of
// payloads are at the level that their settings name (§26.3).
var leastPrivileges = map[wire.NetFn]map[byte]wire.Privilege{
	wire.App: {
		0x01: 2, 0x02: 4, 0x03: 4, 0x04: 2, 0x05: 4, 0x06: 4, 0x07: 2, 0x08: 2, 0x09: 2, 0x0a: 2, 0x0b: 2, 0x0c: 2, 0x0d: 2, 0x61: 2, 0x63: 2,
		0x22: 3, 0x24: 3, 0x25: 2, 0x2e: 0, 0x2f: 2, 0x30: 0, 0x31: 0, 0x32: 0, 0x33: 0, 0x34: 2, 0x35: 0, 0x37: 0, 0x38: 0, 0x39: 0, 0x3a: 0,
		0x3b: 2, 0x3c: 1, 0x3d: 2, 0x40: 4, 0x41: 2, 0x42: 2, 0x43: 4, 0x44: 3, 0x45: 4, 0x46: 3, 0x47: 4, 0x48: 2, 0x49: 2, 0x4a: 2, 0x4b: 2,
		0x4c: 4, 0x4d: 3, 0x4e: 2, 0x4f: 2, 0x50: 2, 0x54: 0, 0x55: 2, 0x56: 4, 0x58: 4, 0x59: 2,
	},
	wire.Chassis: {
		0x00: 2, 0x01: 2, 0x02: 3, 0x04: 3, 0x05: 4, 0x06: 3, 0x07: 2, 0x08: 3, 0x09: 3, 0x0a: 4, 0x0b: 4, 0x0f: 2,
	},
	// Device SDRs are for local interfaces there; clients read them over LAN.
	wire.SensorEvent: {
		0x00: 4, 0x01: 2, 0x02: 3, 0x10: 2, 0x11: 4, 0x12: 4, 0x13: 3, 0x14: 4, 0x15: 4, 0x16: 4, 0x17: 0, 0x20: 2, 0x21: 2, 0x22: 2,
		0x23: 2, 0x24: 3, 0x25: 2, 0x26: 3, 0x27: 2, 0x28: 3, 0x29: 2, 0x2a: 3, 0x2b: 2, 0x2d: 2, 0x2e: 3, 0x2f: 2, 0x30: 3,
	},
	wire.Storage: {
		0x10: 2, 0x11: 2, 0x12: 3, 0x20: 2, 0x21: 2, 0x22: 2, 0x23: 2, 0x24: 3, 0x25: 3, 0x26: 3, 0x27: 3, 0x28: 2, 0x29: 3, 0x2c: 3,
		0x40: 2, 0x41: 2, 0x42: 2, 0x43: 2, 0x44: 3, 0x45: 3, 0x46: 3, 0x47: 3, 0x48: 2, 0x49: 3, 0x5c: 2, 0x5d: 3,
	},
	wire.Transport: {0x01: 4, 0x02: 3, 0x03: 4, 0x04: 2, 0x21: 4, 0x22: 2},
	wire.Group: {
		0x01: 0, 0x02: 2, 0x03: 2, 0x04: 3, 0x05: 3, 0x06: 2, 0x07: 2, 0x08: 3, 0x09: 2, 0x0a: 4, 0x0b: 3, 0x0c: 2, 0x10: 2, 0x12: 4, 0x13: 2,
	},
}

func TestPrivilegesAsSpecified(t *testing.T) {
	for _, row := range commands() {
		if row.group == redfishGroup {
			continue
		}
		want, ok := leastPrivileges[row.fn][row.cmd]
		if !ok || row.privilege != want {
			t.Errorf("%s needs privilege %d, want %d (%t)", row.name, row.privilege, want, ok)
		}
	}
}

// The response to an unknown command is Invalid Command at every privilege level:
// programs look for extensions (PICMG, HPM, VSO) at any.
func TestUnknownCommandsAreUnknownAtAnyPrivilege(t *testing.T) {
	h := newHost(t)
	for _, who := range []wire.Privilege{wire.Callback, wire.User, wire.Operator, wire.Administrator, system} {
		for _, c := range []struct {
			fn   wire.NetFn
			cmd  byte
			data string
		}{
			{wire.Group, 0x3e, "0002"}, {wire.Group, 0x00, "00"}, {wire.Group, 0x00, "03"}, {wire.Group, 0x01, ""},
			{wire.OEMGroup, 0x21, "f2a2000100"}, {0x30, 0x70, "0c"}, {0x3c, 0x01, ""}, {wire.App, 0x0e, ""}, {wire.Chassis, 0x0c, ""},
		} {
			if code, got := askAs(t, h, who, c.fn, c.cmd, unhex(t, c.data)...); code != InvalidCommand || got != nil {
				t.Errorf("%02x/%02x [%s] at privilege %d = %v [%x], want %v", byte(c.fn), c.cmd, c.data, who, code, got, InvalidCommand)
			}
		}
	}
}
