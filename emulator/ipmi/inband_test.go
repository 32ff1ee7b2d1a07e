package ipmi

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/command"
)

// selRecord is a SEL record that a client adds: a temperature above its upper
// critical threshold.
const selRecord = "00 00 02 00 00 00 00 20 00 04 01 30 01 59 ff ff"

func TestSystemInterfaceNeedsNoSession(t *testing.T) {
	h := newHost(t)
	record, err := hex.DecodeString(strings.ReplaceAll(selRecord, " ", ""))
	must(t, err)
	for _, tt := range []struct {
		name string
		r    InBandRequest
		code command.Code
		want string
	}{
		{"Add SEL Entry, which needs an operator", InBandRequest{NetFn: 0x0a, Cmd: 0x44, Data: record}, command.Completed, "01 00"},
		{"Get Message Flags, of the system interface only", InBandRequest{NetFn: 0x06, Cmd: 0x31}, command.Completed, "00"},
		{"unknown OEM command", InBandRequest{NetFn: 0x30, Cmd: 0x70}, command.InvalidCommand, ""},
		{"unknown group command", InBandRequest{NetFn: 0x2c, Cmd: 0x3e, Data: []byte{0, 2}}, command.InvalidCommand, "00"},
		{"Get Channel Info of the present channel", InBandRequest{NetFn: 0x06, Cmd: 0x42, Data: []byte{0x0e}}, command.Completed, "0f 0c 05 00 f2 1b 00 ff ff"},
		{"Set Session Privilege Level, which returns the present one", InBandRequest{NetFn: 0x06, Cmd: 0x3b, Data: []byte{0}}, command.Completed, "04"},
		{"Activate Payload", InBandRequest{NetFn: 0x06, Cmd: 0x48, Data: []byte{1, 1, 0, 0, 0, 0}}, command.NotSupportedInState, ""},
		{"LUN 2", InBandRequest{LUN: 2, NetFn: 0x06, Cmd: 0x01}, command.InvalidForLUN, ""},
		{"too short", InBandRequest{NetFn: 0x0a, Cmd: 0x44}, command.DataLengthInvalid, ""},
	} {
		code, got, ok := h.service.ExecuteInBand(t.Context(), h, tt.r)
		if !ok || command.Code(code) != tt.code || fmt.Sprintf("% x", got) != tt.want {
			t.Errorf("%s: %02X [% x] %t, want %02X [%s]", tt.name, code, got, ok, byte(tt.code), tt.want)
		}
	}
	_, err = h.ApplyBMC(t.Context(), bmc.Restart{Kind: bmc.ForceRestart})
	must(t, err)
	h.now = h.now.Add(10 * time.Second)
	h.bmc.Advance(h.now)
	h.changed()
	if _, _, ok := h.service.ExecuteInBand(t.Context(), h, InBandRequest{NetFn: 0x06, Cmd: 0x01}); ok {
		t.Error("a BMC that is restarting answers")
	}
}
