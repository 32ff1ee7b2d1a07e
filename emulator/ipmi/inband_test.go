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
		r    InBandRequest
		code Code
		want string
	}{
		{"administrator's", InBandRequest{NetFn: 0x0a, Cmd: 0x44, Data: unhex(t, aRecord)}, Completed, "01 00"},
		{"in band alone", InBandRequest{NetFn: 0x06, Cmd: 0x31}, Completed, "00"},
		{"of nobody", InBandRequest{NetFn: 0x30, Cmd: 0x70}, InvalidCommand, ""},
		{"of a group", InBandRequest{NetFn: 0x2c, Cmd: 0x3e, Data: []byte{0, 2}}, InvalidCommand, "00"},
		{"its channel", InBandRequest{NetFn: 0x06, Cmd: 0x42, Data: []byte{0x0e}}, Completed, "0f 0c 05 00 f2 1b 00 ff ff"},
		{"its privilege", InBandRequest{NetFn: 0x06, Cmd: 0x3b, Data: []byte{0}}, Completed, "04"},
		{"SOL", InBandRequest{NetFn: 0x06, Cmd: 0x48, Data: []byte{1, 1, 0, 0, 0, 0}}, NotSupportedInState, ""},
		{"another LUN", InBandRequest{LUN: 2, NetFn: 0x06, Cmd: 0x01}, InvalidForLUN, ""},
		{"short", InBandRequest{NetFn: 0x0a, Cmd: 0x44}, DataLengthInvalid, ""},
	} {
		code, got, ok := h.service.ExecuteInBand(t.Context(), h, tt.r)
		if !ok || Code(code) != tt.code || tohex(got) != tt.want {
			t.Errorf("%s: %02X [% x] %t, want %02X [%s]", tt.name, code, got, ok, byte(tt.code), tt.want)
		}
	}
	_, err := h.ApplyBMC(t.Context(), bmc.Restart{Kind: bmc.ForceRestart})
	must(t, err)
	h.now = h.now.Add(10 * time.Second)
	h.bmc.Advance(h.now)
	h.changed()
	if _, _, ok := h.service.ExecuteInBand(t.Context(), h, InBandRequest{NetFn: 0x06, Cmd: 0x01}); ok {
		t.Error("a BMC that is down answers")
	}
}
