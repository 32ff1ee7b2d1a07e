package rack_test

import (
	"context"
	"errors"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

func TestCarryRunsATask(t *testing.T) {
	for name, tt := range map[string]struct {
		end  bmc.CloseTask
		want bmc.TaskState
	}{
		"well":   {bmc.CloseTask{}, bmc.TaskCompleted},
		"failed": {bmc.CloseTask{Fault: "no"}, bmc.TaskException},
	} {
		t.Run(name, func(t *testing.T) {
			l := racktest.Start(t, rack.Config{})
			h := l.First()
			release := make(chan struct{})
			j, err := h.RunTask(t.Context(), bmc.OpenTask{Name: name}, func(_ context.Context, job string) bmc.CloseTask {
				if s := h.BMC().Tasks.All()[0]; s.ID != job || s.State != bmc.TaskRunning {
					t.Errorf("the job is %s %s while it is carried out", s.ID, s.State)
				}
				<-release
				return tt.end
			})
			if err != nil || j.State != bmc.TaskRunning {
				t.Fatalf("RunTask() = %+v, %v, want it running", j, err)
			}
			close(release)
			l.Settle()
			if got := h.BMC().Tasks.All()[0]; got.State != tt.want || got.Fault != tt.end.Fault {
				t.Errorf("job = %+v, want %s", got, tt.want)
			}
			if err := h.Cancel(t.Context(), j.ID); !errors.Is(err, bmc.ErrEnded) {
				t.Errorf("Cancel() of a job that has ended = %v, want %v", err, bmc.ErrEnded)
			}
		})
	}
}

func TestCancelStopsACarriedTask(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	j, err := h.RunTask(t.Context(), bmc.OpenTask{Name: "download"}, func(ctx context.Context, _ string) bmc.CloseTask {
		<-ctx.Done()
		return bmc.CloseTask{Fault: context.Cause(ctx).Error()}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Cancel(t.Context(), j.ID); err != nil {
		t.Errorf("Cancel() = %v", err)
	}
	l.Settle()
	if got := h.BMC().Tasks.All()[0]; got.State != bmc.TaskCancelled {
		t.Errorf("job = %+v, want it cancelled", got)
	}
	if err := h.Cancel(t.Context(), "77"); !errors.Is(err, bmc.ErrNotFound) {
		t.Errorf("Cancel() of no job = %v", err)
	}
	if err := h.Apply(t.Context(), machine.StopTask{Task: j.ID}); !errors.Is(err, machine.ErrUnknown) {
		t.Errorf("StopJob of a job that no machine works on = %v, want %v", err, machine.ErrUnknown)
	}
}

// A task that was running when the rack ended has failed when it is opened again; the
// rack does not wait for the task.
func TestCarriedTaskFailsWhenTheRackEnds(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	h := l.First()
	ended := false
	_, err := h.RunTask(t.Context(), bmc.OpenTask{Name: "download"}, func(ctx context.Context, _ string) bmc.CloseTask {
		<-ctx.Done()
		ended = true
		return bmc.CloseTask{}
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Stop()
	if !ended {
		t.Error("the rack has ended, and its work has not")
	}
	if _, err := h.RunTask(t.Context(), bmc.OpenTask{}, nil); err == nil {
		t.Error("a rack that has ended begins work")
	}
	l = racktest.Start(t, rack.Config{Dir: dir})
	if j := l.First().BMC().Tasks.All()[0]; j.State != bmc.TaskException || j.Fault == "" {
		t.Errorf("job = %+v, want it failed and why", j)
	}
}
