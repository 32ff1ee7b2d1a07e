package machine

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnstoppable means that the work of a job cannot be stopped half way.
var ErrUnstoppable = errors.New("machine: this work cannot be stopped")

// worker is a part of a machine that does the work of jobs, which it knows by
// the IDs that its commands were given.
type worker struct {
	works func(m *Machine, job string) bool
	// stop ends the work, which event.Done with Cancelled tells, at once or
	// later; or it answers ErrUnstoppable, and the work goes on.
	stop func(m *Machine, now time.Time, job string) ([]Event, error)
}

// workers are all parts that do the work of jobs.
var workers = []worker{
	{works: firmwareWorks, stop: stopFirmware},
	{works: storageWorks, stop: stopStorage},
}

// Works tells whether the machine does the work of a job.
func (m *Machine) Works(job string) bool { return m.worker(job) != nil }

func (m *Machine) worker(job string) *worker {
	for i := range workers {
		if workers[i].works(m, job) {
			return &workers[i]
		}
	}
	return nil
}

// StopJob stops the work of a job.
type StopJob struct{ Job string }

func (c StopJob) apply(m *Machine, now time.Time) ([]Event, error) {
	w := m.worker(c.Job)
	if w == nil {
		return nil, fmt.Errorf("%w: no work is done for job %q", ErrUnknown, c.Job)
	}
	return w.stop(m, now, c.Job)
}
