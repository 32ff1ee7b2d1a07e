package hoc

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// machines reconciles LCMMachines: it writes the overwrites of HostOSConfigurations.
type machines struct {
	Config
	written readafterwrite.Reader
}

func (r *machines) setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("hoc-machines").
		For(&lcmv1.LCMMachine{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, reported))).
		Watches(&clusterv1.Machine{}, &handler.EnqueueRequestForObject{}). // the Machine has the name of its LCMMachine
		Watches(&kaasv1.HostOSConfiguration{}, r.configurationEvents()).
		WithOptions(r.Options()).
		Complete(r)
}

// reported passes updates by which an agent has reported a distribution, or added or
// removed results.
var reported = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*lcmv1.LCMMachine).Status, e.ObjectNew.(*lcmv1.LCMMachine).Status
	if len(before.StateItemStatuses) != len(after.StateItemStatuses) || !equality.Semantic.DeepEqual(before.Distribution, after.Distribution) {
		return true
	}
	for name := range before.StateItemStatuses {
		if _, exists := after.StateItemStatuses[name]; !exists {
			return true
		}
	}
	return false
}}

// configurationEvents enqueues the LCMMachines that an event of a HostOSConfiguration
// concerns: all of the namespace, or those whose change of a Secret was reported.
func (r *machines) configurationEvents() handler.EventHandler {
	type work = workqueue.TypedRateLimitingInterface[reconcile.Request]
	all := func(ctx context.Context, o client.Object, q work) {
		for _, req := range watch.Requests[*lcmv1.LCMMachine](ctx, r.Client, &lcmv1.LCMMachineList{}, nil, client.InNamespace(o.GetNamespace())) {
			q.Add(req)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q work) { all(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q work) { all(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q work) {
			before, after := e.ObjectOld.(*kaasv1.HostOSConfiguration), e.ObjectNew.(*kaasv1.HostOSConfiguration)
			if concerns(before, after) {
				all(ctx, after, q)
				return
			}
			for _, key := range newSecrets(before, after) {
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
	}
}

// newSecrets returns the machines for which secretValuesChanged became true.
func newSecrets(before, after *kaasv1.HostOSConfiguration) (out []types.NamespacedName) {
	for key, s := range after.Status.MachinesStates {
		if s.SecretValuesChanged && !before.Status.MachinesStates[key].SecretValuesChanged {
			if name, ok := nameOf(after, key); ok {
				out = append(out, types.NamespacedName{Namespace: after.Namespace, Name: name})
			}
		}
	}
	return out
}

// Reconcile implements reconcile.Reconciler for an LCMMachine.
func (r *machines) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *machines) reconcile(ctx context.Context, key types.NamespacedName) error {
	var l lcmv1.LCMMachine
	if err := r.Client.Get(ctx, key, &l); err != nil || !l.DeletionTimestamp.IsZero() {
		return queue.Deleted(err)
	}
	if r.written.Stale(&l) { // the event of the write comes: the same is not written twice
		return nil
	}
	m := new(clusterv1.Machine)
	if err := r.Client.Get(ctx, key, m); apierrors.IsNotFound(err) {
		m = nil
	} else if err != nil {
		return fmt.Errorf("hoc: Machine %s: %w", key, err)
	}
	all, err := r.configurations(ctx, key.Namespace)
	if err != nil {
		return err
	}
	overwrites := newTarget(m, &l).overwrites(all)
	if equality.Semantic.DeepEqual(l.Spec.StateItemsOverwrites, overwrites) {
		return nil
	}
	before := l.DeepCopy()
	l.Spec.StateItemsOverwrites = overwrites
	if err := r.Client.Patch(ctx, &l, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("hoc: overwrites of LCMMachine %s: %w", key, err)
	}
	r.written.Wrote(&l)
	return nil
}
