// Package preprovisioning reconciles PreprovisioningImages: it has the image built
// that a host's agent shall be booted from, and tells in the status where it is or
// why there is none (B-240). Another builder of images can take its place: the
// objects and their conditions are all that hosts look at.
//
// It refuses to know what is in an image, and what hosts wait for.
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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalab-dev/metalab/controller/queue"
)

// The reasons of the conditions Ready and Error.
const (
	reasonSuccess       = "ImageSuccess"
	reasonConfiguration = "ConfigurationError"
	reasonNetworkData   = "MissingNetworkData"
	reasonInvalid       = "ImageBuildInvalid"
)

// Request is what an image is asked for with.
type Request struct {
	Owner        string // UID of the host; "" when it is nobody's
	Format       metal3.ImageFormat
	Architecture string            // "" is whatever there is
	NetworkData  map[string][]byte // nil: none
}

// Built is an image that can be fetched.
type Built struct{ URL, KernelURL, KernelParams string }

// InvalidError says why no image can be built of a request, however often it is
// tried.
type InvalidError struct{ Why string }

func (e *InvalidError) Error() string { return "Cannot generate image: " + e.Why }

// Builder builds images. What it has built once it gives again.
type Builder interface {
	Builds(f metal3.ImageFormat) bool
	BuildsFor(architecture string) bool
	Build(ctx context.Context, r Request) (Built, error)
}

// Config is what a Reconciler works with.
type Config struct {
	Client  client.Client
	Builder Builder
	Clock   clock.WithTicker
	Workers int           // 0 is 1
	Enter   func() func() // around each pass, may be nil; see the lab's clock
}

// Reconciler reconciles PreprovisioningImages.
type Reconciler struct{ Config }

// New checks the configuration and makes a Reconciler.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Builder == nil || c.Clock == nil {
		return nil, errors.New("preprovisioning: Config.Client, Builder or Clock is nil")
	}
	c.Workers = max(c.Workers, 1)
	return &Reconciler{c}, nil
}

const bySecret = "spec.networkDataName"

// Setup adds the reconciler to a manager. Nothing is polled: an image is looked at
// again when it or the Secret of its network data changes.
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
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSecret)).
		WithOptions(queue.Options(r.Clock, r.Workers)).
		Complete(r)
}

func (r *Reconciler) ofSecret(ctx context.Context, o client.Object) []reconcile.Request {
	var l metal3.PreprovisioningImageList
	if err := r.Client.List(ctx, &l, client.InNamespace(o.GetNamespace()), client.MatchingFields{bySecret: o.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list images")
		return nil
	}
	var out []reconcile.Request
	for i := range l.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
	}
	return out
}

// Reconcile makes one pass over a PreprovisioningImage.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Watched(r.Enter, func() error { return r.reconcile(ctx, req) })
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) error {
	var p metal3.PreprovisioningImage
	if err := r.Client.Get(ctx, req.NamespacedName, &p); err != nil {
		return err
	}
	if !p.DeletionTimestamp.IsZero() {
		// Its host goes first: it may be about to boot it.
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

// build brings the status up to what is asked for.
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

// fail says why there is no image.
func fail(p *metal3.PreprovisioningImage, reason, message string) {
	p.Status.ImageUrl, p.Status.KernelUrl, p.Status.ExtraKernelParams = "", "", ""
	set(p, metal3.ConditionImageReady, metav1.ConditionFalse, reason, message)
	set(p, metal3.ConditionImageError, metav1.ConditionTrue, reason, message)
}

func set(p *metal3.PreprovisioningImage, kind metal3.ImageStatusConditionType, is metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: is, ObservedGeneration: p.Generation, Reason: reason, Message: message,
	})
}
