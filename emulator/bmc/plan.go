package bmc

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ErrPlans means that as many plans wait as the BMC remembers.
var ErrPlans = errors.New("bmc: too many plans")

// Plans are requests that a BMC shall carry out later, oldest first.
type Plans struct {
	Next uint64 `json:"next"` // ID of the next plan
	List []Plan `json:"list"`
}

// Plan is a request that somebody wants to be carried out later, once or again
// and again.
type Plan struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	User    string    `json:"user"`    // name of the account in whose name it is carried out
	Account string    `json:"account"` // its ID
	Created time.Time `json:"created"`
	Method  string    `json:"method"`
	Target  string    `json:"target"`
	Body    string    `json:"body,omitempty"` // whole: it may hold secrets, and is not shown

	Due   time.Time     `json:"due,omitzero"` // when it is carried out next; zero: not any more
	Every time.Duration `json:"every,omitempty"`
	Most  int           `json:"most,omitempty"`  // times at most; 0: any
	Last  time.Time     `json:"last,omitzero"`   // no time after that; zero: any
	Times int           `json:"times,omitempty"` // that it was begun

	State  JobState  `json:"state"`
	Begun  time.Time `json:"begun,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	Status int       `json:"status,omitempty"` // of HTTP that it was answered last
}

// All are the plans; nil Plans has none.
func (p *Plans) All() []Plan {
	if p == nil {
		return nil
	}
	return p.List
}

// maxPlans bounds the plans; of those that have ended the oldest goes first.
const maxPlans = 32

// MakePlan has a request carried out later. The event PlanMade tells its ID.
type MakePlan struct{ Plan Plan }

func (c MakePlan) apply(b *BMC, now time.Time) ([]Event, error) {
	p := b.forkPlans()
	if len(p.List) >= maxPlans {
		i := slices.IndexFunc(p.List, func(p Plan) bool { return p.State.Ended() })
		if i < 0 {
			return nil, fmt.Errorf("%w: %d", ErrPlans, len(p.List))
		}
		p.List = slices.Delete(p.List, i, i+1)
	}
	plan := c.Plan
	plan.ID, plan.Created, plan.State = strconv.FormatUint(p.Next, 10), now, JobPending
	if plan.Due.Before(now) {
		plan.Due = now
	}
	p.Next++
	p.List = append(p.List, plan)
	b.st.Plans = p
	return append([]Event{PlanMade{At: now, ID: plan.ID}}, b.carryOut(now)...), nil
}

// EndPlan tells how a plan was answered that was due.
type EndPlan struct {
	ID     string
	Status int // of HTTP
}

func (c EndPlan) apply(b *BMC, now time.Time) ([]Event, error) {
	return nil, b.changePlan(c.ID, func(p *Plan) {
		p.Status = c.Status
		switch {
		case p.State != JobRunning:
		case !p.Due.IsZero():
			p.State = JobPending
		case c.Status >= 400 || c.Status == 0:
			p.State, p.Ended = JobException, now
		default:
			p.State, p.Ended = JobCompleted, now
		}
	})
}

// CancelPlan keeps a plan from being carried out any more.
type CancelPlan struct{ ID string }

func (c CancelPlan) apply(b *BMC, now time.Time) ([]Event, error) {
	for _, p := range b.st.Plans.All() {
		if p.ID == c.ID && p.State.Ended() {
			return nil, fmt.Errorf("%w: plan %s", ErrEnded, c.ID)
		}
	}
	return nil, b.changePlan(c.ID, func(p *Plan) { p.State, p.Due, p.Ended = JobCancelled, time.Time{}, now })
}

// CancelPlans does so with all.
type CancelPlans struct{}

func (CancelPlans) apply(b *BMC, now time.Time) ([]Event, error) {
	for _, p := range b.st.Plans.All() {
		if p.State.Ended() {
			continue
		}
		if _, err := (CancelPlan{p.ID}).apply(b, now); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// ForgetPlan forgets a plan, whether it was carried out or not.
type ForgetPlan struct{ ID string }

func (c ForgetPlan) apply(b *BMC, _ time.Time) ([]Event, error) {
	p := b.forkPlans()
	n := len(p.List)
	p.List = slices.DeleteFunc(p.List, func(p Plan) bool { return p.ID == c.ID })
	if len(p.List) == n {
		return nil, fmt.Errorf("%w: plan %s", ErrNotFound, c.ID)
	}
	b.st.Plans = p
	return nil, nil
}

// forkPlans is a copy of the plans that a step may write and put in place.
func (b *BMC) forkPlans() *Plans {
	if b.st.Plans == nil {
		return &Plans{Next: 1}
	}
	p := *b.st.Plans
	p.List = slices.Clone(p.List)
	return &p
}

func (b *BMC) changePlan(id string, how func(*Plan)) error {
	p := b.forkPlans()
	i := slices.IndexFunc(p.List, func(p Plan) bool { return p.ID == id })
	if i < 0 {
		return fmt.Errorf("%w: plan %s", ErrNotFound, id)
	}
	how(&p.List[i])
	b.st.Plans = p
	return nil
}

// plansDue is nextOfPlans of a BMC that can carry them out.
func (b *BMC) plansDue() (once, again time.Time) {
	if !b.st.Life.Serves() {
		return once, again
	}
	return b.nextOfPlans()
}

// nextOfPlans is when a plan is next due: of those that are carried out once,
// for which somebody waits, and of the others.
func (b *BMC) nextOfPlans() (once, again time.Time) {
	for _, p := range b.st.Plans.All() {
		switch {
		case p.Due.IsZero() || p.State != JobPending:
		case p.Every > 0:
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
	for _, p := range b.st.Plans.All() {
		if p.State != JobPending || p.Due.IsZero() || now.Before(p.Due) {
			continue
		}
		// It is there: what comes back is about nothing else.
		_ = b.changePlan(p.ID, func(p *Plan) {
			p.State, p.Begun = JobRunning, now
			p.Times++
			next := time.Time{}
			if p.Every > 0 && (p.Most == 0 || p.Times < p.Most) {
				next = p.Due.Add(p.Every)
				for !next.After(now) {
					next = next.Add(p.Every)
				}
			}
			if !p.Last.IsZero() && next.After(p.Last) {
				next = time.Time{}
			}
			p.Due = next
		})
		evs = append(evs, PlanDue{At: now, Plan: p})
	}
	return evs
}

// endPlans ends what was being carried out when whoever did it stopped: it is
// not known how far that came, so it is not done again.
func (b *BMC) endPlans(now time.Time) {
	for _, p := range b.st.Plans.All() {
		if p.State == JobRunning {
			_, _ = EndPlan{ID: p.ID}.apply(b, now) // it is there
		}
	}
}

// PlanMade tells the plan that MakePlan made.
type PlanMade struct {
	At time.Time
	ID string
}

// PlanDue asks for a plan to be carried out; EndPlan answers it.
type PlanDue struct {
	At   time.Time
	Plan Plan
}

// Time implements Event.
func (e PlanMade) Time() time.Time { return e.At }

// Time implements Event.
func (e PlanDue) Time() time.Time { return e.At }
