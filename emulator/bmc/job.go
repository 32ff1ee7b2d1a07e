package bmc

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ErrTooManyJobs means that as many jobs wait as the BMC remembers.
var ErrTooManyJobs = errors.New("bmc: too many jobs")

// Jobs are requests that a BMC shall carry out later, oldest first.
type Jobs struct {
	Next uint64 `json:"next"` // ID of the next job
	List []Job  `json:"list"`
}

// Job is a request that somebody wants to be carried out later, once or again
// and again.
type Job struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	User    string    `json:"user"`    // name of the account in whose name it is carried out
	Account string    `json:"account"` // its ID
	Created time.Time `json:"created"`
	Method  string    `json:"method"`
	Target  string    `json:"target"`
	Body    string    `json:"body,omitempty"` // whole: it may hold secrets, and is not shown

	Due            time.Time     `json:"due,omitzero"` // when it is carried out next; zero: not any more
	Interval       time.Duration `json:"every,omitempty"`
	MaxOccurrences int           `json:"most,omitempty"`  // times at most; 0: any
	NotAfter       time.Time     `json:"last,omitzero"`   // no time after that; zero: any
	Occurrences    int           `json:"times,omitempty"` // that it was begun

	State  TaskState `json:"state"`
	Begun  time.Time `json:"begun,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	Status int       `json:"status,omitempty"` // of HTTP that it was answered last
}

// All are the jobs; nil Jobs has none.
func (p *Jobs) All() []Job {
	if p == nil {
		return nil
	}
	return p.List
}

// maxJobs bounds the jobs; of those that have ended the oldest goes first.
const maxJobs = 32

// CreateJob has a request carried out later. The event JobCreated tells its ID.
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

// EndJob tells how a job was answered that was due.
type EndJob struct {
	ID     string
	Status int // of HTTP
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

// CancelJob keeps a job from being carried out any more.
type CancelJob struct{ ID string }

func (c CancelJob) apply(b *BMC, now time.Time) ([]Event, error) {
	for _, p := range b.st.Jobs.All() {
		if p.ID == c.ID && p.State.Ended() {
			return nil, fmt.Errorf("%w: job %s", ErrEnded, c.ID)
		}
	}
	return nil, b.changeJob(c.ID, func(p *Job) { p.State, p.Due, p.Ended = TaskCancelled, time.Time{}, now })
}

// CancelJobs does so with all.
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

// DeleteJob forgets a job, whether it was carried out or not.
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

// forkJobs is a copy of the jobs that a step may write and put in place.
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

// jobsDue is nextJobDeadlines of a BMC that can carry them out.
func (b *BMC) jobsDue() (once, again time.Time) {
	if !b.st.Life.Serves() {
		return once, again
	}
	return b.nextJobDeadlines()
}

// nextJobDeadlines is when a job is next due: of those that are carried out once,
// for which somebody waits, and of the others.
func (b *BMC) nextJobDeadlines() (once, again time.Time) {
	for _, p := range b.st.Jobs.All() {
		switch {
		case p.Due.IsZero() || p.State != TaskPending:
		case p.Interval > 0:
			again = sooner(again, p.Due)
		default:
			once = sooner(once, p.Due)
		}
	}
	return once, again
}

// carryOut begins what is due. A BMC that is down then makes up for it when it
// is up; what would have been due several times is done once.
func (b *BMC) carryOut(now time.Time) []Event {
	if !b.st.Life.Serves() {
		return nil
	}
	var evs []Event
	for _, p := range b.st.Jobs.All() {
		if p.State != TaskPending || p.Due.IsZero() || now.Before(p.Due) {
			continue
		}
		// It is there: what comes back is about nothing else.
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

// endJobs ends what was being carried out when whoever did it stopped: it is
// not known how far that came, so it is not done again.
func (b *BMC) endJobs(now time.Time) {
	for _, p := range b.st.Jobs.All() {
		if p.State == TaskRunning {
			_, _ = EndJob{ID: p.ID}.apply(b, now) // it is there
		}
	}
}

// JobCreated tells the job that CreateJob made.
type JobCreated struct {
	At time.Time
	ID string
}

// JobDue asks for a job to be carried out; EndJob answers it.
type JobDue struct {
	At  time.Time
	Job Job
}

// Time implements Event.
func (e JobCreated) Time() time.Time { return e.At }

// Time implements Event.
func (e JobDue) Time() time.Time { return e.At }
