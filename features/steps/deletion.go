package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// registerDeletions binds the steps on the deletion of Machines, and on the workload locks
// of applications that block it.
func (s *scenario) registerDeletions(sc *stepRegistry) {
	sc.Step(`^the deletion policy of the machine "([^"]*)" is "(graceful|unsafe|forced)"$`, "sets deletionPolicy of a Machine", func(ctx context.Context, name, policy string) error {
		return s.changeMachine(ctx, name, func(m *clusterv1.Machine) {
			m.Spec.ProviderSpec.Value.DeletionPolicy = baremetalv1.DeletionPolicy(policy)
		})
	})
	sc.Step(`^the operator (demands|withdraws) the deletion of the machine "([^"]*)"$`, "sets delete of a Machine to true, or false", func(ctx context.Context, what, name string) error {
		return s.changeMachine(ctx, name, func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.Delete = what == "demands" })
	})
	sc.Step(`^the workload lock of the node "([^"]*)" is (active|inactive)$`, "creates the NodeWorkloadLock of an application on a node, or writes its state", func(ctx context.Context, node, state string) error {
		return s.lockNode(ctx, node, lcmv1.WorkloadLockStatus{State: lcmv1.WorkloadLockState(state)})
	})
	sc.Step(`^the workload lock of the node "([^"]*)" fails: "([^"]*)"$`, "the same, with the state failed and this message", func(ctx context.Context, node, message string) error {
		return s.lockNode(ctx, node, lcmv1.WorkloadLockStatus{State: lcmv1.LockFailed, ErrorMessage: message})
	})
	sc.Step(`^the preparation of the deletion of "([^"]*)" has (started|(?:started|failed): "[^"]*"|ended)$`, "waits for prepareDeletionPhase of a Machine, and for the message of its condition PrepareDeletion; ended: it has neither", s.preparationIs)
	sc.Step(`^the node "([^"]*)" is to be deleted$`, "waits until a Node has a NodeDeletionRequest and a NodeMaintenanceRequest", func(ctx context.Context, node string) error {
		return s.awaitNodeRequests(ctx, node, 2)
	})
	sc.Step(`^the node "([^"]*)" is to be maintained$`, "waits until a Node has a NodeMaintenanceRequest alone", func(ctx context.Context, node string) error {
		return s.awaitNodeRequests(ctx, node, 1)
	})
	sc.Step(`^the node "([^"]*)" has no requests$`, "waits until a Node has neither a NodeDeletionRequest nor a NodeMaintenanceRequest, and its cluster has no ClusterMaintenanceRequest", func(ctx context.Context, node string) error {
		if err := s.awaitNodeRequests(ctx, node, 0); err != nil {
			return err
		}
		return s.awaitDeletion(ctx, &lcmv1.ClusterMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: clusterName}})
	})
	sc.Step(`^the machine "([^"]*)" and the node "([^"]*)" no longer exist$`, "waits until the Machine, its LCMMachine and the Node are gone", func(ctx context.Context, machine, node string) error {
		return errors.Join(
			s.awaitDeletion(ctx, &clusterv1.Machine{ObjectMeta: day2Meta(machine)}), s.awaitDeletion(ctx, &lcmv1.LCMMachine{ObjectMeta: day2Meta(machine)}),
			s.awaitDeletion(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}),
		)
	})
	sc.NegativeStep(`^the machine "([^"]*)" still exists$`, "asserts, once each controller has reconciled every object, that the Machine exists and is not being deleted", func(ctx context.Context, name string) error {
		if err := s.letDay2ControllersAct(ctx); err != nil {
			return err
		}
		m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m)
		if err == nil && !m.DeletionTimestamp.IsZero() {
			err = errors.New("it is being deleted")
		}
		return err
	})
}

// lockNode writes the status of the NodeWorkloadLock of a node, which it creates.
func (s *scenario) lockNode(ctx context.Context, node string, status lcmv1.WorkloadLockStatus) error {
	o := &lcmv1.NodeWorkloadLock{ObjectMeta: metav1.ObjectMeta{Name: "storage-" + node}, Spec: lcmv1.NodeWorkloadLockSpec{NodeName: node, ControllerName: "storage"}}
	if err := s.kube.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	o.Status = status
	return s.kube.Status().Update(ctx, o)
}

func (s *scenario) preparationIs(ctx context.Context, name, phase string) error {
	phase, message, _ := strings.Cut(phase, ": ")
	message = strings.Trim(message, `"`)
	return s.awaitMachine(ctx, name, "has prepared its deletion: "+phase, func(p *baremetalv1.MachineProviderStatus) bool {
		condition := conditionOf(p, baremetalv1.ConditionPrepareDeletion)
		if phase == "ended" {
			return condition == nil && p.PrepareDeletionPhase == ""
		}
		return condition != nil && !condition.Ready && strings.Contains(condition.Message, message) && p.PrepareDeletionPhase == phase
	})
}

// conditionOf returns nil for a condition that the Machine lacks.
func conditionOf(p *baremetalv1.MachineProviderStatus, kind string) *baremetalv1.Condition {
	for i := range p.Conditions {
		if p.Conditions[i].Type == kind {
			return &p.Conditions[i]
		}
	}
	return nil
}

// nodeRequests returns the names of the requests for a node.
func (s *scenario) nodeRequests(ctx context.Context, node string) (out []string, err error) {
	for _, o := range []client.Object{&lcmv1.NodeMaintenanceRequest{}, &lcmv1.NodeDeletionRequest{}} {
		switch err := s.kube.Get(ctx, client.ObjectKey{Name: node}, o); {
		case err == nil:
			out = append(out, fmt.Sprintf("%T %s", o, node))
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return out, nil
}

func (s *scenario) awaitNodeRequests(ctx context.Context, node string, count int) error {
	return eventually(ctx, fmt.Sprintf("the node %s has %d requests", node, count), func(ctx context.Context) (bool, string, error) {
		requests, err := s.nodeRequests(ctx, node)
		return len(requests) == count, strings.Join(requests, ", "), err
	})
}
