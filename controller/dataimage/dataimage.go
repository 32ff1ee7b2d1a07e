// Package dataimage reconciles DataImages: it ties each to the host of its name
// and keeps one that is deleted until the server no longer holds it (B-230).
//
// It refuses to touch servers: images are attached and detached by
// controller/host, when a host is about to be switched on, and what came of it is
// in the DataImage's status.
package dataimage

import (
	"context"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/metalab-dev/metalab/controller/queue"
)

// errLive is why a host that runs from a live ISO gets no data image: it has one
// virtual CD drive.
const errLive = "the virtual CD holds the live ISO that the host runs from"

// Config is what a Reconciler works with.
type Config struct {
	Client  client.Client
	Clock   clock.WithTicker
	Workers int           // 0 is 1
	Enter   func() func() // around each pass, may be nil; see the lab's clock
}

// Reconciler reconciles DataImages.
type Reconciler struct{ Config }

// New checks the configuration and makes a Reconciler.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Clock == nil {
		return nil, errors.New("dataimage: Config.Client or Config.Clock is nil")
	}
	c.Workers = max(c.Workers, 1)
	return &Reconciler{c}, nil
}

// Setup adds the reconciler to a manager. Nothing is polled: what a DataImage
// waits for is written into its status, or changes its host.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	hosts := predicate.Or[client.Object](predicate.AnnotationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*metal3.BareMetalHost), e.ObjectNew.(*metal3.BareMetalHost)
			return live(was) != live(is)
		},
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("dataimage").
		For(&metal3.DataImage{}).
		Watches(&metal3.BareMetalHost{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(hosts)). // of the same name
		WithOptions(queue.Options(r.Clock, r.Workers)).
		Complete(r)
}

// Reconcile makes one pass over a DataImage.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Watched(r.Enter, func() error { return r.reconcile(ctx, req) })
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) error {
	var d metal3.DataImage
	if err := r.Client.Get(ctx, req.NamespacedName, &d); err != nil {
		return err
	}
	var h metal3.BareMetalHost
	if err := r.Client.Get(ctx, req.NamespacedName, &h); apierrors.IsNotFound(err) {
		return r.release(ctx, &d) // nobody would ever detach it
	} else if err != nil {
		return err
	}
	if _, paused := h.Annotations[metal3.PausedAnnotation]; paused { // B-90
		return nil
	}
	_, detached := h.Annotations[metal3.DetachedAnnotation]
	switch {
	case d.DeletionTimestamp.IsZero():
		if err := r.adopt(ctx, &d, &h); err != nil {
			return err
		}
		return r.refuseLive(ctx, &d, &h)
	case detached, d.Status.AttachedImage.URL == "":
		return r.release(ctx, &d)
	}
	return nil
}

// adopt makes d the host's, and keeps it until release (B-03, B-04).
func (r *Reconciler) adopt(ctx context.Context, d *metal3.DataImage, h *metal3.BareMetalHost) error {
	owners := len(d.OwnerReferences)
	if err := controllerutil.SetOwnerReference(h, d, r.Client.Scheme()); err != nil {
		return fmt.Errorf("dataimage: %w", err)
	}
	if !controllerutil.AddFinalizer(d, metal3.DataImageFinalizer) && len(d.OwnerReferences) == owners {
		return nil
	}
	return r.Client.Update(ctx, d)
}

// release lets d go.
func (r *Reconciler) release(ctx context.Context, d *metal3.DataImage) error {
	if !controllerutil.RemoveFinalizer(d, metal3.DataImageFinalizer) {
		return nil
	}
	return r.Client.Update(ctx, d)
}

// refuseLive tells why an image will not be attached to a host that is booted
// from its CD, and takes that back.
func (r *Reconciler) refuseLive(ctx context.Context, d *metal3.DataImage, h *metal3.BareMetalHost) error {
	switch refused := d.Status.Error.Message == errLive; {
	case live(h) && !refused:
		d.Status.Error = metal3.DataImageError{Count: 1, Message: errLive}
	case !live(h) && refused:
		d.Status.Error = metal3.DataImageError{}
	default:
		return nil
	}
	return r.Client.Status().Update(ctx, d)
}

// live says whether a host runs from a live ISO.
func live(h *metal3.BareMetalHost) bool { return h.Status.Provisioning.Image.IsLiveISO() }
