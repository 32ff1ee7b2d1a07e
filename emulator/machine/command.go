package machine

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Command is a change that can be applied to a machine.
type Command interface {
	apply(m *Machine, now time.Time) ([]Event, error)
}

// Transaction applies several commands as one: all of them or none.
type Transaction []Command

func (c Transaction) apply(m *Machine, now time.Time) ([]Event, error) {
	before := m.State()
	var evs []Event
	for _, one := range c {
		more, err := one.apply(m, now)
		if err != nil {
			m.Restore(before)
			return nil, err
		}
		evs = append(evs, more...)
	}
	return evs, nil
}

// Event is something that happened to a machine.
type Event = event.Event

// PowerChanged reports the machine's new power state.
type PowerChanged struct {
	At    time.Time
	Power Power
}

// BootAttempted asks what a boot source holds; the answer is Loaded or
// NotBootable.
type BootAttempted struct {
	At     time.Time
	Source Source
	Boot   uint64
}

// SystemStarted reports that an operating system runs.
type SystemStarted struct {
	At time.Time
	OS OS
}

// SystemStopping reports that a running operating system begins an orderly shutdown.
type SystemStopping struct {
	At time.Time
	OS OS
}

// SystemStopped reports that an operating system that was loading or running is
// gone.
type SystemStopped struct {
	At time.Time
	OS OS
}

// SystemPaused reports that a running operating system is paused.
type SystemPaused struct {
	At time.Time
	OS OS
}

// SystemResumed reports that a paused operating system runs again.
type SystemResumed struct {
	At time.Time
	OS OS
}

// Time implements Event.
func (e PowerChanged) Time() time.Time { return e.At }

// Time implements Event.
func (e BootAttempted) Time() time.Time { return e.At }

// Time implements Event.
func (e SystemStarted) Time() time.Time { return e.At }

// Time implements Event.
func (e SystemStopping) Time() time.Time { return e.At }

// Time implements Event.
func (e SystemStopped) Time() time.Time { return e.At }

// Time implements Event.
func (e SystemPaused) Time() time.Time { return e.At }

// Time implements Event.
func (e SystemResumed) Time() time.Time { return e.At }
