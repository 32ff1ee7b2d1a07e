package hostos

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// Configurations reconciles HostOSConfigurations: it validates them and writes the result.
type Configurations struct {
	Config
	secrets secretVersions
}

// NewConfigurations returns a reconciler, or an error when a required field of c is nil.
func NewConfigurations(c Config) (*Configurations, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Configurations{Config: c}, nil
}

// Setup adds the reconciler to a manager. It does not poll: a change of an object's
// modules, Secrets and namesakes reaches it by watches.
func (r *Configurations) Setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("hostos-validate").
		For(&kaasv1.HostOSConfiguration{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, timeoutChanged))).
		// The names of state items must be unique among all objects of a namespace, so that an
		// event of one object may change the validity of the others.
		Watches(&kaasv1.HostOSConfiguration{}, r.enqueue(sameNamespace), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, validChanged))).
		Watches(&kaasv1.HostOSConfigurationModules{}, r.enqueue(func(client.Object, *kaasv1.HostOSConfiguration) bool { return true })).
		Watches(&corev1.Secret{}, r.enqueue(refersTo)).
		WithOptions(r.Options()).
		Complete(r)
}

// validChanged passes updates that change status.isValid.
var validChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return valid(e.ObjectOld.(*kaasv1.HostOSConfiguration)) != valid(e.ObjectNew.(*kaasv1.HostOSConfiguration))
	},
}

// timeoutChanged passes updates that change the deadline of playbooks: an annotation is in no
// generation.
var timeoutChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, had := e.ObjectOld.GetAnnotations()[item.TimeoutAnnotation]
		after, has := e.ObjectNew.GetAnnotations()[item.TimeoutAnnotation]
		return before != after || had != has
	},
	CreateFunc: func(event.CreateEvent) bool { return false }, // the other predicate passes it
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// valid reports whether the last validation of an object had no error.
func valid(o *kaasv1.HostOSConfiguration) bool { return ptr.Deref(o.Status.IsValid, false) }

// enqueue returns a handler that enqueues the objects that an event of another concerns.
func (r *Configurations) enqueue(concerns func(client.Object, *kaasv1.HostOSConfiguration) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return r.requests(ctx, object, concerns)
	})
}

func (r *Configurations) requests(ctx context.Context, object client.Object, concerns func(client.Object, *kaasv1.HostOSConfiguration) bool) []reconcile.Request {
	return watch.Requests(ctx, r.Client, &kaasv1.HostOSConfigurationList{}, func(o *kaasv1.HostOSConfiguration) bool { return concerns(object, o) })
}

func sameNamespace(object client.Object, o *kaasv1.HostOSConfiguration) bool {
	return object.GetNamespace() == o.Namespace && object.GetName() != o.Name
}

func refersTo(secret client.Object, o *kaasv1.HostOSConfiguration) bool {
	return slices.ContainsFunc(o.Spec.Configs, func(c kaasv1.Config) bool {
		return c.SecretValues != nil && located(*c.SecretValues, o.Namespace) == kaasv1.SecretReference{Name: secret.GetName(), Namespace: secret.GetNamespace()}
	})
}

// Reconcile implements reconcile.Reconciler for a HostOSConfiguration.
func (r *Configurations) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req) })
}

func (r *Configurations) reconcile(ctx context.Context, req ctrl.Request) error {
	var o kaasv1.HostOSConfiguration
	if err := r.Client.Get(ctx, req.NamespacedName, &o); err != nil {
		if apierrors.IsNotFound(err) {
			r.secrets.forget(req.NamespacedName)
		}
		return queue.Deleted(err)
	}
	if !o.DeletionTimestamp.IsZero() { // nothing is applied any more
		return nil
	}
	f, err := r.observe(ctx, &o)
	if err != nil {
		return fmt.Errorf("hostos: configuration %s: %w", req, err)
	}
	before := o.DeepCopy()
	r.record(&o.Status, o.Generation, validate(f))
	if equality.Semantic.DeepEqual(before.Status, o.Status) {
		return nil
	}
	// A merge patch of these fields: the bare metal provider writes others.
	if err := r.Client.Status().Patch(ctx, &o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("hostos: status of configuration %s: %w", req, err)
	}
	return nil
}

// observe reads all that the validation depends on.
func (r *Configurations) observe(ctx context.Context, o *kaasv1.HostOSConfiguration) (facts, error) {
	f := facts{object: o, secrets: map[kaasv1.SecretReference]*secret{}}
	var modules kaasv1.HostOSConfigurationModulesList
	if err := r.Client.List(ctx, &modules); err != nil {
		return f, err
	}
	f.modules = modules.Items
	slices.SortFunc(f.modules, byAge)
	var others kaasv1.HostOSConfigurationList
	if err := r.Client.List(ctx, &others, client.InNamespace(o.Namespace)); err != nil {
		return f, err
	}
	f.others = others.Items
	found := map[kaasv1.SecretReference]*corev1.Secret{}
	for _, c := range o.Spec.Configs {
		if c.SecretValues == nil {
			continue
		}
		ref := located(*c.SecretValues, o.Namespace)
		if ref.Namespace != o.Namespace { // it is refused
			continue
		}
		var s corev1.Secret
		switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &s); {
		case err == nil:
			found[ref] = &s
		case !apierrors.IsNotFound(err):
			return f, err
		}
	}
	versions := r.secrets.observe(o, found)
	for ref, s := range found {
		f.secrets[ref] = &secret{version: s.ResourceVersion, dataVersion: versions[ref], data: s.Data}
	}
	return f, nil
}

// record sets the fields of the status that this reconciler owns.
func (r *Configurations) record(s *kaasv1.HostOSConfigurationStatus, generation int64, configs []kaasv1.ConfigStatus) {
	old := s.DeepCopy()
	valid := !slices.ContainsFunc(configs, func(c kaasv1.ConfigStatus) bool { return c.Error != "" })
	s.Configs, s.IsValid, s.ObservedGeneration = configs, ptr.To(valid), generation
	s.ContainsDeprecatedModules = slices.ContainsFunc(configs, func(c kaasv1.ConfigStatus) bool { return len(c.ModuleDeprecatedBy) > 0 })
	now := ptr.To(metav1.NewTime(r.Clock.Now().Truncate(time.Second)))
	if old.ObservedGeneration != generation {
		s.SpecUpdatedAt = now
	}
	if !equality.Semantic.DeepEqual(old, s) {
		s.UpdatedAt = now
	}
}
