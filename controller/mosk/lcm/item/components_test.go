package item

import (
	"testing"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// What the components of a machine wait for is said exactly while they keep it from being Ready.
func TestComponentsWait(t *testing.T) {
	deploy := []lcmv1.Phase{lcmv1.PhaseDeploy}
	for _, tt := range []struct {
		name       string
		kind       lcmv1.LCMType
		done       []lcmv1.Phase
		has, wants string
		want       string
		state      lcmv1.MachineState
	}{
		{"k0s", lcmv1.LCMTypeK0s, deploy, "", "", "", lcmv1.StateReady},
		{"items", lcmv1.LCMTypeUCP, nil, "", "", "", lcmv1.StateDeploy},
		{"none", lcmv1.LCMTypeUCP, deploy, "", "3.7", `the server reports no version: an item or its image has to write {"ucpVersion": VERSION} to /var/lib/lcm/components.json`, lcmv1.StateDeploy},
		{"no demand", lcmv1.LCMTypeUCP, deploy, "3.7", "", `the server reports version "3.7": set spec.components.ucpVersion of the LCMCluster to the version that machines have to have`, lcmv1.StateUpgrade},
		{"older", lcmv1.LCMTypeBYO, nil, "3.6", "3.7", `the server reports version "3.6" in /var/lib/lcm/components.json, and spec.components.ucpVersion is "3.7"`, lcmv1.StateUpgrade},
		{"byo", lcmv1.LCMTypeBYO, nil, "3.7", "3.7", "", lcmv1.StateReady},
		{"ucp", lcmv1.LCMTypeUCP, deploy, "3.7", "3.7", "", lcmv1.StateReady},
	} {
		m := machine(tt.kind, deploy, tt.done, func(m *lcmv1.LCMMachine) {
			m.Status.Components.UCPVersion, m.Spec.Components.UCPVersion = tt.has, tt.wants
		})
		if got, state := ComponentsWait(m), ComputeState(m); got != tt.want || state != tt.state {
			t.Errorf("%s: ComponentsWait() = %q, state %s; want %q, %s", tt.name, got, state, tt.want, tt.state)
		}
	}
}
