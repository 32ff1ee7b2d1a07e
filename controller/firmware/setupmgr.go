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

	"github.com/metalab-dev/metalab/controller/queue"
)

// Setup adds the reconciler to a manager: a host is looked at when its state
// changes, when somebody wants other settings or versions, and from time to
// time.
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
		WithOptions(queue.Options(r.Clock, r.Workers)).
		Complete(r)
}

// stateChanged lets updates through that change the provisioning state.
var stateChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, a := e.ObjectOld.(*metal3.BareMetalHost)
		is, b := e.ObjectNew.(*metal3.BareMetalHost)
		return a && b && was.Status.Provisioning.State != is.Status.Provisioning.State
	},
}

// poll looks at hosts whose time has come. It is one ticker for all of them and
// not a wait per host, because a ticker is housekeeping: the lab's clock does
// not hurry towards it.
func (r *Reconciler) poll(ctx context.Context) error {
	t := r.Clock.NewTicker(retry)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C():
		}
		for _, o := range r.ripe() {
			select {
			case r.wake <- event.GenericEvent{Object: o}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// ripe are the hosts whose time has come.
func (r *Reconciler) ripe() []*metal3.BareMetalHost {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	var out []*metal3.BareMetalHost
	for key, at := range r.next { // each by itself: the order is not seen
		if !now.Before(at) {
			out = append(out, &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		}
	}
	return out
}
