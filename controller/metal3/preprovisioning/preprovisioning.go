// Package preprovisioning reconciles PreprovisioningImages. It asks a Builder for the
// image that a host's agent boots from, and reports the image's URL, or why there is
// none, in the status (B-240). Another controller can replace it: hosts read the
// objects and their conditions only.
//
// It does not know the content of an image.
package preprovisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// The reasons of the conditions Ready and Error.
const (
	reasonSuccess       = "ImageSuccess"
	reasonConfiguration = "ConfigurationError"
	reasonNetworkData   = "MissingNetworkData"
	reasonInvalid       = "ImageBuildInvalid"
)

// Request describes the image that a Builder builds.
type Request struct {
	Owner        string // UID of the host; "" when the object has no owner
	Format       metal3.ImageFormat
	Architecture string            // "" leaves the choice to the Builder
	NetworkData  map[string][]byte // nil when there is none
}

// Built holds the URLs of an image that can be fetched. KernelURL and KernelParams are
// empty for an ISO.
type Built struct{ URL, KernelURL, KernelParams string }

// InvalidError is returned for a request that no retry can satisfy.
type InvalidError struct{ Why string }

func (e *InvalidError) Error() string { return "Cannot generate image: " + e.Why }

// Builder builds images.
type Builder interface {
	// Builds reports whether the Builder supports a format.
	Builds(f metal3.ImageFormat) bool
	// BuildsFor reports whether the Builder supports an architecture.
	BuildsFor(architecture string) bool
	// Build returns the image for r. Equal requests return the same image.
	Build(ctx context.Context, r Request) (Built, error)
}

// Config configures a Reconciler.
type Config struct {
	queue.Work
	Client  client.Client
	Builder Builder
}

// Reconciler reconciles PreprovisioningImages.
type Reconciler struct{ Config }

// New returns a Reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Builder == nil || c.Clock == nil {
		return nil, errors.New("preprovisioning: Config.Client, Builder or Clock is nil")
	}
	return &Reconciler{c}, nil
}

const bySecret = "spec.networkDataName"

// Setup adds the reconciler to a manager. The reconciler does not poll: it runs when a
// PreprovisioningImage or the Secret of its network data changes.
func (r *Reconciler) Setup(ctx context.Context, mgr manager.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &metal3.PreprovisioningImage{}, bySecret, func(o client.Object) []string {
		return []string{o.(*metal3.PreprovisioningImage).Spec.NetworkDataName}
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("preprovisioningimage").
		For(&metal3.PreprovisioningImage{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.imagesUsing)).
		WithOptions(r.Options()).
		Complete(r)
}

// imagesUsing returns the PreprovisioningImages whose network data is in a Secret.
func (r *Reconciler) imagesUsing(ctx context.Context, o client.Object) []reconcile.Request {
	return watch.Requests[*metal3.PreprovisioningImage](ctx, r.Client, &metal3.PreprovisioningImageList{}, nil, client.InNamespace(o.GetNamespace()), client.MatchingFields{bySecret: o.GetName()})
}

// Reconcile implements reconcile.Reconciler for a PreprovisioningImage.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req) })
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) error {
	var p metal3.PreprovisioningImage
	if err := r.Client.Get(ctx, req.NamespacedName, &p); err != nil {
		return queue.Deleted(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		// The host removes its finalizer first: it may be about to boot the image.
		if len(p.Finalizers) == 1 && controllerutil.RemoveFinalizer(&p, metal3.PreprovisioningImageFinalizer) {
			return r.Client.Update(ctx, &p)
		}
		return nil
	}
	if controllerutil.AddFinalizer(&p, metal3.PreprovisioningImageFinalizer) { // B-03
		if err := r.Client.Update(ctx, &p); err != nil {
			return err
		}
	}
	before := p.Status.DeepCopy()
	if err := r.build(ctx, &p); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before, &p.Status) {
		return nil
	}
	return r.Client.Status().Update(ctx, &p)
}

// build sets the status from the image that the Builder returns, or from its error. It
// returns an error when a retry may succeed.
func (r *Reconciler) build(ctx context.Context, p *metal3.PreprovisioningImage) error {
	if !r.Builder.BuildsFor(p.Spec.Architecture) {
		fail(p, reasonConfiguration, "Architecture not supported")
		return nil
	}
	i := slices.IndexFunc(p.Spec.AcceptFormats, r.Builder.Builds)
	if i < 0 {
		fail(p, reasonConfiguration, "No acceptable image format supported")
		return nil
	}
	want := Request{Format: p.Spec.AcceptFormats[i], Architecture: p.Spec.Architecture}
	if owner := metav1.GetControllerOf(p); owner != nil {
		want.Owner = string(owner.UID)
	}
	var version metal3.SecretStatus
	if name := p.Spec.NetworkDataName; name != "" {
		var s corev1.Secret
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, &s)
		if apierrors.IsNotFound(err) {
			fail(p, reasonNetworkData, "NetworkData secret not found")
			return nil
		} else if err != nil {
			return fmt.Errorf("preprovisioning: network data: %w", err)
		}
		want.NetworkData, version = s.Data, metal3.SecretStatus{Name: name, Version: s.ResourceVersion}
	}
	built, err := r.Builder.Build(ctx, want)
	var invalid *InvalidError
	switch {
	case errors.As(err, &invalid):
		fail(p, reasonInvalid, invalid.Error())
		return nil
	case err != nil:
		return fmt.Errorf("preprovisioning: build: %w", err)
	}
	s := &p.Status
	s.ImageUrl, s.KernelUrl, s.ExtraKernelParams = built.URL, built.KernelURL, built.KernelParams
	s.Format, s.Architecture, s.NetworkData = want.Format, want.Architecture, version
	set(p, metal3.ConditionImageReady, metav1.ConditionTrue, reasonSuccess, "Generated image")
	set(p, metal3.ConditionImageError, metav1.ConditionFalse, reasonSuccess, "")
	return nil
}

// fail clears the image in the status and sets the conditions to an error.
func fail(p *metal3.PreprovisioningImage, reason, message string) {
	p.Status.ImageUrl, p.Status.KernelUrl, p.Status.ExtraKernelParams = "", "", ""
	set(p, metal3.ConditionImageReady, metav1.ConditionFalse, reason, message)
	set(p, metal3.ConditionImageError, metav1.ConditionTrue, reason, message)
}

func set(p *metal3.PreprovisioningImage, kind metal3.ImageStatusConditionType, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, ObservedGeneration: p.Generation, Reason: reason, Message: message,
	})
}
