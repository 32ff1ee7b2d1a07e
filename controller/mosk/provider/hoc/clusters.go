package hoc

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// clusters reconciles LCMClusters: it adds and removes the items of HostOSConfigurations.
type clusters struct{ Config }

// concerned passes changes of HostOSConfigurations that concern LCMClusters and LCMMachines.
var concerned = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return concerns(e.ObjectOld.(*kaasv1.HostOSConfiguration), e.ObjectNew.(*kaasv1.HostOSConfiguration))
}}

func (r *clusters) setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("hoc-clusters").
		For(&lcmv1.LCMCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&kaasv1.HostOSConfiguration{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return watch.Requests[*lcmv1.LCMCluster](ctx, r.Client, &lcmv1.LCMClusterList{}, nil, client.InNamespace(o.GetNamespace()))
		}), builder.WithPredicates(concerned)).
		WithOptions(r.Options()).
		Complete(r)
}

// machineTypes are the types of machines that have items of HostOSConfigurations.
var machineTypes = []lcmv1.MachineType{lcmv1.MachineControl, lcmv1.MachineWorker}

// Reconcile implements reconcile.Reconciler for an LCMCluster.
func (r *clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *clusters) reconcile(ctx context.Context, key types.NamespacedName) error {
	var c lcmv1.LCMCluster
	if err := r.Client.Get(ctx, key, &c); err != nil || !c.DeletionTimestamp.IsZero() {
		return queue.Deleted(err)
	}
	all, err := r.configurations(ctx, key.Namespace)
	if err != nil {
		return err
	}
	before := c.DeepCopy()
	for _, machineType := range machineTypes {
		current, exists := c.Spec.MachinesTypes[machineType]
		items := clusterItems(current, all)
		if len(items) == 0 && !exists {
			continue
		}
		if c.Spec.MachinesTypes == nil {
			c.Spec.MachinesTypes = map[lcmv1.MachineType][]lcmv1.LCMStateItem{}
		}
		c.Spec.MachinesTypes[machineType] = items
	}
	if equality.Semantic.DeepEqual(before.Spec, c.Spec) {
		return nil
	}
	// A list is replaced as one: others write the items of a release.
	if err := r.Client.Patch(ctx, &c, patch.IfUnchanged(before)); err != nil {
		return fmt.Errorf("hoc: items of LCMCluster %s: %w", key, err)
	}
	return nil
}

// configurations returns the HostOSConfigurations of a namespace in the order of their execution.
// They are the cache's: the caller must not change them.
func (c *Config) configurations(ctx context.Context, namespace string) ([]*kaasv1.HostOSConfiguration, error) {
	var list kaasv1.HostOSConfigurationList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("hoc: %w", err)
	}
	return sorted(list.Items), nil
}
