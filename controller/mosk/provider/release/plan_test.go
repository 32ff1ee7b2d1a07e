package release

import (
	"testing"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// statement H44: a machine gets the release with the step of its group, and not before.
func TestStepOfAMachine(t *testing.T) {
	p := &kaasv1.ClusterUpdatePlan{Spec: kaasv1.ClusterUpdatePlanSpec{Cluster: "c1", Steps: []kaasv1.PlanStep{
		{ID: "k8s-controllers"}, {ID: "k8s-workers-c1-default"}, {ID: "k8s-workers-late"},
	}}}
	p.Status.Steps = []kaasv1.PlanStepStatus{{ID: "k8s-controllers", Status: kaasv1.PlanCompleted}, {ID: "k8s-workers-c1-default", Status: kaasv1.PlanInProgress}, {ID: "k8s-workers-late", Status: kaasv1.PlanNotStarted}}
	for _, tt := range []struct {
		labels   map[string]string
		step     string
		withheld bool
	}{
		{map[string]string{clusterv1.ControlPlaneLabel: "", kaasv1.UpdateGroupLabel: "late"}, "k8s-controllers", false},
		{nil, "k8s-workers-c1-default", false},
		{map[string]string{kaasv1.UpdateGroupLabel: "late"}, "k8s-workers-late", true},
		{map[string]string{kaasv1.UpdateGroupLabel: "unknown"}, "k8s-workers-c1-default", false},
	} {
		m := &clusterv1.Machine{}
		m.Labels = tt.labels
		if got := StepOf(p, m); got != tt.step || Withheld(p, got) != tt.withheld {
			t.Errorf("%v: step %s, withheld %t, want %s, %t", tt.labels, got, Withheld(p, got), tt.step, tt.withheld)
		}
	}
	if Withheld(nil, "k8s-controllers") {
		t.Error("without a plan a step is withheld")
	}
}
