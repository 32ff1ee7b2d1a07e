package command

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

func TestChannelInfo(t *testing.T) {
	exchanges{
		{"LAN", "01", Completed, "01 04 01 80 f2 1b 00 00 00"},
		{"own", "0e", Completed, "01 04 01 80 f2 1b 00 00 00"},
		{"IPMB", "00", Completed, "00 01 01 00 f2 1b 00 00 00"},
		{"system interface", "0f", Completed, "0f 0c 05 00 f2 1b 00 ff ff"},
		{"none", "02", InvalidDataField, ""},
		{"reserved bits", "11", InvalidDataField, ""},
	}.try(t, newHost(t), wire.App, 0x42)
}

func TestChannelAccess(t *testing.T) {
	h := newHost(t).running(t)
	get := func(name, now, nonVolatile string) {
		t.Helper()
		exchanges{{name + ", volatile", "01 80", Completed, now}, {name + ", nonVolatile", "01 40", Completed, nonVolatile}}.try(t, h, wire.App, 0x41)
	}
	set := func(data string) {
		t.Helper()
		exchanges{{"set", data, Completed, ""}}.try(t, h, wire.App, 0x40)
	}
	get("as new", "02 04", "02 04")
	set("01 a2 00")
	get("no alerts for now", "22 04", "02 04")
	set("01 00 83")
	get("operators for now", "22 03", "02 04")
	if got := h.found("admin"); got != wire.Operator {
		t.Errorf("admin logs in with %d on a channel for operators", got)
	}
	set("01 62 44")
	get("no alerts for good", "22 03", "22 04")
	h.do(t, machine.Reset{Kind: machine.ForceRestart})
	get("after a reset", "22 04", "22 04")
	set("0e 42 42")
	get("users for good", "02 02", "02 02")
	set("01 00 84")
	h.do(t, machine.Reset{Kind: machine.ForceOff})
	h.advance(60e9)
	get("after power off", "02 02", "02 02")
	exchanges{
		{"pre-boot only", "01 41 00", accessModeUnsupported, ""},
		{"pre-boot only for now", "01 81 00", accessModeUnsupported, ""},
		{"no mode", "01 44 00", accessModeUnsupported, ""},
		{"shared", "01 83 00", Completed, ""},
		{"without authentication of messages", "01 52 00", InvalidDataField, ""},
		{"without authentication of users", "01 4a 00", InvalidDataField, ""},
		{"nothing", "01 00 00", Completed, ""},
		{"reserved", "01 c2 00", InvalidDataField, ""},
		{"reserved limit", "01 00 c4", InvalidDataField, ""},
		{"limit 0", "01 00 40", InvalidDataField, ""},
		{"limit 6", "01 00 46", InvalidDataField, ""},
		{"reserved limit bits", "01 00 54", InvalidDataField, ""},
		{"IPMB", "00 42 44", noSessionSupport, ""},
		{"no such channel", "03 42 44", InvalidDataField, ""},
	}.try(t, h, wire.App, 0x40)
	exchanges{
		{"neither", "01 00", InvalidDataField, ""},
		{"both", "01 c0", InvalidDataField, ""},
		{"reserved bits", "01 81", InvalidDataField, ""},
		{"system interface", "0f 80", noSessionSupport, ""},
		{"no such channel", "03 80", InvalidDataField, ""},
	}.try(t, h, wire.App, 0x41)
}

// The access mode of the LAN channel is ManagerNetworkProtocol.IPMI of Redfish.
func TestChannelSwitchAgreesWithRedfish(t *testing.T) {
	h := newHost(t).running(t)
	on := func() bool { return h.BMC().Network().IPMI.On }
	redfish := func(on bool) {
		n := h.BMC().Network()
		n.IPMI.On = on
		h.applyBMCCommand(t, bmc.SetNetwork{Network: n})
	}
	set := func(data string, want bool, volatile, nonVolatile string) {
		t.Helper()
		exchanges{{"set", data, Completed, ""}}.try(t, h, wire.App, 0x40)
		exchanges{{data + ", volatile", "01 80", Completed, volatile}, {data + ", nonVolatile", "01 40", Completed, nonVolatile}}.try(t, h, wire.App, 0x41)
		if on() != want {
			t.Errorf("%s: IPMI is on: %t, want %t", data, on(), want)
		}
	}
	set("01 40 00", true, "02 04", "00 04") // for good, from the next reset
	h.do(t, machine.Reset{Kind: machine.ForceRestart})
	if on() {
		t.Error("IPMI is on after a reset though it was switched off for good")
	}
	redfish(true)
	set("01 80 00", false, "00 04", "02 04") // for now
	h.do(t, machine.Reset{Kind: machine.ForceRestart})
	if !on() {
		t.Error("IPMI is off after a reset though it was switched off for now")
	}
	set("01 40 00", true, "02 04", "00 04") // as ipmitool does: for good, then for now
	set("01 80 00", false, "00 04", "00 04")
	h.do(t, machine.Reset{Kind: machine.ForceRestart})
	if on() {
		t.Error("IPMI is on after a reset though it was switched off for good and for now")
	}
	set("01 82 00", true, "02 04", "00 04")
	redfish(false)
	exchanges{{"Redfish has switched it off", "01 40", Completed, "00 04"}}.try(t, h, wire.App, 0x41)
	redfish(true)
	exchanges{{"Redfish has switched it on", "01 40", Completed, "02 04"}}.try(t, h, wire.App, 0x41)
}

func TestSetChannelSecurityKeys(t *testing.T) {
	const none = "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
	const key = "6b 65 79 6b 65 79 6b 65 79 6b 65 79 6b 65 79 6b 65 79 6b 65"
	h := newHost(t)
	r := authenticator{h.state}
	exchanges{
		{"read K_R", "01 00 00", keyIDUnsupported, ""},
		{"set K_R", "01 01 00 " + key, keyIDUnsupported, ""},
		{"read none", "01 00 01", Completed, "00 " + none},
		{"set", "01 01 01 " + key, Completed, "00"},
		{"read", "0e 00 01", Completed, "00 " + key},
		{"too short", "01 01 01 " + key[3:], keyTooShort, ""},
		{"too long", "01 01 01 00 " + key, keyTooLong, ""},
		{"lock", "01 02 01", InvalidDataField, ""},
		{"no operation", "01 03 01", InvalidDataField, ""},
		{"no key", "01 00 02", InvalidDataField, ""},
		{"another channel", "02 00 01", InvalidDataField, ""},
		{"system interface", "0f 00 01", InvalidDataField, ""},
	}.try(t, h, wire.App, 0x56)
	if got := tohex(r.KG()); got != key {
		t.Errorf("the handshake's key = %s", got)
	}
	if c := h.BMC().Channel; c.KG != nil || !c.HasKG {
		t.Errorf("the view shows key [% x], keyed: %t", c.KG, c.HasKG)
	}
	if _, got := ask(t, h, wire.App, 0x38, 0x8e, 4); got[2]&0x20 == 0 {
		t.Errorf("authentication capabilities [% x] do not tell of a key", got)
	}
	exchanges{{"take it away", "01 01 01 " + none, Completed, "00"}}.try(t, h, wire.App, 0x56)
	if r.KG() != nil {
		t.Error("a key of zeros is one")
	}
}

// System software has the rights of an administrator; it names the channel.
func TestUsersAndChannelsInBand(t *testing.T) {
	h := newHost(t)
	for _, tt := range []struct {
		name, data string
		cmd        byte
		code       Code
		want       string
	}{
		{"own channel", "0e", 0x42, Completed, "0f 0c 05 00 f2 1b 00 ff ff"},
		{"LAN", "01", 0x42, Completed, "01 04 01 80 f2 1b 00 00 00"},
		{"access of LAN", "01 80", 0x41, Completed, "02 04"},
		{"access of the own channel", "0e 80", 0x41, noSessionSupport, ""},
		{"user on LAN", "01 02", 0x44, Completed, "10 43 01 14"},
		{"user on the own channel", "0e 02", 0x44, InvalidDataField, ""},
		{"name", "06" + padded("inside", 16), 0x45, Completed, ""},
		{"password", "06 02" + padded("inside-1", 16), 0x47, Completed, ""},
		{"key of LAN", "01 00 01", 0x56, Completed, "00 " + zeros(20)},
		{"key of the own channel", "0e 00 01", 0x56, InvalidDataField, ""},
	} {
		if code, got := askAs(t, h, system, wire.App, tt.cmd, unhex(t, tt.data)...); code != tt.code || tohex(got) != tt.want {
			t.Errorf("%s: 06/%02x [%s] = %v [% x], want %v [%s]", tt.name, tt.cmd, tt.data, code, got, tt.code, tt.want)
		}
	}
	if a := h.account(t, "5"); a.Name != "inside" {
		t.Errorf("account = %+v", a)
	}
}
