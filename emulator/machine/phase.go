package machine

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Power is the power state as a BMC reports it (DSP2046, Resource.PowerState).
type Power string

// The power states.
const (
	PowerOff    Power = "Off"
	PoweringOn  Power = "PoweringOn"
	PowerOn     Power = "On"
	PoweringOff Power = "PoweringOff"
)

// Phase is where a machine is between off and running.
type Phase string

// The phases. Values are stored.
const (
	Off       Phase = "off"
	Starting  Phase = "starting"  // the supply comes up
	POST      Phase = "post"      // power-on self test
	Selecting Phase = "selecting" // a boot source is being tried
	InSetup   Phase = "setup"     // the firmware's set-up is on the screen
	Halted    Phase = "halted"    // nothing was bootable
	Loading   Phase = "loading"   // the boot loader has handed over
	Running   Phase = "running"   // an operating system runs
	Stopping  Phase = "stopping"  // the operating system shuts itself down
	Cutting   Phase = "cutting"   // the supply goes down
)

// phases tells for each phase the power state that it is seen as, the
// boot progress (DSP2046, ComputerSystem.BootProgress.LastState) and how long
// it lasts; nil lasts until a command.
var phases = map[Phase]struct {
	power    Power
	progress string
	lasts    func(Timings) Duration
}{
	Off:       {PowerOff, "None", nil},
	Starting:  {PoweringOn, "None", func(t Timings) Duration { return t.PowerOn }},
	POST:      {PowerOn, "SystemHardwareInitializationComplete", func(t Timings) Duration { return t.POST }},
	Selecting: {PowerOn, "SystemHardwareInitializationComplete", nil},
	InSetup:   {PowerOn, "SetupEntered", nil},
	Halted:    {PowerOn, "SystemHardwareInitializationComplete", nil},
	Loading:   {PowerOn, "OSBootStarted", func(t Timings) Duration { return t.OSBoot }},
	Running:   {PowerOn, "OSRunning", nil},
	Stopping:  {PoweringOff, "OSRunning", func(t Timings) Duration { return t.Shutdown }},
	Cutting:   {PoweringOff, "None", func(t Timings) Duration { return t.PowerOff }},
}

// Progress is the Redfish boot progress of a phase.
func (p Phase) Progress() string { return phases[p].progress }

// trigger moves a machine from one phase to another.
type trigger string

const (
	elapsed   trigger = "time is up"
	pressOn   trigger = "power on"
	cut       trigger = "cut power"
	askOff    trigger = "ask the system to stop"
	restart   trigger = "reset line"
	loaded    trigger = "source loaded"
	nextTry   trigger = "source not bootable"
	exhausted trigger = "no source left"
	setupKey  trigger = "set-up asked for"
	selfOff   trigger = "system switches off"
	selfBoot  trigger = "system restarts"
	comeBack  trigger = "down, to come up again"
)

type move struct {
	from Phase
	on   trigger
}

// moves is the state machine. A pair that is absent is refused with ErrPower,
// or ignored where the real thing ignores it (a soft power button that no
// system listens to).
var moves = map[move]Phase{
	{Off, pressOn}:         Starting,
	{Starting, elapsed}:    POST,
	{POST, elapsed}:        Selecting,
	{Selecting, setupKey}:  InSetup,
	{Selecting, nextTry}:   Selecting,
	{Selecting, exhausted}: Halted,
	{Selecting, loaded}:    Loading,
	{Loading, elapsed}:     Running,
	{Running, askOff}:      Stopping,
	{Running, selfOff}:     Cutting,
	{Running, selfBoot}:    POST,
	{Stopping, elapsed}:    Cutting,
	{Stopping, comeBack}:   POST,
	{Cutting, elapsed}:     Off,
	{Cutting, comeBack}:    Starting,

	{Starting, cut}:  Cutting,
	{POST, cut}:      Cutting,
	{Selecting, cut}: Cutting,
	{InSetup, cut}:   Cutting,
	{Halted, cut}:    Cutting,
	{Loading, cut}:   Cutting,
	{Running, cut}:   Cutting,
	{Stopping, cut}:  Cutting,

	{Starting, restart}:  POST,
	{POST, restart}:      POST,
	{Selecting, restart}: POST,
	{InSetup, restart}:   POST,
	{Halted, restart}:    POST,
	{Loading, restart}:   POST,
	{Running, restart}:   POST,
	{Stopping, restart}:  POST,
}

// step makes one move; it alone assigns the phase. An impossible move changes
// nothing and returns no event: callers ask can first.
func (m *Machine) step(now time.Time, on trigger) []Event {
	if on == elapsed && m.st.Again && m.can(comeBack) {
		on, m.main().Again = comeBack, false
	}
	to, ok := moves[move{m.st.Phase, on}]
	if !ok {
		return nil
	}
	from := m.st.Phase
	m.main().Phase, m.main().Deadline = to, time.Time{}
	if lasts := phases[to].lasts; lasts != nil {
		m.main().Deadline = now.Add(lasts(m.profile.Timings).Duration)
	}
	return append(m.left(to, now), m.entered(from, to, now)...)
}

func (m *Machine) can(on trigger) bool {
	_, ok := moves[move{m.st.Phase, on}]
	return ok
}

// left tells what ends with a move.
func (m *Machine) left(to Phase, now time.Time) []Event {
	if m.st.OS == nil || to == Loading || to == Running || to == Stopping {
		return nil
	}
	os := *m.st.OS
	m.main().OS = nil
	return []Event{Stopped{At: now, OS: os}}
}

// powerNotes are the power states that are worth a line in the log.
var powerNotes = map[Power]event.Kind{PowerOn: event.PowerOn, PowerOff: event.PowerOff}

// entered tells what begins with the move.
func (m *Machine) entered(from, to Phase, now time.Time) []Event {
	var evs []Event
	if p := phases[to].power; p != phases[from].power {
		evs = append(evs, PowerChanged{At: now, Power: p})
		if kind, ok := powerNotes[p]; ok {
			evs = append(evs, event.Note{At: now, Kind: kind, Subject: event.Subject{Part: event.System}})
		}
	}
	switch to {
	case Cutting:
		evs = append(evs, m.cutFirmware(now, false)...)
	case POST:
		own := m.main()
		own.Boots++
		own.Tries, own.Setup, own.Again = nil, false, false
		evs = append(evs, m.bootFirmware(now)...)
	case Selecting:
		if from == POST {
			own := m.main()
			own.Tries, own.Setup = m.sources()
			if m.st.Setup {
				return append(evs, m.step(now, setupKey)...)
			}
		}
		if len(m.st.Tries) == 0 {
			return append(evs, m.step(now, exhausted)...)
		}
		evs = append(evs, BootTried{At: now, Source: m.st.Tries[0], Boot: m.st.Boots})
	case Running:
		evs = append(evs, Started{At: now, OS: *m.st.OS})
	case Off:
		m.main().Tries = nil
	}
	return evs
}
