package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

const setBoot, getBoot = 0x08, 0x09

// reads wants a boot option to be so.
func (h *host) reads(t *testing.T, what string, parameter byte, want string) {
	t.Helper()
	answers(t, h, what, wire.Chassis, getBoot, fmt.Sprintf("%02x 00 00", parameter), fmt.Sprintf("01 %02x %s", parameter, want))
}

// writes sets a boot option.
func (h *host) writes(t *testing.T, data string) {
	t.Helper()
	answers(t, h, "set", wire.Chassis, setBoot, data, "")
}

func TestVendorWithoutABootParameter(t *testing.T) {
	h := newHost(t)
	h.d.IPMI.MissingBootOptions = []byte{3}
	exchanges{{"clearing", "03 1f", 0x80, ""}, {"flags", "05 80 04 00 00 00", Completed, ""}}.try(t, h, wire.Chassis, setBoot)
	exchanges{{"clearing", "03 00 00", 0x80, ""}, {"flags", "05 00 00", Completed, "01 05 80 04 00 00 00"}}.try(t, h, wire.Chassis, getBoot)
}

func TestVendorBootDeviceSelectors(t *testing.T) {
	h := newHost(t)
	h.d.IPMI.EFIBootDevices = map[byte]machine.SourceKind{0x2: machine.None, 0x9: machine.Hdd}
	for _, tt := range []struct {
		name, flags string
		want        machine.SourceKind
		response    string
	}{
		{"its own, by UEFI", "e0 24 00 00 00", machine.Hdd, "e0 24 00 00 00"},
		{"what it does not have by UEFI", "e0 08 00 00 00", machine.None, "e0 08 00 00 00"},
		{"by the book, in legacy mode", "80 08 00 00 00", machine.Hdd, "80 08 00 00 00"},
		{"by the book", "a0 04 00 00 00", machine.Pxe, "a0 04 00 00 00"},
	} {
		h.writes(t, "05 "+tt.flags)
		if is := h.Machine().Override.Target; is != tt.want {
			t.Errorf("%s: the target is %s, want %s", tt.name, is, tt.want)
		}
		h.reads(t, tt.name, 5, tt.response)
	}
	must(t, h.Apply(t.Context(), machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.Hdd, Mode: machine.UEFI}}))
	h.reads(t, "set by others", 5, "a0 24 00 00 00")
}

// TestBootOptionsAsSpecified shows statements I40, I41 and I43.
func TestBootOptionsAsSpecified(t *testing.T) {
	h := newHost(t)
	for n, want := range []string{"00", "00", "00", "00", "00 00", "00 00 00 00 00", "00 00 00 00 00 00 00 00 00"} {
		h.reads(t, "as new", byte(n), want)
	}
	exchanges{
		{"begin", "00 01", Completed, ""}, {"claimed", "00 01", 0x81, ""}, {"commit", "00 02", Completed, ""}, {"reserved", "00 03", InvalidDataField, ""},
		{"reserved bits", "00 04", InvalidDataField, ""}, {"long", "00 01 00", DataLengthInvalid, ""},
		{"partition", "01 07", Completed, ""}, {"partition, long", "01 07 00", DataLengthInvalid, ""},
		{"scan", "02 02", Completed, ""}, {"discovered", "02 01", 0x82, ""}, {"scan, reserved", "02 04", InvalidDataField, ""},
		{"clearing", "03 1f", Completed, ""}, {"clearing, reserved", "03 20", InvalidDataField, ""},
		{"handled", "04 ff fe", Completed, ""}, {"handled, one", "04 01 01", Completed, ""}, {"handled, short", "04 ff", DataLengthInvalid, ""},
		{"flags", "05 80 04 00 00 00", Completed, ""}, {"flags, short", "05 80 04 00 00", DataLengthInvalid, ""}, {"flags, long", "05 80 04 00 00 00 00", DataLengthInvalid, ""},
		{"flags, reserved bits", "05 81 04 00 00 00", InvalidDataField, ""}, {"flags, reserved device 1010b", "05 80 28 00 00 00", InvalidDataField, ""},
		{"flags, reserved device 1100b", "05 80 30 00 00 00", InvalidDataField, ""}, {"flags, reserved verbosity", "05 80 04 60 00 00", InvalidDataField, ""},
		{"flags, reserved redirection", "05 80 04 03 00 00", InvalidDataField, ""}, {"flags, reserved mux", "05 80 04 00 03 00", InvalidDataField, ""},
		{"flags, reserved of byte 4", "05 80 04 00 10 00", InvalidDataField, ""}, {"flags, reserved instance", "05 80 04 00 00 10", InvalidDataField, ""},
		{"flags, reserved of byte 5", "05 80 04 00 00 20", InvalidDataField, ""},
		{"initiator", "06 01 c3 b2 a1 02 04 03 02 01", Completed, ""}, {"initiator, reserved channel", "06 10 00 00 00 00 00 00 00 00", InvalidDataField, ""},
		{"initiator, short", "06 01 c3 b2 a1 02", DataLengthInvalid, ""},
		{"mailbox", "07 00 57 01 00 01 02 03", Completed, ""}, {"mailbox, whole block", "07 04" + strings.Repeat(" 5a", 16), Completed, ""},
		{"mailbox, beginning", "07 04 01 02", Completed, ""}, {"mailbox, nothing", "07 04", Completed, ""},
		{"mailbox, too many bytes", "07 00" + strings.Repeat(" 5a", 17), DataLengthInvalid, ""}, {"mailbox, no such block", "07 10 00", ParameterOutOfRange, ""},
		{"no parameter", "08 00", 0x80, ""}, {"OEM parameter", "60 00", 0x80, ""}, {"nothing", "", DataLengthInvalid, ""},
		{"marked invalid", "81", Completed, ""}, {"marked invalid, with data", "82 02", Completed, ""},
	}.try(t, h, wire.Chassis, setBoot)
	for n, want := range []string{"01", "", "", "1f", "00 ff", "80 04 00 00 00", "01 c3 b2 a1 02 04 03 02 01"} {
		if want != "" {
			h.reads(t, "as set", byte(n), want)
		}
	}
	exchanges{
		{"partition marked invalid", "01 00 00", Completed, "01 81 07"}, {"scan marked invalid", "02 00 00", Completed, "01 82 02"},
		{"mailbox", "07 00 00", Completed, "01 07 00 57 01 00 01 02 03" + strings.Repeat(" 00", 10)},
		{"mailbox, overwritten", "07 04 00", Completed, "01 07 04 01 02" + strings.Repeat(" 5a", 14)},
		{"mailbox, never written", "07 0f 00", Completed, "01 07 0f" + strings.Repeat(" 00", 16)},
		{"mailbox, no such block", "07 10 00", ParameterOutOfRange, ""},
		{"no parameter", "08 00 00", 0x80, ""}, {"OEM parameter", "60 00 00", 0x80, ""}, {"reserved bit", "85 00 00", InvalidDataField, ""},
		{"set selector of none", "05 01 00", InvalidDataField, ""}, {"block selector", "07 00 01", InvalidDataField, ""}, {"short", "05 00", DataLengthInvalid, ""},
	}.try(t, h, wire.Chassis, getBoot)
	h.writes(t, "00 00")
	h.reads(t, "complete", 0, "00")
	h.writes(t, "01")
	h.reads(t, "marked valid", 1, "07")
}

// Boot flags read as they were written, and Redfish shows the override
// (statement I42).
func TestBootFlagsSetTheRedfishOverride(t *testing.T) {
	for _, tt := range []struct {
		flags, read string // "": as written
		want        machine.Override
	}{
		{"80 04 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Pxe, Mode: machine.Legacy}},
		{"e0 08 00 00 00", "", machine.Override{Enabled: machine.Continuous, Target: machine.Hdd, Mode: machine.UEFI}},
		{"a0 0c 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Hdd, Mode: machine.UEFI}},
		{"a0 10 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Diags, Mode: machine.UEFI}},
		{"a0 14 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Cd, Mode: machine.UEFI}},
		{"a0 18 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.BiosSetup, Mode: machine.UEFI}},
		{"a0 1c 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Usb, Mode: machine.UEFI}},
		{"a0 20 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Cd, Mode: machine.UEFI}},
		{"a0 24 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Usb, Mode: machine.UEFI}},
		{"a0 2c 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Usb, Mode: machine.UEFI}},
		{"a0 3c 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.Usb, Mode: machine.UEFI}},
		{"80 00 00 00 00", "", machine.Override{Enabled: machine.Once, Target: machine.None, Mode: machine.Legacy}},
		{"a0 c7 da 0a 1f", "", machine.Override{Enabled: machine.Once, Target: machine.Pxe, Mode: machine.UEFI}},
		{"a0 04 00 00 0f", "", machine.Override{Enabled: machine.Once, Target: machine.Pxe, Mode: machine.UEFI}},
		{"20 04 00 00 00", "", machine.Override{Enabled: machine.Disabled, Target: machine.None, Mode: machine.UEFI}},
		// What is for good must be valid at the same time.
		{"60 04 00 00 00", "20 04 00 00 00", machine.Override{Enabled: machine.Disabled, Target: machine.None, Mode: machine.UEFI}},
	} {
		h := newHost(t)
		h.writes(t, "05 "+tt.flags)
		if tt.read == "" {
			tt.read = tt.flags
		}
		h.reads(t, "as written", 5, tt.read)
		if got := h.Machine().Override; got != tt.want {
			t.Errorf("[%s]: override %+v, want %+v", tt.flags, got, tt.want)
		}
	}
}

func TestBootFlagsFollowWhatRedfishSets(t *testing.T) {
	for _, tt := range []struct {
		set  machine.Override
		want string
	}{
		{machine.Override{Enabled: machine.Once, Target: machine.Pxe, Mode: machine.UEFI}, "a0 04 00 00 00"},
		{machine.Override{Enabled: machine.Continuous, Target: machine.Hdd, Mode: machine.Legacy}, "c0 08 00 00 00"},
		{machine.Override{Enabled: machine.Once, Target: machine.Usb, Mode: machine.UEFI}, "a0 3c 00 00 00"},
		{machine.Override{Enabled: machine.Once, Target: machine.UefiShell, Mode: machine.UEFI}, "a0 00 00 00 00"}, // no selector stands for it
		{machine.Override{Enabled: machine.Disabled, Target: machine.Pxe, Mode: machine.UEFI}, "00 00 00 00 00"},
	} {
		h := newHost(t)
		h.do(t, machine.SetOverride{Override: tt.set})
		h.reads(t, fmt.Sprint(tt.set), 5, tt.want)
	}
	h := newHost(t)
	h.writes(t, "05 a0 0c 80 00 02") // disk 2 in safe mode, power button locked
	h.do(t, machine.SetOverride{Override: machine.Override{Enabled: machine.Continuous, Target: machine.Hdd, Mode: machine.UEFI}})
	h.reads(t, "the same target", 5, "e0 0c 80 00 02")
	h.do(t, machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.Cd, Mode: machine.UEFI}})
	h.reads(t, "another target", 5, "a0 14 80 00 00")
	h.advance(time.Hour)
	h.reads(t, "what Redfish has set does not expire", 5, "a0 14 80 00 00")
}

// TestBootFlagsExpireUnlessClearingIsDisabled shows statements I41 and I42.
func TestBootFlagsExpireUnlessClearingIsDisabled(t *testing.T) {
	h := newHost(t)
	h.writes(t, "05 a0 04 00 00 00")
	h.advance(59 * time.Second)
	h.reads(t, "59 s later", 5, "a0 04 00 00 00")
	h.advance(2 * time.Second)
	h.reads(t, "61 s later", 5, "20 04 00 00 00")
	if o := h.Machine().Override; o.Enabled != machine.Disabled {
		t.Errorf("61 s later Redfish shows %+v", o)
	}
	h.writes(t, "03 08")
	h.writes(t, "05 a0 04 00 00 00")
	h.advance(time.Hour)
	h.reads(t, "an hour later", 5, "a0 04 00 00 00")
}

// TestOneTimeBootFlagsAreClearedByTheBoot shows statement I42.
func TestOneTimeBootFlagsAreClearedByTheBoot(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"a0 04 00 00 00", "00 00 00 00 00"}, {"e0 08 00 00 00", "e0 08 00 00 00"},
	} {
		h := newHost(t).running(t)
		h.writes(t, "04 ff ff")
		h.writes(t, "00 01")
		h.writes(t, "05 "+tt.flags)
		answers(t, h, "cycle", wire.Chassis, 0x02, "02", "")
		h.reads(t, "before POST", 5, tt.flags)
		h.advance(time.Hour)
		h.reads(t, "after it", 5, tt.want)
		h.reads(t, "the firmware has handled them", 4, "00 fe")
		h.reads(t, "a reset completes what was in progress", 0, "00")
	}
}

func TestBootFlagsLockButtonsForOneBoot(t *testing.T) {
	h := newHost(t).running(t)
	h.writes(t, "05 a0 09 80 00 00")
	answers(t, h, "before the boot", wire.Chassis, 0x01, "", "21 10 40 70")
	answers(t, h, "cycle", wire.Chassis, 0x02, "02", "")
	h.advance(time.Hour)
	answers(t, h, "in the boot", wire.Chassis, 0x01, "", "21 10 42 73")
	h.do(t, machine.Reset{Kind: machine.PushPowerButton})
	h.advance(time.Hour)
	if is := h.Machine().Phase; is != machine.Running {
		t.Errorf("the locked button was pushed, and the machine is %s", is)
	}
	answers(t, h, "reset", wire.Chassis, 0x02, "03", "")
	h.advance(time.Hour)
	answers(t, h, "in the next boot", wire.Chassis, 0x01, "", "21 10 40 70")
}

func TestPersistentBootFlagsNeedAdministrator(t *testing.T) {
	for _, tt := range []struct {
		data string
		want Code
	}{{"05 c0 04 00 00 00", InsufficientPrivilege}, {"05 80 04 00 00 00", Completed}, {"05 40 04 00 00 00", Completed}} {
		if code, _ := askAs(t, newHost(t), wire.Operator, wire.Chassis, setBoot, unhex(t, tt.data)...); code != tt.want {
			t.Errorf("an operator's [%s] = %v, want %v", tt.data, code, tt.want)
		}
	}
}

func TestBootFlagsCMOSClearLoadsBIOSDefaults(t *testing.T) {
	h := newHost(t).running(t)
	setting := func() string {
		for _, s := range h.Machine().BIOSSettings() {
			if s.Name == "BootMode" {
				return fmt.Sprint(s.Value)
			}
		}
		t.Fatal("there is no setting BootMode")
		return ""
	}
	asMade := setting()
	set := firmware.SetAttributes{Settings: []firmware.Setting{{Name: "BootMode", Value: firmware.Text("LegacyBios")}}}
	h.do(t, machine.Firmware{Command: set})
	h.do(t, machine.Reset{Kind: machine.ForceRestart})
	h.advance(time.Hour)
	if setting() == asMade {
		t.Fatalf("set, and BootMode is %s", asMade)
	}
	h.writes(t, "05 a0 84 00 00 00")
	h.reads(t, "asked for", 5, "a0 84 00 00 00")
	answers(t, h, "reset", wire.Chassis, 0x02, "03", "")
	h.advance(time.Hour)
	if got := setting(); got != asMade {
		t.Errorf("after the boot BootMode is %s, want %s", got, asMade)
	}
	h.reads(t, "done", 5, "00 00 00 00 00")
}
