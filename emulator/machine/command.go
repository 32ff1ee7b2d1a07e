package machine

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Command is something that can be done to a machine.
type Command interface {
	apply(m *Machine, now time.Time) ([]Event, error)
}

// Together carries out several commands as one: all of them, or none.
type Together []Command

func (c Together) apply(m *Machine, now time.Time) ([]Event, error) {
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

// BootTried asks what is on a boot source; Loaded or NotBootable answers it.
type BootTried struct {
	At     time.Time
	Source Source
	Boot   uint64
}

// Started tells that a system runs.
type Started struct {
	At time.Time
	OS OS
}

// Stopped tells that a system that was loading or running is gone.
type Stopped struct {
	At time.Time
	OS OS
}

// Halt tells that a running system stands still, but is not gone.
type Halt struct {
	At time.Time
	OS OS
}

// Resumed tells that a system that stood still goes on.
type Resumed struct {
	At time.Time
	OS OS
}

// Time implements Event.
func (e PowerChanged) Time() time.Time { return e.At }

// Time implements Event.
func (e BootTried) Time() time.Time { return e.At }

// Time implements Event.
func (e Started) Time() time.Time { return e.At }

// Time implements Event.
func (e Stopped) Time() time.Time { return e.At }

// Time implements Event.
func (e Halt) Time() time.Time { return e.At }

// Time implements Event.
func (e Resumed) Time() time.Time { return e.At }
