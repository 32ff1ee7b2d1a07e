package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

func TestStopTask(t *testing.T) {
	was := workers
	t.Cleanup(func() { workers = was })
	workers = []worker{
		{
			runsTask: func(_ *Machine, job string) bool { return job == "1" },
			stop: func(_ *Machine, now time.Time, job string) ([]Event, error) {
				return []Event{event.TaskDone{At: now, Task: job, Cancelled: true}}, nil
			},
		},
		{
			runsTask: func(_ *Machine, job string) bool { return job == "2" },
			stop:     func(*Machine, time.Time, string) ([]Event, error) { return nil, ErrUnstoppable },
		},
	}
	m := newMachine(t)
	if evs, err := m.Apply(origin, StopTask{"1"}); err != nil || len(evs) != 1 || !evs[0].(event.TaskDone).Cancelled {
		t.Errorf("Apply(StopJob 1) = %+v, %v, want that it was cancelled", evs, err)
	}
	for job, want := range map[string]error{"2": ErrUnstoppable, "3": ErrUnknown} {
		if _, err := m.Apply(origin, StopTask{job}); !errors.Is(err, want) {
			t.Errorf("Apply(StopJob %s) = %v, want %v", job, err, want)
		}
	}
	for job, want := range map[string]bool{"1": true, "2": true, "3": false, "": false} {
		if got := m.RunsTask(job); got != want {
			t.Errorf("Works(%s) = %t, want %t", job, got, want)
		}
	}
}
