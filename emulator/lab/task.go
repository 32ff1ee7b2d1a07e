package lab

import (
	"errors"
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// heldTask is the end of a task that a rule keeps from being told: the work is done,
// and the task goes on.
type heldTask struct {
	Host string         `json:"host"`
	Path string         `json:"path,omitempty"` // of the request that made the task
	Done event.TaskDone `json:"done"`
}

// maxHeldTasks bounds how many ends of tasks are held; a BMC has at most a hundred
// tasks.
const maxHeldTasks = 10_000

// withoutHeldTasks leaves out of what a BMC hears the ends of tasks that are stuck. It
// holds h.mu.
func (h *Host) withoutHeldTasks(evs []machine.Event) []machine.Event {
	evs = slices.DeleteFunc(slices.Clone(evs), func(ev machine.Event) bool {
		done, ok := ev.(event.TaskDone)
		return ok && h.taskContinues(done)
	})
	if !h.lab.hasFaults(fault.Task) {
		return evs
	}
	var out []machine.Event
	for _, ev := range evs {
		if done, ok := ev.(event.TaskDone); !ok || !h.holdIfStuck(done) {
			out = append(out, ev)
		}
	}
	return out
}

// taskContinues says whether a job goes on whose machine has done a part of it. It
// holds h.mu.
func (h *Host) taskContinues(done event.TaskDone) bool {
	if done.Cancelled || done.Fault != "" {
		return false
	}
	for _, j := range h.bmc.State().Tasks.All() {
		if j.ID == done.Task && j.Steps {
			return h.running[j.ID] != nil || h.machine.RunsTask(j.ID)
		}
	}
	return false
}

// holdIfStuck says whether the end of a task is held. It holds h.mu.
func (h *Host) holdIfStuck(done event.TaskDone) bool {
	if !h.lab.hasFaults(fault.Task) || done.Cancelled {
		return false
	}
	path := ""
	for _, j := range h.bmc.State().Tasks.All() {
		if j.ID == done.Task {
			path = j.Request.Target
		}
	}
	d := h.lab.decide(fault.Subject{Site: fault.Task, BMC: h.Name(), Path: path})
	if !d.Stuck {
		return false
	}
	if h.isHeld(done.Task) { // a step that could not be stored, again
		return true
	}
	f := &h.lab.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.held) >= maxHeldTasks {
		return false
	}
	f.held = append(f.held, heldTask{Host: h.Name(), Path: path, Done: done})
	if err := h.lab.saveFaults(); err != nil {
		h.lab.log.Error("a stuck task is not stored", "host", h.Name(), "err", err)
	}
	h.lab.journal.Add(journal.Entry{At: done.At, Host: h.Name(), Kind: journal.Event, What: "task.stuck", Text: "task " + done.Task, Faults: d.Rules})
	return true
}

// isHeld says whether the end of a task is held.
func (h *Host) isHeld(job string) bool {
	f := &h.lab.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.held, func(t heldTask) bool { return t.Host == h.Name() && t.Done.Task == job })
}

// releaseTasks ends the tasks that no rule holds any longer.
func (l *Lab) releaseTasks() error {
	f := &l.faults
	f.mu.Lock()
	now := l.clock.Now()
	var free, stay []heldTask
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
		if h := l.byName[t.Host]; h != nil {
			errs = append(errs, h.releaseHeldTask(t))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = stay
	return errors.Join(append(errs, l.saveFaults())...)
}

// releaseHeldTask tells the end of a task.
func (h *Host) releaseHeldTask(t heldTask) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.begin()
	t.Done.At = st.now
	st.released = []machine.Event{t.Done}
	return h.commit(st)
}

// closesHeldTask says whether a command would end a task that is stuck. It holds h.mu.
func (h *Host) closesHeldTask(c bmc.Command) bool {
	end, ok := c.(bmc.CloseTask)
	return ok && h.holdIfStuck(event.TaskDone{At: h.Now(), Task: end.ID, Fault: end.Fault, Cancelled: end.Cancelled, Made: end.Made, Messages: end.Messages})
}
