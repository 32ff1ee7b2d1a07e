package machine

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnstoppable means that the work of a task cannot be stopped half way.
var ErrUnstoppable = errors.New("machine: this work cannot be stopped")

// worker is a part of a machine that does the work of tasks, which it knows by
// the IDs that its commands were given.
type worker struct {
	works func(m *Machine, task string) bool
	// stop ends the work, which event.Done with Cancelled tells, at once or
	// later; or it answers ErrUnstoppable, and the work goes on.
	stop func(m *Machine, now time.Time, task string) ([]Event, error)
}

// workers are all parts that do the work of tasks.
var workers = []worker{
	{works: firmwareWorks, stop: stopFirmware},
	{works: storageWorks, stop: stopStorage},
}

// RunsTask tells whether the machine does the work of a task.
func (m *Machine) RunsTask(task string) bool { return m.worker(task) != nil }

func (m *Machine) worker(task string) *worker {
	for i := range workers {
		if workers[i].works(m, task) {
			return &workers[i]
		}
	}
	return nil
}

// StopTask stops the work of a task.
type StopTask struct{ Task string }

func (c StopTask) apply(m *Machine, now time.Time) ([]Event, error) {
	w := m.worker(c.Task)
	if w == nil {
		return nil, fmt.Errorf("%w: no work is done for task %q", ErrUnknown, c.Task)
	}
	return w.stop(m, now, c.Task)
}
