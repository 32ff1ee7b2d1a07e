package command

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

func TestWatchdogAsSpecified(t *testing.T) {
	h := newHost(t)
	exchanges{{"never set", "", Completed, "04 00 0a 00 00 00 00 00"}}.try(t, h, wire.App, 0x25)
	exchanges{{"never set", "", 0x80, ""}, {"with data", "00", DataLengthInvalid, ""}}.try(t, h, wire.App, 0x22)
	exchanges{
		{"reserved use 0", "00 00 00 00 64 00", InvalidDataField, ""}, {"reserved use 6", "06 00 00 00 64 00", InvalidDataField, ""},
		{"reserved bits of use", "0c 00 00 00 64 00", InvalidDataField, ""}, {"reserved action", "04 04 00 00 64 00", InvalidDataField, ""},
		{"reserved bit of action", "04 08 00 00 64 00", InvalidDataField, ""}, {"reserved interrupt", "04 41 00 00 64 00", InvalidDataField, ""},
		{"reserved flag", "04 00 00 01 64 00", InvalidDataField, ""}, {"reserved flags", "04 00 00 40 64 00", InvalidDataField, ""},
		{"short", "04 00 00 00 64", DataLengthInvalid, ""}, {"while off", "04 00 00 00 64 00", Completed, ""},
	}.try(t, h, wire.App, 0x24)
	exchanges{{"while off", "", NotSupportedInState, ""}}.try(t, h, wire.App, 0x22)
	h.running(t)
	exchanges{{"not since it was started", "", 0x80, ""}}.try(t, h, wire.App, 0x22)

	answers(t, h, "set: power cycle after 60 s, interrupt 10 s before", wire.App, 0x24, "04 33 0a 00 58 02", "")
	answers(t, h, "set", wire.App, 0x25, "", "04 33 0a 00 58 02 58 02")
	answers(t, h, "start", wire.App, 0x22, "", "")
	h.advance(20 * time.Second)
	answers(t, h, "20 s on", wire.App, 0x25, "", "44 33 0a 00 58 02 90 01")
	answers(t, h, "start anew", wire.App, 0x22, "", "")
	answers(t, h, "as new", wire.App, 0x25, "", "44 33 0a 00 58 02 58 02")
	h.advance(10*time.Second + 50*time.Millisecond)
	answers(t, h, "what has begun counts", wire.App, 0x25, "", "44 33 0a 00 58 02 f4 01")
	answers(t, h, "set, and go on", wire.App, 0x24, "c5 23 05 00 c8 00", "")
	answers(t, h, "going on", wire.App, 0x25, "", "c5 23 05 00 c8 00 c8 00")
	h.advance(16 * time.Second)
	if code, _ := ask(t, h, wire.App, 0x22); code != NotSupportedInState {
		t.Errorf("started after the warning = %v, want %v", code, NotSupportedInState)
	}
	h.advance(5 * time.Second)
	answers(t, h, "expired", wire.App, 0x25, "", "05 23 05 20 c8 00 00 00")
	h.advance(time.Hour)
	answers(t, h, "the flag stays over a reset", wire.App, 0x25, "", "05 23 05 20 c8 00 00 00")
	answers(t, h, "clear others", wire.App, 0x24, "01 00 00 1e 00 00", "")
	answers(t, h, "others cleared", wire.App, 0x25, "", "01 00 00 20 00 00 00 00")
	answers(t, h, "start without time", wire.App, 0x22, "", "")
	answers(t, h, "expired at once", wire.App, 0x25, "", "01 00 00 22 00 00 00 00")
	answers(t, h, "clear", wire.App, 0x24, "01 00 00 3e ff ff", "")
	answers(t, h, "cleared", wire.App, 0x25, "", "01 00 00 00 ff ff ff ff")
}

func TestWatchdogActsAndIsLogged(t *testing.T) {
	for _, tt := range []struct {
		set   string
		want  machine.Phase
		boots uint64
		log   []string // arguments of what is logged
	}{
		{"04 00 00 00 0a 00", machine.Running, 1, []string{"None", "SMS/OS", "None"}},
		{"03 01 00 00 0a 00", machine.Running, 2, []string{"ResetSystem", "OS load", "None"}},
		{"02 02 00 00 0a 00", machine.Off, 1, []string{"PowerDown", "BIOS/POST", "None"}},
		{"01 13 00 00 0a 00", machine.Running, 2, []string{"PowerCycle", "BIOS FRB2", "SMI"}},
		{"84 02 00 00 0a 00", machine.Off, 1, nil},
	} {
		h := newHost(t).running(t)
		answers(t, h, "set", wire.App, 0x24, tt.set, "")
		answers(t, h, "start", wire.App, 0x22, "", "")
		h.advance(time.Hour)
		v := h.Machine()
		if v.Phase != tt.want || v.Boots != tt.boots {
			t.Errorf("[%s]: %s after %d boots, want %s after %d", tt.set, v.Phase, v.Boots, tt.want, tt.boots)
		}
		var got []string
		for e := range h.BMC().Log.Entries() {
			if e.Kind == event.WatchdogExpired {
				got = e.Args
			}
		}
		if len(got) != len(tt.log) {
			t.Errorf("[%s]: logged %q, want %q", tt.set, got, tt.log)
			continue
		}
		for i := range got {
			if got[i] != tt.log[i] {
				t.Errorf("[%s]: logged %q, want %q", tt.set, got, tt.log)
			}
		}
	}
}

// IPMI's watchdog timer is Redfish's HostWatchdogTimer.
func TestWatchdogAgreesWithRedfish(t *testing.T) {
	h := newHost(t).running(t)
	h.do(t, machine.SetWatchdog{Enabled: true, Action: machine.WatchdogCycle, Warning: machine.WarnByInterrupt})
	answers(t, h, "set by Redfish", wire.App, 0x25, "", "04 23 0a 00 00 00 00 00")
	h.do(t, machine.FeedWatchdog{Boot: 1, For: time.Minute})
	answers(t, h, "fed by the system", wire.App, 0x25, "", "44 23 0a 00 58 02 58 02")
	answers(t, h, "set", wire.App, 0x24, "04 12 00 00 64 00", "")
	if w := h.Machine().Watchdog; !w.Enabled || w.Action != machine.WatchdogPowerOff || w.Warning != machine.WarnBySMI {
		t.Errorf("set by IPMI: %+v", w)
	}
	h.do(t, machine.SetWatchdog{Action: machine.WatchdogPowerOff, Warning: machine.WarnBySMI})
	if code, _ := ask(t, h, wire.App, 0x22); code != watchdogNotInitialized {
		t.Errorf("started after Redfish has disabled it = %v", code)
	}
}
