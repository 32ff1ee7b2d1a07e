package bmc

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Work is work that the BMC itself does for a task, until the task's Until.
type Work struct {
	Do workKind `json:"do"`
	In LogName  `json:"in,omitempty"`
}

// workKind is a kind of work. Values are stored.
type workKind string

const collecting workKind = "collect"

// finishWork holds the function that ends each kind of work.
var finishWork = map[workKind]func(b *BMC, now time.Time, j Task) event.TaskDone{
	collecting: (*BMC).collected,
}

// beginWork opens a task for the BMC's own work.
func (b *BMC) beginWork(now time.Time, o OpenTask, w Work, lasts time.Duration) ([]Event, error) {
	o.work = &w
	opened, err := o.apply(b, now)
	if err != nil {
		return nil, err
	}
	id := opened[0].(TaskOpened).Task.ID
	return append(opened, b.taskRunning(event.TaskRunning{At: now, Task: id, Until: now.Add(lasts)})...), nil
}

// workDue returns when the BMC's own work next ends; zero: there is none.
func (b *BMC) workDue() (first time.Time) {
	for _, j := range b.st.Tasks.All() {
		if j.Work != nil && j.State == TaskRunning {
			first = earlier(first, j.Until)
		}
	}
	return first
}

// work ends the BMC's own work that is due.
func (b *BMC) work(now time.Time) []Event {
	var evs []Event
	for _, j := range b.st.Tasks.All() {
		if j.Work == nil || j.State != TaskRunning || now.Before(j.Until) {
			continue
		}
		done := event.TaskDone{At: j.Until, Task: j.ID, Fault: "this release does not know how"}
		if end, ok := finishWork[j.Work.Do]; ok {
			done = end(b, j.Until, j)
		}
		evs = append(evs, b.taskDone(done)...)
	}
	return evs
}
