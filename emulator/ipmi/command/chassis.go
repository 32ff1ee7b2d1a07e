package command

import (
	"errors"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// chassisCommands are the chassis commands (§28) and the ACPI commands (§20.6,
// §20.7).
var chassisCommands = []Row{
	{fn: wire.Chassis, cmd: 0x00, name: "Get Chassis Capabilities", privilege: wire.User, run: getChassisCapabilities},
	{fn: wire.Chassis, cmd: 0x01, name: "Get Chassis Status", privilege: wire.User, run: getChassisStatus},
	{fn: wire.Chassis, cmd: 0x02, name: "Chassis Control", privilege: wire.Operator, least: 1, most: 1, mutates: true, run: chassisControl},
	{fn: wire.Chassis, cmd: 0x04, name: "Chassis Identify", privilege: wire.Operator, most: 2, mutates: true, run: chassisIdentify},
	{fn: wire.Chassis, cmd: 0x05, name: "Set Chassis Capabilities", privilege: wire.Administrator, least: 5, most: 6, mutates: true, run: setChassisCapabilities},
	{fn: wire.Chassis, cmd: 0x06, name: "Set Power Restore Policy", privilege: wire.Operator, least: 1, most: 1, mutates: true, run: setPowerRestorePolicy},
	{fn: wire.Chassis, cmd: 0x07, name: "Get System Restart Cause", privilege: wire.User, run: getSystemRestartCause},
	{fn: wire.Chassis, cmd: 0x08, name: "Set System Boot Options", privilege: wire.Operator, least: 1, most: -1, mutates: true, run: setBootOption},
	{fn: wire.Chassis, cmd: 0x09, name: "Get System Boot Options", privilege: wire.Operator, least: 3, most: 3, run: bootOption},
	{fn: wire.Chassis, cmd: 0x0a, name: "Set Front Panel Button Enables", privilege: wire.Administrator, least: 1, most: 1, mutates: true, run: setFrontPanelEnables},
	{fn: wire.Chassis, cmd: 0x0b, name: "Set Power Cycle Interval", privilege: wire.Administrator, least: 1, most: 1, mutates: true, run: setPowerCycleInterval},
	{fn: wire.Chassis, cmd: 0x0f, name: "Get POH Counter", privilege: wire.User, run: getPOHCounter},
	{fn: wire.App, cmd: 0x06, name: "Set ACPI Power State", privilege: wire.Administrator, least: 2, most: 2, run: setACPIPowerState},
	{fn: wire.App, cmd: 0x07, name: "Get ACPI Power State", privilege: wire.User, run: getACPIPowerState},
}

// bit returns 1<<n when on, else 0.
func bit(on bool, n int) byte {
	if !on {
		return 0
	}
	return 1 << n
}

// Flags of Get Chassis Capabilities (§28.1).
const (
	hasIntrusion = 1 << 0
	hasLockout   = 1 << 1
	hasInterrupt = 1 << 2
)

// getChassisCapabilities handles Get Chassis Capabilities (§28.1).
func getChassisCapabilities(x *Request) error {
	c := x.bmc().Chassis
	x.put(hasInterrupt|bit(c.Lockout, 1)|bit(c.Intrusion, 0), c.FRU, c.SDR, c.SEL, c.Management, c.Bridge)
	return nil
}

// setChassisCapabilities handles Set Chassis Capabilities (§28.7). The other
// capabilities cannot be changed; setting them is ignored.
func setChassisCapabilities(x *Request) error {
	d := x.data
	if d[0]&^(hasIntrusion|hasLockout) != 0 {
		return InvalidDataField
	}
	for _, address := range d[1:] {
		if address&1 != 0 { // 7 bits (§28.1)
			return InvalidDataField
		}
	}
	c := bmc.ChassisCapabilities{
		Intrusion: d[0]&hasIntrusion != 0, Lockout: d[0]&hasLockout != 0,
		FRU: d[1], SDR: d[2], SEL: d[3], Management: d[4], Bridge: x.bmc().Chassis.Bridge,
	}
	if len(d) > 5 {
		c.Bridge = d[5]
	}
	_, err := x.applyBMC(bmc.SetChassisCapabilities{ChassisCapabilities: c})
	return err
}

// restorePolicies are the power restore policies by number (§28.8).
var restorePolicies = []machine.RestorePolicy{machine.AlwaysOff, machine.LastState, machine.AlwaysOn}

// getChassisStatus handles Get Chassis Status (§28.2).
func getChassisStatus(x *Request) error {
	v := x.machine()
	on, dead := v.Power != machine.PowerOff, v.FrontPanel.DisabledButtons()
	x.put(
		byte(slices.Index(restorePolicies, v.Policy.Restore))<<5|bit(supplyFault(v), 3)|bit(on, 0),
		bit(v.Reset != nil && v.Reset.Cause == machine.CauseCommand && v.Reset.PEF == "", 4)|bit(v.PowerLoss == machine.LostSupply, 3)|bit(v.PowerLoss == machine.LostMains, 0),
		1<<6|identifyState(v.Asset)<<4|bit(fanFault(v), 3)|bit(driveFault(v), 2)|bit(dead.PowerOff && dead.Reset, 1)|bit(v.PhysicalSecurity.Intrusion, 0),
		0x70|bit(v.FrontPanel.Interrupt, 2)|bit(dead.Reset, 1)|bit(dead.PowerOff, 0), // no standby button
	)
	return nil
}

// identifyState returns the chassis identify state, as Get Chassis Status
// encodes it.
func identifyState(a *machine.Asset) byte {
	switch {
	case a.IndicatorLED == machine.IndicatorOff:
		return 0
	case !a.IndicatorUntil.IsZero():
		return 1 // timed
	}
	return 2
}

func supplyFault(v *machine.View) bool {
	for n := range v.Thermal.Model.Supplies.Count {
		if f := v.Thermal.SupplyFault(n); f != thermal.NoFault && f != thermal.Absent {
			return true
		}
	}
	return false
}

func fanFault(v *machine.View) bool {
	for n := range v.Thermal.Model.Fans.Count {
		if v.Thermal.FanFailed(n) {
			return true
		}
	}
	return false
}

func driveFault(v *machine.View) bool {
	for _, c := range v.Storage.Controllers() {
		for _, d := range c.Drives {
			if d.State == storage.DriveFailed {
				return true
			}
		}
	}
	return false
}

// chassisControls maps the operations of Chassis Control (§28.3) to resets,
// with the power states in which nothing remains to do.
var chassisControls = []struct {
	kind   machine.ResetKind
	wanted []machine.Power
}{
	{machine.ForceOff, []machine.Power{machine.PowerOff, machine.PoweringOff}},
	{machine.ResetOn, []machine.Power{machine.PowerOn, machine.PoweringOn}},
	{machine.PowerCycle, nil},
	{machine.ForceRestart, nil},
	{machine.Nmi, nil},
	{machine.GracefulShutdown, []machine.Power{machine.PowerOff, machine.PoweringOff}},
}

// chassisControl handles Chassis Control (§28.3). It uses the same reset as
// Redfish's ComputerSystem.Reset. While the system is off, power cycle and reset
// do nothing and are answered D5h, as §28.3 recommends, or switch it on, as the
// dialect says.
func chassisControl(x *Request) error {
	if int(x.data[0]) >= len(chassisControls) {
		return InvalidDataField
	}
	c := chassisControls[x.data[0]]
	err := x.applyMachine(machine.Reset{Kind: c.kind})
	v := x.machine()
	switch {
	case !errors.Is(err, machine.ErrPower) || x.Host.Dialect().IPMI.RejectResetWhileOff && c.wanted == nil:
		return err
	case x.Host.Dialect().IPMI.RejectOffWhileOff && c.kind == machine.ForceOff && v.Power == machine.PowerOff:
		return err
	case slices.Contains(c.wanted, v.Power) && !(v.Power == machine.PoweringOff && v.RestartAfterOff):
		return nil
	case v.Power == machine.PowerOff && (c.kind == machine.PowerCycle || c.kind == machine.ForceRestart): // some vendors' BMCs switch the server on
		return x.applyMachine(machine.Reset{Kind: machine.ResetOn})
	}
	return err
}

// defaultIdentifyInterval is how long the chassis identifies itself when the
// request gives no interval (§28.5).
const defaultIdentifyInterval = 15 * time.Second

// chassisIdentify handles Chassis Identify (§28.5).
func chassisIdentify(x *Request) error {
	c := machine.Identify{Interval: defaultIdentifyInterval}
	if len(x.data) > 0 {
		c.Interval = time.Duration(x.data[0]) * time.Second
	}
	if len(x.data) > 1 {
		if x.data[1] > 1 {
			return InvalidDataField
		}
		c.ForceOn = x.data[1] == 1
	}
	return x.applyMachine(c)
}

// setPowerRestorePolicy handles Set Power Restore Policy (§28.8).
func setPowerRestorePolicy(x *Request) error {
	const noChange, all = 3, 0x07
	switch n := x.data[0]; {
	case n > noChange:
		return InvalidDataField
	case n < noChange:
		p := *x.machine().Policy
		p.Restore = restorePolicies[n]
		if err := x.applyMachine(machine.SetPowerPolicy{PowerPolicy: p}); err != nil {
			return err
		}
	}
	x.put(all)
	return nil
}

// setPowerCycleInterval handles Set Power Cycle Interval (§28.9).
func setPowerCycleInterval(x *Request) error {
	p := *x.machine().Policy
	p.CycleDelay.Duration = time.Duration(x.data[0]) * time.Second
	return x.applyMachine(machine.SetPowerPolicy{PowerPolicy: p})
}

// setFrontPanelEnables handles Set Front Panel Enables (§28.6). There is no
// standby button.
func setFrontPanelEnables(x *Request) error {
	d := x.data[0]
	if d > 0x07 {
		return InvalidDataField
	}
	return x.applyMachine(machine.SetFrontPanel{FrontPanel: machine.FrontPanel{Interrupt: d&4 != 0, Reset: d&2 != 0, PowerOff: d&1 != 0}})
}

// restartCauses maps the machine's reset causes to the restart causes of
// §28.11; others are answered as unknown.
var restartCauses = map[machine.ResetCause]byte{
	machine.CauseCommand: 0x1, machine.CauseButton: 0x3, machine.CauseWatchdog: 0x4, machine.CauseSystem: 0xa,
}

// getSystemRestartCause handles Get System Restart Cause (§28.11). The channel
// of a command is always LAN, whichever protocol sent it.
func getSystemRestartCause(x *Request) error {
	r := x.machine().Reset
	switch {
	case r == nil:
		x.put(0, 0)
	case r.PEF == machine.PEFReset:
		x.put(0x8, 0)
	case r.PEF == machine.PEFPowerCycle:
		x.put(0x9, 0)
	case r.Cause == machine.CauseCommand:
		x.put(restartCauses[r.Cause], lanChannel)
	case r.Cause == machine.CauseRestore && r.Restore == machine.AlwaysOn:
		x.put(0x6, 0)
	case r.Cause == machine.CauseRestore:
		x.put(0x7, 0)
	default:
		x.put(restartCauses[r.Cause], 0)
	}
	return nil
}

// getPOHCounter handles Get POH Counter (§28.14). It counts in minutes:
// FreeIPMI divides by the minutes per count where it should multiply, so that
// only this unit reads right.
func getPOHCounter(x *Request) error {
	x.put(1) // minutes per count
	x.put32(uint32(x.machine().PoweredOn(x.Now) / time.Minute))
	return nil
}
