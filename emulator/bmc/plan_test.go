package bmc

import (
	"errors"
	"testing"
	"time"
)

func TestPlansRecurAndEnd(t *testing.T) {
	b := newBMC()
	do(t, b, origin, MakePlan{Plan{Name: "again", Method: "POST", Due: origin.Add(time.Hour), Every: time.Hour, Most: 3}})
	due := 0
	for h := 1; h < 10; h++ {
		for _, ev := range b.Advance(origin.Add(time.Duration(h) * time.Hour)) {
			if ev, ok := ev.(PlanDue); ok {
				due++
				do(t, b, origin.Add(time.Duration(h)*time.Hour), EndPlan{ID: ev.Plan.ID, Status: 204})
			}
		}
	}
	if p := b.View().Plans.All()[0]; due != 3 || p.State != JobCompleted || p.Times != 3 {
		t.Errorf("carried out %d times, plan %+v, want 3", due, p)
	}
	do(t, b, origin, MakePlan{Plan{Name: "cancelled", Due: origin.Add(100 * time.Hour)}})
	do(t, b, origin, CancelPlans{})
	if evs := b.Advance(origin.Add(200 * time.Hour)); len(evs) != 0 {
		t.Errorf("a cancelled plan told %+v", evs)
	}
	refused(t, b, origin.Add(200*time.Hour), CancelPlan{ID: "2"}, ErrEnded)
	for range maxPlans {
		do(t, b, origin.Add(200*time.Hour), MakePlan{Plan{Due: origin.Add(1000 * time.Hour)}})
	}
	if _, err := b.Apply(origin.Add(200*time.Hour), MakePlan{}); !errors.Is(err, ErrPlans) {
		t.Errorf("one plan too many: %v, want %v", err, ErrPlans)
	}
}
