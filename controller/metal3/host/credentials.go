package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
)

// Label and finalizer of a secret that belongs to a host (B-113).
const (
	secretLabel      = "environment.metal3.io"
	secretLabelValue = "baremetal"
	secretFinalizer  = metal3.BareMetalHostFinalizer + "/secret"
)

// credentialsError is an error of the credentials that only the user can fix. The
// texts are Metal3's (B-110, B-111, B-112).
type credentialsError struct {
	text    string
	missing bool // the secret may be created any moment: retry soon
}

func (e *credentialsError) Error() string { return e.text }

// credentials reads the address and the secret of a host's BMC.
func (r *Reconciler) credentials(ctx context.Context, h *metal3.BareMetalHost, o *observation) (bmc.Config, error) {
	if h.Spec.BMC.CredentialsName == "" {
		return bmc.Config{}, bmc.ErrNoCredentials
	}
	var secret corev1.Secret
	if err := r.read.Get(ctx, h.CredentialsKey(), &secret); err != nil {
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
	if err := r.checkBootable(h, address); err != nil {
		return bmc.Config{}, err
	}
	o.facts.NetBoot = netBootDevices[address.Boot]
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
	if err := r.checkRegistration(ctx, h); err != nil {
		return bmc.Config{}, err
	}
	return bmc.Config{Address: address, Credentials: c, Insecure: h.Spec.BMC.DisableCertificateVerification, RootCAs: r.RootCAs, Clock: r.Clock}, nil
}

// countCredentials counts the credentials' errors and changes (B-111, B-112,
// B-280).
func (r *Reconciler) countCredentials(h *metal3.BareMetalHost, o *observation) {
	if o.credentialsChanged {
		r.metrics.updated.WithLabelValues(h.Namespace, h.Name).Inc()
	}
	if o.reregistered {
		r.metrics.durations[metal3.StateRegistering].WithLabelValues(h.Namespace, h.Name).Observe(h.Status.OperationHistory.Register.Duration().Seconds())
	}
	var bad *credentialsError
	switch err := o.registrationError; {
	case err == nil:
	case errors.As(err, &bad) && bad.missing:
		r.metrics.missing.WithLabelValues(h.Namespace, h.Name).Inc()
	case !o.connected:
		r.metrics.invalid.WithLabelValues(h.Namespace, h.Name).Inc()
	default:
		r.metrics.noAccess.WithLabelValues(h.Namespace, h.Name).Inc()
	}
}

// adoptSecret adds label, finalizer and owner reference to a secret (B-113).
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
	if err := r.Client.Patch(ctx, s, patch.IfUnchanged(before)); err != nil {
		return err
	}
	r.read.Wrote(s)
	return nil
}

// releaseSecret removes the host from a secret, and the finalizer unless another
// host uses the secret.
func (r *Reconciler) releaseSecret(ctx context.Context, h *metal3.BareMetalHost, name string) error {
	var s corev1.Secret
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: name}, &s); err != nil {
		return client.IgnoreNotFound(err)
	}
	shared, err := r.shared(ctx, h, name)
	if err != nil {
		return err
	}
	before := s.DeepCopy()
	r.read.Forget(&s)
	if !shared {
		controllerutil.RemoveFinalizer(&s, secretFinalizer)
	}
	if shared || h.DeletionTimestamp.IsZero() { // otherwise the garbage collector deletes the secret with its last owner (B-04)
		s.OwnerReferences = slices.DeleteFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == h.UID })
	}
	if equality.Semantic.DeepEqual(before.ObjectMeta, s.ObjectMeta) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, &s, patch.IfUnchanged(before)))
}

// shared reports whether another host that is not being deleted uses a secret. It
// reads the hosts that the cache lists from the API: of two hosts deleted at the
// same time one must see that the other is, or both would leave the finalizer in
// place.
func (r *Reconciler) shared(ctx context.Context, h *metal3.BareMetalHost, name string) (bool, error) {
	var l metal3.BareMetalHostList
	if err := r.Client.List(ctx, &l, client.InNamespace(h.Namespace), client.MatchingFields{indexSecret: name}); err != nil {
		return false, fmt.Errorf("hosts of secret %s: %w", name, err)
	}
	for i := range l.Items {
		other := &l.Items[i]
		if other.UID == h.UID {
			continue
		}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(other), other); client.IgnoreNotFound(err) != nil {
			return false, err
		} else if err == nil && other.Status.Provisioning.State != metal3.StateDeleting && slices.Contains(hostSecrets(other), name) {
			return true, nil
		}
	}
	return false, nil
}
