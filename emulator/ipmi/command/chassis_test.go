package command

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// answers asks one command and wants an answer.
func answers(t *testing.T, h *host, what string, fn wire.NetFn, cmd byte, data, want string) {
	t.Helper()
	code, got := ask(t, h, fn, cmd, unhex(t, data)...)
	if code != Completed || tohex(got) != want {
		t.Errorf("%s: %02x/%02x [%s] = %02X [%s], want [%s]", what, byte(fn), cmd, data, byte(code), tohex(got), want)
	}
}

// TestChassisStatusShowsFaults shows statements I34 and I36.
func TestChassisStatusShowsFaults(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   []machine.Command
		want string
	}{
		{"off", nil, "20 00 40 70"},
		{"always on", []machine.Command{machine.SetPowerPolicy{PowerPolicy: machine.PowerPolicy{Restore: machine.AlwaysOn}}}, "40 00 40 70"},
		{"always off", []machine.Command{machine.SetPowerPolicy{PowerPolicy: machine.PowerPolicy{Restore: machine.AlwaysOff}}}, "00 00 40 70"},
		{"cover open", []machine.Command{machine.OpenCover{Open: true}}, "20 00 41 70"},
		{"drive failed", []machine.Command{machine.Storage{Command: storage.FailDrive{Drive: "Disk.0"}}}, "20 00 44 70"},
		{"supply failed", []machine.Command{machine.Thermal{Command: thermal.SetSupply{ID: "PSU1", Fault: thermal.Failed}}}, "28 00 40 70"},
		{"supply taken out", []machine.Command{machine.Thermal{Command: thermal.SetSupply{ID: "PSU1", Fault: thermal.Absent}}}, "20 00 40 70"},
		{"identify for a time", []machine.Command{machine.Identify{Interval: time.Minute}}, "20 00 50 70"},
		{"identify", []machine.Command{machine.Identify{ForceOn: true}}, "20 00 60 70"},
		{"lit by Redfish", []machine.Command{machine.SetAsset{Asset: machine.Asset{IndicatorLED: machine.IndicatorLit}}}, "20 00 60 70"},
		{"buttons disabled", []machine.Command{machine.SetFrontPanel{FrontPanel: machine.FrontPanel{PowerOff: true, Reset: true}}}, "20 00 42 73"},
		{"mains lost", []machine.Command{machine.CutAC{}, machine.RestoreAC{}}, "20 01 40 70"},
		{"supplies lost", []machine.Command{
			machine.Thermal{Command: thermal.SetSupply{ID: "PSU1", Fault: thermal.NoInput}}, machine.Thermal{Command: thermal.SetSupply{ID: "PSU2", Fault: thermal.NoInput}},
			machine.Thermal{Command: thermal.SetSupply{ID: "PSU1", Fault: thermal.NoFault}}, machine.Thermal{Command: thermal.SetSupply{ID: "PSU2", Fault: thermal.NoFault}},
		}, "20 08 40 70"},
	} {
		h := newHost(t)
		for _, c := range tt.do {
			h.do(t, c)
		}
		answers(t, h, tt.name, wire.Chassis, 0x01, "", tt.want)
	}
	h := newHost(t).running(t)
	answers(t, h, "on", wire.Chassis, 0x01, "", "21 10 40 70")
	h.do(t, machine.Thermal{Command: thermal.FailFan{ID: "Fan1", Failed: true}})
	h.advance(time.Minute)
	answers(t, h, "fan failed", wire.Chassis, 0x01, "", "21 10 48 70")
}

// TestChassisControlResetsLikeRedfish shows statement I35.
func TestChassisControlResetsLikeRedfish(t *testing.T) {
	off, on := func(t *testing.T) *host { return newHost(t) }, func(t *testing.T) *host { return newHost(t).running(t) }
	for _, tt := range []struct {
		name   string
		at     func(t *testing.T) *host
		data   byte
		strict bool
		code   Code
		want   machine.Phase // an hour later
		boots  uint64
	}{
		{"on", off, 1, true, Completed, machine.Running, 1},
		{"on while on", on, 1, true, Completed, machine.Running, 1},
		{"off", on, 0, true, Completed, machine.Off, 1},
		{"off while off", off, 0, true, Completed, machine.Off, 0},
		{"cycle", on, 2, true, Completed, machine.Running, 2},
		{"cycle while off", off, 2, true, NotSupportedInState, machine.Off, 0},
		{"cycle while off, lax", off, 2, false, Completed, machine.Running, 1},
		{"reset", on, 3, true, Completed, machine.Running, 2},
		{"reset while off", off, 3, true, NotSupportedInState, machine.Off, 0},
		{"reset while off, lax", off, 3, false, Completed, machine.Running, 1},
		{"interrupt", on, 4, true, Completed, machine.Running, 2},
		{"interrupt while off", off, 4, false, NotSupportedInState, machine.Off, 0},
		{"soft", on, 5, true, Completed, machine.Off, 1},
		{"soft while off", off, 5, true, Completed, machine.Off, 0},
		{"reserved", on, 6, true, InvalidDataField, machine.Running, 1},
		{"reserved bits", on, 0x11, true, InvalidDataField, machine.Running, 1},
	} {
		h := tt.at(t)
		h.boots = true
		h.d.IPMI.RejectResetWhileOff = tt.strict
		if code, got := ask(t, h, wire.Chassis, 0x02, tt.data); code != tt.code || len(got) != 0 {
			t.Errorf("%s = %v [% x], want %v", tt.name, code, got, tt.code)
		}
		h.advance(time.Hour)
		v := h.Machine()
		if boots := v.Boots; v.Phase != tt.want || boots != tt.boots && tt.data != 4 {
			t.Errorf("%s: an hour later %s after %d boots, want %s after %d", tt.name, v.Phase, boots, tt.want, tt.boots)
		}
	}
}

// Power Down is not redundant during a power cycle, although the machine is off
// for a moment: it is refused.
func TestPowerOffDuringPowerCycleIsRefused(t *testing.T) {
	h := newHost(t).running(t)
	answers(t, h, "cycle", wire.Chassis, 0x02, "02", "")
	if code, _ := ask(t, h, wire.Chassis, 0x02, 0); code != NotSupportedInState {
		t.Errorf("off in a cycle = %v, want %v", code, NotSupportedInState)
	}
}

// TestChassisCommandsAsSpecified shows statement I37.
func TestChassisCommandsAsSpecified(t *testing.T) {
	h := newHost(t)
	exchanges{{"as built", "", Completed, "07 20 20 20 20 20"}}.try(t, h, wire.Chassis, 0x00)
	exchanges{
		{"without bridge", "00 22 24 26 28", Completed, ""}, {"reserved flag", "04 20 20 20 20", InvalidDataField, ""},
		{"address of 8 bits", "03 21 20 20 20", InvalidDataField, ""}, {"short", "03 20 20 20", DataLengthInvalid, ""}, {"long", "03 20 20 20 20 20 20", DataLengthInvalid, ""},
	}.try(t, h, wire.Chassis, 0x05)
	exchanges{{"as set", "", Completed, "04 22 24 26 28 20"}, {"with data", "00", DataLengthInvalid, ""}}.try(t, h, wire.Chassis, 0x00)
	exchanges{{"with bridge", "03 00 00 00 00 2e", Completed, ""}}.try(t, h, wire.Chassis, 0x05)
	exchanges{{"as set", "", Completed, "07 00 00 00 00 2e"}}.try(t, h, wire.Chassis, 0x00)

	exchanges{
		{"question", "03", Completed, "07"}, {"always on", "02", Completed, "07"}, {"reserved", "04", InvalidDataField, ""}, {"reserved bits", "0a", InvalidDataField, ""},
	}.try(t, h, wire.Chassis, 0x06)
	if got := h.Machine().Policy.Restore; got != machine.AlwaysOn {
		t.Errorf("policy = %s", got)
	}
	exchanges{{"5 s", "05", Completed, ""}, {"none", "00", Completed, ""}, {"nothing", "", DataLengthInvalid, ""}}.try(t, h, wire.Chassis, 0x0b)
	exchanges{{"all", "07", Completed, ""}, {"standby", "08", InvalidDataField, ""}, {"reserved", "10", InvalidDataField, ""}}.try(t, h, wire.Chassis, 0x0a)
	answers(t, h, "buttons disabled", wire.Chassis, 0x01, "", "40 00 42 77")
}

// TestChassisIdentifyTimesOut shows statement I36.
func TestChassisIdentifyTimesOut(t *testing.T) {
	h := newHost(t)
	for _, tt := range []struct {
		data  string
		after time.Duration
		want  machine.IndicatorLED
	}{
		{"", 14 * time.Second, machine.IndicatorBlinking}, {"", 15 * time.Second, machine.IndicatorOff}, {"03", 2 * time.Second, machine.IndicatorBlinking},
		{"03", 3 * time.Second, machine.IndicatorOff}, {"00 01", time.Hour, machine.IndicatorBlinking}, {"00", 0, machine.IndicatorOff}, {"05 00", 5 * time.Second, machine.IndicatorOff},
	} {
		answers(t, h, "identify", wire.Chassis, 0x04, tt.data, "")
		h.advance(tt.after)
		if got := h.Machine().Asset.IndicatorLED; got != tt.want {
			t.Errorf("identify [%s], %v later: %s, want %s", tt.data, tt.after, got, tt.want)
		}
	}
	exchanges{{"reserved bits", "05 02", InvalidDataField, ""}, {"too long", "05 00 00", DataLengthInvalid, ""}}.try(t, h, wire.Chassis, 0x04)
}

// TestRestartCauseAgreesWithRedfish shows statement I38.
func TestRestartCauseAgreesWithRedfish(t *testing.T) {
	policy := func(p machine.RestorePolicy) machine.Command {
		return machine.SetPowerPolicy{PowerPolicy: machine.PowerPolicy{Restore: p}}
	}
	for _, tt := range []struct {
		cause machine.ResetCause
		do    []machine.Command
		want  string
	}{
		{"", nil, "00 00"},
		{machine.CauseCommand, []machine.Command{machine.Reset{Kind: machine.ResetOn}}, "01 01"},
		{machine.CauseCommand, []machine.Command{machine.Reset{Kind: machine.ResetOn}, machine.Reset{Kind: machine.ForceRestart, ByPEF: true}}, "08 00"},
		{machine.CauseCommand, []machine.Command{machine.Reset{Kind: machine.ResetOn}, machine.Reset{Kind: machine.PowerCycle, ByPEF: true}}, "09 00"},
		{machine.CauseButton, []machine.Command{machine.Reset{Kind: machine.PushPowerButton}}, "03 00"},
		{machine.CauseRestore, []machine.Command{policy(machine.AlwaysOn), machine.CutAC{}, machine.RestoreAC{}, policy(machine.AlwaysOff)}, "06 00"},
		{machine.CauseRestore, []machine.Command{machine.Reset{Kind: machine.ResetOn}, machine.CutAC{}, machine.RestoreAC{}}, "07 00"},
	} {
		h := newHost(t)
		h.boots = true
		for _, c := range tt.do {
			h.do(t, c)
		}
		h.advance(time.Hour)
		if r := h.Machine().Reset; r != nil && r.Cause != tt.cause {
			t.Errorf("%s: cause %s", tt.cause, r.Cause)
		}
		answers(t, h, string(tt.cause), wire.Chassis, 0x07, "", tt.want)
	}
	h := newHost(t).running(t)
	h.do(t, machine.Exit{Boot: 1, Restart: true})
	h.advance(time.Hour)
	answers(t, h, "restarted by the system", wire.Chassis, 0x07, "", "0a 00")
	answers(t, h, "set the watchdog", wire.App, 0x24, "04 01 00 00 01 00", "")
	answers(t, h, "start the watchdog", wire.App, 0x22, "", "")
	h.advance(time.Hour)
	answers(t, h, "restarted by the watchdog", wire.Chassis, 0x07, "", "04 00")
}

// TestPOHCounterCountsWhileOn shows statement I39.
func TestPOHCounterCountsWhileOn(t *testing.T) {
	h := newHost(t)
	h.advance(5 * time.Hour)
	answers(t, h, "off", wire.Chassis, 0x0f, "", "01 00 00 00 00")
	h.running(t)
	h.advance(299 * time.Hour)
	answers(t, h, "on", wire.Chassis, 0x0f, "", "01 4f 46 00 00") // 300 h but for what the supply takes to come up
	h.advance(time.Hour)
	answers(t, h, "an hour more", wire.Chassis, 0x0f, "", "01 8b 46 00 00")
}

// TestACPIStateHoldsUntilThePowerChanges shows statement I28.
func TestACPIStateHoldsUntilThePowerChanges(t *testing.T) {
	h := newHost(t)
	answers(t, h, "off", wire.App, 0x07, "", "05 00")
	exchanges{
		{"S1, device D1", "81 81", Completed, ""}, {"unknown system state", "8b 00", InvalidDataField, ""}, {"unknown device state", "00 84", InvalidDataField, ""},
		{"nothing", "00 00", Completed, ""}, {"no change", "ff ff", Completed, ""}, {"short", "81", DataLengthInvalid, ""},
	}.try(t, h, wire.App, 0x06)
	answers(t, h, "told", wire.App, 0x07, "", "01 01")
	h.running(t)
	answers(t, h, "on", wire.App, 0x07, "", "00 01")
	h.do(t, machine.Reset{Kind: machine.ForceRestart})
	answers(t, h, "in POST", wire.App, 0x07, "", "20 01")
}
