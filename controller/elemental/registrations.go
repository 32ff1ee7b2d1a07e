package elemental

import (
	"context"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
	"github.com/metalab-dev/metalab/controller/elemental/registration"
	"github.com/metalab-dev/metalab/controller/elemental/token"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// registrations reconciles ElementalRegistrations.
type registrations struct {
	Config
	retries queue.Retries // retries of registrations without a key
}

func (r *registrations) setup(mgr manager.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("elemental-registration").
		For(&elementalv1.ElementalRegistration{}).
		WithOptions(r.RetryOptions(&r.retries))
	if r.Seeds != nil {
		b = b.Watches(&metal3.BareMetalHost{}, enqueue(r.withNetworkBoot), builder.WithPredicates(changesMACs))
	}
	return b.Complete(r)
}

// Reconcile implements reconcile.Reconciler for an ElementalRegistration.
func (r *registrations) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.ReconcileAfter(r.Enter, func() (time.Duration, error) {
		var g elementalv1.ElementalRegistration
		err := r.Client.Get(ctx, req.NamespacedName, &g)
		if err == nil && !g.DeletionTimestamp.IsZero() || apierrors.IsNotFound(err) {
			r.withdrawSeed(req.NamespacedName)
			return 0, nil
		}
		if err != nil {
			return 0, wrap("registration", err)
		}
		signed, err := r.reconcile(ctx, &g)
		if err == nil && !signed {
			r.retries.Failed(req, queue.Slow)
			return retryAfter, nil
		}
		r.retries.Succeeded(req)
		return 0, wrap("registration", err)
	})
}

// reconcile completes a registration. It reports false when the key that signs tokens is
// missing.
func (r *registrations) reconcile(ctx context.Context, g *elementalv1.ElementalRegistration) (bool, error) {
	before := g.DeepCopy()
	config := &g.Spec.Config.Elemental.Registration
	if config.URI == "" {
		config.URI = r.URL + registration.Path(g.Namespace, g.Name)
	}
	if config.CACert == "" {
		config.CACert = r.CA
	}
	if g.Spec.PrivateKeyRef == nil {
		if err := r.makeKey(ctx, g); err != nil {
			return false, err
		}
	}
	ready := condition.True(capi.ReadyCondition)
	if config.Token == "" {
		problem, err := r.sign(ctx, g)
		if err != nil {
			return false, err
		}
		if problem != "" {
			ready = condition.False(capi.ReadyCondition, "MissingSigningKey", capi.ConditionSeverityError, problem)
		}
	}
	if err := r.offerSeed(ctx, g, ready); err != nil {
		return false, err
	}
	return ready.Status == corev1.ConditionTrue, object.Patch(ctx, r.Client, before, g)
}

// makeKey makes the Secret with the key of a registration's tokens, unless there is one.
func (r *registrations) makeKey(ctx context.Context, g *elementalv1.ElementalRegistration) error {
	key, err := token.NewKey()
	if err != nil {
		return err
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: g.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(g, elementalv1.GroupVersion.WithKind("ElementalRegistration"))},
		},
		Data: map[string][]byte{registration.KeyData: key},
	}
	err = r.Client.Create(ctx, s)
	if apierrors.IsAlreadyExists(err) { // an earlier pass, or a user, has created it
		err = r.Reader.Get(ctx, client.ObjectKeyFromObject(g), s)
	}
	if err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	g.Spec.PrivateKeyRef = &corev1.ObjectReference{Kind: "Secret", Namespace: s.Namespace, Name: s.Name, UID: s.UID}
	return nil
}

// sign makes a registration's token, or returns why it cannot.
func (r *registrations) sign(ctx context.Context, g *elementalv1.ElementalRegistration) (problem string, err error) {
	var s corev1.Secret
	err = r.Reader.Get(ctx, client.ObjectKeyFromObject(g), &s)
	const remedy = ": set spec.privateKeyRef to null to make a new key"
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("Secret '%s' is missing%s", g.Name, remedy), nil
	case err != nil:
		return "", fmt.Errorf("secret: %w", err)
	}
	config := &g.Spec.Config.Elemental.Registration
	signed, err := token.Sign(s.Data[registration.KeyData], token.Registration{URI: config.URI, Lifetime: config.TokenDuration}, r.Wall.Now())
	if err != nil {
		return fmt.Sprintf("Secret '%s' has no Ed25519 key (PEM, PKCS #8) in %s: remove the Secret, and set spec.privateKeyRef to null to make a new key", g.Name, registration.KeyData), nil
	}
	config.Token = signed
	return "", nil
}
