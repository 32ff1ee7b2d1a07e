package clusters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// accountObjects are the objects of the account of the Helm controller of c1.
func accountObjects() []client.Object {
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: "c1-helm-controller"}
	return []client.Object{&corev1.ServiceAccount{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta}, &rbacv1.RoleBinding{ObjectMeta: meta}, &coordinationv1.Lease{ObjectMeta: meta}}
}

// The account that the LCMCluster names exists, with rights to its HelmBundle and its own Secrets
// alone, and goes with the Cluster.
func TestAccountOfTheHelmController(t *testing.T) {
	l := start(t, objects()...)
	c := l.pass()
	objects := accountObjects()
	for _, o := range objects {
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		if !metav1.IsControlledBy(o, c) {
			t.Errorf("%T is not the Cluster's: %+v", o, o.GetOwnerReferences())
		}
	}
	if got := l.lcm().Spec.HelmControllerServiceAccountName; got != objects[0].GetName() {
		t.Errorf("the LCMCluster names the account %q, want %q", got, objects[0].GetName())
	}
	binding := objects[2].(*rbacv1.RoleBinding)
	if s := binding.Subjects; len(s) != 1 || s[0].Kind != "ServiceAccount" || s[0].Name != "c1-helm-controller" || s[0].Namespace != key.Namespace || binding.RoleRef.Name != "c1-helm-controller" {
		t.Errorf("binding %+v", binding)
	}
	rules := func() (out []string) {
		role := objects[1].(*rbacv1.Role)
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(role), role))
		for _, r := range role.Rules {
			out = append(out, strings.Join(r.Resources, ",")+" ["+strings.Join(r.ResourceNames, " ")+"]: "+strings.Join(r.Verbs, " "))
		}
		return out
	}
	want := []string{"helmbundles [c1]: get list watch patch", "helmbundles/status [c1]: patch", "leases [c1-helm-controller]: get update", "events []: create patch"}
	if diff := cmp.Diff(want, rules()); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
	to := new(kaasv1.ClusterRelease)
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "mosk-1"}, to))
	to.Spec.Helm.Repositories = []kaasv1.ReleaseRepository{{Name: "b", URL: "http://192.0.2.1", AuthSecret: "z"}, {Name: "a", URL: "http://192.0.2.2", AuthSecret: "y"}, {Name: "c", URL: "http://192.0.2.3", AuthSecret: "z"}, {Name: "d", URL: "http://192.0.2.4"}}
	l.must(l.Update(t.Context(), to))
	l.pass()
	if diff := cmp.Diff(append(want, "secrets [y z]: get"), rules()); diff != "" {
		t.Errorf("rights with Secrets of repositories (-want +got):\n%s", diff)
	}
	l.must(l.Delete(t.Context(), c))
	for range 4 {
		_, err := l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		l.must(err)
	}
	for _, o := range append(objects, &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}) {
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T of a Cluster that is gone: %v", o, err)
		}
	}
}

// A mistake in the Cluster leaves the controller of the installed charts its rights.
func TestAMistakeLeavesTheRightsOfTheHelmController(t *testing.T) {
	l := start(t, objects()...)
	to := new(kaasv1.ClusterRelease)
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "mosk-1"}, to))
	to.Spec.Helm.Repositories = []kaasv1.ReleaseRepository{{Name: "a", URL: "http://192.0.2.2", AuthSecret: "y"}}
	l.must(l.Update(t.Context(), to))
	l.pass()
	c := l.ask("none", nil)
	if got := condition(t, c, ConditionRelease); got.Ready {
		t.Fatalf("condition %+v with a release that does not exist", got)
	}
	role := accountObjects()[1].(*rbacv1.Role)
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	if n := len(role.Rules); n != 5 {
		t.Errorf("%d rules, want those of before: %+v", n, role.Rules)
	}
}

// An object of the account's name that is another's is not taken over.
func TestAccountOfAnotherOwnerStays(t *testing.T) {
	other := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "c1-helm-controller"}}
	l := start(t, objects(other)...)
	_, err := l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err == nil || !strings.Contains(err.Error(), "c1-helm-controller exists, and is not the Cluster's: remove it") {
		t.Errorf("reconcile with a Role of another: %v", err)
	}
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	if len(other.Rules) != 0 {
		t.Errorf("the Role of another has %+v", other.Rules)
	}
}
