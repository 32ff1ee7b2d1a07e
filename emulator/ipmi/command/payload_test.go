package command

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Every parameter of table 26-5 reads as it was set.
func TestSOLParameters(t *testing.T) {
	h := newHost(t)
	get := func(n byte) []byte {
		t.Helper()
		code, b := ask(t, h, wire.Transport, 0x22, 0x0e, n, 0, 0)
		if code != Completed || len(b) < 2 || b[0] != 0x11 {
			t.Fatalf("parameter %d = %v, % x", n, code, b)
		}
		return b[1:]
	}
	set := func(n byte, b ...byte) Code {
		t.Helper()
		code, _ := ask(t, h, wire.Transport, 0x21, append([]byte{1, n}, b...)...)
		return code
	}
	for n, want := range [][]byte{{0}, {1}, {0xc3}, {12, 96}, {7, 50}, {10}, {10}, {1}, {0x6f, 0x02}} {
		if d := cmp.Diff(want, get(byte(n))); d != "" {
			t.Errorf("parameter %d as new (-want +got):\n%s", n, d)
		}
	}
	for _, tt := range []struct {
		n    byte
		is   []byte
		want Code
	}{
		{1, []byte{0}, Completed}, {1, []byte{1}, Completed}, {1, []byte{2}, InvalidDataField}, {1, []byte{1, 1}, DataLengthInvalid},
		{2, []byte{0x44}, Completed}, {2, []byte{0x01}, InvalidDataField}, {2, []byte{0x13}, InvalidDataField},
		{3, []byte{1, 255}, Completed}, {3, []byte{0, 1}, InvalidDataField}, {3, []byte{1, 0}, InvalidDataField}, {3, []byte{1}, DataLengthInvalid},
		{4, []byte{0, 0}, Completed}, {4, []byte{8, 0}, InvalidDataField},
		{5, []byte{7}, Completed}, {5, []byte{5}, ParameterOutOfRange}, {5, []byte{11}, ParameterOutOfRange},
		{6, []byte{6}, Completed}, {6, []byte{1}, ParameterOutOfRange},
		{7, []byte{1}, 0x82}, {8, []byte{0x34, 0x12}, Completed}, {8, []byte{0x34}, DataLengthInvalid},
		{9, []byte{0}, 0x80}, {192, []byte{0}, 0x80},
	} {
		before := [][]byte{}
		for n := range byte(9) {
			before = append(before, get(n))
		}
		if got := set(tt.n, tt.is...); got != tt.want {
			t.Errorf("parameter %d = % x: %v, want %v", tt.n, tt.is, got, tt.want)
		}
		if tt.n >= 9 {
			continue
		}
		want := tt.is
		if tt.want != Completed {
			want = before[tt.n]
		}
		if d := cmp.Diff(want, get(tt.n)); d != "" {
			t.Errorf("parameter %d after % x (-want +got):\n%s", tt.n, tt.is, d)
		}
	}
	if got := get(5); got[0] != 7 {
		t.Errorf("the non-volatile bit rate became the volatile one: %d", got[0])
	}
	for _, step := range []struct {
		is, then byte
		want     Code
	}{{1, 1, Completed}, {1, 1, 0x81}, {2, 1, Completed}, {0, 0, Completed}, {0, 0, Completed}, {3, 0, InvalidDataField}} {
		if got := set(0, step.is); got != step.want || get(0)[0] != step.then {
			t.Errorf("set in progress = %d: %v, then %d; want %v, %d", step.is, got, get(0)[0], step.want, step.then)
		}
	}
	if code, b := ask(t, h, wire.Transport, 0x22, 0x81, 3, 0, 0); code != Completed || len(b) != 1 {
		t.Errorf("the revision alone is %v, % x", code, b)
	}
	for _, channel := range []byte{2, 0x0f} {
		if code, _ := ask(t, h, wire.Transport, 0x22, channel, 1, 0, 0); code != InvalidDataField {
			t.Errorf("channel %d = %v", channel, code)
		}
	}
}

// TestPayloadCommands shows statements I24, I63 and I65.
func TestPayloadCommands(t *testing.T) {
	h := newHost(t)
	for _, tt := range []struct {
		cmd  byte
		data []byte
		want Code
		body []byte
	}{
		{0x4a, []byte{1}, Completed, []byte{1, 0, 0}},
		{0x4a, []byte{0}, InvalidDataField, nil},
		{0x4b, []byte{1, 1}, Completed, []byte{0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}},
		{0x4b, []byte{1, 2}, InvalidDataField, nil},
		{0x4b, []byte{0, 1}, InvalidDataField, nil},
		{0x4e, []byte{0x0e}, Completed, []byte{3, 0, 0x3f, 0, 0, 0, 0, 0}},
		{0x4e, []byte{7}, InvalidDataField, nil},
		{0x4f, []byte{1, 0}, Completed, []byte{0x10}},
		{0x4f, []byte{1, 1}, Completed, []byte{0x10}},
		{0x4f, []byte{1, 0x15}, Completed, []byte{0x10}},
		{0x4f, []byte{1, 2}, 0x80, nil},
		{0x50, []byte{1, 0x20, 0, 0, 0, 0, 0}, 0x80, nil},
		{0x48, []byte{0, 1, 0xc0, 0, 0, 0}, InvalidDataField, nil},
		{0x48, []byte{1, 2, 0xc0, 0, 0, 0}, InvalidDataField, nil},
		{0x48, []byte{1, 1, 0x80, 0, 0, 0}, 0x83, nil},
		// No test mode, 255 bytes either way, the port that was reached, no VLAN.
		{0x48, []byte{1, 1, 0xc6, 0, 0, 0}, Completed, []byte{0, 0, 0, 0, 255, 0, 255, 0, 0x6f, 0x02, 0xff, 0xff}},
		{0x49, []byte{1, 1, 0, 0, 0, 0}, 0x80, nil},
		{0x55, []byte{0, 1, 0}, 0x80, nil},
		{0x55, []byte{1, 1, 0}, 0x83, nil},
		{0x55, []byte{1, 1, 3}, InvalidDataField, nil},
	} {
		code, b := ask(t, h, wire.App, tt.cmd, tt.data...)
		if d := cmp.Diff(tt.body, b); code != tt.want || d != "" {
			t.Errorf("%02X % x = %v, want %v; (-want +got):\n%s", tt.cmd, tt.data, code, tt.want, d)
		}
	}
	activate := []byte{1, 1, 0xc0, 0, 0, 0}
	if code, _ := askAs(t, h, wire.User, wire.App, 0x48, activate...); code != InsufficientPrivilege {
		t.Errorf("a user activates: %v, want %v", code, InsufficientPrivilege)
	}
	s := *h.BMC().SOL()
	s.Privilege, s.Port = 2, 1623
	if _, err := h.ApplyBMC(t.Context(), bmc.SetSOL{SOL: s}); err != nil {
		t.Fatal(err)
	}
	if code, b := askAs(t, h, wire.User, wire.App, 0x48, activate...); code != Completed || le16(b[8:]) != 1623 {
		t.Errorf("a user that may activates: %v, % x, want port 1623", code, b)
	}
	d := *h.d
	d.IPMI.AdvertisedSOLPort = 7623
	h.d = &d
	for port, want := range map[byte][]byte{1: {0x11, 0x57, 0x06}, 0: {0x11, 0xc7, 0x1d}} { // 1623 where it is set, else 7623
		s.Port = uint16(port) * 1623
		if _, err := h.ApplyBMC(t.Context(), bmc.SetSOL{SOL: s}); err != nil {
			t.Fatal(err)
		}
		if code, b := ask(t, h, wire.Transport, 0x22, 1, 8, 0, 0); code != Completed || !bytes.Equal(b, want) {
			t.Errorf("port behind a map of ports: %v, % x, want % x", code, b, want)
		}
	}
	if code, _ := ask(t, h, wire.App, 0x4c, 1, 0x42, 2, 0, 0, 0); code != Completed {
		t.Fatalf("Set User Payload Access = %v", code)
	}
	if code, _ := ask(t, h, wire.App, 0x48, activate...); code != 0x81 {
		t.Errorf("a user without that payload activates: %v, want 81h", code)
	}
	if code, _ := ask(t, h, wire.App, 0x4c, 1, 0x02, 2, 0, 0, 0); code != Completed {
		t.Fatalf("Set User Payload Access = %v", code)
	}
	s.Off = true
	if _, err := h.ApplyBMC(t.Context(), bmc.SetSOL{SOL: s}); err != nil {
		t.Fatal(err)
	}
	if code, _ := ask(t, h, wire.App, 0x48, activate...); code != 0x81 {
		t.Errorf("SOL that is off is activated: %v, want 81h", code)
	}
}
