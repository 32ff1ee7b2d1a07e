package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Marks of a secret that belongs to a host (B-113).
const (
	secretLabel      = "environment.metal3.io"
	secretLabelValue = "baremetal"
	secretFinalizer  = metal3.BareMetalHostFinalizer + "/secret"
)

// credentialsError is a fault of the credentials that only the user can mend.
// Its texts are Metal3's (B-110 to B-112).
type credentialsError struct {
	text    string
	missing bool // the secret may yet be created: look again soon
}

func (e *credentialsError) Error() string { return e.text }

// credentials reads the address and the secret of a host's BMC.
func (r *Reconciler) credentials(ctx context.Context, h *metal3.BareMetalHost, o *observation) (bmc.Config, error) {
	if h.Spec.BMC.CredentialsName == "" {
		return bmc.Config{}, bmc.ErrNoCredentials
	}
	var secret corev1.Secret
	if err := r.read.get(ctx, h.CredentialsKey(), &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return bmc.Config{}, &credentialsError{missing: true, text: fmt.Sprintf(
				"BMC CredentialsName secret doesn't exist The BMC secret %s does not exist", h.CredentialsKey())}
		}
		return bmc.Config{}, err
	}
	o.secret = &secret
	address, err := bmc.ParseAddress(h.Spec.BMC.Address)
	if err != nil {
		return bmc.Config{}, err
	}
	if err := bootable(h, address); err != nil {
		return bmc.Config{}, err
	}
	c := bmc.Credentials{
		Username: strings.TrimSpace(string(secret.Data["username"])),
		Password: strings.TrimSpace(string(secret.Data["password"])),
	}
	if c.Username == "" {
		return bmc.Config{}, &credentialsError{text: "Validation error with BMC credentials: Missing BMC connection detail 'username' in credentials"}
	}
	if c.Password == "" {
		return bmc.Config{}, &credentialsError{text: "Validation error with BMC credentials: Missing BMC connection details 'password' in credentials"}
	}
	if err := r.adoptSecret(ctx, h, &secret); err != nil {
		return bmc.Config{}, err
	}
	return bmc.Config{Address: address, Credentials: c, Insecure: h.Spec.BMC.DisableCertificateVerification, RootCAs: r.RootCAs, Clock: r.Clock}, nil
}

// countCredentials counts what is wrong with them (B-111, B-112, B-280).
func (r *Reconciler) countCredentials(h *metal3.BareMetalHost, o *observation) {
	if o.updated {
		r.metrics.updated.WithLabelValues(h.Namespace, h.Name).Inc()
	}
	var bad *credentialsError
	switch err := o.unregistered; {
	case err == nil:
	case errors.As(err, &bad) && bad.missing:
		r.metrics.missing.WithLabelValues(h.Namespace, h.Name).Inc()
	case o.client == nil: // it never came to asking the BMC
		r.metrics.invalid.WithLabelValues(h.Namespace, h.Name).Inc()
	default:
		r.metrics.noAccess.WithLabelValues(h.Namespace, h.Name).Inc()
	}
}

// bootable says why a host at this kind of address could never be given its
// agent. The texts are Metal3's (B-47), but the last.
func bootable(h *metal3.BareMetalHost, a bmc.Address) error {
	switch {
	case h.Spec.BootMACAddress == "" && (a.NeedsMAC || h.InspectionDisabled()):
		return fmt.Errorf("BMC driver %s requires a BootMACAddress value", a.Hardware)
	case a.NeedsNetwork: // there is none: agents come by virtual media
		return fmt.Errorf("BMC driver %s requires a provisioning network", a.Hardware)
	case a.Boot != bmc.MediumCD:
		return fmt.Errorf("BMC type %s boots by %s, which is not supported: use redfish-virtualmedia", a.Scheme, a.Boot)
	}
	return nil
}

// adoptSecret marks the secret as the host's, once (B-113).
func (r *Reconciler) adoptSecret(ctx context.Context, h *metal3.BareMetalHost, s *corev1.Secret) error {
	if !h.DeletionTimestamp.IsZero() || !s.DeletionTimestamp.IsZero() {
		return nil
	}
	before := s.DeepCopy()
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[secretLabel] = secretLabelValue
	controllerutil.AddFinalizer(s, secretFinalizer)
	if err := controllerutil.SetOwnerReference(h, s, r.Client.Scheme()); err != nil {
		return fmt.Errorf("secret %s: %w", s.Name, err)
	}
	if s.Labels[secretLabel] == before.Labels[secretLabel] && len(s.Finalizers) == len(before.Finalizers) &&
		len(s.OwnerReferences) == len(before.OwnerReferences) {
		return nil
	}
	if err := r.Client.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	r.read.wrote(s)
	return nil
}

// releaseSecret lets the secret go with its host.
func (r *Reconciler) releaseSecret(ctx context.Context, h *metal3.BareMetalHost) error {
	if h.Spec.BMC.CredentialsName == "" {
		return nil
	}
	var s corev1.Secret
	if err := r.Reader.Get(ctx, h.CredentialsKey(), &s); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := s.DeepCopy()
	r.read.forget(&s)
	if !controllerutil.RemoveFinalizer(&s, secretFinalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, &s, client.MergeFrom(before)))
}
