package rack_test

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// runTool runs an IPMI client (ipmitool or one of FreeIPMI's programs) against a
// host as its administrator, and returns its output.
func runTool(t *testing.T, l *racktest.Rack, h *rack.Host, line string) (string, error) {
	t.Helper()
	args := strings.Fields(line)
	user, password := l.Credentials(h)
	at, ok := h.IPMI()
	if !ok {
		t.Fatalf("%s does not speak IPMI", h.Name())
	}
	base := []string{"-D", "LAN_2_0", "-h", at.String(), "-u", user, "-p", password, "-l", "ADMIN"}
	if args[0] == "ipmitool" {
		base = []string{"-I", "lanplus", "-H", at.Addr().String(), "-p", strconv.Itoa(int(at.Port())), "-U", user, "-P", password}
	}
	out, err := exec.CommandContext(t.Context(), args[0], append(base, args[1:]...)...).CombinedOutput()
	return string(out), err
}

// at returns the value at a path of a body: "Boot/BootSourceOverrideTarget".
func at(body map[string]any, path string) string {
	var v any = body
	for name := range strings.SplitSeq(path, "/") {
		group, _ := v.(map[string]any)
		v = group[name]
	}
	return fmt.Sprint(v)
}

const chassisPath = "/redfish/v1/Chassis/1"

// A change through one protocol is visible in the other at once.
func TestIPMIAndRedfishShowOneChassis(t *testing.T) {
	prerequisites.Need(t, "ipmitool")
	prerequisites.Need(t, "ipmi-chassis")
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	for _, s := range []struct {
		// do is a program with its arguments, PATCH or POST with a path and a body,
		// or empty.
		do    string
		after time.Duration
		want  string // in the program's output
		fails bool
		then  map[string]string // properties of the system afterwards
	}{
		{do: "ipmitool chassis power status", want: "Chassis Power is off", then: map[string]string{"PowerState": "Off"}},
		{do: "ipmitool chassis power cycle", want: "Command not supported in present state", fails: true},
		{do: "ipmitool chassis power on", want: "Chassis Power Control: Up/On", then: map[string]string{"PowerState": "PoweringOn"}},
		{do: "ipmitool chassis power status", after: 10 * time.Minute, want: "Chassis Power is on"},
		{do: "ipmitool chassis power on", want: "Up/On", then: map[string]string{"PowerState": "On", "LastResetCause": "ManagementCommand"}},
		{do: "ipmitool chassis restart_cause", want: "chassis power control command"},
		{do: "ipmitool chassis power diag", want: "Diag"},
		{do: "ipmitool chassis power reset", want: "Reset", then: map[string]string{"BootProgress/LastState": "PrimaryProcessorInitializationStarted"}},
		{do: "ipmi-chassis --get-system-restart-cause", after: 10 * time.Minute, want: "Chassis control command"},
		{do: "ipmitool chassis power off", want: "Down/Off", then: map[string]string{"PowerState": "PoweringOff"}},
		{do: "ipmitool chassis power status", after: time.Minute, want: "is off", then: map[string]string{"PowerState": "Off"}},
		{do: "POST " + systemPath + `/Actions/ComputerSystem.Reset {"ResetType":"On"}`},
		{do: "ipmipower --stat", after: 90 * time.Minute, want: ": on"},
		{do: "ipmitool chassis poh", want: "0 days, 1 hours"},
		{do: "ipmi-chassis --get-power-on-hours-counter", want: "1 Hours 49 Minutes"},
		{do: "POST " + systemPath + `/Actions/ComputerSystem.Reset {"ResetType":"ForceOff"}`},
		{do: "ipmipower --stat", after: time.Minute, want: ": off"},

		{do: "ipmitool chassis policy list", want: "always-off always-on previous"},
		{do: "ipmitool chassis policy always-on", want: "Set chassis power restore policy to always-on", then: map[string]string{"PowerRestorePolicy": "AlwaysOn"}},
		{do: "ipmi-chassis --set-power-cycle-interval=7", then: map[string]string{"PowerCycleDelaySeconds": "7", "PowerRestorePolicy": "AlwaysOn"}},
		{do: "PATCH " + systemPath + ` {"PowerRestorePolicy":"AlwaysOff"}`},
		{do: "ipmitool chassis status", want: "Power Restore Policy : always-off"},

		{do: "ipmitool chassis identify 15", want: "15 seconds", then: map[string]string{"LocationIndicatorActive": "true", "IndicatorLED": "Blinking"}},
		{do: "ipmi-chassis --get-chassis-status", want: "Chassis Identify state              : Timed on"},
		{after: 20 * time.Second, then: map[string]string{"LocationIndicatorActive": "false", "IndicatorLED": "Off"}},
		{do: "ipmitool chassis identify force", want: "indefinite", then: map[string]string{"LocationIndicatorActive": "true"}},
		{do: "ipmi-chassis --get-chassis-status", after: time.Hour, want: "Chassis Identify state              : Indefinite on"},
		{do: "PATCH " + chassisPath + ` {"LocationIndicatorActive":false}`},
		{do: "ipmi-chassis --get-chassis-status", want: "Chassis Identify state              : off"},
		{do: "ipmitool chassis identify 15"},
		{do: "PATCH " + systemPath + ` {"IndicatorLED":"Lit"}`},
		{do: "ipmi-chassis --get-chassis-status", after: time.Hour, want: "Chassis Identify state              : Indefinite on"},

		{do: "ipmitool chassis bootdev pxe", want: "Set Boot Device to pxe", then: map[string]string{
			"Boot/BootSourceOverrideEnabled": "Once", "Boot/BootSourceOverrideTarget": "Pxe", "Boot/BootSourceOverrideMode": "Legacy",
		}},
		{do: "ipmitool chassis bootparam get 5", want: "Boot parameter data: 8004000000"},
		{do: "ipmitool chassis bootdev disk options=persistent,efiboot", want: "disk", then: map[string]string{
			"Boot/BootSourceOverrideEnabled": "Continuous", "Boot/BootSourceOverrideTarget": "Hdd", "Boot/BootSourceOverrideMode": "UEFI",
		}},
		{do: "ipmitool chassis bootparam get 5", want: "Boot parameter data: e008000000"},
		{do: "PATCH " + systemPath + ` {"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Cd"}}`},
		{do: "ipmitool chassis bootparam get 5", want: "Boot parameter data: a014000000"},
		{do: "ipmitool chassis bootdev bios", want: "bios", after: 0},
		{after: 61 * time.Second, then: map[string]string{"Boot/BootSourceOverrideEnabled": "Disabled", "Boot/BootSourceOverrideTarget": "None"}},
		{do: "ipmitool chassis bootparam get 5", want: "Boot Flag Invalid"},
		{do: "ipmitool raw 0x00 0x08 0x03 0x08"},
		{do: "ipmitool raw 0x00 0x08 0x05 0xa0 0x04 0x00 0x00 0x00"},
		{after: time.Hour, then: map[string]string{"Boot/BootSourceOverrideEnabled": "Once", "Boot/BootSourceOverrideTarget": "Pxe"}},
		{do: "ipmitool chassis power on", want: "Up/On"},
		{after: 10 * time.Minute, then: map[string]string{"Boot/BootSourceOverrideEnabled": "Disabled"}},
		{do: "ipmitool chassis bootparam get 5", want: "Boot Flag Invalid"},
		{do: "ipmitool chassis bootmbox set text 343 hello"},
		{do: "ipmitool chassis bootmbox get text", want: "Block   0 Data : 'hello'"},

		{do: "ipmitool mc watchdog get", want: "Watchdog Timer Is:      Stopped"},
		{do: "ipmitool mc watchdog reset", want: "uninitialized watchdog", fails: true},
		{do: "ipmitool mc watchdog set use=sms timeout=60 action=reset int=nmi pretimeout=5", want: "configured", then: map[string]string{
			"HostWatchdogTimer/FunctionEnabled": "true", "HostWatchdogTimer/TimeoutAction": "ResetSystem",
			"HostWatchdogTimer/WarningAction": "DiagnosticInterrupt", "HostWatchdogTimer/Status/State": "StandbyOffline",
		}},
		{do: "ipmitool mc watchdog reset", want: "countdown restarted", then: map[string]string{"HostWatchdogTimer/Status/State": "Enabled"}},
		{do: "ipmitool mc watchdog get", after: 15 * time.Second, want: "Present Countdown:      45.0 sec"},
		{after: 46 * time.Second, then: map[string]string{"LastResetCause": "WatchdogExpiration", "HostWatchdogTimer/Status/State": "StandbyOffline"}},
		{do: "ipmitool mc watchdog get", want: "SMS/OS"},
		{do: "ipmitool chassis restart_cause", want: "watchdog"},
		{do: "PATCH " + systemPath + ` {"HostWatchdogTimer":{"TimeoutAction":"PowerDown"}}`},
		{do: "ipmitool mc watchdog get", want: "Power Down"},
		{do: "ipmi-chassis --get-chassis-capabilities", want: "Diagnostic Interrupt    : provided"},
	} {
		program, rest, _ := strings.Cut(s.do, " ")
		var out string
		var err error
		l.Advance(s.after)
		switch program {
		case "":
		case "PATCH", "POST":
			path, body, _ := strings.Cut(rest, " ")
			if status, answer := call(t, l, h, program, path, body); status >= 300 {
				t.Fatalf("%s = %d %v", s.do, status, answer)
			}
		default:
			out, err = runTool(t, l, h, s.do)
		}
		if !strings.Contains(out, s.want) || (err != nil) != s.fails {
			t.Errorf("%s: %v\n%s\nwant %q", s.do, err, out, s.want)
		}
		_, body := call(t, l, h, "GET", systemPath, "")
		for path, want := range s.then {
			if got := at(body, path); got != want {
				t.Errorf("after %q and %v Redfish shows %s %s, want %s", s.do, s.after, path, got, want)
			}
		}
	}
}

func TestIPMIAndRedfishSeeTheCoverOpen(t *testing.T) {
	prerequisites.Need(t, "ipmitool")
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	prints := func(line, want string) {
		t.Helper()
		if out, err := runTool(t, l, h, line); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s\nwant %q", line, err, out, want)
		}
	}
	apply(t, h, machine.OpenCover{Open: true})
	prints("ipmitool chassis status", "Chassis Intrusion    : active")
	prints("ipmitool sdr type 0x05", "General Chassis intrusion")
	prints("ipmitool sel list", "Physical Security #0x")
	if _, body := call(t, l, h, "GET", chassisPath, ""); at(body, "PhysicalSecurity/IntrusionSensor") != "HardwareIntrusion" {
		t.Errorf("Redfish shows %v", body["PhysicalSecurity"])
	}
	apply(t, h, machine.OpenCover{Open: false})
	if status, answer := call(t, l, h, "PATCH", chassisPath, `{"PhysicalSecurity":{"IntrusionSensor":"Normal"}}`); status != 200 {
		t.Fatalf("rearmed = %d %v", status, answer)
	}
	prints("ipmitool chassis status", "Chassis Intrusion    : inactive")
	prints("ipmitool sel list", "General Chassis intrusion | Deasserted")
}

// A BMC restart discards boot options and timers that were pending, whichever
// protocol asked for it.
func TestBMCRestartCancelsPendingPowerActions(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	apply(t, h, machine.SetSystemBootOptions{
		SystemBootOptions: machine.SystemBootOptions{NoTimeout: true, Mailbox: []byte{1}},
		Request:           &machine.Override{Enabled: machine.Once, Target: machine.Pxe, Mode: machine.UEFI},
	})
	apply(t, h, machine.Identify{Interval: time.Hour})
	if status, answer := call(t, l, h, "POST", "/redfish/v1/Managers/1/Actions/Manager.Reset", `{"ResetType":"GracefulRestart"}`); status >= 300 {
		t.Fatalf("restart = %d %v", status, answer)
	}
	l.Advance(10 * time.Minute)
	v := h.Machine()
	if v.SystemBootOptions.Mailbox != nil || v.Override.Enabled != machine.Disabled || v.Asset.IndicatorLED != machine.IndicatorOff {
		t.Errorf("after the restart: %+v, override %+v, light %s", v.SystemBootOptions, v.Override, v.Asset.IndicatorLED)
	}
}

func TestIPMIChassisControlWaitsForPowerDown(t *testing.T) {
	prerequisites.Need(t, "ipmipower")
	l := racktest.Start(t, rack.Config{Clock: clock.NewJumping(racktest.Origin)})
	for _, line := range []string{"--on --wait-until-on", "--cycle", "--reset", "--off --wait-until-off", "--stat"} {
		want := ": ok"
		if line == "--stat" {
			want = ": off"
		}
		if out, err := runTool(t, l, l.First(), "ipmipower "+line); err != nil || !strings.Contains(out, want) {
			t.Errorf("ipmipower %s: %v\n%s\nwant %q", line, err, out, want)
		}
		l.Settle()
		if !strings.Contains(line, "--off") && want == ": ok" {
			// A reset while the power is off between the two halves of a cycle is refused (D5h).
			patience.Await(t, "the power is on", func() bool { return l.First().Machine().Power == machine.PowerOn })
		}
	}
}
