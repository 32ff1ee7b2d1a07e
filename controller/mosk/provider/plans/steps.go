package plans

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
)

// facts hold the objects that a reconcile has read.
type facts struct {
	cluster   *clusterv1.Cluster // nil when it does not exist
	deployed  string             // the release of its LCMCluster
	available []baremetalv1.ReleaseRef
	plans     []kaasv1.ClusterUpdatePlan
	groups    []kaasv1.UpdateGroup
	all       []clusterv1.Machine
	machines  map[string]*lcmv1.LCMMachine // by name
	bundle    *lcmv1.HelmBundle
}

// steps returns the steps of a plan, each commenced if it was: the control plane, the groups
// of workers in the order of their indexes, and the charts. target is the release of the plan.
func steps(f *facts, target string, was []kaasv1.PlanStep) []kaasv1.PlanStep {
	out := []kaasv1.PlanStep{{
		ID: kaasv1.StepControllers, Name: "Update the machines of the control plane", Granularity: kaasv1.GranularityCluster,
		Description: []string{"The state items of the release are executed on the machines of the control plane."},
		Impact:      kaasv1.StepImpact{Users: kaasv1.ImpactNone, Workloads: kaasv1.ImpactNone},
	}}
	name := f.cluster.Name
	workers := slices.DeleteFunc(slices.Clone(f.groups), func(g kaasv1.UpdateGroup) bool { return g.Name == name+kaasv1.ControlUpdateGroup })
	if !slices.ContainsFunc(workers, func(g kaasv1.UpdateGroup) bool { return g.Name == name+kaasv1.DefaultUpdateGroup }) {
		g := kaasv1.UpdateGroup{Spec: kaasv1.UpdateGroupSpec{Index: 1}}
		g.Name = name + kaasv1.DefaultUpdateGroup
		workers = append(workers, g)
	}
	slices.SortFunc(workers, func(a, b kaasv1.UpdateGroup) int {
		return cmp.Or(cmp.Compare(a.Spec.Index, b.Spec.Index), cmp.Compare(a.Name, b.Name))
	})
	for _, g := range workers {
		out = append(out, kaasv1.PlanStep{
			ID: kaasv1.StepWorkers + g.Name, Name: fmt.Sprintf("Update the workers of the group %s", g.Name), Granularity: kaasv1.GranularityMachine,
			Description: []string{"The state items of the release are executed on the workers of the group."},
			Impact:      kaasv1.StepImpact{Users: kaasv1.ImpactNone, Workloads: kaasv1.ImpactMinor},
		})
	}
	if slices.ContainsFunc(f.available, func(r baremetalv1.ReleaseRef) bool { return r.Name == target && r.RebootRequired }) {
		for i := range out {
			out[i].Description = append(out[i].Description, "Each machine is rebooted while its node is out of service.")
		}
	}
	out = append(out, kaasv1.PlanStep{
		ID: kaasv1.StepComponents, Name: "Update the Helm charts of the cluster", Granularity: kaasv1.GranularityCluster,
		Description: []string{"The HelmBundle gets the charts of the release."},
		Impact:      kaasv1.StepImpact{Users: kaasv1.ImpactNone, Workloads: kaasv1.ImpactNone},
	})
	for i := range out {
		out[i].Commence = slices.ContainsFunc(was, func(s kaasv1.PlanStep) bool { return s.ID == out[i].ID && s.Commence })
	}
	return out
}

// begun reports whether a step of a plan has begun.
func begun(p *kaasv1.ClusterUpdatePlan) bool {
	return slices.ContainsFunc(p.Status.Steps, func(s kaasv1.PlanStepStatus) bool { return s.Status != kaasv1.PlanNotStarted })
}

// commenced reports whether a step of a plan is commenced.
func commenced(p *kaasv1.ClusterUpdatePlan) bool {
	return slices.ContainsFunc(p.Spec.Steps, func(s kaasv1.PlanStep) bool { return s.Commence })
}

// next returns the status of a plan at a time. A step moves by one status: that it is in
// progress is seen before it is completed. message is why the first step cannot begin.
func next(p *kaasv1.ClusterUpdatePlan, f *facts, message string, now metav1.Time) kaasv1.ClusterUpdatePlanStatus {
	out := *p.Status.DeepCopy()
	out.Steps, out.Status = nil, kaasv1.PlanNotStarted
	before, done := "", 0 // the id of a step that is not completed, and how many are
	for _, s := range p.Spec.Steps {
		step := kaasv1.PlanStepStatus{ID: s.ID, Status: kaasv1.PlanNotStarted}
		if i := slices.IndexFunc(p.Status.Steps, func(x kaasv1.PlanStepStatus) bool { return x.ID == s.ID }); i >= 0 {
			step = *p.Status.Steps[i].DeepCopy()
		}
		step.Name = s.Name
		switch step.Status {
		case kaasv1.PlanNotStarted:
			step.Message = ""
			switch {
			case !s.Commence:
			case before != "":
				step.Message = "waits for the step " + before
			case p.Spec.Target != f.deployed:
				step.Message = message
			default:
				step.Status, step.StartedAt = kaasv1.PlanInProgress, &now
			}
		case kaasv1.PlanInProgress:
			if step.Message = missing(p, f, s.ID); step.Message == "" {
				step.Status = kaasv1.PlanCompleted
				step.Duration = &metav1.Duration{Duration: now.Sub(step.StartedAt.Time)}
			}
		case kaasv1.PlanCompleted:
		}
		if step.Status != kaasv1.PlanCompleted && before == "" {
			before = s.ID
		}
		if step.Status == kaasv1.PlanCompleted {
			done++
		}
		if step.Status != kaasv1.PlanNotStarted {
			out.Status = kaasv1.PlanInProgress
		}
		out.Steps = append(out.Steps, step)
	}
	if out.Status == kaasv1.PlanInProgress && out.StartedAt == nil {
		out.StartedAt = &now
	}
	if done > 0 && done == len(out.Steps) {
		out.Status = kaasv1.PlanCompleted
		if out.CompletedAt == nil {
			out.CompletedAt = &now
		}
	}
	return out
}

// missing returns why a step in progress is not completed, "" when it is.
func missing(p *kaasv1.ClusterUpdatePlan, f *facts, id string) string {
	if id == kaasv1.StepComponents {
		if b := f.bundle; b.Spec.Release != p.Spec.Target || b.Status.Release != p.Spec.Target || b.Status.ObservedGeneration != b.Generation {
			return "waits for the charts of the HelmBundle"
		}
		return ""
	}
	var behind []string
	for i := range f.all {
		m := &f.all[i]
		if release.StepOf(p, m) != id || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if l := f.machines[m.Name]; l == nil || l.Status.Release != p.Spec.Target || l.Status.State != lcmv1.StateReady {
			behind = append(behind, m.Name)
		}
	}
	if len(behind) == 0 {
		return ""
	}
	slices.Sort(behind)
	return "waits for the machines " + strings.Join(behind, ", ")
}
