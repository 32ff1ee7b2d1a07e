package clusters

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
)

// account makes the service account of a Cluster's Helm controller, which
// LCMCluster.spec.helmControllerServiceAccountName names: with rights to the Cluster's HelmBundle b
// and what that needs, and to the Lease by which the controller takes over. b is nil for a Cluster
// that has none yet. The objects go with the Cluster.
func (r *Reconciler) account(ctx context.Context, c *clusterv1.Cluster, b *lcmv1.HelmBundle) error {
	if b == nil { // a mistake in the Cluster leaves the one of before
		var err error
		if b, err = r.readBundle(ctx, c); err != nil {
			return err
		}
	}
	role := &rbacv1.Role{ObjectMeta: accountMeta(c), Rules: helmRules(c.Name, b)}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: accountMeta(c),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: role.Namespace, Name: role.Name}},
	}
	for _, x := range []struct {
		want, current client.Object
		change        func(current client.Object)
	}{
		{&corev1.ServiceAccount{ObjectMeta: accountMeta(c), AutomountServiceAccountToken: ptr.To(false)}, new(corev1.ServiceAccount), func(client.Object) {}},
		{role, new(rbacv1.Role), func(o client.Object) { o.(*rbacv1.Role).Rules = role.Rules }},
		{binding, new(rbacv1.RoleBinding), func(o client.Object) { o.(*rbacv1.RoleBinding).Subjects = binding.Subjects }},
		// RBAC cannot restrict the creation of an object to a name: the controller finds its Lease.
		{&coordinationv1.Lease{ObjectMeta: accountMeta(c)}, new(coordinationv1.Lease), func(client.Object) {}},
	} {
		if err := r.put(ctx, c, x.want, x.current, x.change); err != nil {
			return err
		}
	}
	return nil
}

// accountMeta returns the metadata of an object of the Helm controller's account.
func accountMeta(c *clusterv1.Cluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: c.Namespace, Name: helmcontroller.Name(c.Name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, clusterv1.GroupVersion.WithKind("Cluster"))},
	}
}

// helmRules returns the rights of a Cluster's Helm controller in the management cluster: it reads the
// HelmBundle b, writes its finalizer and status, publishes Events about it, and reads the Secrets of
// its repositories. A list or watch of one name is one with a field selector of that name.
func helmRules(cluster string, b *lcmv1.HelmBundle) []rbacv1.PolicyRule {
	bundle := []string{cluster}
	out := []rbacv1.PolicyRule{
		{APIGroups: []string{lcmv1.GroupVersion.Group}, Resources: []string{"helmbundles"}, ResourceNames: bundle, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{lcmv1.GroupVersion.Group}, Resources: []string{"helmbundles/status"}, ResourceNames: bundle, Verbs: []string{"patch"}},
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{helmcontroller.Name(cluster)}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	var secrets []string
	if b != nil {
		for _, repository := range b.Spec.Repositories {
			if name := repository.AuthSecret; name != "" {
				secrets = append(secrets, name)
			}
		}
	}
	if len(secrets) == 0 { // a rule without names is one for all
		return out
	}
	slices.Sort(secrets)
	return append(out, rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, ResourceNames: slices.Compact(secrets), Verbs: []string{"get"}})
}

// put creates an object of the Cluster, or changes the one that is there into current. An object of
// the name that is not the Cluster's stays as it is.
func (r *Reconciler) put(ctx context.Context, c *clusterv1.Cluster, o, current client.Object, change func(current client.Object)) error {
	switch err := r.Reader.Get(ctx, client.ObjectKeyFromObject(o), current); {
	case apierrors.IsNotFound(err):
		return r.Client.Create(ctx, o)
	case err != nil:
		return err
	case !metav1.IsControlledBy(current, c):
		return fmt.Errorf("%T %s exists, and is not the Cluster's: remove it", o, o.GetName())
	}
	before := current.DeepCopyObject().(client.Object)
	if change(current); equality.Semantic.DeepEqual(before, current) {
		return nil
	}
	return r.patch(ctx, before, current)
}

// removeAccount removes the account of a Cluster's Helm controller.
func (r *Reconciler) removeAccount(ctx context.Context, c *clusterv1.Cluster) error {
	for _, o := range []client.Object{new(rbacv1.RoleBinding), new(rbacv1.Role), new(corev1.ServiceAccount), new(coordinationv1.Lease)} {
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: helmcontroller.Name(c.Name)}, o)
		if err == nil && metav1.IsControlledBy(o, c) {
			err = r.Client.Delete(ctx, o)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("account of the Helm controller: %w", err)
		}
	}
	return nil
}
