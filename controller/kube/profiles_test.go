package kube

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreignProfiles names BareMetalHostProfiles of other namespaces in Machines, as a user who may read one
// of them and as an administrator.
func foreignProfiles(t *testing.T, config *rest.Config, ns string) {
	admin := clientFor(t, config)
	other := freshNamespace(t, admin)
	tenant := tenantOf(t, config, map[string][]rbacv1.PolicyRule{
		ns:    {{APIGroups: []string{"cluster.k8s.io"}, Resources: []string{"machines"}, Verbs: []string{"get", "create", "patch"}}},
		other: {{APIGroups: []string{"metal3.io"}, Resources: []string{"baremetalhostprofiles"}, ResourceNames: []string{"shared"}, Verbs: []string{"get"}}},
	})
	names := func(name, profile, namespace string) client.Object {
		return parsed(t, "cluster.k8s.io/v1alpha1", "Machine", ns, `{"metadata":{"name":"`+name+`"},"spec":{"providerSpec":{"value":{"hostSelector":{},"bareMetalHostProfile":{"name":"`+profile+`","namespace":"`+namespace+`"}}}}}`)
	}
	cannot := `machines.cluster.k8s.io "m" is forbidden: spec.providerSpec.value.bareMetalHostProfile: user "tenant" cannot get BareMetalHostProfile "secret" in the namespace "` + other + `"`
	denied(t, "one that the user cannot read", tenant.Create(t.Context(), names("m", "secret", other), client.DryRunAll), cannot)
	denied(t, "one that the user can read", tenant.Create(t.Context(), names("m", "shared", other), client.DryRunAll))
	denied(t, "one of the namespace", tenant.Create(t.Context(), names("m", "any", ns), client.DryRunAll))
	denied(t, "one without a namespace", tenant.Create(t.Context(), names("m", "any", ""), client.DryRunAll))
	denied(t, "an administrator's", admin.Create(t.Context(), names("m", "secret", other)))
	edit := func(patch string) error {
		return tenant.Patch(t.Context(), names("m", "secret", other), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
	denied(t, "an edit of something else", edit(`{"metadata":{"labels":{"a":"b"}}}`))
	denied(t, "an edit of the reference", edit(`{"spec":{"providerSpec":{"value":{"bareMetalHostProfile":{"name":"next"}}}}}`), `cannot get BareMetalHostProfile "next"`)
}
