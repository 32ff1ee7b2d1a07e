package item

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// statements H23 and H24: how far an item is, by the status that the agent writes.
func TestProgressOf(t *testing.T) {
	now := metav1.Now()
	hash := Hash(hostOS[1], "")
	for _, tt := range []struct {
		name   string
		status *lcmv1.StateItemStatus
		want   Progress
	}{
		{"no status", nil, NotStarted},
		{"running", &lcmv1.StateItemStatus{Hash: hash, ExitCode: NotExited, Attempt: 1, StartedAt: &now}, Running},
		{"succeeded", &lcmv1.StateItemStatus{Hash: hash, Attempt: 1, StartedAt: &now, FinishedAt: &now}, Succeeded},
		{"failed", &lcmv1.StateItemStatus{Hash: hash, ExitCode: 2, Attempt: 3, StartedAt: &now, FinishedAt: &now}, Failed},
		{"killed by a signal", &lcmv1.StateItemStatus{Hash: hash, ExitCode: NotExited, Attempt: 1, StartedAt: &now, FinishedAt: &now}, Failed},
		{"succeeded before it changed", &lcmv1.StateItemStatus{Hash: "other", Attempt: 1, StartedAt: &now, FinishedAt: &now}, NotStarted},
		{"failed before it changed", &lcmv1.StateItemStatus{Hash: "other", ExitCode: 2, Attempt: 1, StartedAt: &now, FinishedAt: &now}, NotStarted},
	} {
		statuses := map[string]lcmv1.StateItemStatus{"another": {Hash: hash}}
		if tt.status != nil {
			statuses[hostOS[1].Name] = *tt.status
		}
		if got := ProgressOf(hostOS[1], statuses, ""); got != tt.want {
			t.Errorf("%s: ProgressOf = %d, want %d", tt.name, got, tt.want)
		}
		if ready := Ready(hostOS[1], statuses, ""); ready != (tt.want == Succeeded) {
			t.Errorf("%s: Ready = %v", tt.name, ready)
		}
	}
}

// statement H12: what an item of a HostOSConfiguration is.
func TestIsHostOS(t *testing.T) {
	for _, it := range hostOS {
		if !IsHostOS(it) {
			t.Errorf("%+v is not a host OS item", it)
		}
	}
	release := func(change func(*lcmv1.LCMStateItem)) lcmv1.LCMStateItem {
		it := hostOS[0]
		change(&it)
		return it
	}
	for _, it := range []lcmv1.LCMStateItem{
		release(func(it *lcmv1.LCMStateItem) { it.Name = "swap" }),
		release(func(it *lcmv1.LCMStateItem) { it.Name = "host-os-prepare" }),
		release(func(it *lcmv1.LCMStateItem) { it.Runner = lcmv1.RunnerBash }),
		release(func(it *lcmv1.LCMStateItem) { it.Version = "v2" }),
		release(func(it *lcmv1.LCMStateItem) { it.Phase = lcmv1.PhaseDeploy }),
		with(hostOS[0], map[string]string{"url": "a"}),
	} {
		if IsHostOS(it) {
			t.Errorf("%+v is a host OS item", it)
		}
	}
}
