package host

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// controllerArchitecture is the architecture of this process by Linux's name, for
// hosts of unknown architecture (B-252).
var controllerArchitecture = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]

// imageFinalizer keeps a host's PreprovisioningImage while the host may boot it.
const imageFinalizer = metal3.BareMetalHostFinalizer + "/preprovisioningImage"

// observeImage requests the image that the host's agent boots from, if images are
// built, and reads its state (B-240). It requests the image when an agent is about
// to be booted; the image exists until the host is deleted.
func (r *Reconciler) observeImage(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	f := &o.facts
	if !r.BuildPreprovisioningImage || !phase.WantsAgent(*f) {
		return nil
	}
	want, err := imageSpec(h)
	if err != nil {
		return err
	}
	key, p := client.ObjectKeyFromObject(h), new(metal3.PreprovisioningImage)
	switch err := r.Client.Get(ctx, key, p); {
	case apierrors.IsNotFound(err):
		p = &metal3.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name}}
		if err := r.applyImageSpec(h, p, want); err != nil {
			return err
		}
		if err := r.Client.Create(ctx, p); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("pre-provisioning image: %w", err)
		}
	case err != nil:
		return fmt.Errorf("pre-provisioning image: %w", err)
	default:
		before := p.DeepCopy()
		if err := r.applyImageSpec(h, p, want); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(before, p) {
			if err := r.Client.Update(ctx, p); err != nil {
				return fmt.Errorf("pre-provisioning image: %w", err)
			}
		}
	}
	return r.observeImageStatus(ctx, p, f)
}

// imageSpec returns the specification of the image for the host's agent.
func imageSpec(h *metal3.BareMetalHost) (metal3.PreprovisioningImageSpec, error) {
	address, err := bmc.ParseAddress(h.Spec.BMC.Address)
	if err != nil {
		return metal3.PreprovisioningImageSpec{}, err
	}
	formats := []metal3.ImageFormat{metal3.ImageFormatInitRD}
	if address.ISO {
		formats = []metal3.ImageFormat{metal3.ImageFormatISO, metal3.ImageFormatInitRD}
	}
	arch := h.Spec.Architecture
	if arch == "" && h.Status.HardwareDetails != nil {
		arch = h.Status.HardwareDetails.CPU.Arch
	}
	if arch == "" { // B-252
		arch = controllerArchitecture
	}
	return metal3.PreprovisioningImageSpec{Architecture: arch, AcceptFormats: formats, NetworkDataName: h.Spec.PreprovisioningNetworkDataName}, nil
}

// applyImageSpec writes the specification, labels, finalizer and owner of the
// image (B-03, B-04, B-101).
func (r *Reconciler) applyImageSpec(h *metal3.BareMetalHost, p *metal3.PreprovisioningImage, want metal3.PreprovisioningImageSpec) error {
	p.Spec = want
	if len(h.Labels) > 0 {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		maps.Copy(p.Labels, h.Labels)
	}
	controllerutil.AddFinalizer(p, imageFinalizer)
	if err := controllerutil.SetControllerReference(h, p, r.Client.Scheme()); err != nil {
		return fmt.Errorf("pre-provisioning image: %w", err)
	}
	return nil
}

// observeImageStatus reports whether the image can be booted. Its status must be
// about the current specification.
func (r *Reconciler) observeImageStatus(ctx context.Context, p *metal3.PreprovisioningImage, f *phase.Facts) error {
	current := func(kind metal3.ImageStatusConditionType) *metav1.Condition {
		c := meta.FindStatusCondition(p.Status.Conditions, string(kind))
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != p.Generation {
			return nil
		}
		return c
	}
	if c := current(metal3.ConditionImageError); c != nil {
		f.RegistrationError = c.Message
		return nil
	}
	if current(metal3.ConditionImageReady) == nil || p.Status.Architecture != p.Spec.Architecture {
		f.AwaitsImage = true
		return nil
	}
	if !slices.Contains(p.Spec.AcceptFormats, p.Status.Format) {
		f.RegistrationError = "Preprovisioning Image is not acceptable to provisioner" // B-47
		return nil
	}
	var version metal3.SecretStatus
	if name := p.Spec.NetworkDataName; name != "" {
		var s corev1.Secret
		if err := r.read.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, &s); err != nil {
			return fmt.Errorf("pre-provisioning image: network data: %w", err)
		}
		version = metal3.SecretStatus{Name: name, Version: s.ResourceVersion}
	}
	f.AwaitsImage = p.Status.NetworkData != version
	return nil
}

// releaseImage removes the finalizer of the image (B-71).
func (r *Reconciler) releaseImage(ctx context.Context, h *metal3.BareMetalHost) error {
	if !r.BuildPreprovisioningImage {
		return nil
	}
	var p metal3.PreprovisioningImage
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(h), &p); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := p.DeepCopy()
	if !controllerutil.RemoveFinalizer(&p, imageFinalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, &p, client.MergeFrom(before)))
}
