package subscription

import (
	"context"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

const (
	byHost   = "spec.hostName"
	bySecret = "spec.httpHeadersRef.name"
)

// Setup adds the reconciler to a manager. The reconciler runs when a subscription, its host or
// the Secret of its HTTP headers changes, and polls a BMC that refuses the host's credentials.
func (r *Reconciler) Setup(ctx context.Context, mgr manager.Manager) error {
	for field, values := range map[string]func(*metal3.BMCEventSubscription) []string{
		byHost: func(s *metal3.BMCEventSubscription) []string { return []string{s.Spec.HostName} },
		bySecret: func(s *metal3.BMCEventSubscription) []string {
			if s.Spec.HTTPHeadersRef == nil {
				return nil
			}
			return []string{s.Spec.HTTPHeadersRef.Name}
		},
	} {
		err := mgr.GetFieldIndexer().IndexField(ctx, &metal3.BMCEventSubscription{}, field, func(o client.Object) []string {
			return values(o.(*metal3.BMCEventSubscription))
		})
		if err != nil {
			return err
		}
	}
	specOrDeletion := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("bmceventsubscription").
		For(&metal3.BMCEventSubscription{}, builder.WithPredicates(specOrDeletion)).
		Watches(&metal3.BareMetalHost{}, r.enqueueBy(byHost), builder.WithPredicates(hostChanged)).
		Watches(&corev1.Secret{}, r.enqueueBy(bySecret), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WithOptions(queue.Options(queue.Config{Clock: r.Clock, Client: r.ClientClock, Workers: 1, Monitor: r.Queues, Retries: &r.retries})).
		Complete(r)
}

// hostChanged passes the changes of a host after which its BMC may accept a
// subscription that it did not accept before, or after which the host no longer exists.
var hostChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*metal3.BareMetalHost), e.ObjectNew.(*metal3.BareMetalHost)
		return unready(before) != unready(after) || before.Generation != after.Generation ||
			before.Status.GoodCredentials.Version != after.Status.GoodCredentials.Version
	},
}

// enqueueBy returns a handler that enqueues the subscriptions whose indexed field names
// the changed object.
func (r *Reconciler) enqueueBy(field string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return watch.Requests[*metal3.BMCEventSubscription](ctx, r.Client, &metal3.BMCEventSubscriptionList{}, nil, client.InNamespace(o.GetNamespace()), client.MatchingFields{field: o.GetName()})
	})
}
