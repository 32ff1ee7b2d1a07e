package bmc

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// JobState is how far a job is; the values are Redfish's TaskState (DSP2046,
// Task.TaskState).
type JobState string

// The states of a job.
const (
	JobNew       JobState = "New" // nothing done yet
	JobPending   JobState = "Pending"
	JobRunning   JobState = "Running"
	JobCompleted JobState = "Completed"
	JobException JobState = "Exception" // ended with a fault
	JobCancelled JobState = "Cancelled"
)

// Ended tells whether nothing more will come of a job.
func (s JobState) Ended() bool { return s == JobCompleted || s == JobException || s == JobCancelled }

// Job is work that goes on after the request that asked for it was answered.
type Job struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // for people: "Initialize volume 1"
	State   JobState  `json:"state"`
	User    string    `json:"user,omitempty"` // name of the account that asked
	Created time.Time `json:"created"`
	Started time.Time `json:"started,omitzero"`
	Until   time.Time `json:"until,omitzero"` // when it is expected to end
	Ended   time.Time `json:"ended,omitzero"`
	Fault   string    `json:"fault,omitempty"` // why it failed, for people
	Request Request   `json:"request"`
}

// Request is what asked for a job, without secrets.
type Request struct {
	Method string `json:"method,omitempty"`
	Target string `json:"target,omitempty"` // URI
	Body   string `json:"body,omitempty"`   // JSON
}

// Percent is how much of a job is done at a time, 0 to 100.
func (j *Job) Percent(now time.Time) int {
	switch whole := j.Until.Sub(j.Started); {
	case j.State == JobCompleted:
		return 100
	case j.State != JobRunning || whole <= 0 || now.Before(j.Started):
		return 0
	default:
		return min(99, int(100*now.Sub(j.Started)/whole))
	}
}

// Jobs are the jobs of a BMC, oldest first.
type Jobs struct {
	Next uint64 `json:"next"` // ID of the next job
	List []Job  `json:"list"`
}

// All are the jobs, oldest first; nil Jobs has none.
func (j *Jobs) All() []Job {
	if j == nil {
		return nil
	}
	return j.List
}

// maxJobs bounds how many jobs a BMC remembers; those that ended first go first.
const maxJobs = 100

// OpenJob makes a job. The event JobOpened tells its ID.
type OpenJob struct {
	Name    string
	User    string
	Request Request
}

func (c OpenJob) apply(b *BMC, now time.Time) ([]Event, error) {
	j := b.forkJobs()
	if len(j.List) >= maxJobs {
		i := slices.IndexFunc(j.List, func(j Job) bool { return j.State.Ended() })
		if i < 0 {
			return nil, fmt.Errorf("%w: %d jobs are under way", ErrFull, len(j.List))
		}
		j.List = slices.Delete(j.List, i, i+1)
	}
	job := Job{
		ID: strconv.FormatUint(j.Next, 10), Name: c.Name, State: JobNew, User: c.User, Created: now, Request: c.Request,
	}
	j.Next++
	j.List = append(j.List, job)
	b.st.Jobs = j
	return []Event{JobOpened{At: now, Job: job}}, nil
}

// CloseJob ends a job whose work no machine does; Fault is "" when it went
// well.
type CloseJob struct{ ID, Fault string }

func (c CloseJob) apply(b *BMC, now time.Time) ([]Event, error) {
	evs := b.done(event.Done{At: now, Job: c.ID, Fault: c.Fault})
	if evs == nil {
		return nil, fmt.Errorf("%w: job %s that is under way", ErrNotFound, c.ID)
	}
	return evs, nil
}

// forkJobs is a copy of the jobs that a step may write and put in place.
func (b *BMC) forkJobs() *Jobs {
	if b.st.Jobs == nil {
		return &Jobs{Next: 1}
	}
	j := *b.st.Jobs
	j.List = slices.Clone(j.List)
	return &j
}

// change changes a job that has not ended, and tells it.
func (b *BMC) change(id string, at time.Time, how func(*Job)) []Event {
	j := b.forkJobs()
	i := slices.IndexFunc(j.List, func(j Job) bool { return j.ID == id && !j.State.Ended() })
	if i < 0 {
		return nil
	}
	how(&j.List[i])
	b.st.Jobs = j
	return []Event{JobChanged{At: at, Job: j.List[i]}}
}

func (b *BMC) running(ev event.Running) []Event {
	return b.change(ev.Job, ev.At, func(j *Job) {
		j.State, j.Started, j.Until = JobRunning, ev.At, ev.Until
	})
}

func (b *BMC) done(ev event.Done) []Event {
	return b.change(ev.Job, ev.At, func(j *Job) {
		j.State, j.Ended, j.Fault = JobCompleted, ev.At, ev.Fault
		if ev.Fault != "" {
			j.State = JobException
		}
	})
}

// JobOpened tells the job that OpenJob made.
type JobOpened struct {
	At  time.Time
	Job Job
}

// JobChanged tells a job that has begun or ended.
type JobChanged struct {
	At  time.Time
	Job Job
}

// Time implements Event.
func (e JobOpened) Time() time.Time { return e.At }

// Time implements Event.
func (e JobChanged) Time() time.Time { return e.At }
