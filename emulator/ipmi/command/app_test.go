package command

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

func TestDeviceID(t *testing.T) {
	h := newHost(t)
	if v := h.Machine().BMCVersion(); v != "1.4.2" {
		t.Fatalf("BMC version = %s: the answer below is of 1.4.2", v)
	}
	exchanges{
		{"device ID", "", Completed, "20 01 01 04 02 bf d9 7e 00 4c 4d 02 00 00 00"},
	}.try(t, h, wire.App, 0x01)
}

func TestFirmwareVersions(t *testing.T) {
	for _, tt := range []struct {
		text string
		want [6]byte
	}{
		{"1.4.2", [6]byte{1, 4, 2}},
		{"7.00.30.00", [6]byte{7, 0, 30, 0}},
		{"2.78", [6]byte{2, 0x78}},
		{"128.100.256.7.8.9.10", [6]byte{127, 0x99, 255, 7, 8, 9}},
		{"iLO 5 v3.02", [6]byte{3, 2}},
		{"AFBT52F 4.60 2024-02-22", [6]byte{4, 0x60, 255, 2, 22}},
		{"firmware 7", [6]byte{7}},
		{"99999999999999999999.1", [6]byte{127, 1}},
		{"", [6]byte{}},
	} {
		major, minor, aux := firmwareVersion(tt.text)
		if got := [6]byte{major, minor, aux[0], aux[1], aux[2], aux[3]}; got != tt.want {
			t.Errorf("firmwareVersion(%q) = % x, want % x", tt.text, got, tt.want)
		}
	}
}

func TestDeviceGUIDIsTheManagersUUID(t *testing.T) {
	h := newHost(t)
	_, got := ask(t, h, wire.App, 0x08)
	want := unhex(t, strings.ReplaceAll(h.Machine().Identity.BMCUUID(), "-", ""))
	slices.Reverse(want)
	if string(got) != string(want) {
		t.Errorf("device GUID = % x, want % x", got, want)
	}
	if _, system := ask(t, h, wire.App, 0x37); string(system) == string(got) || len(system) != 16 {
		t.Errorf("system GUID = % x, device GUID = % x: must be 16 bytes and differ", system, got)
	}
}

func TestResetsOfTheBMC(t *testing.T) {
	for cmd, kind := range map[byte]bmc.ResetKind{0x02: bmc.ForceRestart, 0x03: bmc.GracefulRestart} {
		h := newHost(t)
		_, _ = ask(t, h, wire.App, 0x58, 0, 1) // which a restart forgets
		if code, got := ask(t, h, wire.App, cmd); code != Completed || len(got) != 0 {
			t.Fatalf("06/%02x = %v [% x]", cmd, code, got)
		}
		if l := h.BMC().Life; l.Is() != bmc.Leaving || l.Reset != kind {
			t.Errorf("06/%02x: the BMC is %s after %s, want %s", cmd, l.Is(), l.Reset, kind)
		}
		if code, _ := ask(t, h, wire.App, cmd); code != NodeBusy {
			t.Errorf("06/%02x while it goes down = %v, want %v", cmd, code, NodeBusy)
		}
		h.advance(10 * time.Minute)
		if is := h.BMC().Life.Is(); is != bmc.Up {
			t.Errorf("06/%02x: the BMC is %s at last", cmd, is)
		}
		if _, got := ask(t, h, wire.App, 0x59, 0, 0, 0, 0); string(got) != "\x11\x00" {
			t.Errorf("06/%02x: set in progress is [% x] after it", cmd, got)
		}
	}
}

func TestSelfTest(t *testing.T) {
	h := newHost(t)
	exchanges{{"as new", "", Completed, "55 00"}}.try(t, h, wire.App, 0x04)
	_, err := h.ApplyBMC(t.Context(), bmc.SetSelfTest{To: &bmc.SelfTest{Result: 0x57, Detail: 0x80}})
	must(t, err)
	exchanges{{"no SEL", "", Completed, "57 80"}}.try(t, h, wire.App, 0x04)
	_, err = h.ApplyBMC(t.Context(), bmc.SetSelfTest{})
	must(t, err)
	exchanges{{"well again", "", Completed, "55 00"}}.try(t, h, wire.App, 0x04)
}

func TestManufacturingTestIsRefused(t *testing.T) {
	exchanges{
		{"bare", "", SubFunctionDisabled, ""},
		{"with a key", "01 02 03 04", SubFunctionDisabled, ""},
	}.try(t, newHost(t), wire.App, 0x05)
}

// info writes a text of the system as ipmitool does.
func writeInfo(t *testing.T, h *host, param byte, text string) Code {
	t.Helper()
	b := encodeInfo(text)
	for i := 0; i < len(b)/infoBlock; i++ {
		code, got := ask(t, h, wire.App, 0x58, append([]byte{param, byte(i)}, b[i*infoBlock:(i+1)*infoBlock]...)...)
		if code != Completed {
			return code
		}
		if len(got) != 0 {
			t.Errorf("06/58 answers [% x], want nothing", got)
		}
	}
	return Completed
}

func readInfo(t *testing.T, h *host, param byte) string {
	t.Helper()
	var b []byte
	for set := byte(0); ; set++ {
		code, got := ask(t, h, wire.App, 0x59, 0, param, set, 0)
		if code == ParameterOutOfRange {
			break
		}
		if code != Completed || len(got) != 2+infoBlock || got[0] != revision || got[1] != set {
			t.Fatalf("06/59 of %d, block %d = %v [% x]", param, set, code, got)
		}
		b = append(b, got[2:]...)
	}
	return decodeInfo(b[0], b[infoHeader:infoHeader+int(b[1])])
}

// TestSystemInfoAgreesWithRedfish shows statement I31.
func TestSystemInfoAgreesWithRedfish(t *testing.T) {
	h := newHost(t)
	h.bmc.SetNetworkDefaults(spot)
	h.changed()
	if got, want := readInfo(t, h, 1), h.Machine().BIOSVersion(); got != want {
		t.Errorf("firmware version = %q, BiosVersion = %q", got, want)
	}
	long := strings.Repeat("0123456789", 4) + ".example"
	if code := writeInfo(t, h, 2, long); code != Completed {
		t.Fatalf("set system name = %v", code)
	}
	if got := h.Machine().Asset.HostName; got != long {
		t.Errorf("HostName = %q, want %q", got, long)
	}
	h.do(t, machine.SetAsset{Asset: machine.Asset{Tag: "t", HostName: "größe"}})
	if got := readInfo(t, h, 2); got != "größe" {
		t.Errorf("system name = %q, HostName = größe", got)
	}
	_ = writeInfo(t, h, 2, "x")
	if a := h.Machine().Asset; a.HostName != "x" || a.Tag != "t" {
		t.Errorf("after a shorter name: %+v", a)
	}
	if got := readInfo(t, h, 6); got != "https://127.64.0.1:443" {
		t.Errorf("BMC URL = %q", got)
	}
}

// TestSystemInfoSurvivesARestart shows statement I31.
func TestSystemInfoSurvivesARestart(t *testing.T) {
	h := newHost(t).running(t)
	if got := readInfo(t, h, 4); got != h.Machine().OS.Name {
		t.Errorf("present system = %q, want %q", got, h.Machine().OS.Name)
	}
	for param, text := range map[byte]string{3: "Ubuntu 26.04", 4: "Linux", 5: "6.18.1-" + strings.Repeat("x", 60), 7: "https://10.0.0.1:8006"} {
		if code := writeInfo(t, h, param, text); code != Completed {
			t.Errorf("set %d = %v", param, code)
		}
		if got := readInfo(t, h, param); got != text {
			t.Errorf("parameter %d = %q, want %q", param, got, text)
		}
	}
	h.do(t, machine.Reset{Kind: machine.ForceRestart})
	if got := readInfo(t, h, 3); got != "Ubuntu 26.04" {
		t.Errorf("primary system = %q after a reset", got)
	}
	for _, param := range []byte{4, 5, 7} {
		if got := readInfo(t, h, param); got != "" {
			t.Errorf("parameter %d = %q after a reset, want nothing", param, got)
		}
	}
}

// TestSystemInfoErrors shows statement I31.
func TestSystemInfoErrors(t *testing.T) {
	h := newHost(t)
	block := strings.Repeat(" 00", 16)
	exchanges{
		{"begin", "00 01", Completed, ""},
		{"begin again", "00 01", setAlreadyInProgress, ""},
		{"commit", "00 02", Completed, ""},
		{"reserved", "00 03", InvalidDataField, ""},
		{"complete", "00 00", Completed, ""},
		{"complete again", "00 00", Completed, ""},
		{"no value", "00", DataLengthInvalid, ""},
		{"two values", "00 00 00", DataLengthInvalid, ""},
		{"firmware version", "01 00" + block, readOnly, ""},
		{"BMC URL", "06 00" + block, readOnly, ""},
		{"unknown", "08 00" + block, noParameter, ""},
		{"of another vendor", "c5 00" + block, noParameter, ""},
		{"short block", "02 00" + block[3:], DataLengthInvalid, ""},
		{"long block", "02 00 00" + block, DataLengthInvalid, ""},
		{"no such block", "02 11" + block, ParameterOutOfRange, ""},
		{"no such encoding", "02 00 03" + block[3:], InvalidDataField, ""},
		{"UCS-2", "02 00 02 04 41 00 f6 00 00 00 00 00 00 00 00 00 00 00", Completed, ""},
	}.try(t, h, wire.App, 0x58)
	if got := h.Machine().Asset.HostName; got != "Aö" {
		t.Errorf("HostName = %q, want Aö", got)
	}
	exchanges{
		{"progress", "00 00 00 00", Completed, "11 00"},
		{"revision of it", "80 00 00 00", Completed, "11"},
		{"revision", "80 02 00 00", Completed, "11"},
		{"name", "00 02 00 00", Completed, "11 00 01 03 41 c3 b6" + strings.Repeat(" 00", 11)},
		{"block that is none", "00 02 01 00", ParameterOutOfRange, ""},
		{"unknown", "00 08 00 00", noParameter, ""},
		{"revision of unknown", "80 08 00 00", noParameter, ""},
		{"reserved bits", "01 02 00 00", InvalidDataField, ""},
	}.try(t, h, wire.App, 0x59)
}

// A system info text is stored when its last block has come, not before
// (statement I31).
func TestSystemInfoNeedsAllBlocks(t *testing.T) {
	h := newHost(t)
	b := encodeInfo(strings.Repeat("n", 20))
	_, _ = ask(t, h, wire.App, 0x58, append([]byte{2, 0}, b[:16]...)...)
	if got := h.Machine().Asset.HostName; got != "" {
		t.Errorf("HostName = %q with half of the name", got)
	}
	if _, got := ask(t, h, wire.App, 0x59, 0, 2, 0, 0); string(got[2:]) != string(b[:16]) {
		t.Errorf("what was written reads [% x]", got)
	}
	_, _ = ask(t, h, wire.App, 0x58, append([]byte{2, 1}, b[16:]...)...)
	if got := h.Machine().Asset.HostName; got != strings.Repeat("n", 20) {
		t.Errorf("HostName = %q", got)
	}
	_, _ = ask(t, h, wire.App, 0x58, append([]byte{2, 1}, []byte("mmmmmmmmmmmmmmmm")...)...) // the second block alone
	if got := h.Machine().Asset.HostName; got != strings.Repeat("n", 14)+"mmmmmm" {
		t.Errorf("HostName = %q", got)
	}
}
