package inventory

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/unmanaged"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// credentials reconciles BareMetalHostCredentials.
type credentials struct {
	Config
	retries queue.Retries // retries of reads of Secrets
}

// Reconcile implements reconcile.Reconciler for a BareMetalHostCredential.
func (r *credentials) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.retries.ReconcileAfter(req, r.Enter, func() (time.Duration, error) {
		var c kaasv1.BareMetalHostCredential
		if err := r.Client.Get(ctx, req.NamespacedName, &c); err != nil {
			return 0, queue.Deleted(err)
		}
		after, err := r.reconcile(ctx, &c)
		if err != nil {
			return 0, fmt.Errorf("inventory: credential: %w", err)
		}
		return after, nil
	})
}

// secretName is the name of the Secret of a credential. It is in no public text.
func secretName(c *kaasv1.BareMetalHostCredential) string { return c.Name + "-bmc-account" }

// The keys of a BMC's account in its Secret are Metal3's.
const (
	userKey     = "username"
	passwordKey = "password" //nolint:gosec // a key
)

func (r *credentials) reconcile(ctx context.Context, c *kaasv1.BareMetalHostCredential) (after time.Duration, err error) {
	if message := unmanaged.Message(c, CredentialFinalizer); message != "" {
		before := c.DeepCopy()
		c.Status = kaasv1.BareMetalHostCredentialStatus{ErrorMessage: message, ObservedGeneration: c.Generation}
		return 0, r.patchStatus(ctx, before, c)
	}
	if !c.DeletionTimestamp.IsZero() {
		return 0, r.remove(ctx, c)
	}
	secret := new(corev1.Secret)
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: secretName(c)}, secret)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return 0, err
	}
	problem := problemOf(c, secret, exists)
	if problem == "" {
		if err := r.move(ctx, c, secret, exists); err != nil {
			return 0, err
		}
	} else {
		after = queue.SecretWait
	}
	before := c.DeepCopy()
	c.Status = kaasv1.BareMetalHostCredentialStatus{Ready: problem == "", ErrorMessage: problem, ObservedGeneration: c.Generation}
	return after, r.patchStatus(ctx, before, c)
}

// problemOf returns why a credential cannot be used; "" when it can.
func problemOf(c *kaasv1.BareMetalHostCredential, s *corev1.Secret, exists bool) string {
	switch p := c.Spec.Password; {
	case exists && !metav1.IsControlledBy(s, c):
		return fmt.Sprintf("Secret %q exists, and is not the credential's: remove it", s.Name)
	case p.Value != "" && strings.TrimSpace(p.Value) == "":
		return "spec.password.value has blanks alone: give the password"
	case p.Value != "":
		return ""
	case p.Name != secretName(c):
		return fmt.Sprintf("spec.password.name: Secret %q is not the credential's: give the password in spec.password.value", p.Name)
	case !exists || len(s.Data[passwordKey]) == 0:
		return fmt.Sprintf("spec.password.name: Secret %q has no password: give it in spec.password.value", p.Name)
	}
	return ""
}

// move writes user name and password to the Secret, then removes the password from the
// object, also from the copy of the object that kubectl apply adds to it.
func (r *credentials) move(ctx context.Context, c *kaasv1.BareMetalHostCredential, current *corev1.Secret, exists bool) error {
	before := c.DeepCopy()
	if controllerutil.AddFinalizer(c, CredentialFinalizer) { // before there is anything to remove
		if err := r.patch(ctx, before, c); err != nil {
			return err
		}
	}
	password := []byte(c.Spec.Password.Value)
	if len(password) == 0 {
		password = current.Data[passwordKey]
	}
	data := map[string][]byte{userKey: []byte(c.Spec.Username), passwordKey: password}
	if !exists {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: secretName(c),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, kaasv1.GroupVersion.WithKind("BareMetalHostCredential"))},
		}, Data: data}
		if err := r.Client.Create(ctx, s); err != nil {
			return err
		}
	} else if !equality.Semantic.DeepEqual(current.Data, data) {
		after := current.DeepCopy()
		after.Data = data
		if err := r.patch(ctx, current, after); err != nil {
			return err
		}
	}
	before = c.DeepCopy()
	c.Spec.Password = kaasv1.CredentialPassword{Name: secretName(c)}
	if strings.Contains(c.Annotations[corev1.LastAppliedConfigAnnotation], `"value"`) {
		delete(c.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return r.patch(ctx, before, c)
}

// remove deletes the Secret once no inventory names the credential.
func (r *credentials) remove(ctx context.Context, c *kaasv1.BareMetalHostCredential) error {
	users, err := r.users(ctx, c.Namespace, c.Name)
	if err != nil {
		return err
	}
	before := c.DeepCopy()
	if len(users) > 0 {
		c.Status.ErrorMessage = fmt.Sprintf("it is deleted when no BareMetalHostInventory names it: %s", strings.Join(users, ", "))
		return r.patchStatus(ctx, before, c)
	}
	s := new(corev1.Secret)
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: secretName(c)}, s)
	if err == nil && metav1.IsControlledBy(s, c) && s.DeletionTimestamp.IsZero() {
		err = r.Client.Delete(ctx, s)
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	controllerutil.RemoveFinalizer(c, CredentialFinalizer)
	return r.patch(ctx, before, c)
}
