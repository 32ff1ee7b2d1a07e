package kube

import (
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// tenantOf gives the user "tenant" rules in namespaces, and returns a client of that user once the
// authorizer knows the rules: it reads roles by a watch.
func tenantOf(t *testing.T, config *rest.Config, rules map[string][]rbacv1.PolicyRule) client.Client {
	t.Helper()
	admin := clientFor(t, config)
	for ns, rules := range rules {
		meta := metav1.ObjectMeta{Namespace: ns, Name: "tenant"}
		create(t, admin, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "tenant"}},
		})
		for _, r := range rules {
			may := authorizationv1.ResourceAttributes{Namespace: ns, Group: r.APIGroups[0], Resource: r.Resources[0], Verb: r.Verbs[0]}
			if len(r.ResourceNames) > 0 {
				may.Name = r.ResourceNames[0]
			}
			patience.Await(t, fmt.Sprintf("the user may %s %s in %s", may.Verb, may.Resource, ns), func() bool {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "tenant", ResourceAttributes: &may}}
				return admin.Create(t.Context(), review) == nil && review.Status.Allowed
			})
		}
	}
	as := rest.CopyConfig(config)
	as.Impersonate.UserName = "tenant"
	return clientFor(t, as)
}
