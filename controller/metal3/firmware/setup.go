package firmware

import (
	"context"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Setup adds the reconciler to a manager: it reconciles a host when its state or
// the specification of its firmware changes, and periodically.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	if err := mgr.Add(manager.RunnableFunc(r.poll)); err != nil {
		return err
	}
	if err := r.setupOwners(mgr); err != nil {
		return err
	}
	sameName := &handler.EnqueueRequestForObject{}
	wanted := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("hostfirmware").
		For(&metal3.BareMetalHost{}, builder.WithPredicates(predicate.Or(stateChanged, predicate.AnnotationChangedPredicate{}))).
		Watches(&metal3.HostFirmwareSettings{}, sameName, wanted).
		Watches(&metal3.HostFirmwareComponents{}, sameName, wanted).
		Watches(&metal3.HostUpdatePolicy{}, sameName, wanted).
		WatchesRawSource(source.Channel(r.wake, sameName)).
		WithOptions(queue.Options(queue.Config{Clock: r.Clock, Client: r.ClientClock, Workers: r.Workers, Monitor: r.Queues})).
		Complete(r)
}

// stateChanged accepts updates that change the provisioning state, and those by which a host
// is detached, or is so no more: the removal of the annotation comes before its status.
var stateChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, a := e.ObjectOld.(*metal3.BareMetalHost)
		after, b := e.ObjectNew.(*metal3.BareMetalHost)
		return a && b && (before.Status.Provisioning.State != after.Status.Provisioning.State ||
			(before.Status.OperationalStatus == metal3.OperationalStatusDetached) != (after.Status.OperationalStatus == metal3.OperationalStatusDetached))
	},
}

// poll reconciles hosts whose time has come. It is one ticker instead of a delay
// per host, because the lab's clock does not advance for a ticker.
func (r *Reconciler) poll(ctx context.Context) error {
	t := r.Clock.NewTicker(retry)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C():
		}
		for _, o := range r.dueHosts() {
			select {
			case r.wake <- event.GenericEvent{Object: o}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// dueHosts returns the hosts whose time has come.
func (r *Reconciler) dueHosts() []*metal3.BareMetalHost {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	var out []*metal3.BareMetalHost
	for key, at := range r.next { // independent of the order
		if !now.Before(at) {
			out = append(out, &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		}
	}
	return out
}
