package plans

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetal "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	cluster "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaas "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
)

// facts hold the objects that a reconcile has read.
type facts struct {
	cluster   *cluster.Cluster // nil when it does not exist
	deployed  string           // the release of its LCMCluster
	available []baremetal.ReleaseRef
	plans     []kaas.ClusterUpdatePlan
	groups    []kaas.UpdateGroup
	all       []cluster.Machine
	machines  map[string]*lcm.LCMMachine // by name
	bundle    *lcm.HelmBundle
}

// steps returns the steps of a plan, each commenced if it was: the control plane, the groups
// of workers in the order of their indexes, and the charts.
func steps(f *facts, was []kaas.PlanStep) []kaas.PlanStep {
	out := []kaas.PlanStep{{
		ID: kaas.StepControllers, Name: "Update the machines of the control plane", Granularity: kaas.GranularityCluster,
		Description: []string{"The state items of the release are executed on the machines of the control plane."},
		Impact:      kaas.StepImpact{Users: kaas.ImpactNone, Workloads: kaas.ImpactNone},
	}}
	name := f.cluster.Name
	workers := slices.DeleteFunc(slices.Clone(f.groups), func(g kaas.UpdateGroup) bool { return g.Name == name+kaas.ControlUpdateGroup })
	if !slices.ContainsFunc(workers, func(g kaas.UpdateGroup) bool { return g.Name == name+kaas.DefaultUpdateGroup }) {
		g := kaas.UpdateGroup{Spec: kaas.UpdateGroupSpec{Index: 1}}
		g.Name = name + kaas.DefaultUpdateGroup
		workers = append(workers, g)
	}
	slices.SortFunc(workers, func(a, b kaas.UpdateGroup) int {
		return cmp.Or(cmp.Compare(a.Spec.Index, b.Spec.Index), cmp.Compare(a.Name, b.Name))
	})
	for _, g := range workers {
		out = append(out, kaas.PlanStep{
			ID: kaas.StepWorkers + g.Name, Name: fmt.Sprintf("Update the workers of the group %s", g.Name), Granularity: kaas.GranularityMachine,
			Description: []string{"The state items of the release are executed on the workers of the group."},
			Impact:      kaas.StepImpact{Users: kaas.ImpactNone, Workloads: kaas.ImpactMinor},
		})
	}
	out = append(out, kaas.PlanStep{
		ID: kaas.StepComponents, Name: "Update the Helm charts of the cluster", Granularity: kaas.GranularityCluster,
		Description: []string{"The HelmBundle gets the charts of the release."},
		Impact:      kaas.StepImpact{Users: kaas.ImpactNone, Workloads: kaas.ImpactNone},
	})
	for i := range out {
		out[i].Commence = slices.ContainsFunc(was, func(s kaas.PlanStep) bool { return s.ID == out[i].ID && s.Commence })
	}
	return out
}

// begun reports whether a step of a plan has begun.
func begun(p *kaas.ClusterUpdatePlan) bool {
	return slices.ContainsFunc(p.Status.Steps, func(s kaas.PlanStepStatus) bool { return s.Status != kaas.PlanNotStarted })
}

// commenced reports whether a step of a plan is commenced.
func commenced(p *kaas.ClusterUpdatePlan) bool {
	return slices.ContainsFunc(p.Spec.Steps, func(s kaas.PlanStep) bool { return s.Commence })
}

// next returns the status of a plan at a time. A step moves by one status: that it is in
// progress is seen before it is completed. message is why the first step cannot begin.
func next(p *kaas.ClusterUpdatePlan, f *facts, message string, now metav1.Time) kaas.ClusterUpdatePlanStatus {
	out := *p.Status.DeepCopy()
	out.Steps, out.Status = nil, kaas.PlanNotStarted
	before, done := "", 0 // the id of a step that is not completed, and how many are
	for _, s := range p.Spec.Steps {
		is := kaas.PlanStepStatus{ID: s.ID, Status: kaas.PlanNotStarted}
		if i := slices.IndexFunc(p.Status.Steps, func(x kaas.PlanStepStatus) bool { return x.ID == s.ID }); i >= 0 {
			is = *p.Status.Steps[i].DeepCopy()
		}
		is.Name = s.Name
		switch is.Status {
		case kaas.PlanNotStarted:
			is.Message = ""
			switch {
			case !s.Commence:
			case before != "":
				is.Message = "waits for the step " + before
			case p.Spec.Target != f.deployed:
				is.Message = message
			default:
				is.Status, is.StartedAt = kaas.PlanInProgress, &now
			}
		case kaas.PlanInProgress:
			if is.Message = missing(p, f, s.ID); is.Message == "" {
				is.Status = kaas.PlanCompleted
				is.Duration = &metav1.Duration{Duration: now.Sub(is.StartedAt.Time)}
			}
		case kaas.PlanCompleted:
		}
		if is.Status != kaas.PlanCompleted && before == "" {
			before = s.ID
		}
		if is.Status == kaas.PlanCompleted {
			done++
		}
		if is.Status != kaas.PlanNotStarted {
			out.Status = kaas.PlanInProgress
		}
		out.Steps = append(out.Steps, is)
	}
	if out.Status == kaas.PlanInProgress && out.StartedAt == nil {
		out.StartedAt = &now
	}
	if done > 0 && done == len(out.Steps) {
		out.Status = kaas.PlanCompleted
		if out.CompletedAt == nil {
			out.CompletedAt = &now
		}
	}
	return out
}

// missing returns why a step in progress is not completed, "" when it is.
func missing(p *kaas.ClusterUpdatePlan, f *facts, id string) string {
	if id == kaas.StepComponents {
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
		if l := f.machines[m.Name]; l == nil || l.Status.Release != p.Spec.Target || l.Status.State != lcm.StateReady {
			behind = append(behind, m.Name)
		}
	}
	if len(behind) == 0 {
		return ""
	}
	slices.Sort(behind)
	return "waits for the machines " + strings.Join(behind, ", ")
}
