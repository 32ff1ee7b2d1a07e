package labtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/labtest"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Advance stops wherever something happens until it is done: what an event's
// reader does, it does at the event's time, and its consequences follow within
// the same Advance.
func TestAdvanceStopsAtEveryDeadline(t *testing.T) {
	var at []time.Duration // read after Advance: one host's events come one by one
	l := labtest.Start(t, lab.Config{Events: func(h *lab.Host, ev machine.Event) {
		if !h.Now().Equal(ev.Time()) {
			t.Errorf("%T of %v is told at %v", ev, ev.Time(), h.Now())
		}
		at = append(at, h.Now().Sub(labtest.Origin))
		if tried, ok := ev.(machine.BootTried); ok {
			if err := h.Apply(context.Background(), machine.Loaded{Boot: tried.Boot, Source: tried.Source}); err != nil {
				t.Error(err)
			}
		}
	}})
	if err := l.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	l.Advance(time.Hour)
	want := []time.Duration{0, 2 * time.Second, 92 * time.Second, 117 * time.Second}
	for i := range want {
		if len(at) != len(want) || at[i] != want[i] {
			t.Fatalf("events at %v, want %v", at, want)
		}
	}
	if got := l.Clock().Now(); !got.Equal(labtest.Origin.Add(time.Hour)) {
		t.Errorf("Now() = %v, want an hour later", got)
	}
}
