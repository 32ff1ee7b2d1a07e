package machine

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Power is the power state that a BMC reports (DSP2046, Resource.PowerState).
type Power string

// The power states.
const (
	PowerOff    Power = "Off"
	PoweringOn  Power = "PoweringOn"
	PowerOn     Power = "On"
	PoweringOff Power = "PoweringOff"
	PowerPaused Power = "Paused"
)

// Phase is the detailed state of a machine between off and running.
type Phase string

// The phases. Values are stored.
const (
	Off       Phase = "off"
	Unplugged Phase = "unplugged" // no AC power: the BMC is off too
	Delaying  Phase = "delaying"  // off; it powers on after a delay
	Starting  Phase = "starting"  // power supplies ramp up
	POST      Phase = "post"      // power-on self test
	Selecting Phase = "selecting" // a boot source is being tried
	InSetup   Phase = "setup"     // a program of the firmware runs
	Halted    Phase = "halted"    // no source was bootable
	Loading   Phase = "loading"   // the boot loader has started the system
	Running   Phase = "running"   // an operating system runs
	Paused    Phase = "paused"    // the operating system is paused
	Crashed   Phase = "crashed"   // the operating system has panicked
	Stopping  Phase = "stopping"  // the operating system shuts itself down
	Cutting   Phase = "cutting"   // power supplies ramp down
)

// phases holds, for each phase, the power state that is reported, the boot
// progress at its beginning ("": unchanged) and its duration; nil or never
// lasts until a command.
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

// never is the duration of a phase that only some machines leave without a
// command.
const never = -1

// trigger causes a transition between phases.
type trigger string

const (
	elapsed               trigger = "time is up"
	powerOn               trigger = "power on"
	powerOnDelayed        trigger = "power on, but later"
	powerCut              trigger = "cut power"
	shutdownRequested     trigger = "ask the system to stop"
	restart               trigger = "reset line"
	loaded                trigger = "source loaded"
	nextTry               trigger = "source not bootable"
	exhausted             trigger = "no source left"
	retry                 trigger = "no source left, once more"
	setupKey              trigger = "set-up asked for"
	osPowerOff            trigger = "system switches off"
	osRestart             trigger = "system restarts"
	osCrash               trigger = "system crashes"
	suspend               trigger = "stand still"
	resume                trigger = "go on"
	restartFromOff        trigger = "down, to come up again"
	restartFromOffDelayed trigger = "down, to come up again later"
	acLost                trigger = "mains gone"
	acRestored            trigger = "mains back"
)

type transition struct {
	from Phase
	on   trigger
}

// transitions is the state machine. A missing pair is refused with ErrPower, or
// ignored where hardware ignores it (a soft power button without a listening
// system).
var transitions = map[transition]Phase{
	{Off, powerOn}:                   Starting,
	{Off, powerOnDelayed}:            Delaying,
	{Delaying, powerOn}:              Starting,
	{Delaying, elapsed}:              Starting,
	{Delaying, powerCut}:             Off,
	{Starting, elapsed}:              POST,
	{POST, elapsed}:                  Selecting,
	{Selecting, setupKey}:            InSetup,
	{Selecting, nextTry}:             Selecting,
	{Selecting, exhausted}:           Halted,
	{Selecting, retry}:               POST,
	{Selecting, loaded}:              Loading,
	{Loading, elapsed}:               Running,
	{Loading, osCrash}:               Crashed,
	{Running, shutdownRequested}:     Stopping,
	{Running, osPowerOff}:            Cutting,
	{Running, osRestart}:             POST,
	{Running, osCrash}:               Crashed,
	{Running, suspend}:               Paused,
	{Paused, resume}:                 Running,
	{Crashed, elapsed}:               POST,
	{Stopping, elapsed}:              Cutting,
	{Stopping, restartFromOff}:       POST,
	{Cutting, elapsed}:               Off,
	{Cutting, restartFromOff}:        Starting,
	{Cutting, restartFromOffDelayed}: Delaying,

	{Starting, powerCut}:  Cutting,
	{POST, powerCut}:      Cutting,
	{Selecting, powerCut}: Cutting,
	{InSetup, powerCut}:   Cutting,
	{Halted, powerCut}:    Cutting,
	{Loading, powerCut}:   Cutting,
	{Running, powerCut}:   Cutting,
	{Paused, powerCut}:    Cutting,
	{Crashed, powerCut}:   Cutting,
	{Stopping, powerCut}:  Cutting,

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

	{Unplugged, acRestored}: Off,
	{Off, acLost}:           Unplugged,
	{Delaying, acLost}:      Unplugged,
	{Starting, acLost}:      Unplugged,
	{POST, acLost}:          Unplugged,
	{Selecting, acLost}:     Unplugged,
	{InSetup, acLost}:       Unplugged,
	{Halted, acLost}:        Unplugged,
	{Loading, acLost}:       Unplugged,
	{Running, acLost}:       Unplugged,
	{Paused, acLost}:        Unplugged,
	{Crashed, acLost}:       Unplugged,
	{Stopping, acLost}:      Unplugged,
	{Cutting, acLost}:       Unplugged,
}

// withSystem holds the phases in which an operating system is loaded.
var withSystem = map[Phase]bool{Loading: true, Running: true, Paused: true, Stopping: true}

// step makes one transition; only it assigns the phase. A missing transition
// changes nothing and returns no event: callers check can first.
func (m *Machine) step(now time.Time, on trigger) []Event {
	if on == elapsed && m.st.RestartAfterOff && m.can(restartFromOff) {
		on = restartFromOff
		if m.can(restartFromOffDelayed) && m.onDelay() > 0 {
			on = restartFromOffDelayed
		}
	}
	to, ok := transitions[transition{m.st.Phase, on}]
	if !ok {
		return nil
	}
	m.printShutdown(on, now)
	from, main := m.st.Phase, m.main()
	main.Phase, main.Since, main.Deadline = to, now, time.Time{}
	if phases[to].power != PowerOn || to == POST {
		main.PendingReset = nil
	}
	if lasts := phases[to].lasts; lasts != nil {
		if d := lasts(m); d != never {
			main.Deadline = now.Add(d)
		}
	}
	if p := phases[to].progress; p != "" {
		main.setProgress(p, now)
	}
	main.countPoweredOn(now)
	m.stopWatchdogIn(to, now)
	evs := append(m.leavePhase(to, now), m.updateLoad(now)...)
	return append(evs, m.enterPhase(from, to, now)...)
}

func (m *Machine) can(on trigger) bool {
	_, ok := transitions[transition{m.st.Phase, on}]
	return ok
}

// leavePhase returns the events of what a transition ends.
func (m *Machine) leavePhase(to Phase, now time.Time) []Event {
	if m.st.OS == nil || withSystem[to] {
		return nil
	}
	os := *m.st.OS
	m.main().OS = nil
	return []Event{SystemStopped{At: now, OS: os}}
}

// powerEvents are the power states that are logged.
var powerEvents = map[Power]event.Kind{PowerOn: event.PowerOn, PowerOff: event.PowerOff}

// enterPhase returns the events of what a transition begins.
func (m *Machine) enterPhase(from, to Phase, now time.Time) []Event {
	evs := m.storageEvents(m.disks.Power(now, storagePowered(to)))
	if was, is := phases[from].power, phases[to].power; was != is {
		evs = append(evs, PowerChanged{At: now, Power: is})
		if kind, ok := powerEvents[is]; ok && was != PowerPaused {
			evs = append(evs, note(now, kind))
		}
	}
	if from != POST && from != Paused && to != Paused { // keys typed in POST take effect at its end
		m.resetTerminal()
	}
	switch to {
	case Cutting:
		m.main().PowerLoss = ""
		evs = append(evs, m.cutFirmwarePower(now, false)...)
	case POST:
		main := m.main()
		main.Boots++
		cause := main.resetCause()
		main.Reset, main.Cause = main.lastReset(now), ""
		main.PendingSources, main.FirmwareApp, main.RestartAfterOff = nil, "", false
		evs = append(evs, m.applyResetToBootOptions(now, cause)...)
		evs = append(evs, event.Boot{At: now})
		m.resetTerminal()
		m.printPOSTStep(ProcessorStarted)
		evs = append(evs, m.storageEvents(m.disks.Boot(now))...)
		evs = append(evs, m.bootFirmware(now)...)
		m.latchSecureBoot()
	case Selecting:
		return append(evs, m.selectBootSource(from, now)...)
	case Running:
		if from == Paused {
			return append(evs, SystemResumed{At: now, OS: *m.st.OS})
		}
		main := m.main()
		main.Retries = 0
		if main.Reset != nil {
			main.BootTime = Duration{now.Sub(main.Reset.At)}
		}
		m.printBooted()
		evs = append(evs, SystemStarted{At: now, OS: *m.st.OS})
	case InSetup:
		m.printFirmwareApp(m.st.FirmwareApp)
	case Paused:
		evs = append(evs, SystemPaused{At: now, OS: *m.st.OS})
	case Stopping:
		evs = append(evs, SystemStopping{At: now, OS: *m.st.OS})
	case Off:
		main := m.main()
		main.PendingSources, main.FirmwareApp, main.RestartAfterOff = nil, "", false
		m.clearBootOptionsInProgress()
	case Unplugged:
		main := m.main()
		main.PendingSources, main.FirmwareApp, main.RestartAfterOff = nil, "", false
		m.notifyBMCReset()
		evs = append(evs, m.cutFirmwarePower(now, true)...)
	}
	return evs
}

// selectBootSource looks for a bootable source.
func (m *Machine) selectBootSource(from Phase, now time.Time) []Event {
	if from == POST {
		main := m.main()
		main.PendingSources, main.FirmwareApp = m.applyPOSTKey(m.sources())
		m.resetTerminal()
		if main.FirmwareApp != "" {
			return m.step(now, setupKey)
		}
	}
	if len(m.st.PendingSources) > 0 {
		m.printBootAttempt(m.st.PendingSources[0])
		return []Event{BootAttempted{At: now, Source: m.st.PendingSources[0], Boot: m.st.Boots}}
	}
	if m.retriesBoot() {
		main := m.main()
		main.Retries++
		main.Cause = CauseUnknown
		m.printRetry()
		return m.step(now, retry)
	}
	m.printNothingBootable()
	return append([]Event{note(now, event.BootFailed)}, m.step(now, exhausted)...)
}

// note returns a log entry about the system.
func note(at time.Time, kind event.Kind, args ...string) event.Note {
	return event.Note{At: at, Kind: kind, Subject: event.Subject{Part: event.System}, Args: args}
}
