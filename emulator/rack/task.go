package rack

import (
	"context"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
)

var errCancelled = errors.New("cancelled")

// Begin opens a task and applies the command that c returns for the task's ID to the
// machine. Both are stored together. A command that is refused leaves no task.
func (h *Host) Begin(ctx context.Context, o bmc.OpenTask, c func(task string) machine.Command) (bmc.Task, error) {
	if ctx.Err() != nil {
		return bmc.Task{}, context.Cause(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.beginRequest(ctx)
	before := h.bmc.State()
	id, err := h.openTask(st, o)
	if err != nil {
		return bmc.Task{}, errors.Join(err, h.commit(st))
	}
	more, err := h.machine.Apply(st.now, c(id))
	if err != nil {
		h.bmc.Restore(before)
		return bmc.Task{}, errors.Join(err, h.commit(st))
	}
	st.machine = append(st.machine, more...)
	if err := h.commit(st); err != nil {
		return bmc.Task{}, err
	}
	return h.task(id)
}

// openTask opens a task in a step and returns its ID. The caller holds h.mu.
func (h *Host) openTask(st *step, o bmc.OpenTask) (string, error) {
	opened, err := h.bmc.Apply(st.now, o)
	if err != nil {
		return "", err
	}
	st.bmc = append(st.bmc, opened...)
	for _, ev := range opened {
		if ev, ok := ev.(bmc.TaskOpened); ok {
			return ev.Task.ID, nil
		}
	}
	return "", fmt.Errorf("%s: %w: the task that was opened", h.Name(), bmc.ErrNotFound)
}

// task returns the current state of a task.
func (h *Host) task(id string) (bmc.Task, error) {
	for _, j := range h.BMC().Tasks.All() {
		if j.ID == id {
			return j, nil
		}
	}
	return bmc.Task{}, fmt.Errorf("%s: %w: task %s", h.Name(), bmc.ErrNotFound, id)
}

// RunTask opens a task whose work neither model does, and runs it: the result of do,
// whose ID and times are filled in, closes the task. Cancelling the task ends ctx. A
// task that is running when the rack ends has failed when the rack starts again.
func (h *Host) RunTask(ctx context.Context, o bmc.OpenTask, do func(ctx context.Context, task string) bmc.CloseTask) (bmc.Task, error) {
	if ctx.Err() != nil {
		return bmc.Task{}, context.Cause(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return bmc.Task{}, errRackEnded
	}
	st := h.beginRequest(ctx)
	id, err := h.openTask(st, o)
	if err != nil {
		return bmc.Task{}, errors.Join(err, h.commit(st))
	}
	evs, err := h.bmc.Apply(st.now, bmc.RunTask{ID: id, Until: o.Until(st.now)})
	st.bmc = append(st.bmc, evs...)
	if err := errors.Join(err, h.commit(st)); err != nil {
		return bmc.Task{}, err
	}
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if h.running == nil {
		h.running = map[string]context.CancelCauseFunc{}
	}
	h.running[id] = cancel
	leave := h.rack.clock.Enter()
	h.rack.tasks.Go(func() {
		defer leave()
		end := do(work, id)
		why := context.Cause(work)
		cancel(nil)
		h.finishTask(id, end, why)
	})
	return h.task(id)
}

// finishTask closes a task whose work has ended. The reason why its context ended is
// in why, nil when the work was complete.
func (h *Host) finishTask(id string, end bmc.CloseTask, why error) {
	h.mu.Lock()
	delete(h.running, id)
	if len(h.running) == 0 {
		h.running = nil
	}
	h.mu.Unlock()
	if errors.Is(why, errRackEnded) { // closed when the rack starts again
		return
	}
	if h.machineWorksOn(id) { // the machine continues the task
		return
	}
	end.ID = id
	end.Cancelled = end.Cancelled || errors.Is(why, errCancelled) && end.Fault != ""
	err := h.rack.untilStored(func() error {
		_, _, err := h.applyBMC(context.Background(), end, nil)
		return err
	})
	if err != nil && !errors.Is(err, bmc.ErrNotFound) { // not found: closed already
		h.rack.log.Error("task not closed", "host", h.Name(), "task", id, "err", err)
	}
}

// machineWorksOn reports whether the machine works on a task.
func (h *Host) machineWorksOn(task string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machine.RunsTask(task)
}

// Cancel cancels a task. It returns machine.ErrUnstoppable for work that cannot be
// stopped. The task may be in state Cancelling for a while.
func (h *Host) Cancel(ctx context.Context, task string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.beginRequest(ctx)
	if h.machine.RunsTask(task) {
		more, err := h.machine.Apply(st.now, machine.StopTask{Task: task})
		if err != nil {
			return errors.Join(err, h.commit(st))
		}
		st.machine = append(st.machine, more...)
		st.bmc = append(st.bmc, h.bmc.ObserveMachine(st.now, h.withoutHeldTasks(st.machine))...)
		st.heardByBMC = len(st.machine)
		if !h.machine.RunsTask(task) {
			return h.commit(st)
		}
	}
	evs, err := h.bmc.Apply(st.now, bmc.CancelTask{ID: task})
	st.bmc = append(st.bmc, evs...)
	if err := errors.Join(err, h.commit(st)); err != nil {
		return err
	}
	if cancel := h.running[task]; cancel != nil {
		cancel(errCancelled)
	}
	return nil
}
