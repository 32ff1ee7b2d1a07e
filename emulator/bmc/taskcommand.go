package bmc

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// OpenTask opens a task. The event TaskOpened reports its ID.
type OpenTask struct {
	Name    string
	User    string // account name of the requester
	Account string // its ID
	Request Request
	Lasts   time.Duration // expected duration; 0: unknown
	Steps   bool          // the task ends when all tasks that joined it have
	work    *Work         // work that the BMC itself does
}

// Until returns when a task that begins at a time is expected to end; zero:
// unknown.
func (c OpenTask) Until(at time.Time) time.Time {
	if c.Lasts <= 0 {
		return time.Time{}
	}
	return at.Add(c.Lasts)
}

func (c OpenTask) apply(b *BMC, now time.Time) ([]Event, error) {
	j := b.forkTasks()
	if len(j.List) >= maxTasks {
		i := slices.IndexFunc(j.List, func(j Task) bool { return j.State.Ended() })
		if i < 0 {
			return nil, fmt.Errorf("%w: %d", ErrTooManyTasks, len(j.List))
		}
		j.List = slices.Delete(j.List, i, i+1)
	}
	task := Task{
		ID: strconv.FormatUint(j.Next, 10), Name: c.Name, State: TaskNew,
		User: c.User, Account: c.Account, Created: now, Request: c.Request, Work: c.work, Steps: c.Steps,
	}
	j.Next++
	j.List = append(j.List, task)
	b.st.Tasks = j
	return []Event{TaskOpened{At: now, Task: task}}, nil
}

// RunTask reports that work outside of the models has begun. Until may be zero:
// unknown.
type RunTask struct {
	ID    string
	Until time.Time
}

func (c RunTask) apply(b *BMC, now time.Time) ([]Event, error) {
	return b.taskEvents(c.ID, b.taskRunning(event.TaskRunning{At: now, Task: c.ID, Until: c.Until}))
}

// maxResult is the longest task result in bytes.
const maxResult = 256 << 10

// CloseTask ends a task whose work is outside of the models.
type CloseTask struct {
	ID        string
	Fault     string // for display, lower case; "": success
	Cancelled bool
	Made      *event.Subject
	Messages  []event.Note
	Result    string // Task.Result
}

func (c CloseTask) apply(b *BMC, now time.Time) ([]Event, error) {
	if len(c.Result) > maxResult {
		c.Result, c.Fault = "", fmt.Sprintf("its result has %d bytes, and can have %d", len(c.Result), maxResult)
	}
	if c.Result != "" {
		b.change(c.ID, now, func(j *Task) { j.Result = c.Result }) // reported with its end
	}
	return b.taskEvents(c.ID, b.taskDone(event.TaskDone{
		At: now, Task: c.ID, Fault: c.Fault, Cancelled: c.Cancelled, Made: c.Made, Messages: c.Messages,
	}))
}

// CancelTask cancels a task that has not begun, or whose work is the BMC's own.
// A running task becomes Cancelling; whoever does its work sees that and closes
// it.
type CancelTask struct{ ID string }

func (c CancelTask) apply(b *BMC, now time.Time) ([]Event, error) {
	j, ok := b.task(c.ID)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: task %s", ErrNotFound, c.ID)
	case j.State.Ended():
		return nil, fmt.Errorf("%w: %s", ErrEnded, c.ID)
	case j.State == TaskNew || j.State == TaskPending || j.Work != nil:
		return b.taskDone(event.TaskDone{At: now, Task: c.ID, Cancelled: true}), nil
	}
	return b.change(c.ID, now, func(j *Task) {
		j.suspendProgress(now)
		j.State = TaskCancelling
	}), nil
}

// DeleteTask deletes a task that has ended.
type DeleteTask struct{ ID string }

func (c DeleteTask) apply(b *BMC, _ time.Time) ([]Event, error) {
	j, ok := b.task(c.ID)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: task %s", ErrNotFound, c.ID)
	case !j.State.Ended():
		return nil, fmt.Errorf("%w: %s", ErrUnderWay, c.ID)
	}
	b.forget(func(j *Task) bool { return j.ID == c.ID })
	return nil, nil
}

// DeleteEndedTasks deletes all tasks that have ended.
type DeleteEndedTasks struct{}

func (DeleteEndedTasks) apply(b *BMC, _ time.Time) ([]Event, error) {
	b.forget(func(j *Task) bool { return j.State.Ended() })
	return nil, nil
}

// DeliverTask records that the task monitor has answered a task's end. Now
// removes the task monitor at once.
type DeliverTask struct {
	ID  string
	Now bool
}

func (c DeliverTask) apply(b *BMC, now time.Time) ([]Event, error) {
	j, ok := b.task(c.ID)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: task %s", ErrNotFound, c.ID)
	case !j.State.Ended():
		return nil, fmt.Errorf("%w: %s", ErrUnderWay, c.ID)
	case j.Closed || !j.Delivered.IsZero() && !c.Now:
		return nil, nil
	}
	all := b.forkTasks()
	for i := range all.List {
		if j := &all.List[i]; j.ID == c.ID {
			j.Delivered = b.clientTime(now)
			j.Closed = c.Now || b.keep().Delivered == 0
		}
	}
	b.st.Tasks = all
	return nil, nil
}

// SetTaskRetention sets how long tasks are kept.
type SetTaskRetention struct{ TaskRetention }

func (c SetTaskRetention) apply(b *BMC, _ time.Time) ([]Event, error) {
	j := b.forkTasks()
	j.Retention = &c.TaskRetention
	b.st.Tasks = j
	return nil, nil
}

// EndOrphanedTasks ends the tasks whose work has stopped because the rack or the
// BMC restarted. Works reports whether a task's work continues.
type EndOrphanedTasks struct{ Works func(task string) bool }

func (c EndOrphanedTasks) apply(b *BMC, now time.Time) ([]Event, error) {
	var evs []Event
	b.endJobs(now)
	for _, j := range b.st.Tasks.All() {
		switch {
		case j.State.Ended() || j.Work != nil:
		case !c.Works(j.ID):
			evs = append(evs, b.taskDone(event.TaskDone{
				At: now, Task: j.ID, Fault: "it was interrupted by a restart", Cancelled: j.State == TaskCancelling,
			})...)
		case j.State == TaskInterrupted:
			evs = append(evs, b.taskRunning(event.TaskRunning{At: now, Task: j.ID, Until: j.Until})...)
		}
	}
	return evs, nil
}

// taskEvents returns the events of a task's change, or an error when no such
// task is in progress.
func (b *BMC) taskEvents(id string, evs []Event) ([]Event, error) {
	if evs == nil {
		return nil, fmt.Errorf("%w: task %s that is under way", ErrNotFound, id)
	}
	return evs, nil
}

// deletionDue returns the client time at which an ended task is deleted. A task
// that an older release has stored has no EndedClient: its client time was lab
// time.
func (k TaskRetention) deletionDue(j *Task) time.Time {
	if j.EndedClient.IsZero() {
		return j.Ended.Add(k.Ended)
	}
	return j.EndedClient.Add(k.Ended)
}

// nextTaskDeadline returns the client time at which a task next changes; zero:
// never.
func (b *BMC) nextTaskDeadline() (first time.Time) {
	keep := b.keep()
	for _, j := range b.st.Tasks.All() {
		if !j.State.Ended() {
			continue
		}
		if keep.Ended > 0 {
			first = earlier(first, keep.deletionDue(&j))
		}
		if !j.Closed && !j.Delivered.IsZero() {
			first = earlier(first, j.Delivered.Add(keep.Delivered))
		}
	}
	return first
}

// expireTasks deletes tasks whose retention has ended at a client time.
func (b *BMC) expireTasks(client time.Time) {
	keep := b.keep()
	if keep.Ended > 0 {
		b.forget(func(j *Task) bool { return j.State.Ended() && !client.Before(keep.deletionDue(j)) })
	}
	expired := func(j Task) bool {
		return !j.Closed && !j.Delivered.IsZero() && !client.Before(j.Delivered.Add(keep.Delivered))
	}
	if !slices.ContainsFunc(b.st.Tasks.All(), expired) {
		return
	}
	all := b.forkTasks()
	for i := range all.List {
		all.List[i].Closed = all.List[i].Closed || expired(all.List[i])
	}
	b.st.Tasks = all
}

// earlier returns the earlier of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
