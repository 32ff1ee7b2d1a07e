// Package iam makes the roles that users can have, and the scopes of a Cluster: its own, that
// of its namespace and the global one. A Scope lists the Keycloak scopes that a user's token
// must have. The package never calls Keycloak.
package iam

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	iamv1 "github.com/metalab-dev/metalab/controller/api/iam/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
)

// role is a role, the client of Keycloak that it is a role of, and where it is bound.
type role struct {
	name, client string
	scope        iamv1.RoleScope
	description  string
}

// roles are the roles of users.
var roles = []role{
	{"global-admin", "kaas", iamv1.RoleGlobal, "binds roles, and manages what all namespaces share"},
	{"user", "kaas", iamv1.RoleNamespace, "makes and changes the clusters of a namespace"},
	{"operator", "kaas", iamv1.RoleNamespace, "does so, and manages releases, hosts and credentials"},
	{"bm-pool-operator", "kaas", iamv1.RoleNamespace, "manages the hosts of a namespace"},
	{"cluster-admin", "k8s", iamv1.RoleCluster, "has all rights in a cluster"},
	{"stacklight-admin", "sl", iamv1.RoleCluster, "manages the monitoring of a cluster"},
}

// scopeOf returns the Scope of a Cluster; of a namespace, if cluster is "", and of all, if
// namespace is "", too. The names are unique, because the name of a namespace has no dot.
func scopeOf(namespace, cluster string) *iamv1.Scope {
	in, where, name := iamv1.RoleGlobal, "", "global"
	if namespace != "" {
		in, where, name = iamv1.RoleNamespace, ":"+namespace, "namespace."+namespace
	}
	if cluster != "" {
		in, where, name = iamv1.RoleCluster, where+":"+cluster, "cluster."+namespace+"."+cluster
	}
	s := &iamv1.Scope{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{iamv1.ScopeFinalizer}}, Spec: iamv1.ScopeSpec{Namespace: namespace, Cluster: cluster}}
	for _, r := range roles {
		if r.scope == in {
			s.Spec.Roles = append(s.Spec.Roles, iamv1.ScopeRole{Role: r.name, Client: r.client, Scope: "m:" + r.client + where + "@" + r.name})
		}
	}
	return s
}

// Ensure creates the roles and the scopes of a Cluster, and corrects scopes that somebody
// has changed.
func Ensure(ctx context.Context, c client.Client, cluster client.ObjectKey) error {
	for _, r := range roles {
		o := &iamv1.IAMRole{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Description: r.description, Scope: r.scope}
		err := c.Get(ctx, client.ObjectKeyFromObject(o), new(iamv1.IAMRole))
		if apierrors.IsNotFound(err) {
			err = c.Create(ctx, o)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) { // another Cluster's pass has made it
			return fmt.Errorf("iam: role %s: %w", r.name, err)
		}
	}
	for _, want := range []*iamv1.Scope{scopeOf("", ""), scopeOf(cluster.Namespace, ""), scopeOf(cluster.Namespace, cluster.Name)} {
		current := new(iamv1.Scope)
		err := c.Get(ctx, client.ObjectKeyFromObject(want), current)
		switch {
		case apierrors.IsNotFound(err):
			if err = c.Create(ctx, want); apierrors.IsAlreadyExists(err) {
				err = nil
			}
		case err == nil && current.DeletionTimestamp.IsZero():
			before := current.DeepCopy()
			current.Spec = want.Spec
			controllerutil.AddFinalizer(current, iamv1.ScopeFinalizer)
			if !equality.Semantic.DeepEqual(before, current) {
				err = c.Patch(ctx, current, patch.IfUnchanged(before))
			}
		}
		if err != nil {
			return fmt.Errorf("iam: scope %s: %w", want.Name, err)
		}
	}
	return nil
}

// Remove removes a Cluster's role bindings, then its scope.
// last reports whether no other Cluster of the namespace is left: then it removes the
// namespace's scope, too, once no binding needs that. The bindings of a namespace are the
// users', and stay.
func Remove(ctx context.Context, c client.Client, cluster client.ObjectKey, last bool) error {
	var bindings iamv1.IAMClusterRoleBindingList
	if err := c.List(ctx, &bindings, client.InNamespace(cluster.Namespace)); err != nil {
		return fmt.Errorf("iam: bindings: %w", err)
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Cluster.Name == cluster.Name {
			if err := client.IgnoreNotFound(c.Delete(ctx, b)); err != nil {
				return fmt.Errorf("iam: binding %s: %w", b.Name, err)
			}
		}
	}
	if err := remove(ctx, c, scopeOf(cluster.Namespace, cluster.Name).Name); err != nil {
		return err
	}
	if !last {
		return nil
	}
	var others iamv1.IAMRoleBindingList
	if err := c.List(ctx, &others, client.InNamespace(cluster.Namespace)); err != nil {
		return fmt.Errorf("iam: bindings: %w", err)
	}
	if len(others.Items) > 0 {
		return nil
	}
	return remove(ctx, c, scopeOf(cluster.Namespace, "").Name)
}

// remove deletes a scope and removes its finalizer.
func remove(ctx context.Context, c client.Client, name string) error {
	s := new(iamv1.Scope)
	err := c.Get(ctx, client.ObjectKey{Name: name}, s)
	if err == nil && s.DeletionTimestamp.IsZero() {
		err = c.Delete(ctx, s)
	}
	if err == nil {
		before := s.DeepCopy()
		if controllerutil.RemoveFinalizer(s, iamv1.ScopeFinalizer) {
			err = c.Patch(ctx, s, client.MergeFrom(before))
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("iam: scope %s: %w", name, err)
	}
	return nil
}
