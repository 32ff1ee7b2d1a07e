package command

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

var spot = bmc.NetworkDefaults{Addr: netip.MustParseAddr("127.64.0.1"), HTTPS: 443, HTTP: 80, IPMI: 623}

// newPlaced is a host whose BMC has a place on the network.
func newPlaced(t *testing.T) *host {
	t.Helper()
	h := newHost(t)
	h.bmc.SetNetworkDefaults(spot)
	h.changed()
	return h
}

func zeros(n int) string { return strings.TrimSpace(strings.Repeat("00 ", n)) }

func TestLANParametersAsNew(t *testing.T) {
	mac := h2(newPlaced(t).Machine().Identity.BMCMAC())
	exchanges{
		{"progress", "01 00 00 00", Completed, "11 00"},
		{"authentication types", "01 01 00 00", Completed, "11 17"},
		{"enabled ones", "01 02 00 00", Completed, "11 " + zeros(5)},
		{"address", "01 03 00 00", Completed, "11 7f 40 00 01"},
		{"source", "01 04 00 00", Completed, "11 02"},
		{"MAC", "01 05 00 00", Completed, "11 " + mac},
		{"mask", "01 06 00 00", Completed, "11 ff 00 00 00"},
		{"header", "01 07 00 00", Completed, "11 40 40 10"},
		{"port", "01 08 00 00", Completed, "11 6f 02"},
		{"secondary port", "01 09 00 00", noParameter, ""},
		{"ARP", "01 0a 00 00", Completed, "11 02"},
		{"ARP interval", "01 0b 00 00", Completed, "11 03"},
		{"gateway", "01 0c 00 00", Completed, "11 00 00 00 00"},
		{"its MAC", "01 0d 00 00", Completed, "11 " + zeros(6)},
		{"backup gateway", "01 0e 00 00", Completed, "11 " + zeros(4)},
		{"its MAC", "01 0f 00 00", Completed, "11 " + zeros(6)},
		{"community", "01 10 00 00", Completed, "11 70 75 62 6c 69 63 " + zeros(12)},
		{"destinations", "01 11 00 00", Completed, "11 04"},
		{"type of one", "01 12 00 00", Completed, "11 00 00 03 00"},
		{"type of the last", "01 12 04 00", Completed, "11 04 00 03 00"},
		{"type of none", "01 12 05 00", ParameterOutOfRange, ""},
		{"address of one", "01 13 01 00", Completed, "11 01 " + zeros(12)},
		{"VLAN", "01 14 00 00", Completed, "11 00 00"},
		{"its priority", "01 15 00 00", Completed, "11 00"},
		{"number of suites", "01 16 00 00", Completed, "11 02"},
		{"suites", "01 17 00 00", Completed, "11 00 03 11"},
		{"their limits", "01 18 00 00", Completed, "11 00 00 40 00 00 00 00 00 40"},
		{"VLAN of a destination", "01 19 01 00", Completed, "11 01 00 00 00"},
		{"wrong passwords", "01 1a 00 00", Completed, "11 00 0a 06 00 1e 00"},
		{"unknown", "01 1b 00 00", noParameter, ""},
		{"IPv6", "01 32 00 00", Completed, "11 02"},
		{"its addressing", "01 33 00 00", Completed, "11 00"},
		{"traffic class", "01 34 00 00", Completed, "11 00"},
		{"hop limit", "01 35 00 00", Completed, "11 40"},
		{"flow label", "01 36 00 00", Completed, "11 00 00 00"},
		{"IPv6 status", "01 37 00 00", Completed, "11 04 01 03"},
		{"static address", "01 38 00 00", Completed, "11 00 " + zeros(18) + " 01"},
		{"one too many", "01 38 04 00", ParameterOutOfRange, ""},
		{"DUID blocks", "01 39 00 00", Completed, "11 01"},
		{"DUID", "01 3a 00 00", Completed, "11 00 00 0a 00 03 00 01 " + mac + " " + zeros(5)},
		{"second block of it", "01 3a 00 01", ParameterOutOfRange, ""},
		{"dynamic address", "01 3b 00 00", Completed, "11 00 01 " + zeros(17) + " 01"},
		{"dynamic DUID blocks", "01 3c 00 00", Completed, "11 01"},
		{"dynamic DUID", "01 3d 00 00", Completed, "11 00 00 0a 00 03 00 01 " + mac + " " + zeros(5)},
		{"DHCP timing", "01 3e 00 00", Completed, "11 00"},
		{"that is none", "01 3f 00 00", noParameter, ""},
		{"router control", "01 40 00 00", Completed, "11 01"},
		{"router", "01 41 00 00", Completed, "11 " + zeros(16)},
		{"its MAC", "01 42 00 00", Completed, "11 " + zeros(6)},
		{"its prefix length", "01 43 00 00", Completed, "11 00"},
		{"its prefix", "01 44 00 00", Completed, "11 " + zeros(16)},
		{"second router", "01 45 00 00", Completed, "11 " + zeros(16)},
		{"its MAC", "01 46 00 00", Completed, "11 " + zeros(6)},
		{"its prefix length", "01 47 00 00", Completed, "11 00"},
		{"its prefix", "01 48 00 00", Completed, "11 " + zeros(16)},
		{"dynamic routers", "01 49 00 00", Completed, "11 00"},
		{"that are none", "01 4a 00 00", noParameter, ""},
		{"discovery timing", "01 4f 00 00", Completed, "11 00"},
		{"that is none", "01 50 00 00", noParameter, ""},
		{"OEM", "01 c0 00 00", noParameter, ""},
		{"revision", "81 03 00 00", Completed, "11"},
		{"revision of the progress", "8e 00 00 00", Completed, "11"},
		{"revision of none", "81 1b 00 00", noParameter, ""},
		{"own channel", "0e 03 00 00", Completed, "11 7f 40 00 01"},
		{"reserved bits", "11 03 00 00", InvalidDataField, ""},
		{"another channel", "02 03 00 00", InvalidDataField, ""},
		{"IPMB", "00 03 00 00", InvalidDataField, ""},
	}.try(t, newPlaced(t), wire.Transport, 0x02)
}

// h2 is a MAC address as tohex writes bytes.
func h2(mac string) string { return strings.ReplaceAll(mac, ":", " ") }

// written are values that each parameter takes and then has.
var written = []struct{ name, param, data, reads string }{
	{"authentication types", "02", "14 14 14 04 00", ""},
	{"header", "07", "20 40 00", ""},
	{"ARP", "0a", "03", ""},
	{"ARP interval", "0b", "08", ""},
	{"gateway's MAC", "0d", "02 01 02 03 04 05", ""},
	{"backup gateway", "0e", "c0 00 02 fe", ""},
	{"its MAC", "0f", "02 01 02 03 04 06", ""},
	{"community", "10", "70 72 69 76 61 74 65 " + "00 11 12 13 14 15 16 17 18 19 1a", ""},
	{"type of a destination", "12", "02 80 05 03", ""},
	{"of that which is not kept", "12", "00 80 05 07", ""},
	{"address of a destination", "13", "01 00 01 c0 00 02 07 02 01 02 03 04 07", ""},
	{"IPv6 address of a destination", "13", "02 10 20 01 0d b8 " + zeros(11) + " 01", ""},
	{"address of that which is not kept", "13", "00 00 00 7f 00 00 01 00 00 00 00 00 00", ""},
	{"VLAN", "14", "64 80", ""},
	{"VLAN 4094", "14", "fe 8f", ""},
	{"VLAN off", "14", "00 00", ""},
	{"VLAN off with its ID", "14", "64 00", ""},
	{"its priority", "15", "05", ""},
	{"limits of suites", "18", "00 00 30 00 00 00 00 00 40", ""},
	{"VLAN of a destination", "19", "01 10 64 20", ""},
	{"wrong passwords", "1a", "01 03 0c 00 06 00", ""},
	{"that lock for ever", "1a", "00 05 00 00 00 00", ""},
	{"that never lock", "1a", "00 00 00 00 00 00", ""},
	{"IPv6", "33", "02", ""},
	{"traffic class", "34", "2e", ""},
	{"hop limit", "35", "ff", ""},
	{"flow label", "36", "0f ff ff", ""},
	{"IPv6 address", "38", "02 80 20 01 0d b8 " + zeros(11) + " 05 40 00", ""},
	{"another", "38", "00 80 20 01 0d b8 " + zeros(11) + " 06 40 01", "00 80 20 01 0d b8 " + zeros(11) + " 06 40 00"},
	{"one that is none", "38", "00 " + zeros(18) + " 00", "00 " + zeros(18) + " 01"},
	{"router control", "40", "03", ""},
	{"router", "41", "fe 80 " + zeros(13) + " 01", ""},
	{"its MAC", "42", "02 01 02 03 04 08", ""},
	{"its prefix length", "43", "40", ""},
	{"its prefix", "44", "20 01 " + zeros(14), ""},
	{"second router", "45", "fe 80 " + zeros(13) + " 02", ""},
	{"its MAC", "46", "02 01 02 03 04 09", ""},
	{"its prefix length", "47", "80", ""},
	{"its prefix", "48", "20 02 " + zeros(14), ""},
	{"no second router", "45", zeros(16), ""},
	{"no router", "41", zeros(16), ""},
	{"source by hand", "04", "01", ""},
	{"address", "03", "c0 00 02 09", ""},
	{"mask", "06", "ff ff ff 00", ""},
	{"gateway", "0c", "c0 00 02 01", ""},
	{"no gateway", "0c", "00 00 00 00", ""},
	{"source DHCP", "04", "02", ""},
}

func TestLANParametersReadAsWritten(t *testing.T) {
	h := newPlaced(t)
	for _, w := range written {
		code, got := ask(t, h, wire.Transport, 0x01, unhex(t, "01"+w.param+w.data)...)
		if code != Completed || len(got) != 0 {
			t.Errorf("set %s [%s] = %v [% x]", w.name, w.data, code, got)
			continue
		}
		p := lanParameters[unhex(t, w.param)[0]]
		set := byte(0)
		if p.sets > 0 {
			set = unhex(t, w.data)[0]
		}
		want := w.data
		if w.reads != "" {
			want = w.reads
		}
		code, got = ask(t, h, wire.Transport, 0x02, 1, unhex(t, w.param)[0], set, 0)
		if code != Completed || tohex(got) != "11 "+want {
			t.Errorf("get %s = %v [% x], want [11 %s]", w.name, code, got, want)
		}
	}
}

func TestLANParametersRefuse(t *testing.T) {
	h := newPlaced(t)
	exchanges{
		{"begin", "01 00 01", Completed, ""},
		{"begin again", "01 00 01", setAlreadyInProgress, ""},
		{"commit", "01 00 02", Completed, ""},
		{"reserved", "01 00 03", InvalidDataField, ""},
		{"complete", "01 00 00", Completed, ""},
		{"no value", "01 00", DataLengthInvalid, ""},
		{"unknown", "01 1b 00", noParameter, ""},
		{"types that there can be", "01 01 00", readOnly, ""},
		{"another MAC", "01 05 02 00 00 00 00 01", readOnly, ""},
		{"short MAC", "01 05 02", DataLengthInvalid, ""},
		{"the same MAC", "01 05" + tohex(mac(h.Machine().Identity.BMCMAC())), Completed, ""},
		{"port", "01 08 6f 02", readOnly, ""},
		{"destinations", "01 11 01", readOnly, ""},
		{"number of suites", "01 16 01", readOnly, ""},
		{"suites", "01 17 00 03", readOnly, ""},
		{"IPv6 there can be", "01 32 01", readOnly, ""},
		{"IPv6 status", "01 37 00 00 00", readOnly, ""},
		{"DUID", "01 3a 00 00 " + zeros(16), readOnly, ""},
		{"dynamic address", "01 3b 00", readOnly, ""},
		{"no such type", "01 02 08 00 00 00 00", InvalidDataField, ""},
		{"too few types", "01 02 04 04 04 04", DataLengthInvalid, ""},
		{"address while DHCP gives it", "01 03 c0 00 02 09", NotSupportedInState, ""},
		{"mask while DHCP gives it", "01 06 ff ff ff 00", NotSupportedInState, ""},
		{"gateway while DHCP gives it", "01 0c c0 00 02 01", NotSupportedInState, ""},
		{"the same address", "01 03 7f 40 00 01", Completed, ""},
		{"the same mask", "01 06 ff 00 00 00", Completed, ""},
		{"the same gateway", "01 0c 00 00 00 00", Completed, ""},
		{"source BIOS", "01 04 03", InvalidDataField, ""},
		{"mask with a hole", "01 06 ff 00 ff 00", InvalidDataField, ""},
		{"no mask", "01 06 00 00 00 00", InvalidDataField, ""},
		{"no address", "01 03 00 00 00 00", InvalidDataField, ""},
		{"address of many", "01 03 e0 00 00 01", InvalidDataField, ""},
		{"ARP that there is not", "01 0a 04", InvalidDataField, ""},
		{"short community", "01 10 70 75 62", DataLengthInvalid, ""},
		{"no such destination", "01 12 05 00 03 00", ParameterOutOfRange, ""},
		{"destination without a type", "01 12 01", InvalidDataField, ""},
		{"reserved type", "01 12 01 01 03 00", InvalidDataField, ""},
		{"retries", "01 12 01 00 03 08", InvalidDataField, ""},
		{"format", "01 13 01 20 " + zeros(11), InvalidDataField, ""},
		{"VLAN 0", "01 14 00 80", InvalidDataField, ""},
		{"VLAN 4095", "01 14 ff 8f", InvalidDataField, ""},
		{"reserved VLAN bits", "01 14 01 90", InvalidDataField, ""},
		{"priority", "01 15 08", InvalidDataField, ""},
		{"limit of a suite", "01 18 00 06 00 00 00 00 00 00 00", InvalidDataField, ""},
		{"too few limits", "01 18 00 00", DataLengthInvalid, ""},
		{"VLAN format", "01 19 01 20 00 00", InvalidDataField, ""},
		{"wrong passwords", "01 1a 02 03 00 00 00 00", InvalidDataField, ""},
		{"IPv6 only", "01 33 01", InvalidDataField, ""},
		{"flow label", "01 36 10 00 00", InvalidDataField, ""},
		{"IPv6 address of many", "01 38 00 80 ff 02 " + zeros(14) + " 40 00", InvalidDataField, ""},
		{"prefix", "01 38 00 80 20 01 " + zeros(14) + " 81 00", InvalidDataField, ""},
		{"reserved IPv6 type", "01 38 00 81 20 01 " + zeros(14) + " 40 00", InvalidDataField, ""},
		{"second router before the first", "01 45 fe 80 " + zeros(14), NotSupportedInState, ""},
		{"prefix length", "01 43 81", InvalidDataField, ""},
		{"another channel", "02 00 01", InvalidDataField, ""},
		{"reserved channel bits", "11 00 01", InvalidDataField, ""},
	}.try(t, h, wire.Transport, 0x01)
}

func TestLANAddressAgreesWithRedfish(t *testing.T) {
	h := newPlaced(t)
	set := func(data string) {
		t.Helper()
		exchanges{{"set", data, Completed, ""}}.try(t, h, wire.Transport, 0x01)
	}
	set("01 04 01")
	want := &bmc.IPv4{Addr: spot.Addr, Mask: "255.0.0.0", Reach: bmc.AtBothAddresses}
	if n := h.BMC().Network(); n.DHCP || *n.Static != *want {
		t.Errorf("by hand: DHCP %t, static %+v", n.DHCP, n.Static)
	}
	set("01 03 c0 00 02 09")
	set("01 06 ff ff ff 00")
	set("01 0c c0 00 02 01")
	set("01 14 64 80")
	set("01 15 03")
	set("01 33 02")
	set("01 38 01 80 20 01 0d b8 " + zeros(11) + " 05 40 00")
	set("01 41 fe 80 " + zeros(13) + " 01")
	set("01 40 03")
	n := h.BMC().Network()
	want = &bmc.IPv4{Addr: netip.MustParseAddr("192.0.2.9"), Mask: "255.255.255.0", Gateway: "192.0.2.1", Reach: bmc.AtBothAddresses}
	if *n.Static != *want {
		t.Errorf("static = %+v, want %+v", n.Static, want)
	}
	if d := cmp.Diff(bmc.VLAN{On: true, ID: 100, Priority: 3}, n.VLAN); d != "" {
		t.Errorf("VLAN (-want +got):\n%s", d)
	}
	v6 := bmc.IPv6{
		On: true, Auto: true, Gateways: []string{"fe80::1"}, Use: bmc.DHCPv6Use{DNS: true, NTP: true, Domain: true},
		Static: []bmc.IPv6Static{{Addr: netip.MustParseAddr("2001:db8::5"), Prefix: 64, Slot: 1}},
	}
	if d := cmp.Diff(v6, n.V6); d != "" {
		t.Errorf("IPv6 (-want +got):\n%s", d)
	}
	if got := h.BMC().Addresses(); len(got) != 2 || got[1] != spot.Addr {
		t.Errorf("the BMC is at %v: must be at %s still", got, spot.Addr)
	}
	// The other way round.
	n.Static = &bmc.IPv4{Addr: netip.MustParseAddr("127.80.0.1"), Mask: "255.255.0.0", Gateway: "127.80.0.254"}
	n.DHCP, n.VLAN = false, bmc.VLAN{ID: 7, Priority: 1}
	n.V6.Static = []bmc.IPv6Static{{Addr: netip.MustParseAddr("2001:db8::6"), Prefix: 56}, {Addr: netip.MustParseAddr("2001:db8::7"), Prefix: 48}}
	n.IPMI.Port = 6230
	h.applyBMCCommand(t, bmc.SetNetwork{Network: n})
	exchanges{
		{"address", "01 03 00 00", Completed, "11 7f 50 00 01"},
		{"source", "01 04 00 00", Completed, "11 01"},
		{"mask", "01 06 00 00", Completed, "11 ff ff 00 00"},
		{"gateway", "01 0c 00 00", Completed, "11 7f 50 00 fe"},
		{"VLAN", "01 14 00 00", Completed, "11 07 00"},
		{"priority", "01 15 00 00", Completed, "11 01"},
		{"port", "01 08 00 00", Completed, "11 56 18"},
		{"first IPv6 address", "01 38 00 00", Completed, "11 00 80 20 01 0d b8 " + zeros(11) + " 06 38 00"},
		{"second", "01 38 01 00", Completed, "11 01 80 20 01 0d b8 " + zeros(11) + " 07 30 00"},
	}.try(t, h, wire.Transport, 0x02)
}

func TestBadPasswordThresholdAgreesWithRedfish(t *testing.T) {
	h := newPlaced(t)
	exchanges{{"set", "01 1a 01 03 0c 00 06 00", Completed, ""}}.try(t, h, wire.Transport, 0x01)
	p := h.BMC().Policy
	if p.LockoutThreshold != 3 || p.LockoutCounterResetAfter != 2*time.Minute || p.LockoutDuration != time.Minute || p.LockForever {
		t.Errorf("policy = %+v", p)
	}
	for range 3 {
		h.Login(bmc.Credentials{Account: "2", To: bmc.ForIPMI})
	}
	if h.found("operator") != 0 {
		t.Error("operator logs in after three wrong passwords")
	}
	exchanges{{"access unlocks", "01 03 03", Completed, ""}}.try(t, h, wire.App, 0x43)
	if h.found("operator") != wire.Operator {
		t.Error("operator does not log in after the access was set")
	}
}

func TestSuiteLimitsLimit(t *testing.T) {
	h := newPlaced(t)
	suites := func() string {
		var out []string
		for _, s := range (authenticator{h.state}).Suites() {
			out = append(out, string('0'+rune(s.ID/10))+string('0'+rune(s.ID%10))+":"+string('0'+rune(s.Limit)))
		}
		return strings.Join(out, " ")
	}
	if got := suites(); got != "17:4 03:4" {
		t.Errorf("as new: %s", got)
	}
	exchanges{{"3 for users, not 17", "01 18 00 00 20 00 00 00 00 00 00", Completed, ""}}.try(t, h, wire.Transport, 0x01)
	if got := suites(); got != "03:2" {
		t.Errorf("then: %s", got)
	}
	exchanges{{"list", "01 00 80", Completed, "01 c0 03 01 41 81"}}.try(t, h, wire.App, 0x54)
}

func TestIPMI15AuthTypes(t *testing.T) {
	h := newPlaced(t)
	exchanges{
		{"none as new", "81 04", Completed, "01 80 04 02 00 00 00 00"},
		{"as 1.5 asks", "01 04", Completed, "01 00 04 00 00 00 00 00"},
	}.try(t, h, wire.App, 0x38)
	exchanges{{"MD5 and straight for operators, MD5 for administrators", "01 02 00 14 14 04 00", Completed, ""}}.try(t, h, wire.Transport, 0x01)
	exchanges{
		{"administrator", "81 04", Completed, "01 84 04 03 00 00 00 00"},
		{"operator", "01 03", Completed, "01 14 04 00 00 00 00 00"},
		{"callback", "01 01", Completed, "01 00 04 00 00 00 00 00"},
	}.try(t, h, wire.App, 0x38)
	r := authenticator{h.state}
	if r.AuthTypes(0) != 0x14 || r.AuthTypes(wire.Administrator) != 0x04 {
		t.Errorf("types = %02x, of administrators %02x", r.AuthTypes(0), r.AuthTypes(wire.Administrator))
	}
}

func TestSuspendBMCARPs(t *testing.T) {
	h := newPlaced(t)
	exchanges{
		{"the watchdog does not run", "01 03", Completed, "02"},
		{"reserved", "01 04", InvalidDataField, ""},
		{"another channel", "02 00", InvalidDataField, ""},
	}.try(t, h, wire.Transport, 0x03)
	h.running(t)
	h.do(t, machine.SetWatchdog{Enabled: true, Action: machine.WatchdogReset, Warning: machine.NoWarning})
	h.do(t, machine.FeedWatchdog{Boot: h.Machine().OS.Boot})
	exchanges{{"it runs", "01 02", Completed, "00"}}.try(t, h, wire.Transport, 0x03)
}

func TestStatistics(t *testing.T) {
	h := newPlaced(t)
	sd := h.state
	sd.lan.traffic = Traffic{received: 0x0203, valid: 0x0102, sent: 0xfffe}
	saturatingIncrement(&sd.lan.traffic.sent)
	saturatingIncrement(&sd.lan.traffic.sent)
	exchanges{
		{"counts", "01 00", Completed, "03 02 00 00 00 00 00 00 ff ff 03 02 02 01 00 00 00 00"},
		{"clear", "01 01", Completed, zeros(18)},
		{"reserved", "01 02", InvalidDataField, ""},
		{"another channel", "03 00", InvalidDataField, ""},
	}.try(t, h, wire.Transport, 0x04)
}
