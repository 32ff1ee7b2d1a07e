package bmc

import (
	"errors"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Errors of jobs.
var (
	// ErrJobs means that as many jobs are under way as the BMC can remember.
	ErrJobs = errors.New("bmc: too many jobs are under way")
	// ErrUnderWay means that a job has not ended, and ErrEnded that it has.
	ErrUnderWay = errors.New("bmc: the job is under way")
	ErrEnded    = errors.New("bmc: the job has ended")
)

// JobState is how far a job is; the values are Redfish's TaskState (DSP2046,
// Task.TaskState).
type JobState string

// The states of a job.
const (
	JobNew         JobState = "New"     // nothing done yet
	JobPending     JobState = "Pending" // waits for something else to happen
	JobRunning     JobState = "Running"
	JobSuspended   JobState = "Suspended"   // its work rests, and will go on
	JobInterrupted JobState = "Interrupted" // so it does, because the BMC restarts
	JobCancelling  JobState = "Cancelling"  // it is being stopped
	JobCompleted   JobState = "Completed"
	JobException   JobState = "Exception" // ended with a fault
	JobCancelled   JobState = "Cancelled"
)

// Ended tells whether nothing more will come of a job.
func (s JobState) Ended() bool { return s == JobCompleted || s == JobException || s == JobCancelled }

// Job is work that goes on after the request that asked for it was answered.
type Job struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // for people: "Initialize volume 1"
	State   JobState  `json:"state"`
	User    string    `json:"user,omitempty"`    // name of the account that asked
	Account string    `json:"account,omitempty"` // its ID
	Created time.Time `json:"created"`
	Begun   time.Time `json:"begun,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`

	// Since Resumed the job runs, was Done percent done then, and is expected
	// to end at Until.
	Resumed time.Time `json:"resumed,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Done    int       `json:"done,omitempty"`

	Fault string         `json:"fault,omitempty"` // why it failed, for people
	Made  *event.Subject `json:"made,omitempty"`  // what it has made
	Told  []event.Note   `json:"told,omitempty"`  // to whoever waits for its end
	// Result is what the operation answers who waits, once it has ended; "" is
	// nothing of its own.
	Result string `json:"result,omitempty"`

	Work *Work `json:"work,omitempty"` // that the BMC itself does; nil: others do
	// Outlives says that the machine does the work, which a restart of the BMC
	// does not end.
	Outlives bool `json:"outlives,omitempty"`
	// Steps says that it has several parts, and is done when all are.
	Steps   bool      `json:"steps,omitempty"`
	Request Request   `json:"request"`
	Heard   time.Time `json:"heard,omitzero"`   // when its end was first told to who waits for it
	Closed  bool      `json:"closed,omitempty"` // and it is not told any longer
}

// Request is what asked for a job, without secrets.
type Request struct {
	Method string `json:"method,omitempty"`
	Target string `json:"target,omitempty"` // URI
	Body   string `json:"body,omitempty"`   // JSON
	Hidden bool   `json:"hidden,omitempty"` // it held secrets, and is not shown
}

// Percent is how much of a job is done at a time, 0 to 100. It never falls.
func (j *Job) Percent(now time.Time) int {
	switch whole := j.Until.Sub(j.Resumed); {
	case j.State == JobCompleted:
		return 100
	case j.State != JobRunning || whole <= 0 || now.Before(j.Resumed):
		return j.Done
	default:
		return min(99, j.Done+int(time.Duration(100-j.Done)*now.Sub(j.Resumed)/whole))
	}
}

// Jobs are the jobs of a BMC, oldest first, and how long it remembers them.
type Jobs struct {
	Next uint64 `json:"next"` // ID of the next job
	List []Job  `json:"list"`
	Keep *Keep  `json:"keep,omitempty"` // nil: as the Spec says
}

// Keep is how long a BMC remembers jobs.
type Keep struct {
	Ended time.Duration `json:"ended"` // a job, after its end; 0: until others need its room
	Heard time.Duration `json:"heard"` // the answer for who waits, after it was told
}

// All are the jobs, oldest first; nil Jobs has none.
func (j *Jobs) All() []Job {
	if j == nil {
		return nil
	}
	return j.List
}

// maxJobs bounds how many jobs a BMC remembers; of those that have ended the
// oldest goes first.
const maxJobs = 100

// keep is how long jobs are remembered.
func (b *BMC) keep() Keep {
	if j := b.st.Jobs; j != nil && j.Keep != nil {
		return *j.Keep
	}
	return b.spec.Keep
}

// job is the job with an ID.
func (b *BMC) job(id string) (Job, bool) {
	for _, j := range b.st.Jobs.All() {
		if j.ID == id {
			return j, true
		}
	}
	return Job{}, false
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

// change changes a job that has not ended, and tells it; nil when there is
// none.
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

// forget forgets jobs.
func (b *BMC) forget(which func(*Job) bool) {
	if !slices.ContainsFunc(b.st.Jobs.All(), func(j Job) bool { return which(&j) }) {
		return
	}
	j := b.forkJobs()
	j.List = slices.DeleteFunc(j.List, func(j Job) bool { return which(&j) })
	b.st.Jobs = j
}

// outlives notes that the machine does the work of a job.
func (b *BMC) outlives(id string) {
	if j, ok := b.job(id); !ok || j.Outlives {
		return
	}
	j := b.forkJobs()
	for i := range j.List {
		j.List[i].Outlives = j.List[i].Outlives || j.List[i].ID == id
	}
	b.st.Jobs = j
}

// rest stops a job's progress where it is.
func (j *Job) rest(now time.Time) { j.Done, j.Resumed = j.Percent(now), time.Time{} }

// running, waiting, paused, told and done are what the doers of jobs tell.
func (b *BMC) running(ev event.Running) []Event {
	return b.change(ev.Job, ev.At, func(j *Job) {
		if j.Begun.IsZero() {
			j.Begun = ev.At
		}
		j.rest(ev.At)
		j.State, j.Resumed, j.Until = JobRunning, ev.At, ev.Until
	})
}

func (b *BMC) waiting(ev event.Waiting) []Event {
	return b.change(ev.Job, ev.At, func(j *Job) { j.State = JobPending })
}

func (b *BMC) paused(ev event.Paused) []Event {
	return b.change(ev.Job, ev.At, func(j *Job) {
		j.rest(ev.At)
		j.State = JobSuspended
	})
}

func (b *BMC) told(ev event.Told) []Event {
	return b.change(ev.Job, ev.Time(), func(j *Job) { j.Told = append(slices.Clip(j.Told), ev.Note) })
}

func (b *BMC) done(ev event.Done) []Event {
	return b.change(ev.Job, ev.At, func(j *Job) {
		j.rest(ev.At)
		j.Ended, j.Fault, j.Made, j.Told = ev.At, ev.Fault, ev.Made, append(slices.Clip(j.Told), ev.Told...)
		switch {
		case ev.Cancelled:
			// Nobody waits any longer: the client knows (DSP2046,
			// TaskService.TaskMonitorAutoExpirySeconds).
			j.State, j.Closed = JobCancelled, true
		case ev.Fault != "":
			j.State = JobException
		default:
			j.State = JobCompleted
		}
	})
}

// JobOpened tells the job that OpenJob made.
type JobOpened struct {
	At  time.Time
	Job Job
}

// JobChanged tells a job whose state is another one.
type JobChanged struct {
	At  time.Time
	Job Job
}

// Time implements Event.
func (e JobOpened) Time() time.Time { return e.At }

// Time implements Event.
func (e JobChanged) Time() time.Time { return e.At }
