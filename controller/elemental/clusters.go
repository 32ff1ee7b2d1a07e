package elemental

import (
	"context"

	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// clusters reconciles ElementalClusters. They have no infrastructure: a cluster is ready when
// Cluster API owns it and its user has given an endpoint.
type clusters struct{ Config }

func (r *clusters) setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("elemental-cluster").
		For(&elementalv1.ElementalCluster{}).
		Watches(&capi.Cluster{}, enqueue(func(_ context.Context, c *capi.Cluster) []client.ObjectKey {
			if ref := c.Spec.InfrastructureRef; ref != nil && ref.Kind == "ElementalCluster" {
				return []client.ObjectKey{{Namespace: c.Namespace, Name: ref.Name}}
			}
			return nil
		})).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for an ElementalCluster.
func (r *clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error {
		var c elementalv1.ElementalCluster
		if err := r.Client.Get(ctx, req.NamespacedName, &c); err != nil {
			return wrap("cluster", queue.Deleted(err))
		}
		return wrap("cluster", r.reconcile(ctx, &c))
	})
}

func (r *clusters) reconcile(ctx context.Context, c *elementalv1.ElementalCluster) error {
	if !c.DeletionTimestamp.IsZero() || paused(nil, c) {
		return nil
	}
	before, now := c.DeepCopy(), r.Wall.Now()
	owned := owner(c, "Cluster") != ""
	if owned {
		condition.Set(c, condition.True(elementalv1.CAPIClusterReady), now)
	} else {
		condition.Set(c, condition.False(elementalv1.CAPIClusterReady, elementalv1.MissingClusterOwnerReason, capi.ConditionSeverityError, "Missing CAPI Cluster owner"), now)
	}
	if owned { // it is looked at only then
		if c.Spec.ControlPlaneEndpoint.IsValid() {
			condition.Set(c, condition.True(elementalv1.ControlPlaneEndpointReady), now)
		} else {
			condition.Set(c, condition.False(elementalv1.ControlPlaneEndpointReady, elementalv1.MissingControlPlaneEndpointReason, capi.ConditionSeverityError,
				"ElementalCluster.spec.controlPlaneEndpoint was not defined"), now)
		}
	}
	c.Status.Ready = owned && c.Spec.ControlPlaneEndpoint.IsValid()
	return object.Patch(ctx, r.Client, before, c)
}
