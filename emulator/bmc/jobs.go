package bmc

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// OpenJob makes a job. The event JobOpened tells its ID.
type OpenJob struct {
	Name    string
	User    string // name of the account that asks
	Account string // its ID
	Request Request
	Lasts   time.Duration // as far as who asks knows; 0: nobody does
	Steps   bool          // what joins it ends with it, and it not before that
	work    *Work         // that the BMC itself does
}

// Until is when the job is expected to end that begins at a time; zero when
// nobody knows.
func (c OpenJob) Until(at time.Time) time.Time {
	if c.Lasts <= 0 {
		return time.Time{}
	}
	return at.Add(c.Lasts)
}

func (c OpenJob) apply(b *BMC, now time.Time) ([]Event, error) {
	j := b.forkJobs()
	if len(j.List) >= maxJobs {
		i := slices.IndexFunc(j.List, func(j Job) bool { return j.State.Ended() })
		if i < 0 {
			return nil, fmt.Errorf("%w: %d", ErrJobs, len(j.List))
		}
		j.List = slices.Delete(j.List, i, i+1)
	}
	job := Job{
		ID: strconv.FormatUint(j.Next, 10), Name: c.Name, State: JobNew,
		User: c.User, Account: c.Account, Created: now, Request: c.Request, Work: c.work, Steps: c.Steps,
	}
	j.Next++
	j.List = append(j.List, job)
	b.st.Jobs = j
	return []Event{JobOpened{At: now, Job: job}}, nil
}

// RunJob tells that work has begun which no model does. Until may be zero when
// nobody knows.
type RunJob struct {
	ID    string
	Until time.Time
}

func (c RunJob) apply(b *BMC, now time.Time) ([]Event, error) {
	return b.found(c.ID, b.running(event.Running{At: now, Job: c.ID, Until: c.Until}))
}

// maxResult bounds what a job answers, in bytes.
const maxResult = 256 << 10

// CloseJob ends a job whose work no model does.
type CloseJob struct {
	ID        string
	Fault     string // for people, lower case; "" when it went well
	Cancelled bool
	Made      *event.Subject
	Told      []event.Note
	Result    string // Job.Result
}

func (c CloseJob) apply(b *BMC, now time.Time) ([]Event, error) {
	if len(c.Result) > maxResult {
		c.Result, c.Fault = "", fmt.Sprintf("its result has %d bytes, and can have %d", len(c.Result), maxResult)
	}
	if c.Result != "" {
		b.change(c.ID, now, func(j *Job) { j.Result = c.Result }) // told with its end
	}
	return b.found(c.ID, b.done(event.Done{
		At: now, Job: c.ID, Fault: c.Fault, Cancelled: c.Cancelled, Made: c.Made, Told: c.Told,
	}))
}

// CancelJob ends a job that was not begun, or whose work is the BMC's own. One that runs is Cancelling from
// then on; whoever does its work sees that and closes it.
type CancelJob struct{ ID string }

func (c CancelJob) apply(b *BMC, now time.Time) ([]Event, error) {
	j, ok := b.job(c.ID)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: job %s", ErrNotFound, c.ID)
	case j.State.Ended():
		return nil, fmt.Errorf("%w: %s", ErrEnded, c.ID)
	case j.State == JobNew || j.State == JobPending || j.Work != nil:
		return b.done(event.Done{At: now, Job: c.ID, Cancelled: true}), nil
	}
	return b.change(c.ID, now, func(j *Job) {
		j.rest(now)
		j.State = JobCancelling
	}), nil
}

// ForgetJob forgets a job that has ended.
type ForgetJob struct{ ID string }

func (c ForgetJob) apply(b *BMC, _ time.Time) ([]Event, error) {
	j, ok := b.job(c.ID)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: job %s", ErrNotFound, c.ID)
	case !j.State.Ended():
		return nil, fmt.Errorf("%w: %s", ErrUnderWay, c.ID)
	}
	b.forget(func(j *Job) bool { return j.ID == c.ID })
	return nil, nil
}

// ForgetJobs forgets all jobs that have ended.
type ForgetJobs struct{}

func (ForgetJobs) apply(b *BMC, _ time.Time) ([]Event, error) {
	b.forget(func(j *Job) bool { return j.State.Ended() })
	return nil, nil
}

// HearJob tells that somebody was told how a job ended. With Now, nobody else
// will be.
type HearJob struct {
	ID  string
	Now bool
}

func (c HearJob) apply(b *BMC, now time.Time) ([]Event, error) {
	j, ok := b.job(c.ID)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: job %s", ErrNotFound, c.ID)
	case !j.State.Ended():
		return nil, fmt.Errorf("%w: %s", ErrUnderWay, c.ID)
	case j.Closed || !j.Heard.IsZero() && !c.Now:
		return nil, nil
	}
	all := b.forkJobs()
	for i := range all.List {
		if j := &all.List[i]; j.ID == c.ID {
			j.Heard = now
			j.Closed = c.Now || b.keep().Heard == 0
		}
	}
	b.st.Jobs = all
	return nil, nil
}

// SetKeep sets how long jobs are remembered.
type SetKeep struct{ Keep }

func (c SetKeep) apply(b *BMC, _ time.Time) ([]Event, error) {
	j := b.forkJobs()
	j.Keep = &c.Keep
	b.st.Jobs = j
	return nil, nil
}

// Orphans ends the jobs whose work has stopped with whoever did it: the lab, or
// the BMC, has come up again. Works tells which jobs' work goes on.
type Orphans struct{ Works func(job string) bool }

func (c Orphans) apply(b *BMC, now time.Time) ([]Event, error) {
	var evs []Event
	b.endPlans(now)
	for _, j := range b.st.Jobs.All() {
		switch {
		case j.State.Ended() || j.Work != nil:
		case !c.Works(j.ID):
			evs = append(evs, b.done(event.Done{
				At: now, Job: j.ID, Fault: "it was interrupted by a restart", Cancelled: j.State == JobCancelling,
			})...)
		case j.State == JobInterrupted:
			evs = append(evs, b.running(event.Running{At: now, Job: j.ID, Until: j.Until})...)
		}
	}
	return evs, nil
}

// found is what was told of a job, or that there is none that is under way.
func (b *BMC) found(id string, evs []Event) ([]Event, error) {
	if evs == nil {
		return nil, fmt.Errorf("%w: job %s that is under way", ErrNotFound, id)
	}
	return evs, nil
}

// nextOfJobs is when time next changes something about jobs; zero when it does
// not.
func (b *BMC) nextOfJobs() (first time.Time) {
	keep := b.keep()
	for _, j := range b.st.Jobs.All() {
		if !j.State.Ended() {
			continue
		}
		if keep.Ended > 0 {
			first = sooner(first, j.Ended.Add(keep.Ended))
		}
		if !j.Closed && !j.Heard.IsZero() {
			first = sooner(first, j.Heard.Add(keep.Heard))
		}
	}
	return first
}

// ageJobs forgets what need not be remembered any longer.
func (b *BMC) ageJobs(now time.Time) {
	keep := b.keep()
	if keep.Ended > 0 {
		b.forget(func(j *Job) bool { return j.State.Ended() && !now.Before(j.Ended.Add(keep.Ended)) })
	}
	expired := func(j Job) bool { return !j.Closed && !j.Heard.IsZero() && !now.Before(j.Heard.Add(keep.Heard)) }
	if !slices.ContainsFunc(b.st.Jobs.All(), expired) {
		return
	}
	all := b.forkJobs()
	for i := range all.List {
		all.List[i].Closed = all.List[i].Closed || expired(all.List[i])
	}
	b.st.Jobs = all
}

// sooner is the first of two times, of which zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
