package rack

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/rack/faults"
)

// withoutHeldTasks returns the events of a machine without the ends of tasks that
// the BMC must not see: of those that have further steps, and of those that a fault
// rule withholds. The caller holds h.mu.
func (h *Host) withoutHeldTasks(evs []machine.Event) []machine.Event {
	return slices.DeleteFunc(slices.Clone(evs), func(ev machine.Event) bool {
		done, ok := ev.(event.TaskDone)
		return ok && (h.taskContinues(done) || h.holdTask(done))
	})
}

// taskContinues reports whether a task goes on after its machine has done one step
// of it. The caller holds h.mu.
func (h *Host) taskContinues(done event.TaskDone) bool {
	if done.Cancelled || done.Fault != "" {
		return false
	}
	for _, t := range h.bmc.State().Tasks.All() {
		if t.ID == done.Task && t.Steps {
			return h.running[t.ID] != nil || h.machine.RunsTask(t.ID)
		}
	}
	return false
}

// holdTask reports whether a fault rule withholds the end of a task. The caller
// holds h.mu.
func (h *Host) holdTask(done event.TaskDone) bool {
	if !h.rack.faults.Has(fault.Task) {
		return false
	}
	path := ""
	for _, t := range h.bmc.State().Tasks.All() {
		if t.ID == done.Task {
			path = t.Request.Target
		}
	}
	return h.rack.faults.Hold(faults.HeldTask{Host: h.Name(), Path: path, Done: done})
}

// closesHeldTask reports whether a command would end a task whose end a fault rule
// withholds. The caller holds h.mu.
func (h *Host) closesHeldTask(c bmc.Command) bool {
	end, ok := c.(bmc.CloseTask)
	return ok && h.holdTask(event.TaskDone{At: h.Now(), Task: end.ID, Fault: end.Fault, Cancelled: end.Cancelled, Made: end.Made, Messages: end.Messages})
}
