package faults

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// bench is the faults of two BMCs, with what they have asked for.
type bench struct {
	*Faults
	clock        *clock.Clock
	disconnected []int
	ended        []string
}

func open(t *testing.T, rules ...fault.Rule) *bench {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b := &bench{clock: clock.NewVirtual(time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC))}
	b.Faults, err = Open(Config{
		Seed: 1, Rules: rules, BMCs: []string{"node-0", "node-1"}, Clock: b.clock, Store: s, Journal: journal.New(journal.Config{}),
		Log:        slog.New(slog.DiscardHandler),
		Disconnect: func(bmc int) { b.disconnected = append(b.disconnected, bmc) },
		EndTask: func(h HeldTask) error {
			b.ended = append(b.ended, h.Done.Task)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Start()
	t.Cleanup(b.Stop)
	return b
}

func TestOfflineRuleDisconnectsTheBMCForItsTime(t *testing.T) {
	minute := func(n int) fault.Duration { return fault.Duration{Duration: time.Duration(n) * time.Minute} }
	b := open(t, fault.Rule{BMC: "node-1", Offline: true, From: minute(1), Until: minute(3)})
	var got []bool
	for range 4 {
		got = append(got, b.Offline("node-1"))
		if b.Offline("node-0") {
			t.Error("the other BMC is offline")
		}
		if err := b.clock.Walk(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]bool{false, true, true, false}, got); d != "" {
		t.Errorf("offline by minute (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{1}, b.disconnected); d != "" {
		t.Errorf("disconnected BMCs (-want +got):\n%s", d)
	}
}

func TestHeldTaskEndsWhenItsRuleIsRemoved(t *testing.T) {
	b := open(t)
	if b.Hold(HeldTask{Host: "node-0", Done: event.TaskDone{Task: "1"}}) {
		t.Error("a task is held without a rule")
	}
	r, err := b.Add(fault.Rule{BMC: "node-0", Stuck: true})
	if err != nil {
		t.Fatal(err)
	}
	if b.Hold(HeldTask{Host: "node-1", Done: event.TaskDone{Task: "1"}}) || !b.Hold(HeldTask{Host: "node-0", Done: event.TaskDone{Task: "2"}}) {
		t.Error("the rule holds tasks of the wrong BMC")
	}
	if !b.Holds("node-0", "2") || len(b.ended) > 0 {
		t.Errorf("task 2 is not held, %q have ended", b.ended)
	}
	if err := b.Remove(r.ID); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"2"}, b.ended); d != "" || b.Holds("node-0", "2") {
		t.Errorf("ended tasks (-want +got):\n%s", d)
	}
}

// A rule whose count every BMC that it is about has used up is spent.
func TestRulesAreSpent(t *testing.T) {
	b := open(t, fault.Rule{ID: "one", BMC: "node-1", Status: 503, Count: 2}, fault.Rule{ID: "all", Status: 500, Count: 1, Path: "/redfish/v1/Systems"}, fault.Rule{ID: "ever", Status: 400, Path: "/x"})
	phases := func() string {
		text := ""
		for _, r := range b.List() {
			text += r.ID + " " + string(r.Phase) + " "
		}
		return text
	}
	ask := func(bmc, path string) {
		b.plan.Decide(fault.Subject{Site: fault.Request, BMC: bmc, Method: "GET", Path: path}, b.clock.Now())
	}
	for _, step := range []struct{ bmc, path, want string }{
		{"", "", "one active all active ever active "},
		{"node-1", "/x", "one active all active ever active "},
		{"node-1", "/x", "one spent all active ever active "},
		{"node-0", "/redfish/v1/Systems", "one spent all active ever active "},
		{"node-0", "/redfish/v1/Systems", "one spent all active ever active "},
		{"node-1", "/redfish/v1/Systems", "one spent all spent ever active "},
	} {
		if step.bmc != "" {
			ask(step.bmc, step.path)
		}
		if got := phases(); got != step.want {
			t.Errorf("after %s of %s: %q, want %q", step.path, step.bmc, got, step.want)
		}
	}
}
