package bmc

import (
	"errors"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Errors of tasks.
var (
	// ErrTooManyTasks means that as many tasks are under way as the BMC can remember.
	ErrTooManyTasks = errors.New("bmc: too many tasks are under way")
	// ErrUnderWay means that a task has not ended, and ErrEnded that it has.
	ErrUnderWay = errors.New("bmc: the task is under way")
	ErrEnded    = errors.New("bmc: the task has ended")
)

// TaskState is how far a task is; the values are Redfish's TaskState (DSP2046,
// Task.TaskState).
type TaskState string

// The states of a task.
const (
	TaskNew         TaskState = "New"     // nothing done yet
	TaskPending     TaskState = "Pending" // waits for something else to happen
	TaskRunning     TaskState = "Running"
	TaskSuspended   TaskState = "Suspended"   // its work rests, and will go on
	TaskInterrupted TaskState = "Interrupted" // so it does, because the BMC restarts
	TaskCancelling  TaskState = "Cancelling"  // it is being stopped
	TaskCompleted   TaskState = "Completed"
	TaskException   TaskState = "Exception" // ended with a fault
	TaskCancelled   TaskState = "Cancelled"
)

// Ended tells whether nothing more will come of a task.
func (s TaskState) Ended() bool {
	return s == TaskCompleted || s == TaskException || s == TaskCancelled
}

// Task is work that goes on after the request that asked for it was answered.
type Task struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // for people: "Initialize volume 1"
	State   TaskState `json:"state"`
	User    string    `json:"user,omitempty"`    // name of the account that asked
	Account string    `json:"account,omitempty"` // its ID
	Created time.Time `json:"created"`
	Begun   time.Time `json:"begun,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`

	// Since Resumed the task runs, was Done percent done then, and is expected
	// to end at Until.
	Resumed time.Time `json:"resumed,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Done    int       `json:"done,omitempty"`

	Fault    string         `json:"fault,omitempty"` // why it failed, for people
	Made     *event.Subject `json:"made,omitempty"`  // what it has made
	Messages []event.Note   `json:"told,omitempty"`  // to whoever waits for its end
	// Result is what the operation answers who waits, once it has ended; "" is
	// nothing of its own.
	Result string `json:"result,omitempty"`

	Work *Work `json:"work,omitempty"` // that the BMC itself does; nil: others do
	// Outlives says that the machine does the work, which a restart of the BMC
	// does not end.
	Outlives bool `json:"outlives,omitempty"`
	// Steps says that it has several parts, and is done when all are.
	Steps     bool      `json:"steps,omitempty"`
	Request   Request   `json:"request"`
	Delivered time.Time `json:"heard,omitzero"`   // when its end was first told to who waits for it
	Closed    bool      `json:"closed,omitempty"` // and it is not told any longer
}

// Request is what asked for a task, without secrets.
type Request struct {
	Method string `json:"method,omitempty"`
	Target string `json:"target,omitempty"` // URI
	Body   string `json:"body,omitempty"`   // JSON
	Hidden bool   `json:"hidden,omitempty"` // it held secrets, and is not shown
}

// Percent is how much of a task is done at a time, 0 to 100. It never falls.
func (j *Task) Percent(now time.Time) int {
	switch whole := j.Until.Sub(j.Resumed); {
	case j.State == TaskCompleted:
		return 100
	case j.State != TaskRunning || whole <= 0 || now.Before(j.Resumed):
		return j.Done
	default:
		return min(99, j.Done+int(time.Duration(100-j.Done)*now.Sub(j.Resumed)/whole))
	}
}

// Tasks are the tasks of a BMC, oldest first, and how long it remembers them.
type Tasks struct {
	Next      uint64         `json:"next"` // ID of the next task
	List      []Task         `json:"list"`
	Retention *TaskRetention `json:"keep,omitempty"` // nil: as the Spec says
}

// TaskRetention is how long a BMC remembers tasks.
type TaskRetention struct {
	Ended     time.Duration `json:"ended"` // a task, after its end; 0: until others need its room
	Delivered time.Duration `json:"heard"` // the answer for who waits, after it was told
}

// All are the tasks, oldest first; nil Tasks has none.
func (j *Tasks) All() []Task {
	if j == nil {
		return nil
	}
	return j.List
}

// maxTasks bounds how many tasks a BMC remembers; of those that have ended the
// oldest goes first.
const maxTasks = 100

// keep is how long tasks are remembered.
func (b *BMC) keep() TaskRetention {
	if j := b.st.Tasks; j != nil && j.Retention != nil {
		return *j.Retention
	}
	return b.spec.TaskRetention
}

// task is the task with an ID.
func (b *BMC) task(id string) (Task, bool) {
	for _, j := range b.st.Tasks.All() {
		if j.ID == id {
			return j, true
		}
	}
	return Task{}, false
}

// forkTasks is a copy of the tasks that a step may write and put in place.
func (b *BMC) forkTasks() *Tasks {
	if b.st.Tasks == nil {
		return &Tasks{Next: 1}
	}
	j := *b.st.Tasks
	j.List = slices.Clone(j.List)
	return &j
}

// change changes a task that has not ended, and tells it; nil when there is
// none.
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

// forget forgets tasks.
func (b *BMC) forget(which func(*Task) bool) {
	if !slices.ContainsFunc(b.st.Tasks.All(), func(j Task) bool { return which(&j) }) {
		return
	}
	j := b.forkTasks()
	j.List = slices.DeleteFunc(j.List, func(j Task) bool { return which(&j) })
	b.st.Tasks = j
}

// outlives notes that the machine does the work of a task.
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

// rest stops a task's progress where it is.
func (j *Task) rest(now time.Time) { j.Done, j.Resumed = j.Percent(now), time.Time{} }

// running, waiting, paused, told and done are what the doers of tasks tell.
func (b *BMC) running(ev event.TaskRunning) []Event {
	return b.change(ev.Task, ev.At, func(j *Task) {
		if j.Begun.IsZero() {
			j.Begun = ev.At
		}
		j.rest(ev.At)
		j.State, j.Resumed, j.Until = TaskRunning, ev.At, ev.Until
	})
}

func (b *BMC) waiting(ev event.TaskWaiting) []Event {
	return b.change(ev.Task, ev.At, func(j *Task) { j.State = TaskPending })
}

func (b *BMC) paused(ev event.TaskPaused) []Event {
	return b.change(ev.Task, ev.At, func(j *Task) {
		j.rest(ev.At)
		j.State = TaskSuspended
	})
}

func (b *BMC) told(ev event.TaskMessage) []Event {
	return b.change(ev.Task, ev.Time(), func(j *Task) { j.Messages = append(slices.Clip(j.Messages), ev.Note) })
}

func (b *BMC) done(ev event.TaskDone) []Event {
	return b.change(ev.Task, ev.At, func(j *Task) {
		j.rest(ev.At)
		j.Ended, j.Fault, j.Made, j.Messages = ev.At, ev.Fault, ev.Made, append(slices.Clip(j.Messages), ev.Messages...)
		switch {
		case ev.Cancelled:
			// Nobody waits any longer: the client knows (DSP2046,
			// TaskService.TaskMonitorAutoExpirySeconds).
			j.State, j.Closed = TaskCancelled, true
		case ev.Fault != "":
			j.State = TaskException
		default:
			j.State = TaskCompleted
		}
	})
}

// TaskOpened tells the task that OpenTask made.
type TaskOpened struct {
	At   time.Time
	Task Task
}

// TaskChanged tells a task whose state is another one.
type TaskChanged struct {
	At   time.Time
	Task Task
}

// Time implements Event.
func (e TaskOpened) Time() time.Time { return e.At }

// Time implements Event.
func (e TaskChanged) Time() time.Time { return e.At }
