package bmc

import (
	"slices"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// clientTimeouts are the time-outs between a BMC and its clients: begin starts
// one, and ended reports whether it has ended.
var clientTimeouts = []struct {
	name  string
	lasts time.Duration
	begin func(t *testing.T, b *BMC, now time.Time)
	ended func(b *BMC) bool
}{
	{
		"session without a request", time.Minute,
		func(t *testing.T, b *BMC, now time.Time) {
			do(t, b, now, OpenSession{Account: admin, Token: "token"})
		},
		func(b *BMC) bool { return len(b.View().Sessions) == 0 },
	},
	{
		"session with an absolute time-out", 30 * time.Second,
		func(t *testing.T, b *BMC, now time.Time) {
			do(t, b, now, SetSessions{Timeout: time.Minute, Policy: Policy{AbsoluteSessionTimeout: 30 * time.Second, AbsoluteSessionTimeoutEnabled: true}})
			do(t, b, now, OpenSession{Account: admin, Token: "token"})
		},
		func(b *BMC) bool { return len(b.View().Sessions) == 0 },
	},
	{
		"locked account", 5 * time.Minute,
		func(t *testing.T, b *BMC, now time.Time) {
			do(t, b, now, SetPolicy{Policy{LockoutThreshold: 1, LockoutDuration: 5 * time.Minute}})
			do(t, b, now, loginFailed{account: admin.ID, to: ForRedfish})
		},
		func(b *BMC) bool { return !b.View().LoginFailures.Locked(admin.ID) },
	},
	{
		"blocked address", 10 * time.Minute,
		func(t *testing.T, b *BMC, now time.Time) {
			do(t, b, now, SetPolicy{Policy{BlockAfter: 1, BlockWithin: time.Minute, BlockFor: 10 * time.Minute}})
			do(t, b, now, loginFailed{from: "192.0.2.7", to: ForRedfish})
		},
		func(b *BMC) bool { return !b.View().LoginFailures.Blocked("192.0.2.7") },
	},
	{
		"task that has ended", time.Hour,
		func(t *testing.T, b *BMC, now time.Time) {
			do(t, b, now, SetTaskRetention{TaskRetention{Ended: time.Hour, Delivered: 2 * time.Hour}})
			do(t, b, now, CloseTask{ID: openJob(t, b, now)})
		},
		func(b *BMC) bool { return len(b.View().Tasks.All()) == 0 },
	},
	{
		"task monitor that was read", time.Minute,
		func(t *testing.T, b *BMC, now time.Time) {
			do(t, b, now, SetTaskRetention{TaskRetention{Delivered: time.Minute}})
			id := openJob(t, b, now)
			do(t, b, now, CloseTask{ID: id})
			do(t, b, now, DeliverTask{ID: id})
		},
		func(b *BMC) bool { return b.View().Tasks.All()[0].Closed },
	},
}

// Each ends by client time, however far lab time has moved, and at a lab time in
// its events.
func TestClientTimeoutsRunInClientTime(t *testing.T) {
	for _, tt := range clientTimeouts {
		t.Run(tt.name, func(t *testing.T) {
			b, client := newBMC(), origin.Add(-time.Hour)
			b.SetClientTime(client)
			tt.begin(t, b, origin)
			if at, ok := b.Deadline(); ok {
				t.Errorf("Deadline() = %v, want none", at)
			}
			if at, ok := b.ClientDeadline(); !ok || !at.Equal(client.Add(tt.lasts)) {
				t.Errorf("ClientDeadline() = %v, %t, want %v", at, ok, client.Add(tt.lasts))
			}
			later := origin.Add(1000 * time.Hour)
			b.SetClientTime(client.Add(tt.lasts - 1))
			b.Advance(later)
			if tt.ended(b) {
				t.Errorf("it has ended 1 ns before its client time")
			}
			b.SetClientTime(client.Add(tt.lasts))
			for _, ev := range b.Advance(later) {
				if !ev.Time().Equal(later) {
					t.Errorf("%T is of %v, want the lab time %v", ev, ev.Time(), later)
				}
			}
			if !tt.ended(b) {
				t.Error("it has not ended at its client time")
			}
		})
	}
}

// The use of a token by a copy of its session counts in client time, too.
func TestSessionIsUsedInClientTime(t *testing.T) {
	b, client := newBMC(), origin.Add(-time.Hour)
	b.SetClientTime(client)
	do(t, b, origin, OpenSession{Account: admin, Token: "token"})
	s, ok := b.Resume(client.Add(50*time.Second), "token")
	if !ok || !s.Since.Equal(origin) {
		t.Fatalf("Resume() = %+v, %t, want a session of %v", s, ok, origin)
	}
	if !s.Use(client.Add(100*time.Second)) || s.Use(client.Add(160*time.Second)) {
		t.Error("Use() does not end the session a minute after its last use")
	}
	b.SetClientTime(client.Add(159 * time.Second))
	if b.Advance(origin.Add(time.Hour)); len(b.View().Sessions) != 1 {
		t.Error("the session has ended before a minute of client time had passed since its last use")
	}
}

// Failures that are further apart than the policy says do not add up, in client
// time.
func TestFailureCountResetsInClientTime(t *testing.T) {
	for apart, locked := range map[time.Duration]bool{59 * time.Second: true, time.Minute: false} {
		b := newBMC()
		do(t, b, origin, SetPolicy{Policy{LockoutThreshold: 2, LockoutDuration: time.Hour, LockoutCounterResetAfter: time.Minute}})
		for i := range 2 {
			b.SetClientTime(origin.Add(time.Duration(i) * apart))
			do(t, b, origin.Add(time.Duration(i)*time.Hour), loginFailed{account: admin.ID, to: ForRedfish})
		}
		if got := b.View().LoginFailures.Locked(admin.ID); got != locked {
			t.Errorf("two failures %v of client time apart: locked = %t, want %t", apart, got, locked)
		}
	}
}

func TestHeartbeatsFollowClientTime(t *testing.T) {
	b := newBMC()
	b.SetClientTime(origin)
	subscribe(t, b, origin, Subscription{Heartbeat: time.Minute})
	for _, step := range []struct {
		client time.Duration
		want   int
	}{{59 * time.Second, 0}, {time.Minute, 1}, {119 * time.Second, 0}, {2 * time.Minute, 1}} {
		b.SetClientTime(origin.Add(step.client))
		got := b.Advance(origin.Add(60 * step.client))
		if len(got) != step.want || slices.ContainsFunc(got, func(ev Event) bool { return !ev.Time().Equal(origin.Add(60 * step.client)) }) {
			t.Errorf("after %v of client time: %v, want %d heartbeats of the lab time then", step.client, got, step.want)
		}
	}
}

// The BMC's tasks and its restart take lab time.
func TestWorkAndLifeFollowLabTime(t *testing.T) {
	b := newBMC()
	b.SetClientTime(origin)
	do(t, b, origin, Restart{Kind: GracefulRestart})
	b.Advance(origin.Add(time.Hour))
	if got := b.View().Life.Is(); got != Up {
		t.Errorf("an hour of lab time after its restart the BMC is %s, want %s", got, Up)
	}
}

// The state of an older release has no client time: it was lab time.
func TestTaskOfAnOlderReleaseIsDeletedAfterRetention(t *testing.T) {
	b := newBMC()
	do(t, b, origin, SetTaskRetention{TaskRetention{Ended: time.Hour}})
	id := openJob(t, b, origin)
	b.ObserveMachine(origin, []Event{event.TaskDone{At: origin, Task: id}})
	old := b.State()
	old.Tasks.List[0].EndedClient = time.Time{}
	b = New(spec, nil, &old)
	b.SetClientTime(origin.Add(time.Hour - 1))
	if b.Advance(origin.Add(time.Hour - 1)); len(b.View().Tasks.All()) != 1 {
		t.Error("the task is deleted before an hour has passed")
	}
	b.SetClientTime(origin.Add(time.Hour))
	if b.Advance(origin.Add(time.Hour)); len(b.View().Tasks.All()) != 0 {
		t.Error("the task is not deleted after an hour")
	}
}
