package faults

import (
	"errors"
	"slices"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
)

// HeldTask is the end of a task that a rule withholds from its BMC: the work is
// done, and the task stays Running.
type HeldTask struct {
	Host string         `json:"host"`
	Path string         `json:"path,omitempty"` // path of the request that created the task
	Done event.TaskDone `json:"done"`
}

// maxHeldTasks bounds the held ends of tasks. A BMC has at most a hundred tasks.
const maxHeldTasks = 10_000

// Hold reports whether a rule withholds the end of a task, and keeps the end if so.
func (f *Faults) Hold(t HeldTask) bool {
	if !f.Has(fault.Task) || t.Done.Cancelled {
		return false
	}
	d := f.Decide(fault.Subject{Site: fault.Task, BMC: t.Host, Path: t.Path})
	if !d.Stuck {
		return false
	}
	if f.Holds(t.Host, t.Done.Task) { // the step that ended it could not be stored and is tried again
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.held) >= maxHeldTasks {
		return false
	}
	f.held = append(f.held, t)
	if err := f.save(); err != nil {
		f.c.Log.Error("stuck task not stored", "host", t.Host, "err", err)
	}
	f.c.Journal.Add(journal.Entry{At: t.Done.At, Host: t.Host, Kind: journal.Event, What: "task.stuck", Text: "task " + t.Done.Task, Faults: d.Rules})
	return true
}

// Holds reports whether the end of a task is held.
func (f *Faults) Holds(host, task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.held, func(t HeldTask) bool { return t.Host == host && t.Done.Task == task })
}

// endTasks ends the tasks that no rule withholds any longer.
func (f *Faults) endTasks() error {
	f.mu.Lock()
	now := f.c.Clock.Now()
	var free, stay []HeldTask
	for _, t := range f.held {
		if f.plan.Means("stuck", fault.Subject{Site: fault.Task, BMC: t.Host, Path: t.Path}, now) {
			stay = append(stay, t)
		} else {
			free = append(free, t)
		}
	}
	f.mu.Unlock()
	if len(free) == 0 {
		return nil
	}
	var errs []error
	for _, t := range free {
		errs = append(errs, f.c.EndTask(t))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = stay
	return errors.Join(append(errs, f.save())...)
}
