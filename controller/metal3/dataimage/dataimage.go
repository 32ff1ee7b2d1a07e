// Package dataimage reconciles DataImages. It makes the BareMetalHost of the same
// name the owner of each, and holds a deleted DataImage by a finalizer until the
// server's virtual CD no longer contains the image (B-230).
//
// It does not talk to servers: controller/metal3/host attaches and detaches images when it
// is about to power a host on, and reports the result in the DataImage's status.
package dataimage

import (
	"context"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// errLive is the error in the status of a DataImage whose host runs from a live ISO:
// the server has one virtual CD drive, and the live ISO is in it.
const errLive = "the virtual CD holds the live ISO that the host runs from"

// Config configures a Reconciler.
type Config struct {
	queue.Work
	Client client.Client
}

// Reconciler reconciles DataImages.
type Reconciler struct{ Config }

// New returns a Reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Clock == nil {
		return nil, errors.New("dataimage: Config.Client or Config.Clock is nil")
	}
	return &Reconciler{c}, nil
}

// Setup adds the reconciler to a manager. The reconciler does not poll: whatever a
// DataImage waits for changes its own status or its host.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	hosts := predicate.Or[client.Object](predicate.AnnotationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*metal3.BareMetalHost), e.ObjectNew.(*metal3.BareMetalHost)
			return live(before) != live(after)
		},
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("dataimage").
		For(&metal3.DataImage{}).
		Watches(&metal3.BareMetalHost{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(hosts)). // the host has the name of its DataImage
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for a DataImage.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req) })
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) error {
	var d metal3.DataImage
	if err := r.Client.Get(ctx, req.NamespacedName, &d); err != nil {
		return queue.Deleted(err)
	}
	var h metal3.BareMetalHost
	if err := r.Client.Get(ctx, req.NamespacedName, &h); apierrors.IsNotFound(err) {
		return r.release(ctx, &d) // without a host, no controller would ever detach it
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

// adopt makes h an owner of d and adds the finalizer that release removes (B-03, B-04).
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

// release removes the finalizer, so that the API deletes d.
func (r *Reconciler) release(ctx context.Context, d *metal3.DataImage) error {
	if !controllerutil.RemoveFinalizer(d, metal3.DataImageFinalizer) {
		return nil
	}
	return r.Client.Update(ctx, d)
}

// refuseLive sets errLive in the status while the host runs from a live ISO, and
// clears it afterwards.
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

// live reports whether a host runs from a live ISO.
func live(h *metal3.BareMetalHost) bool { return h.Status.Provisioning.Image.IsLiveISO() }
