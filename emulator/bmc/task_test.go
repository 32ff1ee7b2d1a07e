package bmc

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// openJob opens a job and returns its ID.
func openJob(t *testing.T, b *BMC, now time.Time) string {
	t.Helper()
	evs := do(t, b, now, OpenTask{Name: "Work", User: "admin", Account: "1", Request: Request{Method: "POST", Target: "/x"}})
	return evs[0].(TaskOpened).Task.ID
}

func stateOf(b *BMC, id string) TaskState {
	j, _ := b.task(id)
	return j.State
}

func TestTaskStatesFollowEvents(t *testing.T) {
	b := newBMC()
	id := openJob(t, b, origin)
	at := func(s int) time.Time { return origin.Add(time.Duration(s) * time.Second) }
	volume := event.Subject{Part: event.Volume, ID: "7", In: "RAID.0"}
	for _, step := range []struct {
		at      int
		ev      Event
		state   TaskState
		percent map[int]int // at seconds
	}{
		{1, event.TaskWaiting{At: at(1), Task: id}, TaskPending, map[int]int{1: 0, 9: 0}},
		{10, event.TaskRunning{At: at(10), Task: id, Until: at(110)}, TaskRunning, map[int]int{10: 0, 35: 25, 109: 99, 500: 99}},
		{60, event.TaskPaused{At: at(60), Task: id}, TaskSuspended, map[int]int{60: 50, 500: 50}},
		{200, event.TaskRunning{At: at(200), Task: id, Until: at(300)}, TaskRunning, map[int]int{200: 50, 250: 75}},
		{260, event.TaskRunning{At: at(260), Task: id, Until: at(270)}, TaskRunning, map[int]int{260: 80, 265: 90}},
		{270, event.TaskDone{At: at(270), Task: id, Made: &volume}, TaskCompleted, map[int]int{270: 100}},
	} {
		evs := b.ObserveMachine(at(step.at), []Event{step.ev})
		if len(evs) != 1 || evs[0].(TaskChanged).Task.State != step.state || stateOf(b, id) != step.state {
			t.Fatalf("after %T at %d s: %+v, want it %s and told", step.ev, step.at, evs, step.state)
		}
		j, _ := b.task(id)
		for s, want := range step.percent {
			if got := j.Percent(at(s)); got != want {
				t.Errorf("after %T: Percent(%d s) = %d, want %d", step.ev, s, got, want)
			}
		}
	}
	j, _ := b.task(id)
	if !j.Begun.Equal(at(10)) || !j.Ended.Equal(at(270)) || *j.Made != volume {
		t.Errorf("job = %+v", j)
	}
	if evs := b.ObserveMachine(at(280), []Event{event.TaskRunning{At: at(280), Task: id}, event.TaskDone{At: at(280), Task: id, Fault: "late"}}); len(evs) != 0 {
		t.Errorf("an ended job was changed: %+v", evs)
	}
}

func TestTaskEnds(t *testing.T) {
	note := event.Note{Kind: event.PowerOff}
	for _, tt := range []struct {
		end  CloseTask
		want TaskState
	}{
		{CloseTask{}, TaskCompleted}, {CloseTask{Fault: "no", Messages: []event.Note{note}}, TaskException}, {CloseTask{Fault: "no", Cancelled: true}, TaskCancelled},
	} {
		b := newBMC()
		tt.end.ID = openJob(t, b, origin)
		do(t, b, origin, RunTask{ID: tt.end.ID})
		refused(t, b, origin, DeleteTask{ID: tt.end.ID}, ErrUnderWay)
		refused(t, b, origin, DeliverTask{ID: tt.end.ID}, ErrUnderWay)
		do(t, b, origin, tt.end)
		j, _ := b.task(tt.end.ID)
		if j.State != tt.want || j.Fault != tt.end.Fault || cmp.Diff(j.Messages, tt.end.Messages) != "" || j.Closed != tt.end.Cancelled {
			t.Errorf("after %+v the job is %+v, want %s", tt.end, j, tt.want)
		}
		refused(t, b, origin, tt.end, ErrNotFound)
		refused(t, b, origin, CancelTask{ID: tt.end.ID}, ErrEnded)
		do(t, b, origin, DeleteTask{ID: tt.end.ID})
		refused(t, b, origin, DeleteTask{ID: tt.end.ID}, ErrNotFound)
		if id := openJob(t, b, origin); id != "2" {
			t.Errorf("the next job is %s: IDs are used once", id)
		}
	}
}

// What was not begun is cancelled at once, what runs when its doer has seen it.
func TestCancel(t *testing.T) {
	b := newBMC()
	idle, busy := openJob(t, b, origin), openJob(t, b, origin)
	do(t, b, origin, RunTask{ID: busy, Until: origin.Add(100 * time.Second)})
	now := origin.Add(30 * time.Second)
	do(t, b, now, CancelTask{ID: idle})
	do(t, b, now, CancelTask{ID: busy})
	if stateOf(b, idle) != TaskCancelled || stateOf(b, busy) != TaskCancelling {
		t.Errorf("jobs are %s and %s, want Cancelled and Cancelling", stateOf(b, idle), stateOf(b, busy))
	}
	if j, _ := b.task(busy); j.Percent(now.Add(time.Hour)) != 30 {
		t.Errorf("Percent() of a job that is being cancelled = %d, want 30", j.Percent(now.Add(time.Hour)))
	}
	refused(t, b, now, CancelTask{ID: "9"}, ErrNotFound)
}

func TestEndedTasksAreDeletedAfterRetention(t *testing.T) {
	b := newBMC()
	do(t, b, origin, SetTaskRetention{TaskRetention{Ended: time.Hour, Delivered: time.Minute}})
	id := openJob(t, b, origin)
	do(t, b, origin, RunTask{ID: id})
	if at, ok := b.ClientDeadline(); ok {
		t.Errorf("ClientDeadline() with a job under way = %v", at)
	}
	do(t, b, origin, CloseTask{ID: id})
	now := origin.Add(10 * time.Minute)
	do(t, b, now, DeliverTask{ID: id})
	do(t, b, now.Add(30*time.Second), DeliverTask{ID: id}) // told again
	if at, ok := b.ClientDeadline(); !ok || !at.Equal(now.Add(time.Minute)) {
		t.Errorf("ClientDeadline() = %v, %v, want a minute after its end was told first", at, ok)
	}
	b.Advance(now.Add(59 * time.Second))
	if j, _ := b.task(id); j.Closed {
		t.Error("the end is not told any longer, before its time")
	}
	b.Advance(now.Add(time.Minute))
	if j, _ := b.task(id); !j.Closed {
		t.Error("the end is still told after its time")
	}
	if at, ok := b.ClientDeadline(); !ok || !at.Equal(origin.Add(time.Hour)) {
		t.Errorf("ClientDeadline() = %v, %v, want an hour after the end", at, ok)
	}
	b.Advance(origin.Add(time.Hour))
	if jobs := b.View().Tasks.All(); len(jobs) != 0 {
		t.Errorf("jobs = %+v, want none", jobs)
	}
}

func TestTaskMonitorIsReadOnce(t *testing.T) {
	for _, tt := range []struct {
		keep time.Duration
		now  bool
	}{{0, false}, {time.Minute, true}} {
		b := newBMC()
		do(t, b, origin, SetTaskRetention{TaskRetention{Delivered: tt.keep}})
		id := openJob(t, b, origin)
		do(t, b, origin, CloseTask{ID: id})
		do(t, b, origin, DeliverTask{ID: id, Now: tt.now})
		if j, _ := b.task(id); !j.Closed {
			t.Errorf("%+v: the end is told again", tt)
		}
	}
}

func TestTasksAreBounded(t *testing.T) {
	b := newBMC()
	for range maxTasks {
		openJob(t, b, origin)
	}
	refused(t, b, origin, OpenTask{Name: "one too many"}, ErrTooManyTasks)
	do(t, b, origin, CloseTask{ID: "40"})
	do(t, b, origin, CloseTask{ID: "41"})
	openJob(t, b, origin)
	if _, there := b.task("40"); there || len(b.View().Tasks.All()) != maxTasks {
		t.Errorf("%d jobs, want that the oldest which has ended made room", len(b.View().Tasks.All()))
	}
	do(t, b, origin, DeleteEndedTasks{})
	if _, there := b.task("41"); there || len(b.View().Tasks.All()) != maxTasks-1 {
		t.Errorf("%d jobs, want those that are under way", len(b.View().Tasks.All()))
	}
}

// After a restart those jobs go on whose work does.
func TestEndOrphanedTasks(t *testing.T) {
	b := newBMC()
	works, lost, stopping, ended := openJob(t, b, origin), openJob(t, b, origin), openJob(t, b, origin), openJob(t, b, origin)
	for _, id := range []string{works, lost, stopping} {
		do(t, b, origin, RunTask{ID: id, Until: origin.Add(time.Hour)})
	}
	do(t, b, origin, CancelTask{ID: stopping})
	do(t, b, origin, CloseTask{ID: ended})

	raw, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	b = New(spec, nil, &st)
	evs := do(t, b, origin.Add(time.Minute), EndOrphanedTasks{Works: func(job string) bool { return job == works }})
	if len(evs) != 2 {
		t.Errorf("events = %+v, want two jobs that have ended", evs)
	}
	want := map[string]TaskState{works: TaskRunning, lost: TaskException, stopping: TaskCancelled, ended: TaskCompleted}
	for id, state := range want {
		if got := stateOf(b, id); got != state {
			t.Errorf("job %s is %s, want %s", id, got, state)
		}
	}
	if j, _ := b.task(lost); j.Fault == "" {
		t.Error("the lost job does not say why it failed")
	}
}
