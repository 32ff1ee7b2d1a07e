package lab

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// rightsOfTheChart are those that docs/day2.md has for the chart of the Helm controller in an API
// that Clusters share, beside the manifests.
func rightsOfTheChart() []client.Object {
	write := []string{"get", "create", "patch", "delete"}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: account}}
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: "install-helm-controller"}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: write},
			{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"list"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles", "clusterrolebindings"}, Verbs: write},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}},
	}
}

// release waits until the status of a release of the HelmBundle is ok.
func (l handover) release(what, name string, ok func(lcmv1.HelmReleaseStatus) bool) {
	l.t.Helper()
	b := new(lcmv1.HelmBundle)
	patience.Await(l.t, what, func() bool {
		return l.Get(l.t.Context(), l.key("c1"), b) == nil && ok(b.Status.ReleaseStatuses[name])
	}, b)
}

// TestHelmChartOfTheControllerNeedsTheRightsOfTheDocs installs the chart of a Cluster's Helm
// controller, and uninstalls it with the Cluster, as the service account that the controllers have
// in a cluster. The manifests alone do not let it.
func TestHelmChartOfTheControllerNeedsTheRightsOfTheDocs(t *testing.T) {
	w, admin := startWithoutControllers(t, config.HOC)
	grant(t, admin, withComponent(t, "hoc"))
	var refused refusals
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	as.Wrap(refused.watch)
	defer runController(t, w, as, manager.Config{Controllers: []string{"provider", "helm"}, HelmChart: w.helmChart()})()
	l := handover{hocLab{t, admin}}
	l.create(serveChart(t))
	name := helmcontroller.SharedRelease(helmcontroller.Chart, "c1")
	l.release("the manifests do not let the chart be installed", name, func(s lcmv1.HelmReleaseStatus) bool {
		return s.Attempt > 0 && strings.Contains(s.Message, "forbidden")
	})
	l.release("another chart is installed", "settings", func(s lcmv1.HelmReleaseStatus) bool { return s.Success })
	for _, o := range rightsOfTheChart() {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	// Its pod is not ready, since no controllers of the lab run; the look at it is no mistake.
	l.release("the chart is installed", name, func(s lcmv1.HelmReleaseStatus) bool { return s.Success && s.Message == "" })
	refused.mu.Lock()
	refused.list = nil // of the attempts before
	refused.mu.Unlock()
	secret := &corev1.Secret{ObjectMeta: l.meta(helmcontroller.SecretName(name))}
	patience.Await(t, "the account is in its Secret", func() bool {
		return admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret) == nil && len(secret.Data[helmcontroller.TokenKey]) > 0
	}, secret)
	c := &clusterv1.Cluster{ObjectMeta: l.meta("c1")}
	if err := admin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	patience.Await(t, "the Cluster is gone", func() bool { return apierrors.IsNotFound(admin.Get(t.Context(), l.key("c1"), c)) }, c)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret of the account after the Cluster: %v", err)
	}
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if refused.list != nil {
		t.Errorf("the service account was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}
