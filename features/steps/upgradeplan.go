package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// planOf returns the ClusterUpdatePlan of the scenario's cluster to a release.
func (s *scenario) planOf(ctx context.Context, to string) (*kaasv1.ClusterUpdatePlan, error) {
	var all kaasv1.ClusterUpdatePlanList
	if err := s.kube.List(ctx, &all, client.InNamespace(lab.Namespace)); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if p := &all.Items[i]; p.Spec.Cluster == clusterName && p.Spec.Target == to {
			return p, nil
		}
	}
	return nil, nil
}

// awaitPlan waits until ok accepts the ClusterUpdatePlan to a release.
func (s *scenario) awaitPlan(ctx context.Context, to, what string, ok func(*kaasv1.ClusterUpdatePlan) bool) error {
	return eventually(ctx, "the update to "+to+" "+what, func(ctx context.Context) (bool, string, error) {
		p, err := s.planOf(ctx, to)
		if err != nil || p == nil {
			return false, "there is no ClusterUpdatePlan", err
		}
		return ok(p), fmt.Sprintf("%+v", p.Status), nil
	})
}

func (s *scenario) commence(ctx context.Context, id, to string) error {
	err := s.awaitPlan(ctx, to, "has the step "+id, func(p *kaasv1.ClusterUpdatePlan) bool {
		return slices.ContainsFunc(p.Status.Steps, func(x kaasv1.PlanStepStatus) bool { return x.ID == id })
	})
	if err != nil {
		return err
	}
	if err := s.watchPlans(); err != nil {
		return err
	}
	p, err := s.planOf(ctx, to)
	if err != nil {
		return err
	}
	before := p.DeepCopy()
	for i := range p.Spec.Steps {
		p.Spec.Steps[i].Commence = p.Spec.Steps[i].Commence || p.Spec.Steps[i].ID == id
	}
	return s.kube.Patch(ctx, p, patch.IfUnchanged(before))
}

// watchPlans begins to watch ClusterUpdatePlans, if it has not: see goesThrough.
func (s *scenario) watchPlans() error {
	if s.plans != nil {
		return nil
	}
	w, err := s.kube.Watch(context.Background(), &kaasv1.ClusterUpdatePlanList{}, client.InNamespace(lab.Namespace)) // until the scenario ends
	s.plans = w
	return err
}

// goesThrough reads the watch until a step is Completed.
func (s *scenario) goesThrough(ctx context.Context, id, to string) error {
	if s.plans == nil {
		return errors.New("no step was commenced")
	}
	ctx, cancel := context.WithTimeout(ctx, patience.Limit())
	defer cancel()
	for {
		if got := s.planSteps[to+" "+id]; len(got) > 0 && got[len(got)-1] == kaasv1.PlanCompleted {
			if want := []kaasv1.PlanStatus{kaasv1.PlanNotStarted, kaasv1.PlanInProgress, kaasv1.PlanCompleted}; !slices.Equal(got, want) {
				return fmt.Errorf("it went through %v", got)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it went through %v: %w", s.planSteps[to+" "+id], ctx.Err())
		case ev, open := <-s.plans.ResultChan():
			p, ok := ev.Object.(*kaasv1.ClusterUpdatePlan)
			if !open || !ok {
				return fmt.Errorf("the watch has ended: %+v", ev.Object)
			}
			s.sawPlan(p)
		}
	}
}

// sawPlan notes the statuses that the steps of a plan have had.
func (s *scenario) sawPlan(p *kaasv1.ClusterUpdatePlan) {
	if s.planSteps == nil {
		s.planSteps = map[string][]kaasv1.PlanStatus{}
	}
	for _, x := range p.Status.Steps {
		name := p.Spec.Target + " " + x.ID
		if was := s.planSteps[name]; len(was) == 0 || was[len(was)-1] != x.Status {
			s.planSteps[name] = append(was, x.Status)
		}
	}
}

func (s *scenario) doesNotBegin(ctx context.Context, id, to string) error {
	if err := s.letDay2ControllersAct(ctx); err != nil {
		return err
	}
	p, err := s.planOf(ctx, to)
	if err != nil {
		return err
	}
	if p == nil {
		return errors.New("there is no ClusterUpdatePlan")
	}
	i := slices.IndexFunc(p.Status.Steps, func(x kaasv1.PlanStepStatus) bool { return x.ID == id })
	if i < 0 || p.Status.Steps[i].Status != kaasv1.PlanNotStarted {
		return fmt.Errorf("the plan is %+v", p.Status)
	}
	return nil
}
