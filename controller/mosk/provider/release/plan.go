package release

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// PlanOf returns the ClusterUpdatePlan of a cluster to a release, nil when there is none.
func PlanOf(ctx context.Context, r client.Reader, cluster client.ObjectKey, target string) (*kaasv1.ClusterUpdatePlan, error) {
	var all kaasv1.ClusterUpdatePlanList
	if err := r.List(ctx, &all, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("ClusterUpdatePlans: %w", err)
	}
	for i := range all.Items {
		if p := &all.Items[i]; p.Spec.Cluster == cluster.Name && p.Spec.Target == target {
			return p, nil
		}
	}
	return nil, nil
}

// StepOf returns the id of the step that updates a machine. One whose UpdateGroup is not in
// the plan is updated with the default group.
func StepOf(p *kaasv1.ClusterUpdatePlan, m *clusterv1.Machine) string {
	if _, control := m.Labels[clusterv1.ControlPlaneLabel]; control {
		return kaasv1.StepControllers
	}
	id := kaasv1.StepWorkers + m.Labels[kaasv1.UpdateGroupLabel]
	if slices.ContainsFunc(p.Spec.Steps, func(s kaasv1.PlanStep) bool { return s.ID == id }) {
		return id
	}
	return kaasv1.StepWorkers + p.Spec.Cluster + kaasv1.DefaultUpdateGroup
}

// Withheld reports whether a step of a plan has not begun. Without a plan, nothing is
// withheld.
func Withheld(p *kaasv1.ClusterUpdatePlan, id string) bool {
	if p == nil || !slices.ContainsFunc(p.Spec.Steps, func(s kaasv1.PlanStep) bool { return s.ID == id }) {
		return false
	}
	return !slices.ContainsFunc(p.Status.Steps, func(s kaasv1.PlanStepStatus) bool { return s.ID == id && s.Status != kaasv1.PlanNotStarted })
}
