package kube

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// Who changes a HelmBundle, or the values of a Cluster's charts, must be allowed to impersonate the
// service account that the charts act as.
func TestChartsNeedARightToTheirAccount(t *testing.T) {
	api := start(t, Config{Dir: t.TempDir(), Families: []string{config.HOC}})
	admin := clientFor(t, api.RESTConfig())
	ns := freshNamespace(t, admin)
	tenant := tenantOf(t, api.RESTConfig(), map[string][]rbacv1.PolicyRule{ns: {
		{APIGroups: []string{"cluster.k8s.io", "lcm.mirantis.com"}, Resources: []string{"clusters", "helmbundles"}, Verbs: []string{"get", "create", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"team"}, Verbs: []string{"impersonate"}},
	}})
	bundle := func(name, spec string) client.Object {
		return parsed(t, "lcm.mirantis.com/v1alpha1", "HelmBundle", ns, `{"metadata":{"name":"`+name+`"},"spec":`+spec+`}`)
	}
	cluster := func(name, value string) client.Object {
		return parsed(t, "cluster.k8s.io/v1alpha1", "Cluster", ns, `{"metadata":{"name":"`+name+`","labels":{"kaas.mirantis.com/provider":"baremetal"}},"spec":{"providerSpec":{"value":`+value+`}}}`)
	}
	patch := func(o client.Object, text string) error {
		return tenant.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
	}
	patience.Await(t, "the policies are in force", func() bool {
		return tenant.Create(t.Context(), bundle("x", `{}`), client.DryRunAll) != nil &&
			tenant.Create(t.Context(), cluster("x", `{"helmReleases":[{"name":"a"}]}`), client.DryRunAll) != nil
	}, nil)

	cannot := func(account string) string {
		return `helmbundles.lcm.mirantis.com "b" is forbidden: its charts act as ServiceAccount "` + account + `", which user "tenant" cannot impersonate in the namespace "` + ns + `"`
	}
	denied(t, "a bundle without an account", tenant.Create(t.Context(), bundle("b", `{}`), client.DryRunAll), cannot("helm-charts"))
	denied(t, "a bundle of another's account", tenant.Create(t.Context(), bundle("b", `{"serviceAccountName":"admin"}`), client.DryRunAll), cannot("admin"))
	denied(t, "a bundle of an account of the user", tenant.Create(t.Context(), bundle("b", `{"serviceAccountName":"team"}`), client.DryRunAll))
	denied(t, "an administrator's", admin.Create(t.Context(), bundle("b", `{"serviceAccountName":"admin"}`)))
	denied(t, "a release in it", patch(bundle("b", `{}`), `{"spec":{"releases":[{"name":"a","chartURL":"http://r/a.tgz"}]}}`), cannot("admin"))
	denied(t, "its label", patch(bundle("b", `{}`), `{"metadata":{"labels":{"a":"b"}}}`))

	const values = `{"helmReleases":[{"name":"a","values":{"clusterRole":"cluster-admin"}}]}`
	no := `clusters.cluster.k8s.io "c" is forbidden: helmReleases: the charts act as ServiceAccount "helm-charts", which user "tenant" cannot impersonate in the namespace "` + ns + `"`
	denied(t, "a Cluster without values of charts", tenant.Create(t.Context(), cluster("c", `{}`), client.DryRunAll))
	denied(t, "a Cluster with values of charts", tenant.Create(t.Context(), cluster("c", values), client.DryRunAll), no)
	for _, kaas := range []string{`"management":` + values, `"regionalHelmReleases":[{"name":"a"}]`, `"regional":[{"provider":"baremetal","helmReleases":[{"name":"a"}]}]`} {
		denied(t, kaas, tenant.Create(t.Context(), cluster("c", `{"kaas":{`+kaas+`}}`), client.DryRunAll), no)
	}
	denied(t, "an administrator's", admin.Create(t.Context(), cluster("c", values)))
	denied(t, "other values", patch(cluster("c", values), `{"spec":{"providerSpec":{"value":{"helmReleases":[{"name":"a","values":{}}]}}}}`), no)
	denied(t, "none of them", patch(cluster("c", values), `{"spec":{"providerSpec":{"value":{"helmReleases":null}}}}`), no)
	denied(t, "another field", patch(cluster("c", values), `{"spec":{"providerSpec":{"value":{"maintenance":true}}}}`))
}
