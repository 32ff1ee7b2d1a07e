package lcm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// countDelay is the time from the change of a machine to the count of its cluster's machines.
// One count covers all changes in that time.
const countDelay = 5 * time.Second

// Clusters counts the machines of LCMClusters.
type Clusters struct{ Config }

// NewClusters returns a reconciler, or an error when a required field of c is nil.
func NewClusters(c Config) (*Clusters, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	return &Clusters{c}, nil
}

// Setup adds the reconciler to a manager. It does not poll.
func (r *Clusters) Setup(mgr manager.Manager) error {
	enqueue := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], o client.Object) {
		m, ok := o.(*lcmv1.LCMMachine)
		if !ok {
			return
		}
		if name := assigned(m).ClusterName; name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: name}}, countDelay)
		}
	}
	type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]
	machines := handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) { enqueue(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) {
			enqueue(q, e.ObjectOld)
			enqueue(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) { enqueue(q, e.Object) },
	}
	counted := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, oldOK := e.ObjectOld.(*lcmv1.LCMMachine)
		after, newOK := e.ObjectNew.(*lcmv1.LCMMachine)
		return oldOK && newOK && (before.Status.State != after.Status.State || before.Status.Release != after.Status.Release || before.Status.Maintenance != after.Status.Maintenance || assigned(before).ClusterName != assigned(after).ClusterName)
	}}
	return ctrl.NewControllerManagedBy(mgr).
		Named("lcm-clusters").
		For(&lcmv1.LCMCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&lcmv1.LCMMachine{}, machines, builder.WithPredicates(counted)).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for an LCMCluster.
func (r *Clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.NamespacedName) })
}

// reconcile writes how many machines the cluster has, how many of them are Ready, whether one is
// in maintenance, and the release once all machines have it.
func (r *Clusters) reconcile(ctx context.Context, key types.NamespacedName) error {
	var c lcmv1.LCMCluster
	if err := r.Client.Get(ctx, key, &c); err != nil {
		return queue.Deleted(err)
	}
	if before := c.DeepCopy(); moveTypes(&c.Spec) {
		if err := r.Client.Patch(ctx, &c, patch.IfUnchanged(before)); err != nil {
			return fmt.Errorf("lcm: machinesTypes of LCMCluster %s: %w", key, err)
		}
	}
	var list lcmv1.LCMMachineList
	if err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("lcm: LCMMachines of LCMCluster %s: %w", key, err)
	}
	before := c.DeepCopy()
	c.Status.RequestedNodes, c.Status.ReadyNodes, c.Status.Maintenance = 0, 0, c.Spec.Maintenance
	behind := 0
	for i := range list.Items {
		m := &list.Items[i]
		if assigned(m).ClusterName != c.Name {
			continue
		}
		c.Status.RequestedNodes++
		if m.Status.State == lcmv1.StateReady {
			c.Status.ReadyNodes++
		}
		if m.Status.Release != c.Spec.Release {
			behind++
		}
		c.Status.Maintenance = c.Status.Maintenance || m.Status.Maintenance
	}
	if behind == 0 && c.Status.RequestedNodes > 0 {
		c.Status.Release = c.Spec.Release
	}
	if equality.Semantic.DeepEqual(before.Status, c.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, &c, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("lcm: status of LCMCluster %s: %w", key, err)
	}
	return nil
}

// moveTypes moves the items of machineTypes before those of machinesTypes, which win where both
// have an item of one name. It reports whether there were any.
func moveTypes(s *lcmv1.LCMClusterSpec) bool {
	if s.MachineTypes == nil {
		return false
	}
	if s.MachinesTypes == nil {
		s.MachinesTypes = map[lcmv1.MachineType][]lcmv1.LCMStateItem{}
	}
	for machineType, items := range s.MachineTypes {
		known := s.MachinesTypes[machineType]
		items = slices.DeleteFunc(items, func(it lcmv1.LCMStateItem) bool {
			return slices.ContainsFunc(known, func(k lcmv1.LCMStateItem) bool { return k.Name == it.Name })
		})
		s.MachinesTypes[machineType] = append(items, known...)
	}
	s.MachineTypes = nil
	return true
}
