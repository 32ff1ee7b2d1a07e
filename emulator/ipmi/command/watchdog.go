package command

import (
	"errors"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// watchdogCommands are the watchdog timer commands (§27). The timer is
// Redfish's HostWatchdogTimer.
var watchdogCommands = []Row{
	{fn: wire.App, cmd: 0x22, name: "Reset Watchdog Timer", privilege: wire.Operator, mutates: true, run: resetWatchdogTimer},
	{fn: wire.App, cmd: 0x24, name: "Set Watchdog Timer", privilege: wire.Operator, least: 6, most: 6, mutates: true, run: setWatchdogTimer},
	{fn: wire.App, cmd: 0x25, name: "Get Watchdog Timer", privilege: wire.User, run: getWatchdogTimer},
}

// watchdogNotInitialized is answered when the timer was never set (§27.5).
const watchdogNotInitialized Code = 0x80

// Bits of the timer use byte (§27.6).
const (
	watchdogDontLog  = 1 << 7
	watchdogDontStop = 1 << 6 // in Set Watchdog Timer: do not stop a running timer
	watchdogUse      = 0x07
)

// Timer uses, pre-timeout interrupts and timeout actions by number (§27.6).
// Use 0 is reserved.
var (
	watchdogUses = []machine.WatchdogUse{
		"", machine.WatchdogFRB2, machine.WatchdogPOST, machine.WatchdogOSLoad, machine.WatchdogSMSOS, machine.WatchdogOEM,
	}
	watchdogWarnings = []machine.WarningAction{
		machine.NoWarning, machine.WarnBySMI, machine.WarnByInterrupt, machine.WarnByMessageOnly,
	}
	watchdogActions = []machine.TimeoutAction{
		machine.NoAction, machine.WatchdogReset, machine.WatchdogPowerOff, machine.WatchdogCycle,
	}
)

// watchdogTick is the timer's unit.
const watchdogTick = 100 * time.Millisecond

// resetWatchdogTimer handles Reset Watchdog Timer (§27.5).
func resetWatchdogTimer(x *Request) error {
	err := x.applyMachine(machine.StartWatchdog{})
	if errors.Is(err, machine.ErrWatchdogNotSet) {
		return watchdogNotInitialized
	}
	return err
}

// setWatchdogTimer handles Set Watchdog Timer (§27.6).
func setWatchdogTimer(x *Request) error {
	d := x.data
	use, warning, action := int(d[0]&watchdogUse), int(d[1]>>4), int(d[1]&0x0f)
	if d[0]&0x38 != 0 || use == 0 || use >= len(watchdogUses) || warning >= len(watchdogWarnings) || action >= len(watchdogActions) || d[3]&^0x3e != 0 {
		return InvalidDataField
	}
	c := machine.ProgramWatchdog{
		Use: watchdogUses[use], DontLog: d[0]&watchdogDontLog != 0, DontStop: d[0]&watchdogDontStop != 0,
		Action: watchdogActions[action], Warning: watchdogWarnings[warning],
		PreTimeout: time.Duration(d[2]) * time.Second, Countdown: time.Duration(le16(d[4:])) * watchdogTick,
	}
	for i, u := range watchdogUses {
		if d[3]&(1<<i) != 0 {
			c.ClearExpired = append(c.ClearExpired, u)
		}
	}
	return x.applyMachine(c)
}

// getWatchdogTimer handles Get Watchdog Timer (§27.7). A timer that was never
// set by IPMI has the use SMS/OS.
func getWatchdogTimer(x *Request) error {
	w := x.machine().Watchdog
	use := w.Use
	if use == "" {
		use = machine.WatchdogSMSOS
	}
	var expired byte
	for _, u := range w.Expired {
		expired |= 1 << slices.Index(watchdogUses, u)
	}
	x.put(
		bit(w.DontLog, 7)|bit(!w.Until.IsZero(), 6)|byte(slices.Index(watchdogUses, use)),
		byte(slices.Index(watchdogWarnings, w.Warning))<<4|byte(slices.Index(watchdogActions, w.Action)),
		byte(min(w.PreTimeout.Duration/time.Second, 0xff)),
		expired,
	)
	x.put16(watchdogTicks(w.Countdown.Duration))
	x.put16(watchdogTicks(w.PresentCountdown(x.Now)))
	return nil
}

// watchdogTicks returns a duration in ticks, rounded up.
func watchdogTicks(d time.Duration) uint16 {
	return uint16(min((d+watchdogTick-1)/watchdogTick, 0xffff))
}
