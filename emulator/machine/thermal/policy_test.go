package thermal

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// heats lets the room warm up, and returns what happens in an hour and when.
func (b *bench) heats(room float64) (evs []event.Event, at []time.Duration) {
	b.do(SetAmbient{to(room)})
	start := b.now
	for end := start.Add(time.Hour); ; {
		due, ok := b.th.Deadline()
		if !ok || due.After(end) {
			b.pass(end.Sub(b.now))
			return evs, at
		}
		for _, ev := range b.pass(due.Sub(b.now)) {
			evs, at = append(evs, ev), append(at, ev.Time().Sub(start))
		}
	}
}

func isOff(ev event.Event) bool { _, ok := ev.(Overheated); return ok }

func TestPolicyCutsOffAfterItsTime(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Idling})
	b.pass(time.Hour)
	b.do(SetPolicy{Policy{"Inlet", 30, 3 * time.Minute, CutOff}})
	evs, at := b.heats(35)
	if got := kinds(evs); !slices.Equal(got, []event.Kind{event.SensorTooHigh}) || len(evs) != 2 || !isOff(evs[1]) {
		t.Fatalf("it does %v", evs)
	}
	over := b.now.Add(-time.Hour).Add(at[0] - 3*time.Minute)
	st := b.th.State()
	if len(st.Over) != 1 || !st.Over[0].Since.Equal(over) || !st.Over[0].Done {
		t.Errorf("since %v over: %+v", over, st.Over)
	}
	v := b.th.View()
	if x, _ := v.Reading("Inlet", over); x != 31 {
		t.Errorf("when it began the inlet reads %v", x)
	}
	if evs, _ := b.heats(36); len(evs) != 0 {
		t.Errorf("it has acted, and does %v", evs)
	}
	// A reading below the limit restarts the policy's time.
	b.heats(20)
	if st := b.th.State(); st.Over != nil {
		t.Errorf("cool: %+v", st.Over)
	}
	if evs, again := b.heats(35); len(evs) != 2 || again[0] <= 3*time.Minute {
		t.Errorf("hot again: %v at %v", evs, again)
	}
}

func TestLogPolicyOnlyLogs(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Idling})
	b.do(SetPolicy{Policy{"Inlet", 30, 0, Log}})
	if evs, _ := b.heats(35); len(evs) != 1 || !slices.Equal(kinds(evs), []event.Kind{event.SensorTooHigh}) {
		t.Errorf("it does %v", evs)
	}
	b.heats(22)
	b.do(SetPolicy{Policy{"Inlet", 30, time.Second, Nothing}})
	if evs, _ := b.heats(35); len(evs) != 0 {
		t.Errorf("switched off it does %v", evs)
	}
	if p := b.th.View().Policy("Inlet"); p.Limit != 30 {
		t.Errorf("the policy is %+v", p)
	}
	// It is switched on when it has long been too hot.
	n := len(b.all)
	b.do(SetPolicy{Policy{"Inlet", 30, time.Minute, Log}})
	b.pass(59 * time.Second)
	if got := b.all[n:]; len(got) != 0 {
		t.Errorf("too early: %v", got)
	}
	b.pass(2 * time.Second)
	if got := b.all[n:]; len(got) != 1 {
		t.Errorf("it has done %v", got)
	}
	b.do(SetPolicy{Policy{Sensor: "Inlet"}})
	if st := b.th.State(); st.Policies != nil || st.Over != nil {
		t.Errorf("without a policy: %+v", st)
	}
}

// A server whose temperature exceeds the limit only for a moment keeps running.
func TestPolicyWaits(t *testing.T) {
	b := newBench(t)
	b.do(Drive{On, Idling})
	b.do(SetPolicy{Policy{"Inlet", 30, 10 * time.Minute, CutOff}})
	for range 5 {
		b.do(Force{"Inlet", to(35)})
		b.pass(9 * time.Minute)
		b.do(Force{"Inlet", to(30)})
		b.pass(time.Second)
	}
	if len(b.all) != 0 {
		t.Errorf("it does %v", b.all)
	}
	b.do(Force{"Inlet", to(35)})
	b.pass(9 * time.Minute)
	raw, err := json.Marshal(b.th.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	again := New(b.th.model, 7, &st)
	if evs := again.Advance(b.now.Add(2 * time.Minute)); len(evs) != 2 || !evs[0].Time().Equal(b.now.Add(time.Minute)) {
		t.Errorf("restored it does %v", evs)
	}
}

func TestPoliciesThatCannotBe(t *testing.T) {
	b := newBench(t)
	for _, p := range []Policy{{Sensor: "Nothing"}, {Sensor: "Fan1", Limit: 1}, {Sensor: "Inlet", Do: "sing"}, {Sensor: "Inlet", After: -1}} {
		if _, err := b.th.Apply(b.now, SetPolicy{p}); !errors.Is(err, ErrUnknown) || b.th.State() != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
