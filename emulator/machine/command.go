package machine

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Command is something that can be done to a machine.
type Command interface {
	apply(m *Machine, now time.Time) ([]Event, error)
}

// Transaction carries out several commands as one: all of them, or none.
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

// PowerChanged tells the power state that a machine has come to.
type PowerChanged struct {
	At    time.Time
	Power Power
}

// BootAttempted asks what is on a boot source; Loaded or NotBootable answers it.
type BootAttempted struct {
	At     time.Time
	Source Source
	Boot   uint64
}

// SystemStarted tells that a system runs.
type SystemStarted struct {
	At time.Time
	OS OS
}

// SystemStopped tells that a system that was loading or running is gone.
type SystemStopped struct {
	At time.Time
	OS OS
}

// SystemPaused tells that a running system stands still, but is not gone.
type SystemPaused struct {
	At time.Time
	OS OS
}

// SystemResumed tells that a system that stood still goes on.
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
func (e SystemStopped) Time() time.Time { return e.At }

// Time implements Event.
func (e SystemPaused) Time() time.Time { return e.At }

// Time implements Event.
func (e SystemResumed) Time() time.Time { return e.At }
