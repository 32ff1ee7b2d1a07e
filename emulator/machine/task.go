package machine

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnstoppable means that the work of a task cannot be stopped.
var ErrUnstoppable = errors.New("this work cannot be stopped")

// worker is a part of a machine that does the work of tasks, which it knows by
// the IDs in its commands.
type worker struct {
	runsTask func(m *Machine, task string) bool
	// stop cancels the work at once or later, which event.TaskDone with
	// Cancelled reports; or it returns ErrUnstoppable, and the work continues.
	stop func(m *Machine, now time.Time, task string) ([]Event, error)
}

// workers lists all workers.
var workers = []worker{
	{runsTask: firmwareRunsTask, stop: stopFirmwareTask},
	{runsTask: storageRunsTask, stop: stopStorageTask},
}

// RunsTask reports whether the machine does the work of a task.
func (m *Machine) RunsTask(task string) bool { return m.worker(task) != nil }

func (m *Machine) worker(task string) *worker {
	for i := range workers {
		if workers[i].runsTask(m, task) {
			return &workers[i]
		}
	}
	return nil
}

// StopTask cancels the work of a task.
type StopTask struct{ Task string }

func (c StopTask) apply(m *Machine, now time.Time) ([]Event, error) {
	w := m.worker(c.Task)
	if w == nil {
		return nil, fmt.Errorf("%w: no work is done for task %q", ErrUnknown, c.Task)
	}
	return w.stop(m, now, c.Task)
}
