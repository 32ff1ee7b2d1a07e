package bmc

import (
	"errors"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Errors of tasks.
var (
	// ErrTooManyTasks means that the maximum number of tasks is in progress.
	ErrTooManyTasks = errors.New("bmc: too many tasks are under way")
	// ErrUnderWay means that a task has not ended, ErrEnded that it has.
	ErrUnderWay = errors.New("bmc: the task is under way")
	ErrEnded    = errors.New("bmc: the task has ended")
)

// TaskState is the state of a task; the values are Redfish's (DSP2046,
// Task.TaskState).
type TaskState string

// The states of a task.
const (
	TaskNew         TaskState = "New"     // not started
	TaskPending     TaskState = "Pending" // waits for a condition
	TaskRunning     TaskState = "Running"
	TaskSuspended   TaskState = "Suspended"   // paused
	TaskInterrupted TaskState = "Interrupted" // paused because the BMC restarts
	TaskCancelling  TaskState = "Cancelling"  // being cancelled
	TaskCompleted   TaskState = "Completed"
	TaskException   TaskState = "Exception" // ended with an error
	TaskCancelled   TaskState = "Cancelled"
)

// Ended reports whether the state is final.
func (s TaskState) Ended() bool {
	return s == TaskCompleted || s == TaskException || s == TaskCancelled
}

// Task is work that continues after its request was answered (DSP2046, Task).
type Task struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // for display: "Initialize volume 1"
	State   TaskState `json:"state"`
	User    string    `json:"user,omitempty"`    // account name of the requester
	Account string    `json:"account,omitempty"` // its ID
	Created time.Time `json:"created"`
	Begun   time.Time `json:"begun,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// EndedClient is the client time of the end, from which the retention counts.
	EndedClient time.Time `json:"endedClient,omitzero"`

	// Since Resumed the task runs; it was Done percent complete then, and is
	// expected to end at Until.
	Resumed time.Time `json:"resumed,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Done    int       `json:"done,omitempty"`

	Fault    string         `json:"fault,omitempty"` // why it failed, for display
	Made     *event.Subject `json:"made,omitempty"`  // what it has created
	Messages []event.Note   `json:"told,omitempty"`  // messages for the task's client
	// Result is the response of the operation for the task monitor after the
	// end; "" is the default response.
	Result string `json:"result,omitempty"`

	Work *Work `json:"work,omitempty"` // work of the BMC itself; nil: somebody else's
	// Outlives means that the machine does the work, which a restart of the BMC
	// does not end.
	Outlives bool `json:"outlives,omitempty"`
	// Steps means that the task has several parts, and ends with the last one.
	Steps     bool      `json:"steps,omitempty"`
	Request   Request   `json:"request"`
	Delivered time.Time `json:"heard,omitzero"`   // client time at which the task monitor first answered its end
	Closed    bool      `json:"closed,omitempty"` // the task monitor is gone
}

// Request is the request that started a task, without secrets.
type Request struct {
	Method string `json:"method,omitempty"`
	Target string `json:"target,omitempty"` // URI
	Body   string `json:"body,omitempty"`   // JSON
	Hidden bool   `json:"hidden,omitempty"` // it had secrets, and is not shown
}

// Percent returns the completed percentage at a time, 0 to 100. It never
// decreases.
func (j *Task) Percent(now time.Time) int {
	switch duration := j.Until.Sub(j.Resumed); {
	case j.State == TaskCompleted:
		return 100
	case j.State != TaskRunning || duration <= 0 || now.Before(j.Resumed):
		return j.Done
	default:
		return min(99, j.Done+int(time.Duration(100-j.Done)*now.Sub(j.Resumed)/duration))
	}
}

// Tasks are the tasks of a BMC, oldest first.
type Tasks struct {
	Next      uint64         `json:"next"` // ID of the next task
	List      []Task         `json:"list"`
	Retention *TaskRetention `json:"keep,omitempty"` // nil: the Spec's
}

// TaskRetention says how long tasks are kept, in client time.
type TaskRetention struct {
	Ended     time.Duration `json:"ended"` // a task, after its end; 0: until its slot is needed
	Delivered time.Duration `json:"heard"` // the task monitor, after it was read
}

// All returns the tasks, oldest first; nil Tasks has none.
func (j *Tasks) All() []Task {
	if j == nil {
		return nil
	}
	return j.List
}

// maxTasks is the maximum number of tasks; ended ones are dropped first, oldest
// first.
const maxTasks = 100

// keep returns the task retention.
func (b *BMC) keep() TaskRetention {
	if j := b.st.Tasks; j != nil && j.Retention != nil {
		return *j.Retention
	}
	return b.spec.TaskRetention
}

// task returns the task with an ID.
func (b *BMC) task(id string) (Task, bool) {
	for _, j := range b.st.Tasks.All() {
		if j.ID == id {
			return j, true
		}
	}
	return Task{}, false
}

// forkTasks returns a copy that a step may change, and stores it.
func (b *BMC) forkTasks() *Tasks {
	if b.st.Tasks == nil {
		return &Tasks{Next: 1}
	}
	j := *b.st.Tasks
	j.List = slices.Clone(j.List)
	return &j
}

// change changes a task that has not ended, and returns the event; nil when
// there is none.
func (b *BMC) change(id string, at time.Time, how func(*Task)) []Event {
	j := b.forkTasks()
	i := slices.IndexFunc(j.List, func(j Task) bool { return j.ID == id && !j.State.Ended() })
	if i < 0 {
		return nil
	}
	how(&j.List[i])
	b.st.Tasks = j
	return []Event{TaskChanged{At: at, Task: j.List[i]}}
}

// forget deletes tasks.
func (b *BMC) forget(which func(*Task) bool) {
	if !slices.ContainsFunc(b.st.Tasks.All(), func(j Task) bool { return which(&j) }) {
		return
	}
	j := b.forkTasks()
	j.List = slices.DeleteFunc(j.List, func(j Task) bool { return which(&j) })
	b.st.Tasks = j
}

// outlives records that the machine does the work of a task.
func (b *BMC) outlives(id string) {
	if j, ok := b.task(id); !ok || j.Outlives {
		return
	}
	j := b.forkTasks()
	for i := range j.List {
		j.List[i].Outlives = j.List[i].Outlives || j.List[i].ID == id
	}
	b.st.Tasks = j
}

// suspendProgress stops a task's progress.
func (j *Task) suspendProgress(now time.Time) { j.Done, j.Resumed = j.Percent(now), time.Time{} }

// taskRunning, taskWaiting, taskPaused, taskMessage and taskDone handle the
// events of whoever does a task's work.
func (b *BMC) taskRunning(ev event.TaskRunning) []Event {
	return b.change(ev.Task, ev.At, func(j *Task) {
		if j.Begun.IsZero() {
			j.Begun = ev.At
		}
		j.suspendProgress(ev.At)
		j.State, j.Resumed, j.Until = TaskRunning, ev.At, ev.Until
	})
}

func (b *BMC) taskWaiting(ev event.TaskWaiting) []Event {
	return b.change(ev.Task, ev.At, func(j *Task) { j.State = TaskPending })
}

func (b *BMC) taskPaused(ev event.TaskPaused) []Event {
	return b.change(ev.Task, ev.At, func(j *Task) {
		j.suspendProgress(ev.At)
		j.State = TaskSuspended
	})
}

func (b *BMC) taskMessage(ev event.TaskMessage) []Event {
	return b.change(ev.Task, ev.Time(), func(j *Task) { j.Messages = append(slices.Clip(j.Messages), ev.Note) })
}

func (b *BMC) taskDone(ev event.TaskDone) []Event {
	return b.change(ev.Task, ev.At, func(j *Task) {
		j.suspendProgress(ev.At)
		j.EndedClient = b.clientTime(ev.At)
		j.Ended, j.Fault, j.Made, j.Messages = ev.At, ev.Fault, ev.Made, append(slices.Clip(j.Messages), ev.Messages...)
		switch {
		case ev.Cancelled:
			// The client that cancelled it does not wait for its result
			// (DSP2046, TaskService.TaskMonitorAutoExpirySeconds).
			j.State, j.Closed = TaskCancelled, true
		case ev.Fault != "":
			j.State = TaskException
		default:
			j.State = TaskCompleted
		}
	})
}

// TaskOpened reports a new task.
type TaskOpened struct {
	At   time.Time
	Task Task
}

// TaskChanged reports a changed task state.
type TaskChanged struct {
	At   time.Time
	Task Task
}

// Time implements Event.
func (e TaskOpened) Time() time.Time { return e.At }

// Time implements Event.
func (e TaskChanged) Time() time.Time { return e.At }
