package bmc

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// waits says which of the first entries wait for software.
func waits(b *BMC, n uint64) (out []uint64) {
	for id := uint64(1); id <= n; id++ {
		if b.View().PEF.Postponed(id) {
			out = append(out, id)
		}
	}
	return out
}

func TestPostponeTimerGivesSoftwareTime(t *testing.T) {
	b := New(&Spec{Log: LogSpec{Size: 99, Full: Wraps}}, nil, nil)
	hear := func(at time.Duration) {
		n := note(event.PowerOn)
		n.At = origin.Add(at)
		b.ObserveMachine(n.At, []Event{n})
	}
	hear(0)
	if waits(b, 9) != nil {
		t.Error("an entry waits though nobody has asked for that")
	}
	do(t, b, origin, SetLastProcessedEvent{Entry: 1})
	do(t, b, origin, ArmPostponeTimer{For: time.Minute})
	if !b.View().PEF.Until.IsZero() {
		t.Error("time runs though software has seen to all")
	}
	hear(10 * time.Second)
	hear(20 * time.Second)
	if d := cmp.Diff([]uint64{2, 3}, waits(b, 3)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if at, ok := b.Deadline(); !ok || !at.Equal(origin.Add(70*time.Second)) {
		t.Errorf("Deadline() = %v, %t", at, ok)
	}
	// Software is at work: it has its time anew.
	do(t, b, origin.Add(60*time.Second), SetLastProcessedEvent{Entry: 2})
	if d := cmp.Diff([]uint64{3}, waits(b, 3)); d != "" || !b.View().PEF.Until.Equal(origin.Add(120*time.Second)) {
		t.Errorf("%+v (-want +got):\n%s", b.View().PEF, d)
	}
	raw, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	b = New(b.spec, nil, &st)
	if evs := b.Advance(origin.Add(119 * time.Second)); len(evs) != 0 {
		t.Errorf("too early: %+v", evs)
	}
	evs := b.Advance(origin.Add(120 * time.Second))
	if d := cmp.Diff([]Event{PostponeExpired{At: origin.Add(120 * time.Second), First: 3}}, evs); d != "" || waits(b, 3) != nil {
		t.Errorf("(-want +got):\n%s", d)
	}
	hear(200 * time.Second)
	do(t, b, origin.Add(201*time.Second), SetLastProcessedEvent{Entry: 4})
	if waits(b, 4) != nil {
		t.Error("entry 4 waits though software has seen to it")
	}
}

func TestResetEndsPostpone(t *testing.T) {
	for name, tt := range map[string]struct {
		how  func(t *testing.T, b *BMC) []Event
		acts bool // on what waits
	}{
		"nobody waits any longer": {func(t *testing.T, b *BMC) []Event { return do(t, b, origin, ArmPostponeTimer{}) }, true},
		"the system starts":       {func(_ *testing.T, b *BMC) []Event { return b.ObserveMachine(origin, []Event{event.Boot{At: origin}}) }, false},
		"the BMC restarts": {func(t *testing.T, b *BMC) []Event {
			do(t, b, origin, Restart{Kind: ForceRestart})
			return b.Advance(origin)
		}, false},
	} {
		b := New(&Spec{Log: LogSpec{Size: 99, Full: Wraps}}, nil, nil)
		do(t, b, origin, ArmPostponeTimer{For: time.Hour})
		b.ObserveMachine(origin, []Event{note(event.PowerOn)})
		acts := false
		for _, ev := range tt.how(t, b) {
			_, is := ev.(PostponeExpired)
			acts = acts || is
		}
		if waits(b, 1) != nil || acts != tt.acts {
			t.Errorf("%s: %v wait, it acts on them: %t, want %t", name, waits(b, 1), acts, tt.acts)
		}
	}
}

func TestPEFIsOffUntilReset(t *testing.T) {
	b := New(&Spec{Log: LogSpec{Size: 99, Full: Wraps}}, nil, nil)
	do(t, b, origin, ArmPostponeTimer{Off: true})
	b.ObserveMachine(origin, []Event{note(event.PowerOn)})
	if len(waits(b, 1)) != 1 {
		t.Error("it acts though it is off")
	}
	if _, ok := b.Deadline(); ok {
		t.Error("it will act by itself")
	}
	b.ObserveMachine(origin, []Event{note(event.PowerOff)})
	if waits(b, 1) != nil || b.View().PEF.Off {
		t.Error("it is off though the system is")
	}
}
