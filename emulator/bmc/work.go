package bmc

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Work is what the BMC itself does for a job, until the job's time.
type Work struct {
	Do workKind `json:"do"`
	In LogName  `json:"in,omitempty"`
}

// workKind is a kind of work. Values are stored.
type workKind string

const collecting workKind = "collect"

// works are the ends of all kinds of work.
var works = map[workKind]func(b *BMC, now time.Time, j Task) event.TaskDone{
	collecting: (*BMC).collected,
}

// begin opens a job for work that the BMC itself does.
func (b *BMC) begin(now time.Time, o OpenTask, w Work, lasts time.Duration) ([]Event, error) {
	o.work = &w
	opened, err := o.apply(b, now)
	if err != nil {
		return nil, err
	}
	id := opened[0].(TaskOpened).Task.ID
	return append(opened, b.running(event.TaskRunning{At: now, Task: id, Until: now.Add(lasts)})...), nil
}

// nextOfWork is when the BMC's own work is next done; zero when it does none.
func (b *BMC) nextOfWork() (first time.Time) {
	for _, j := range b.st.Tasks.All() {
		if j.Work != nil && j.State == TaskRunning {
			first = sooner(first, j.Until)
		}
	}
	return first
}

// work ends the BMC's own work that is done.
func (b *BMC) work(now time.Time) []Event {
	var evs []Event
	for _, j := range b.st.Tasks.All() {
		if j.Work == nil || j.State != TaskRunning || now.Before(j.Until) {
			continue
		}
		done := event.TaskDone{At: j.Until, Task: j.ID, Fault: "this release does not know how"}
		if end, ok := works[j.Work.Do]; ok {
			done = end(b, j.Until, j)
		}
		evs = append(evs, b.done(done)...)
	}
	return evs
}
