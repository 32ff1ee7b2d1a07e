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
	PowerPaused Power = "Paused"
)

// Phase is where a machine is between off and running.
type Phase string

// The phases. Values are stored.
const (
	Off       Phase = "off"
	Unplugged Phase = "unplugged" // no mains: the BMC is off too
	Delaying  Phase = "delaying"  // off, to come on when the delay is over
	Starting  Phase = "starting"  // the supply comes up
	POST      Phase = "post"      // power-on self test
	Selecting Phase = "selecting" // a boot source is being tried
	InSetup   Phase = "setup"     // a program of the firmware's own is on the screen
	Halted    Phase = "halted"    // nothing was bootable
	Loading   Phase = "loading"   // the boot loader has handed over
	Running   Phase = "running"   // an operating system runs
	Paused    Phase = "paused"    // an operating system stands still
	Crashed   Phase = "crashed"   // an operating system has panicked
	Stopping  Phase = "stopping"  // the operating system shuts itself down
	Cutting   Phase = "cutting"   // the supply goes down
)

// phases tells for each phase the power state that it is seen as, the boot
// progress that it begins with ("": that of the phase before) and how long it
// lasts; nil, or never, lasts until a command.
var phases = map[Phase]struct {
	power    Power
	progress Progress
	lasts    func(m *Machine) time.Duration
}{
	Off:       {PowerOff, NoProgress, nil},
	Unplugged: {PowerOff, NoProgress, nil},
	Delaying:  {PowerOff, NoProgress, (*Machine).onDelay},
	Starting:  {PoweringOn, NoProgress, func(m *Machine) time.Duration { return m.profile.Timings.PowerOn.Duration }},
	POST:      {PowerOn, ProcessorStarted, func(m *Machine) time.Duration { return m.profile.Timings.POST.Duration }},
	Selecting: {PowerOn, HardwareComplete, nil},
	InSetup:   {PowerOn, SetupEntered, nil},
	Halted:    {PowerOn, "", nil},
	Loading:   {PowerOn, OSBootStarted, func(m *Machine) time.Duration { return m.profile.Timings.OSBoot.Duration }},
	Running:   {PowerOn, OSRunning, nil},
	Paused:    {PowerPaused, "", nil},
	Crashed:   {PowerOn, "", (*Machine).dumpTime},
	Stopping:  {PoweringOff, "", func(m *Machine) time.Duration { return m.profile.Timings.Shutdown.Duration }},
	Cutting:   {PoweringOff, NoProgress, func(m *Machine) time.Duration { return m.profile.Timings.PowerOff.Duration }},
}

// never is how long a phase lasts that only some machines leave by themselves.
const never = -1

// trigger moves a machine from one phase to another.
type trigger string

const (
	elapsed   trigger = "time is up"
	pressOn   trigger = "power on"
	delay     trigger = "power on, but later"
	cut       trigger = "cut power"
	askOff    trigger = "ask the system to stop"
	restart   trigger = "reset line"
	loaded    trigger = "source loaded"
	nextTry   trigger = "source not bootable"
	exhausted trigger = "no source left"
	retry     trigger = "no source left, once more"
	setupKey  trigger = "set-up asked for"
	selfOff   trigger = "system switches off"
	selfBoot  trigger = "system restarts"
	panicked  trigger = "system crashes"
	stand     trigger = "stand still"
	goOn      trigger = "go on"
	comeBack  trigger = "down, to come up again"
	comeLater trigger = "down, to come up again later"
	mainsGone trigger = "mains gone"
	mainsBack trigger = "mains back"
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
	{Off, delay}:           Delaying,
	{Delaying, pressOn}:    Starting,
	{Delaying, elapsed}:    Starting,
	{Delaying, cut}:        Off,
	{Starting, elapsed}:    POST,
	{POST, elapsed}:        Selecting,
	{Selecting, setupKey}:  InSetup,
	{Selecting, nextTry}:   Selecting,
	{Selecting, exhausted}: Halted,
	{Selecting, retry}:     POST,
	{Selecting, loaded}:    Loading,
	{Loading, elapsed}:     Running,
	{Loading, panicked}:    Crashed,
	{Running, askOff}:      Stopping,
	{Running, selfOff}:     Cutting,
	{Running, selfBoot}:    POST,
	{Running, panicked}:    Crashed,
	{Running, stand}:       Paused,
	{Paused, goOn}:         Running,
	{Crashed, elapsed}:     POST,
	{Stopping, elapsed}:    Cutting,
	{Stopping, comeBack}:   POST,
	{Cutting, elapsed}:     Off,
	{Cutting, comeBack}:    Starting,
	{Cutting, comeLater}:   Delaying,

	{Starting, cut}:  Cutting,
	{POST, cut}:      Cutting,
	{Selecting, cut}: Cutting,
	{InSetup, cut}:   Cutting,
	{Halted, cut}:    Cutting,
	{Loading, cut}:   Cutting,
	{Running, cut}:   Cutting,
	{Paused, cut}:    Cutting,
	{Crashed, cut}:   Cutting,
	{Stopping, cut}:  Cutting,

	{Starting, restart}:  POST,
	{POST, restart}:      POST,
	{Selecting, restart}: POST,
	{InSetup, restart}:   POST,
	{Halted, restart}:    POST,
	{Loading, restart}:   POST,
	{Running, restart}:   POST,
	{Paused, restart}:    POST,
	{Crashed, restart}:   POST,
	{Stopping, restart}:  POST,

	{Unplugged, mainsBack}: Off,
	{Off, mainsGone}:       Unplugged,
	{Delaying, mainsGone}:  Unplugged,
	{Starting, mainsGone}:  Unplugged,
	{POST, mainsGone}:      Unplugged,
	{Selecting, mainsGone}: Unplugged,
	{InSetup, mainsGone}:   Unplugged,
	{Halted, mainsGone}:    Unplugged,
	{Loading, mainsGone}:   Unplugged,
	{Running, mainsGone}:   Unplugged,
	{Paused, mainsGone}:    Unplugged,
	{Crashed, mainsGone}:   Unplugged,
	{Stopping, mainsGone}:  Unplugged,
	{Cutting, mainsGone}:   Unplugged,
}

// withSystem are the phases in which a system is loaded and not gone.
var withSystem = map[Phase]bool{Loading: true, Running: true, Paused: true, Stopping: true}

// step makes one move; it alone assigns the phase. An impossible move changes
// nothing and returns no event: callers ask can first.
func (m *Machine) step(now time.Time, on trigger) []Event {
	if on == elapsed && m.st.RestartAfterOff && m.can(comeBack) {
		on = comeBack
		if m.can(comeLater) && m.onDelay() > 0 {
			on = comeLater
		}
	}
	to, ok := moves[move{m.st.Phase, on}]
	if !ok {
		return nil
	}
	m.leaves(on, now)
	from, own := m.st.Phase, m.main()
	own.Phase, own.Since, own.Deadline = to, now, time.Time{}
	if phases[to].power != PowerOn || to == POST {
		own.PendingReset = nil
	}
	if lasts := phases[to].lasts; lasts != nil {
		if d := lasts(m); d != never {
			own.Deadline = now.Add(d)
		}
	}
	if p := phases[to].progress; p != "" {
		own.reach(p, now)
	}
	own.countHours(now)
	m.stopWatchdog(to, now)
	evs := append(m.left(to, now), m.drive(now)...)
	return append(evs, m.entered(from, to, now)...)
}

func (m *Machine) can(on trigger) bool {
	_, ok := moves[move{m.st.Phase, on}]
	return ok
}

// left tells what ends with a move.
func (m *Machine) left(to Phase, now time.Time) []Event {
	if m.st.OS == nil || withSystem[to] {
		return nil
	}
	os := *m.st.OS
	m.main().OS = nil
	return []Event{SystemStopped{At: now, OS: os}}
}

// powerNotes are the power states that are worth a line in the log.
var powerNotes = map[Power]event.Kind{PowerOn: event.PowerOn, PowerOff: event.PowerOff}

// entered tells what begins with the move.
func (m *Machine) entered(from, to Phase, now time.Time) []Event {
	evs := m.stored(m.disks.Power(now, powersDisks(to)))
	if was, is := phases[from].power, phases[to].power; was != is {
		evs = append(evs, PowerChanged{At: now, Power: is})
		if kind, ok := powerNotes[is]; ok && was != PowerPaused {
			evs = append(evs, note(now, kind))
		}
	}
	if from != POST && from != Paused && to != Paused { // what was typed in POST is heeded at its end
		m.resetTerminal()
	}
	switch to {
	case Cutting:
		m.main().PowerLoss = ""
		evs = append(evs, m.cutFirmware(now, false)...)
	case POST:
		own := m.main()
		own.Boots++
		cause := own.cause()
		own.Reset, own.Cause = own.started(now), ""
		own.PendingSources, own.FirmwareApp, own.RestartAfterOff = nil, "", false
		evs = append(evs, m.heedBootInfo(now, cause)...)
		evs = append(evs, event.Boot{At: now})
		m.resetTerminal()
		m.posting(ProcessorStarted)
		evs = append(evs, m.stored(m.disks.Boot(now))...)
		evs = append(evs, m.bootFirmware(now)...)
		m.bootSecurely()
	case Selecting:
		return append(evs, m.selecting(from, now)...)
	case Running:
		if from == Paused {
			return append(evs, SystemResumed{At: now, OS: *m.st.OS})
		}
		own := m.main()
		own.Retries = 0
		if own.Reset != nil {
			own.BootTime = Duration{now.Sub(own.Reset.At)}
		}
		m.runs()
		evs = append(evs, SystemStarted{At: now, OS: *m.st.OS})
	case InSetup:
		m.program(m.st.FirmwareApp)
	case Paused:
		evs = append(evs, SystemPaused{At: now, OS: *m.st.OS})
	case Off:
		own := m.main()
		own.PendingSources, own.FirmwareApp, own.RestartAfterOff = nil, "", false
		m.interruptBootInfo()
	case Unplugged:
		own := m.main()
		own.PendingSources, own.FirmwareApp, own.RestartAfterOff = nil, "", false
		m.notifyBMCReset()
		evs = append(evs, m.cutFirmware(now, true)...)
	}
	return evs
}

// selecting looks for something to boot.
func (m *Machine) selecting(from Phase, now time.Time) []Event {
	if from == POST {
		own := m.main()
		own.PendingSources, own.FirmwareApp = m.applyPOSTKey(m.sources())
		m.resetTerminal()
		if own.FirmwareApp != "" {
			return m.step(now, setupKey)
		}
	}
	if len(m.st.PendingSources) > 0 {
		m.tries(m.st.PendingSources[0])
		return []Event{BootAttempted{At: now, Source: m.st.PendingSources[0], Boot: m.st.Boots}}
	}
	if m.retries() {
		own := m.main()
		own.Retries++
		own.Cause = CauseUnknown
		m.tryAgain()
		return m.step(now, retry)
	}
	m.nothing()
	return append([]Event{note(now, event.BootFailed)}, m.step(now, exhausted)...)
}

// note is something about the system that belongs into the log.
func note(at time.Time, kind event.Kind, args ...string) event.Note {
	return event.Note{At: at, Kind: kind, Subject: event.Subject{Part: event.System}, Args: args}
}
