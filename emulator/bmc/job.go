package bmc

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ErrTooManyJobs means that the maximum number of jobs is waiting.
var ErrTooManyJobs = errors.New("bmc: too many jobs")

// Jobs are requests that the BMC executes later, oldest first.
type Jobs struct {
	Next uint64 `json:"next"` // ID of the next job
	List []Job  `json:"list"`
}

// Job is a request that is executed later, once or repeatedly (DSP2046, Job).
type Job struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	User    string    `json:"user"`    // account name of its creator, as whom it is executed
	Account string    `json:"account"` // its ID
	Created time.Time `json:"created"`
	Method  string    `json:"method"`
	Target  string    `json:"target"`
	Body    string    `json:"body,omitempty"` // may hold secrets; never shown

	Due            time.Time     `json:"due,omitzero"` // next execution; zero: none
	Interval       time.Duration `json:"every,omitempty"`
	MaxOccurrences int           `json:"most,omitempty"`  // maximum executions; 0: no limit
	NotAfter       time.Time     `json:"last,omitzero"`   // no execution after that; zero: no limit
	Occurrences    int           `json:"times,omitempty"` // executions begun

	State  TaskState `json:"state"`
	Begun  time.Time `json:"begun,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	Status int       `json:"status,omitempty"` // HTTP status of the last execution
}

// All returns the jobs; nil Jobs has none.
func (p *Jobs) All() []Job {
	if p == nil {
		return nil
	}
	return p.List
}

// maxJobs is the maximum number of jobs; ended ones are dropped first, oldest
// first.
const maxJobs = 32

// CreateJob schedules a request. The event JobCreated reports its ID.
type CreateJob struct{ Job Job }

func (c CreateJob) apply(b *BMC, now time.Time) ([]Event, error) {
	p := b.forkJobs()
	if len(p.List) >= maxJobs {
		i := slices.IndexFunc(p.List, func(p Job) bool { return p.State.Ended() })
		if i < 0 {
			return nil, fmt.Errorf("%w: %d", ErrTooManyJobs, len(p.List))
		}
		p.List = slices.Delete(p.List, i, i+1)
	}
	job := c.Job
	job.ID, job.Created, job.State = strconv.FormatUint(p.Next, 10), now, TaskPending
	if job.Due.Before(now) {
		job.Due = now
	}
	p.Next++
	p.List = append(p.List, job)
	b.st.Jobs = p
	return append([]Event{JobCreated{At: now, ID: job.ID}}, b.carryOut(now)...), nil
}

// EndJob reports the result of a job's execution.
type EndJob struct {
	ID     string
	Status int // HTTP status
}

func (c EndJob) apply(b *BMC, now time.Time) ([]Event, error) {
	return nil, b.changeJob(c.ID, func(p *Job) {
		p.Status = c.Status
		switch {
		case p.State != TaskRunning:
		case !p.Due.IsZero():
			p.State = TaskPending
		case c.Status >= 400 || c.Status == 0:
			p.State, p.Ended = TaskException, now
		default:
			p.State, p.Ended = TaskCompleted, now
		}
	})
}

// CancelJob cancels a job's further executions.
type CancelJob struct{ ID string }

func (c CancelJob) apply(b *BMC, now time.Time) ([]Event, error) {
	for _, p := range b.st.Jobs.All() {
		if p.ID == c.ID && p.State.Ended() {
			return nil, fmt.Errorf("%w: job %s", ErrEnded, c.ID)
		}
	}
	return nil, b.changeJob(c.ID, func(p *Job) { p.State, p.Due, p.Ended = TaskCancelled, time.Time{}, now })
}

// CancelJobs cancels all jobs.
type CancelJobs struct{}

func (CancelJobs) apply(b *BMC, now time.Time) ([]Event, error) {
	for _, p := range b.st.Jobs.All() {
		if p.State.Ended() {
			continue
		}
		if _, err := (CancelJob{p.ID}).apply(b, now); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// DeleteJob deletes a job.
type DeleteJob struct{ ID string }

func (c DeleteJob) apply(b *BMC, _ time.Time) ([]Event, error) {
	p := b.forkJobs()
	n := len(p.List)
	p.List = slices.DeleteFunc(p.List, func(p Job) bool { return p.ID == c.ID })
	if len(p.List) == n {
		return nil, fmt.Errorf("%w: job %s", ErrNotFound, c.ID)
	}
	b.st.Jobs = p
	return nil, nil
}

// forkJobs returns a copy that a step may change, and stores it.
func (b *BMC) forkJobs() *Jobs {
	if b.st.Jobs == nil {
		return &Jobs{Next: 1}
	}
	p := *b.st.Jobs
	p.List = slices.Clone(p.List)
	return &p
}

func (b *BMC) changeJob(id string, how func(*Job)) error {
	p := b.forkJobs()
	i := slices.IndexFunc(p.List, func(p Job) bool { return p.ID == id })
	if i < 0 {
		return fmt.Errorf("%w: job %s", ErrNotFound, id)
	}
	how(&p.List[i])
	b.st.Jobs = p
	return nil
}

// jobsDue is nextJobDeadlines while the BMC is up.
func (b *BMC) jobsDue() (once, again time.Time) {
	if !b.st.Life.Serves() {
		return once, again
	}
	return b.nextJobDeadlines()
}

// nextJobDeadlines returns when a job is next due: of the jobs that are
// executed once, which somebody waits for, and of the others.
func (b *BMC) nextJobDeadlines() (once, again time.Time) {
	for _, p := range b.st.Jobs.All() {
		switch {
		case p.Due.IsZero() || p.State != TaskPending:
		case p.Interval > 0:
			again = earlier(again, p.Due)
		default:
			once = earlier(once, p.Due)
		}
	}
	return once, again
}

// carryOut starts the jobs that are due. A BMC that was down catches up, with
// one execution per job.
func (b *BMC) carryOut(now time.Time) []Event {
	if !b.st.Life.Serves() {
		return nil
	}
	var evs []Event
	for _, p := range b.st.Jobs.All() {
		if p.State != TaskPending || p.Due.IsZero() || now.Before(p.Due) {
			continue
		}
		// The job exists, so that the error can be ignored.
		_ = b.changeJob(p.ID, func(p *Job) {
			p.State, p.Begun = TaskRunning, now
			p.Occurrences++
			next := time.Time{}
			if p.Interval > 0 && (p.MaxOccurrences == 0 || p.Occurrences < p.MaxOccurrences) {
				next = p.Due.Add(p.Interval)
				for !next.After(now) {
					next = next.Add(p.Interval)
				}
			}
			if !p.NotAfter.IsZero() && next.After(p.NotAfter) {
				next = time.Time{}
			}
			p.Due = next
		})
		evs = append(evs, JobDue{At: now, Job: p})
	}
	return evs
}

// endJobs ends jobs whose execution was interrupted by a restart: how far they
// came is unknown, so they are not repeated.
func (b *BMC) endJobs(now time.Time) {
	for _, p := range b.st.Jobs.All() {
		if p.State == TaskRunning {
			_, _ = EndJob{ID: p.ID}.apply(b, now) // the job exists
		}
	}
}

// JobCreated reports the ID of a new job.
type JobCreated struct {
	At time.Time
	ID string
}

// JobDue asks for a job to be executed; EndJob answers it.
type JobDue struct {
	At  time.Time
	Job Job
}

// Time implements Event.
func (e JobCreated) Time() time.Time { return e.At }

// Time implements Event.
func (e JobDue) Time() time.Time { return e.At }
