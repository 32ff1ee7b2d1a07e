package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// askDCMI asks a command of DCMI; data is in hex, without the group.
func askDCMI(t *testing.T, h *host, cmd byte, data string) (Code, []byte) {
	t.Helper()
	return ask(t, h, wire.Group, cmd, append([]byte{dcmi}, unhex(t, data)...)...)
}

// tryDCMI asks requests that are written without the group.
func (all exchanges) tryDCMI(t *testing.T, h *host, cmd byte) {
	t.Helper()
	for i := range all {
		all[i].data = "dc" + all[i].data
	}
	all.try(t, h, wire.Group, cmd)
}

// TestGetDCMICapabilities shows statement I66.
func TestGetDCMICapabilities(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"what there is", "01", Completed, "010502 000101"},
		{"its log", "02", Completed, fmt.Sprintf("010502 %02x%02x 0000 01", byte(h.d.BMC.Log.Size), 0xa0|h.d.BMC.Log.Size>>8)},
		{"who manages power", "03", Completed, "010502 2001"},
		{"channels", "04", Completed, "010502 01ffff"},
		{"averages", "05", Completed, "010502 0400051e41"},
		{"none such", "06", InvalidDataField, ""}, {"none such", "00", InvalidDataField, ""}, {"short", "", DataLengthInvalid, ""},
	}.tryDCMI(t, h, 0x01)
	if code, got := askAs(t, h, 0, wire.Group, 0x01, dcmi, 1); code != Completed || len(got) != 6 {
		t.Errorf("outside of a session: %v % x", code, got)
	}
	if code, _ := askAs(t, h, 0, wire.Group, 0x02, dcmi, 1, 0, 0); code != InsufficientPrivilege {
		t.Errorf("power outside of a session: %v", code)
	}
}

// TestAssetTagAgreesWithRedfish shows statement I68.
func TestAssetTagAgreesWithRedfish(t *testing.T) {
	h := newHost(t)
	tag := func() string { return h.Machine().Asset.Tag }
	long := strings.Repeat("0123456789abcdef", 4)[:63]
	h.do(t, machine.SetAsset{Asset: machine.Asset{Tag: long}})
	exchanges{
		{"a piece", "0010", Completed, "3f" + tohex([]byte(long[:16]))},
		{"the last piece", "300f", Completed, "3f" + tohex([]byte(long[48:]))},
		{"its length", "0000", Completed, "3f"},
		{"too much", "0011", ParameterOutOfRange, ""}, {"behind it", "3f00", ParameterOutOfRange, ""}, {"beyond it", "3010", ParameterOutOfRange, ""},
	}.tryDCMI(t, h, 0x06)
	h.do(t, machine.SetAsset{Asset: machine.Asset{Tag: "AB"}})
	exchanges{{"as much as there is", "0010", Completed, "024142"}, {"less", "0108", Completed, "0242"}, {"behind it", "0508", Completed, "02"}}.tryDCMI(t, h, 0x06)
	exchanges{
		{"written", "0003 4b3137", Completed, "03"}, {"longer", "0302 2d37", Completed, "05"}, {"with a gap", "0701 41", ParameterOutOfRange, ""},
		{"too much", "0011 " + strings.Repeat("41", 16), ParameterOutOfRange, ""}, {"behind it", "3f01 41", ParameterOutOfRange, ""},
		{"less than said", "0003 4b31", DataLengthInvalid, ""}, {"more than said", "0001 4b31", DataLengthInvalid, ""},
	}.tryDCMI(t, h, 0x08)
	if tag() != "K17-7" {
		t.Errorf("the tag is %q", tag())
	}
	exchanges{{"shorter", "0102 5858", Completed, "03"}}.tryDCMI(t, h, 0x08)
	exchanges{{"read", "0010", Completed, "034b5858"}}.tryDCMI(t, h, 0x06)
	// A character may be in two pieces.
	exchanges{{"half", "0005 efbbbf e98d", Completed, "05"}, {"the rest", "0501 b5", Completed, "06"}}.tryDCMI(t, h, 0x08)
	if tag() != "鍵" {
		t.Errorf("the tag is %q", tag())
	}
	exchanges{{"read", "0010", Completed, "06efbbbfe98db5"}}.tryDCMI(t, h, 0x06)
	h.do(t, machine.SetAsset{Asset: machine.Asset{Tag: "ü"}})
	exchanges{{"in Latin 1", "0010", Completed, "01fc"}}.tryDCMI(t, h, 0x06)
	// FreeIPMI fills all pieces of the tag up with zeros.
	zero := strings.Repeat("00", 16)
	exchanges{
		{"with zeros", "0010 5a39" + zero[4:], Completed, "10"}, {"zeros", "1010" + zero, Completed, "20"}, {"zeros", "2010" + zero, Completed, "30"},
		{"fewer zeros", "300f" + zero[2:], Completed, "3f"},
	}.tryDCMI(t, h, 0x08)
	exchanges{{"without zeros", "0010", Completed, "025a39"}}.tryDCMI(t, h, 0x06)
	if tag() != "Z9" {
		t.Errorf("the tag is %q", tag())
	}
	if code, _ := askAs(t, h, wire.User, wire.Group, 0x08, dcmi, 0, 1, 'A'); code != InsufficientPrivilege {
		t.Errorf("a user writes: %v", code)
	}
}

// An asset tag that the FRU data holds in another encoding is answered with the
// completion code of that encoding (DCMI 1.5, §6.4.2).
func TestAssetTagInAnotherEncoding(t *testing.T) {
	h := newHost(t)
	h.do(t, machine.SetAsset{Asset: machine.Asset{Tag: "12345678"}})
	b := readAll(t, h, 0, 64)
	at := strings.Index(string(b), "\xc812345678")
	if at < 0 {
		t.Fatal("there is no tag")
	}
	for coding, code := range map[byte]Code{0: 0x80, 1: 0x81, 2: 0x82, 3: Completed} {
		b := append([]byte(nil), b...)
		b[at] = coding<<6 | 8
		area := int(b[4]) * 8
		sum, last := byte(0), area+int(b[area+1])*8-1
		for _, x := range b[area:last] {
			sum += x
		}
		b[last] = -sum
		h.do(t, machine.SetFRUOverrides{FRUOverrides: machine.FRUOverrides{Image: b}})
		got, data := askDCMI(t, h, 0x06, "0008")
		if got != code || string(data) != "\x0812345678" {
			t.Errorf("coding %d: %v % x", coding, got, data)
		}
	}
}

// TestManagementControllerIdentifier shows statement I68.
func TestManagementControllerIdentifier(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"its length", "0001", Completed, "0a6e"}, {"a piece", "0010", Completed, "0a" + tohex([]byte("node-0-bmc")) + "000000000000"},
		{"the last piece", "3010", Completed, "0a" + strings.Repeat("00", 16)}, {"too much", "0011", ParameterOutOfRange, ""}, {"beyond it", "3110", ParameterOutOfRange, ""},
	}.tryDCMI(t, h, 0x09)
	exchanges{{"the first piece", "0010" + tohex([]byte("a-rather-long-na")), Completed, "10"}}.tryDCMI(t, h, 0x0a)
	if n := h.BMC().Network(); n.HostName != "" {
		t.Errorf("half a name is %q", n.HostName)
	}
	exchanges{{"what was written", "0008", Completed, "10" + tohex([]byte("a-rather"))}}.tryDCMI(t, h, 0x09)
	exchanges{{"the rest", "1004" + tohex([]byte("me0\x00")), Completed, "14"}}.tryDCMI(t, h, 0x0a)
	if n := h.BMC().Network(); n.HostName != "a-rather-long-name0" {
		t.Errorf("the name is %q", n.HostName)
	}
	exchanges{
		{"no name", "0005" + tohex([]byte("a b!\x00")), InvalidDataField, ""},
		{"a gap", "2002 4100", ParameterOutOfRange, ""}, {"too much", "0011" + strings.Repeat("41", 16), ParameterOutOfRange, ""},
		{"less than said", "0005 4142", DataLengthInvalid, ""}, {"nothing", "0000 41", ParameterOutOfRange, ""},
	}.tryDCMI(t, h, 0x0a)
	for at := 0; at < 48; at += 16 {
		exchanges{{"a piece", fmt.Sprintf("%02x10", at) + strings.Repeat("61", 16), Completed, fmt.Sprintf("%02x", at+16)}}.tryDCMI(t, h, 0x0a)
	}
	exchanges{
		{"no zero", "3010" + strings.Repeat("61", 16), InvalidDataField, ""},
		{"as it was", "000b" + tohex([]byte("node-0-bmc\x00")), Completed, "0b"},
	}.tryDCMI(t, h, 0x0a)
	if n := h.BMC().Network(); n.HostName != "" {
		t.Errorf("the name is %q, and is its own", n.HostName)
	}
}

func TestGetDCMISensorInfo(t *testing.T) {
	h := newHost(t)
	r := repositoryOf(h.Machine().Profile)
	records := func(numbers ...byte) string {
		out := ""
		for _, n := range numbers {
			out += tohex([]byte{byte(r.byNumber[n].record), byte(r.byNumber[n].record >> 8)})
		}
		return out
	}
	exchanges{
		{"inlet", "0140 0000", Completed, "0101" + records(1)}, {"inlet, as IPMI has it", "0137 0100", Completed, "0101" + records(1)},
		{"processors", "0141 0000", Completed, "0202" + records(2, 3)}, {"from the second on", "0103 0002", Completed, "0201" + records(3)},
		{"the second", "0103 0200", Completed, "0201" + records(3)}, {"the board", "0142 0000", Completed, "0101" + records(6)},
		{"the third", "0103 0300", NotPresent, ""}, {"what else", "0108 0000", InvalidDataField, ""}, {"fans", "0440 0000", InvalidDataField, ""},
	}.tryDCMI(t, h, 0x07)
	force(t, h, "InletTemp", -7)
	exchanges{{"inlet", "0140 0000", Completed, "0101 8701"}, {"processors that are off", "0141 0001", Completed, "0000"}, {"one of them", "0141 0100", NotPresent, ""}}.tryDCMI(t, h, 0x10)
	h.running(t)
	force(t, h, "CPU1Temp", 80)
	force(t, h, "CPU2Temp", 200)
	exchanges{{"processors", "0141 0001", Completed, "0202 5001 7f02"}, {"the first", "0103 0100", Completed, "0201 5001"}, {"fans", "041d 0000", InvalidDataField, ""}}.tryDCMI(t, h, 0x10)
}

// TestPowerReadingAgreesWithRedfish shows statement I67.
func TestPowerReadingAgreesWithRedfish(t *testing.T) {
	h := newHost(t)
	off := "0000 0000 0000 0000 %s 60ea0000 00"
	at := func() string {
		n := uint32(h.Now().Unix())
		return fmt.Sprintf("%08x", n<<24|n>>24|n>>8&0xff00|n<<8&0xff0000)
	}
	exchanges{{"off", "010000", Completed, fmt.Sprintf(off, at())}}.tryDCMI(t, h, 0x02)
	h.running(t)
	h.do(t, machine.Thermal{Command: thermal.SetLoad{Load: new(1.0)}})
	h.advance(20 * time.Second)
	u := h.Machine().Thermal.Usage(h.Now(), time.Minute)
	if u.Least >= u.Mean || u.Mean >= u.Most {
		t.Fatalf("usage %+v", u)
	}
	watts := func(all ...float64) string {
		out := ""
		for _, w := range all {
			n := uint16(w + 0.5)
			out += fmt.Sprintf("%02x%02x", byte(n), n>>8)
		}
		return out
	}
	exchanges{
		{"over a minute", "010000", Completed, watts(u.Is, u.Least, u.Most, u.Mean) + at() + "60ea0000 40"},
		{"now", "020000", Completed, watts(u.Is, u.Is, u.Is, u.Is) + at() + "00000000 40"},
		{"over 5 s", "020500", Completed, watts(u.Is, u.Is, u.Is, u.Is) + at() + "88130000 40"},
		{"over a minute, too", "024100", Completed, watts(u.Is, u.Least, u.Most, u.Mean) + at() + "60ea0000 40"},
		{"over an hour", "028100", ParameterOutOfRange, ""}, {"another mode", "030000", InvalidDataField, ""}, {"an attribute", "010500", InvalidDataField, ""},
	}.tryDCMI(t, h, 0x02)
}

// The power limit of DCMI is the one that Redfish's Control shows and sets
// (statement I67).
func TestDCMIPowerLimit(t *testing.T) {
	h := newHost(t)
	least, most := h.Machine().Profile.Thermal.Limits()
	set := func(action byte, watts, correct, sampling int) string {
		return fmt.Sprintf("000000 %02x %02x%02x %02x%02x%02x%02x 0000 %02x%02x",
			action, byte(watts), byte(watts>>8), byte(correct), byte(correct>>8), byte(correct>>16), byte(correct>>24), byte(sampling), byte(sampling>>8))
	}
	none := fmt.Sprintf("%02x%02x 70170000 0000 3c00", byte(int(most)), byte(int(most)>>8))
	exchanges{{"none", "0000", noPowerLimit, "0000 00" + none}}.tryDCMI(t, h, 0x03)
	exchanges{{"none to activate", "010000", NotSupportedInState, ""}, {"none to end", "000000", Completed, ""}, {"what", "020000", InvalidDataField, ""}}.tryDCMI(t, h, 0x05)
	exchanges{
		{"too low", set(0, int(least)-1, 1000, 30), limitOutOfRange, ""}, {"too high", set(0, int(most)+1, 1000, 30), limitOutOfRange, ""},
		{"at once", set(0, 400, 0, 30), correctionTimeOutOfRange, ""}, {"too late", set(0, 400, 3600001, 30), correctionTimeOutOfRange, ""},
		{"not sampled", set(0, 400, 1000, 0), samplingPeriodOutOfRange, ""}, {"sampled for long", set(0, 400, 1000, 61), samplingPeriodOutOfRange, ""},
		{"an action of its own", set(2, 400, 1000, 30), InvalidDataField, ""}, {"short", "00", DataLengthInvalid, ""},
		{"set", set(0x11, 400, 1000, 30), Completed, ""},
	}.tryDCMI(t, h, 0x04)
	if w := h.Machine().Thermal.Limit(); w != 0 {
		t.Errorf("a limit of %v W is in force", w)
	}
	exchanges{{"not in force", "0000", noPowerLimit, "0000 11 9001 e8030000 0000 1e00"}}.tryDCMI(t, h, 0x03)
	exchanges{{"activate", "010000", Completed, ""}, {"again", "010000", Completed, ""}}.tryDCMI(t, h, 0x05)
	exchanges{{"in force", "0000", Completed, "0000 11 9001 e8030000 0000 1e00"}}.tryDCMI(t, h, 0x03)
	if w := h.Machine().Thermal.Limit(); w != 400 {
		t.Errorf("a limit of %v W is in force", w)
	}
	exchanges{{"another", set(0, 300, 1000, 30), Completed, ""}}.tryDCMI(t, h, 0x04)
	if w := h.Machine().Thermal.Limit(); w != 300 {
		t.Errorf("a limit of %v W is in force", w)
	}
	h.do(t, machine.Thermal{Command: thermal.SetLimit{Watts: 350}}) // by Redfish
	exchanges{{"of Redfish", "0000", Completed, "0000 00 5e01 e8030000 0000 1e00"}}.tryDCMI(t, h, 0x03)
	exchanges{{"end", "000000", Completed, ""}}.tryDCMI(t, h, 0x05)
	if w := h.Machine().Thermal.Limit(); w != 0 {
		t.Errorf("a limit of %v W is in force", w)
	}
	exchanges{{"ended", "0000", noPowerLimit, "0000 00 2c01 e8030000 0000 1e00"}}.tryDCMI(t, h, 0x03)
	// A client can write back the limit that a BMC without one reports.
	exchanges{{"the limit as read", "000000 00" + none, Completed, ""}}.tryDCMI(t, newHost(t), 0x04)
}

func TestDCMIThermalLimit(t *testing.T) {
	h := newHost(t).running(t)
	exchanges{{"none", "3701", Completed, "00000000"}, {"none such", "3702", NotPresent, ""}, {"a processor", "0301", InvalidDataField, ""}}.tryDCMI(t, h, 0x0c)
	exchanges{
		{"reserved", "3701 41 1e 0a00", InvalidDataField, ""}, {"of 0 °C", "3701 20 00 0a00", limitOutOfRange, ""}, {"none such", "3702 40 1e 0a00", NotPresent, ""},
		{"a processor", "0301 40 1e 0a00", InvalidDataField, ""}, {"30 °C for a minute", "4001 c0 1e 3c00", Completed, ""},
	}.tryDCMI(t, h, 0x0b)
	exchanges{{"set", "4001", Completed, "401e3c00"}}.tryDCMI(t, h, 0x0c)
	force(t, h, "InletTemp", 31)
	h.advance(59 * time.Second)
	if is := h.Machine().Phase; is != machine.Running {
		t.Errorf("too early it is %s", is)
	}
	h.advance(30 * time.Second)
	if is := h.Machine().Power; is != machine.PowerOff {
		t.Errorf("it is %s", is)
	}
	if got := kinds(h, "InletTemp"); len(got) != 1 || got[0] != event.SensorTooHigh {
		t.Errorf("the log has %v", got)
	}
}

func TestDCMIConfigurationParameters(t *testing.T) {
	h := newHost(t)
	exchanges{
		{"DHCP", "0100", Completed, "010501 00"}, {"options", "0200", Completed, "010501 00"}, {"first", "0300", Completed, "010501 04"},
		{"contact", "0400", Completed, "010501 7800"}, {"retry", "0500", Completed, "010501 4000"}, {"none such", "0600", InvalidDataField, ""}, {"of a set", "0201", InvalidDataField, ""},
	}.tryDCMI(t, h, 0x13)
	exchanges{
		{"DHCP", "0100 01", Completed, ""}, {"not DHCP", "0100 00", InvalidDataField, ""}, {"options", "0200 83", Completed, ""}, {"reserved", "0200 04", InvalidDataField, ""},
		{"first", "0300 08", Completed, ""}, {"contact", "0400 2c01", Completed, ""}, {"retry", "0500 0a00", Completed, ""},
		{"long", "0300 0800", DataLengthInvalid, ""}, {"short", "0400 08", DataLengthInvalid, ""}, {"none such", "0600 00", InvalidDataField, ""}, {"of a set", "0201 00", InvalidDataField, ""},
	}.tryDCMI(t, h, 0x12)
	exchanges{
		{"DHCP", "0100", Completed, "010501 00"}, {"options", "0200", Completed, "010501 83"}, {"first", "0300", Completed, "010501 08"},
		{"contact", "0400", Completed, "010501 2c01"}, {"retry", "0500", Completed, "010501 0a00"},
	}.tryDCMI(t, h, 0x13)
}
