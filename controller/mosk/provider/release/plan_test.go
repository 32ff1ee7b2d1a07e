package release

import (
	"testing"

	cluster "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaas "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// statement H44: a machine gets the release with the step of its group, and not before.
func TestStepOfAMachine(t *testing.T) {
	p := &kaas.ClusterUpdatePlan{Spec: kaas.ClusterUpdatePlanSpec{Cluster: "c1", Steps: []kaas.PlanStep{
		{ID: "k8s-controllers"}, {ID: "k8s-workers-c1-default"}, {ID: "k8s-workers-late"},
	}}}
	p.Status.Steps = []kaas.PlanStepStatus{{ID: "k8s-controllers", Status: kaas.PlanCompleted}, {ID: "k8s-workers-c1-default", Status: kaas.PlanInProgress}, {ID: "k8s-workers-late", Status: kaas.PlanNotStarted}}
	for _, tt := range []struct {
		labels   map[string]string
		step     string
		withheld bool
	}{
		{map[string]string{cluster.ControlPlaneLabel: "", kaas.UpdateGroupLabel: "late"}, "k8s-controllers", false},
		{nil, "k8s-workers-c1-default", false},
		{map[string]string{kaas.UpdateGroupLabel: "late"}, "k8s-workers-late", true},
		{map[string]string{kaas.UpdateGroupLabel: "unknown"}, "k8s-workers-c1-default", false},
	} {
		m := &cluster.Machine{}
		m.Labels = tt.labels
		if got := StepOf(p, m); got != tt.step || Withheld(p, got) != tt.withheld {
			t.Errorf("%v: step %s, withheld %t, want %s, %t", tt.labels, got, Withheld(p, got), tt.step, tt.withheld)
		}
	}
	if Withheld(nil, "k8s-controllers") {
		t.Error("without a plan a step is withheld")
	}
}
