package command

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

func TestCommandsNeedTheirPrivilegeAndLength(t *testing.T) {
	h := newHost(t)
	h.d.IPMI.AddedSDRBytes = 1 // so that all are known
	for _, row := range commands() {
		fill := func(n int) []byte {
			data := make([]byte, n)
			if row.group != 0 {
				data = append([]byte{row.group}, data...)
			}
			return data
		}
		if row.privilege > 0 {
			if code, _ := askAs(t, h, row.privilege-1, row.fn, row.cmd, fill(row.least)...); code != InsufficientPrivilege {
				t.Errorf("%s at privilege %d = %v, want %v", row.name, row.privilege-1, code, InsufficientPrivilege)
			}
		}
		if row.inBand {
			if code, _ := ask(t, h, row.fn, row.cmd, fill(row.least)...); code != InsufficientPrivilege {
				t.Errorf("%s over LAN = %v, want %v", row.name, code, InsufficientPrivilege)
			}
		}
		if row.privilege == 0 {
			continue
		}
		if row.most >= 0 {
			if code, _ := ask(t, h, row.fn, row.cmd, fill(row.most+1)...); code != DataLengthInvalid {
				t.Errorf("%s with %d bytes = %v, want %v", row.name, row.most+1, code, DataLengthInvalid)
			}
		}
		if row.least > 0 {
			if code, _ := ask(t, h, row.fn, row.cmd, fill(row.least-1)...); code != DataLengthInvalid {
				t.Errorf("%s with %d bytes = %v, want %v", row.name, row.least-1, code, DataLengthInvalid)
			}
		}
	}
}

// Every request gets a response that fits into a packet.
func FuzzCommands(f *testing.F) {
	for _, row := range commands() {
		data := make([]byte, row.least)
		if row.group != 0 {
			data = append([]byte{row.group}, data...)
		}
		f.Add(byte(row.fn), row.cmd, byte(wire.Administrator), data, false)
		f.Add(byte(row.fn), row.cmd, byte(wire.Administrator), append(data, 0xff), true)
		f.Add(byte(row.fn), row.cmd, byte(wire.OEMPrivilege+1), data, true)
	}
	f.Fuzz(func(t *testing.T, fn, cmd, who byte, data []byte, on bool) {
		h := newHost(t)
		if on {
			h.running(t)
		}
		for range 2 { // the second request finds what the first has stored
			p := wire.Privilege(who % 7)
			if p > wire.OEMPrivilege {
				p = system
			}
			code, got := askAs(t, h, p, wire.NetFn(fn), cmd, data...)
			if code >= NodeBusy && got != nil || len(got) > 248 { // 255 (§13.8) without what is around the data
				t.Errorf("%02x/%02x [% x] = %02X [% x]", fn, cmd, data, byte(code), got)
			}
			h.advance(time.Minute)
		}
	})
}
