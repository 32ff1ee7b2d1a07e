package lab

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestAccountsThatObjectsNameExist finds the service account of each field that names one, and asks
// the API what the account of a Cluster's Helm controller may do.
func TestAccountsThatObjectsNameExist(t *testing.T) {
	w, admin := startWithoutControllers(t, config.HOC)
	grant(t, admin, withComponent(t, "hoc"))
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	defer runController(t, w, as, manager.Config{Controllers: []string{"provider", "lcm"}})()
	p := providerLab{hocLab{t, admin}}
	p.create()
	p.provision("w-0")
	c, m := new(lcmv1.LCMCluster), new(lcmv1.LCMMachine)
	for _, tt := range []struct {
		field string
		of    client.Object
		name  func() string
	}{
		{"LCMCluster.spec.helmControllerServiceAccountName", c, func() string { return c.Spec.HelmControllerServiceAccountName }},
		{"LCMMachine.spec.serviceAccount", m, func() string { return m.Spec.ServiceAccount }},
	} {
		key := p.key("c1")
		if tt.of == m {
			key = p.key("w-0")
		}
		patience.Await(t, tt.field+" names an account", func() bool { return admin.Get(t.Context(), key, tt.of) == nil && tt.name() != "" }, tt.of)
		patience.Await(t, "the account "+tt.name()+" exists", func() bool { return admin.Get(t.Context(), p.key(tt.name()), new(corev1.ServiceAccount)) == nil })
	}
	mayOnly(t, w.kube.api, "system:serviceaccount:"+Namespace+":"+c.Spec.HelmControllerServiceAccountName, []right{
		{true, "get", "lcm.mirantis.com", "helmbundles", "", Namespace, "c1"},
		{true, "watch", "lcm.mirantis.com", "helmbundles", "", Namespace, "c1"},
		{true, "patch", "lcm.mirantis.com", "helmbundles", "", Namespace, "c1"},
		{true, "patch", "lcm.mirantis.com", "helmbundles", "status", Namespace, "c1"},
		{true, "update", "coordination.k8s.io", "leases", "", Namespace, "c1-helm-controller"},
		{false, "get", "lcm.mirantis.com", "helmbundles", "", Namespace, "c2"},
		{false, "list", "lcm.mirantis.com", "helmbundles", "", Namespace, ""},
		{false, "delete", "lcm.mirantis.com", "helmbundles", "", Namespace, "c1"},
		{false, "get", "lcm.mirantis.com", "helmbundles", "", "kube-system", "c1"},
		{false, "get", "lcm.mirantis.com", "lcmclusters", "", Namespace, "c1"},
		{false, "get", "", "secrets", "", Namespace, "c1-kubeconfig"},
		{false, "list", "", "secrets", "", Namespace, ""},
		{false, "update", "coordination.k8s.io", "leases", "", Namespace, "lab-controller"},
		{false, "create", "coordination.k8s.io", "leases", "", Namespace, ""},
	})
	cluster := new(clusterv1.Cluster)
	if err := admin.Get(t.Context(), p.key("c1"), cluster); err != nil || !metav1.IsControlledBy(c, cluster) {
		t.Errorf("the LCMCluster is not the Cluster's: %v", err)
	}
}

// right is what an account may do, or may not.
type right struct {
	may                                                 bool
	verb, group, resource, subresource, namespace, name string
}

// mayOnly asks the API's authorizer for rights of an account.
func mayOnly(t *testing.T, api *rest.Config, user string, rights []right) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(api)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rights {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: r.namespace, Name: r.name,
			},
		}}
		got, err := clients.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status.Allowed != r.may {
			t.Errorf("%s may %s %s/%s %s/%s: %v, want %v", user, r.verb, r.resource, r.subresource, r.namespace, r.name, got.Status.Allowed, r.may)
		}
	}
}
