package host

import (
	"context"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

const (
	indexUID    = "metadata.uid"
	indexSecret = "spec.bmc.credentialsName"
)

// powerPoll is the interval in which a host in a stable state is reconciled (B-12,
// B-121).
const powerPoll = 60 * time.Second

// polled lists the states without another trigger: a BMC does not report that
// somebody has pressed the power button.
var polled = map[phase.State]bool{
	metal3.StateAvailable: true, metal3.StateReady: true,
	metal3.StateProvisioned: true, metal3.StateExternallyProvisioned: true,
}

// indexes lists the indexes of the cache.
var indexes = []struct {
	field string
	index client.IndexerFunc
}{
	{indexUID, indexHosts(func(h *metal3.BareMetalHost) []string { return []string{string(h.UID)} })},
	{indexSecret, indexHosts(hostSecrets)},
	{indexMAC, indexHosts(func(h *metal3.BareMetalHost) []string { return []string{strings.ToLower(h.Spec.BootMACAddress)} })},
	{indexBMC, indexHosts(registeredBMC)},
	{indexSystem, indexHosts(func(h *metal3.BareMetalHost) []string { return []string{h.Status.Provisioning.ID} })},
	{indexServed, indexHosts(func(h *metal3.BareMetalHost) []string { return []string{served(h)} })},
}

func indexHosts(values func(*metal3.BareMetalHost) []string) client.IndexerFunc {
	return func(o client.Object) []string { return values(o.(*metal3.BareMetalHost)) }
}

// slowPollFactor is the number of polls per pass over a host that is not managed:
// one pass in ten minutes (B-12).
const slowPollFactor = 10

// pollDue reports whether a host is reconciled in a round of the poll. A host in
// error has a retry time of its own (B-13).
func pollDue(s *metal3.BareMetalHostStatus, round int) bool {
	if s.OperationalStatus == metal3.OperationalStatusDetached || s.Provisioning.State == metal3.StateUnmanaged {
		return round%slowPollFactor == 0
	}
	return polled[s.Provisioning.State] && s.ErrorType == ""
}

// Setup adds the reconciler to a manager: it reconciles a host when its
// specification, finalizers, annotations or secret change, when its agent reports,
// and every minute in a stable state (B-07).
func (r *Reconciler) Setup(ctx context.Context, mgr manager.Manager) error {
	for _, x := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &metal3.BareMetalHost{}, x.field, x.index); err != nil {
			return err
		}
	}
	if err := mgr.Add(manager.RunnableFunc(r.poll)); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr)
	if r.BuildPreprovisioningImage {
		b = b.Owns(&metal3.PreprovisioningImage{}) // B-07
	}
	return b.
		Named("baremetalhost").
		For(&metal3.BareMetalHost{}, builder.WithPredicates(hostChanged)).
		Watches(&metal3.DataImage{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})). // with the host's name
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.hostsOfSecret), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Channel(r.wake, handler.EnqueueRequestsFromMapFunc(r.hostsOfEvent))).
		WithOptions(r.Options()).
		Complete(r)
}

// hostChanged accepts the changes of a host that begin a pass: those of its specification,
// annotations and finalizers, and its deletion. The status is the controller's own (B-07).
var hostChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	},
	CreateFunc:  func(event.CreateEvent) bool { return true },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
})

// Wake requests a pass over the host with this UID. It does not block: a request
// that does not fit into the channel is lost, and the delay that every pass
// returns makes up for it.
func (r *Reconciler) Wake(uid string) {
	select {
	case r.wake <- event.GenericEvent{Object: &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}}:
	default:
	}
}

func (r *Reconciler) hostsOfEvent(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetName() != "" {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	return r.hosts(ctx, client.MatchingFields{indexUID: string(o.GetUID())})
}

func (r *Reconciler) hostsOfSecret(ctx context.Context, o client.Object) []reconcile.Request {
	return r.hosts(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexSecret: o.GetName()})
}

func (r *Reconciler) hosts(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	var l metal3.BareMetalHostList
	if err := r.Client.List(ctx, &l, opts...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list hosts")
		return nil
	}
	out := make([]reconcile.Request, 0, len(l.Items))
	for i := range l.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
	}
	return out
}

// poll requests passes over hosts in stable states. It is one ticker instead of a
// delay per host, because the lab's clock does not advance for a ticker.
func (r *Reconciler) poll(ctx context.Context) error {
	t := r.Clock.NewTicker(powerPoll)
	defer t.Stop()
	for round := 1; ; round++ {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C():
		}
		var l metal3.BareMetalHostList
		if err := r.Client.List(ctx, &l); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list hosts to poll")
			continue
		}
		for i := range l.Items {
			if !pollDue(&l.Items[i].Status, round) {
				continue
			}
			select {
			case r.wake <- event.GenericEvent{Object: &l.Items[i]}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}
