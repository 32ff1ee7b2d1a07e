package ipmi

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func TestSystemInterfaceNeedsNoLogin(t *testing.T) {
	h := newHost(t)
	for _, tt := range []struct {
		name string
		r    Request
		code Code
		want string
	}{
		{"administrator's", Request{NetFn: 0x0a, Cmd: 0x44, Data: unhex(t, aRecord)}, Done, "01 00"},
		{"in band alone", Request{NetFn: 0x06, Cmd: 0x31}, Done, "00"},
		{"of nobody", Request{NetFn: 0x30, Cmd: 0x70}, Unknown, ""},
		{"of a group", Request{NetFn: 0x2c, Cmd: 0x3e, Data: []byte{0, 2}}, Unknown, "00"},
		{"its channel", Request{NetFn: 0x06, Cmd: 0x42, Data: []byte{0x0e}}, Done, "0f 0c 05 00 f2 1b 00 ff ff"},
		{"its privilege", Request{NetFn: 0x06, Cmd: 0x3b, Data: []byte{0}}, Done, "04"},
		{"SOL", Request{NetFn: 0x06, Cmd: 0x48, Data: []byte{1, 1, 0, 0, 0, 0}}, WrongState, ""},
		{"another LUN", Request{LUN: 2, NetFn: 0x06, Cmd: 0x01}, UnknownAtLUN, ""},
		{"short", Request{NetFn: 0x0a, Cmd: 0x44}, BadLength, ""},
	} {
		code, got, ok := h.service.Ask(t.Context(), h, tt.r)
		if !ok || Code(code) != tt.code || tohex(got) != tt.want {
			t.Errorf("%s: %02X [% x] %t, want %02X [%s]", tt.name, code, got, ok, byte(tt.code), tt.want)
		}
	}
	_, err := h.ApplyBMC(t.Context(), bmc.Restart{Kind: bmc.ForceRestart})
	must(t, err)
	h.now = h.now.Add(10 * time.Second)
	h.bmc.Advance(h.now)
	h.changed()
	if _, _, ok := h.service.Ask(t.Context(), h, Request{NetFn: 0x06, Cmd: 0x01}); ok {
		t.Error("a BMC that is down answers")
	}
}
