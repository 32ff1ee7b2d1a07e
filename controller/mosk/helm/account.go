package helm

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Account is the service account that charts act as where the bundle names none. The policy
	// helmbundles.lcm.mirantis.com has the name, too.
	Account = "helm-charts"
	// accountRole is the ClusterRole of controller/config/hoc/deploy/charts.yaml that Account has in its namespace.
	accountRole = "lab-controller-charts"
)

// actAsAccount has the pass act as the service account of the bundle. Account is created with its
// rights, where it does not exist: one that an administrator has made keeps the rights that it has.
func (p *pass) actAsAccount(ctx context.Context) error {
	key := client.ObjectKey{Namespace: p.b.Namespace, Name: cmp.Or(p.b.Spec.ServiceAccountName, Account)}
	p.user = "system:serviceaccount:" + key.Namespace + ":" + key.Name
	p.target = rest.CopyConfig(p.target)
	p.target.Impersonate = rest.ImpersonationConfig{UserName: p.user} // the API adds its groups
	err := p.r.Reader.Get(ctx, key, new(corev1.ServiceAccount))
	switch {
	case err == nil || !p.b.DeletionTimestamp.IsZero(): // an account that is gone can still be impersonated
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("helm: ServiceAccount %s: %w", key, err)
	case p.b.Spec.ServiceAccountName != "":
		p.noAccount = fmt.Sprintf("serviceAccountName: ServiceAccount %s does not exist: create it, with the rights that the charts need, or correct the name", key)
		return nil
	}
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	for _, o := range []client.Object{ // the account comes last: it says that both are there
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: accountRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: key.Namespace, Name: key.Name}},
		},
		&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false)},
	} {
		if err := p.r.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("helm: %T %s: %w", o, key, err)
		}
	}
	return nil
}

// mayCreate reports whether Helm creates the namespace of a release. An account needs no right to
// create namespaces for one that exists.
func (p *pass) mayCreate(ctx context.Context, namespace string) (bool, error) {
	if p.user == "" {
		return true, nil
	}
	err := p.r.Reader.Get(ctx, client.ObjectKey{Name: namespace}, new(corev1.Namespace))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("helm: Namespace %s: %w", namespace, err)
	}
	return err != nil, nil
}

// lacksRights reports whether the API has refused a request of the bundle's account. Helm drops the
// type of errors of templates.
func (p *pass) lacksRights(err error) bool {
	return err != nil && p.user != "" && strings.Contains(err.Error(), "is forbidden: ") && strings.Contains(err.Error(), `"`+p.user+`"`)
}

// explain adds the fix to an error of rights that the account lacks.
func (p *pass) explain(err error) error {
	if !p.lacksRights(err) {
		return err
	}
	return fmt.Errorf("%w: the charts of this bundle act as the ServiceAccount %s of its namespace: grant it this right, or name another account in spec.serviceAccountName",
		err, cmp.Or(p.b.Spec.ServiceAccountName, Account))
}

// unlessItEnds returns err, or nil when the release is in the namespace of the bundle, which ends: its
// end has taken the rights of the account, and takes the objects of the release.
func (p *pass) unlessItEnds(ctx context.Context, namespace string, err error) error {
	if namespace != p.b.Namespace {
		return err
	}
	n := new(corev1.Namespace)
	if got := p.r.Reader.Get(ctx, client.ObjectKey{Name: namespace}, n); got != nil {
		return fmt.Errorf("%w; Namespace %s: %w", err, namespace, got)
	}
	if n.DeletionTimestamp.IsZero() {
		return err
	}
	return nil
}
