package bmc

import (
	"errors"
	"testing"
	"time"
)

func TestJobsRecurAndEnd(t *testing.T) {
	b := newBMC()
	do(t, b, origin, CreateJob{Job{Name: "again", Method: "POST", Due: origin.Add(time.Hour), Interval: time.Hour, MaxOccurrences: 3}})
	due := 0
	for h := 1; h < 10; h++ {
		for _, ev := range b.Advance(origin.Add(time.Duration(h) * time.Hour)) {
			if ev, ok := ev.(JobDue); ok {
				due++
				do(t, b, origin.Add(time.Duration(h)*time.Hour), EndJob{ID: ev.Job.ID, Status: 204})
			}
		}
	}
	if p := b.View().Jobs.All()[0]; due != 3 || p.State != TaskCompleted || p.Occurrences != 3 {
		t.Errorf("carried out %d times, plan %+v, want 3", due, p)
	}
	do(t, b, origin, CreateJob{Job{Name: "cancelled", Due: origin.Add(100 * time.Hour)}})
	do(t, b, origin, CancelJobs{})
	if evs := b.Advance(origin.Add(200 * time.Hour)); len(evs) != 0 {
		t.Errorf("a cancelled plan told %+v", evs)
	}
	refused(t, b, origin.Add(200*time.Hour), CancelJob{ID: "2"}, ErrEnded)
	for range maxJobs {
		do(t, b, origin.Add(200*time.Hour), CreateJob{Job{Due: origin.Add(1000 * time.Hour)}})
	}
	if _, err := b.Apply(origin.Add(200*time.Hour), CreateJob{}); !errors.Is(err, ErrTooManyJobs) {
		t.Errorf("one plan too many: %v, want %v", err, ErrTooManyJobs)
	}
}
