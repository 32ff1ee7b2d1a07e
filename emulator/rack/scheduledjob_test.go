package rack_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

const jobsPath = "/redfish/v1/JobService/Jobs"

// A scheduled job sends its request at its time with the rights of its creator, also
// after a restart of the rack.
func TestScheduledJobSendsItsRequest(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir})
	h := l.First()
	tag := func(name string, at time.Time) string {
		return fmt.Sprintf(`{"Payload":{"HttpOperation":"PATCH","TargetUri":%q,"JsonBody":"{\"AssetTag\":\"%s\"}"},"Schedule":{"InitialStartTime":%q}}`,
			systemPath, name, at.Format(time.RFC3339))
	}
	now := l.Clock().Now()
	for i, name := range []string{"first", "second"} {
		if code, got := call(t, l, h, "POST", jobsPath, tag(name, now.Add(time.Duration(i+1)*time.Hour))); code != 201 {
			t.Fatalf("POST = %d, %v", code, got)
		}
	}
	expect := func(want string, states ...bmc.TaskState) {
		t.Helper()
		if got := h.Machine().Asset.Tag; got != want {
			t.Errorf("AssetTag = %q, want %q", got, want)
		}
		for i, p := range h.BMC().Jobs.All() {
			if p.State != states[i] {
				t.Errorf("plan %s is %s (%d), want %s", p.ID, p.State, p.Status, states[i])
			}
		}
	}
	l.Advance(59 * time.Minute)
	expect("", bmc.TaskPending, bmc.TaskPending)
	l.Advance(2 * time.Minute)
	expect("first", bmc.TaskCompleted, bmc.TaskPending)
	l.Stop()
	l = racktest.Start(t, rack.Config{Dir: dir})
	h = l.First()
	l.Advance(time.Hour)
	expect("second", bmc.TaskCompleted, bmc.TaskCompleted)

	// A job whose creator's account was deleted is refused.
	plan := bmc.Job{Account: "77", User: "gone", Method: "PATCH", Target: systemPath, Body: `{"AssetTag":"third"}`, Due: l.Clock().Now().Add(time.Minute)}
	if _, err := h.ApplyBMC(t.Context(), bmc.CreateJob{Job: plan}); err != nil {
		t.Fatal(err)
	}
	l.Advance(time.Hour)
	expect("second", bmc.TaskCompleted, bmc.TaskCompleted, bmc.TaskException)
}
