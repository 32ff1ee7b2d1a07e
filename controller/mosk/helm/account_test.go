package helm

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// accountsLab has a namespace racks with the password of a BMC, and a bundle in the namespace default.
func accountsLab(t *testing.T, releases ...lcmv1.HelmRelease) *lab {
	t.Helper()
	l := start(t)
	for _, name := range []string{"settings", "lookup", "admin"} {
		l.repo.add(t, name, "1.0.0", "")
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "racks"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "racks", Name: "bmc"}, StringData: map[string]string{"password": "hunter2"}},
		&lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: lcmv1.HelmBundleSpec{
			Repositories: []lcmv1.HelmRepository{{Name: "lab", URL: l.repo.URL}}, Releases: releases,
		}},
	} {
		l.must(l.Create(t.Context(), o))
	}
	return l
}

var (
	reads   = lcmv1.HelmRelease{Name: "reads", Chart: "lookup", Values: &runtime.RawExtension{Raw: []byte(`{"namespace":"racks"}`)}}
	grants  = lcmv1.HelmRelease{Name: "grants", Chart: "admin"}
	foreign = lcmv1.HelmRelease{Name: "foreign", Chart: "settings", Namespace: "racks"}
	plain   = lcmv1.HelmRelease{Name: "plain", Chart: "settings"}
)

// refusedAs checks that a release has failed, and that its message names the account, the object and
// the fix.
func refusedAs(t *testing.T, s lcmv1.HelmReleaseStatus, account, object string) {
	t.Helper()
	for _, want := range []string{`"system:serviceaccount:default:` + account + `"`, object, "the charts of this bundle act as the ServiceAccount " + account + " of its namespace: grant it this right"} {
		if s.Success || s.Ready || !strings.Contains(s.Message, want) {
			t.Errorf("release %+v, want a failure with %q", s, want)
		}
	}
}

// Charts act with the rights of their namespace: they read no Secret of another one, and make no
// object there and none of the cluster, until an administrator allows it.
func TestChartsHaveTheRightsOfTheirNamespace(t *testing.T) {
	l := accountsLab(t, reads, grants, foreign, plain)
	b := l.pass()
	refusedAs(t, b.Status.ReleaseStatuses["reads"], Account, `secrets "bmc" is forbidden`)
	refusedAs(t, b.Status.ReleaseStatuses["grants"], Account, `clusterrolebindings.rbac.authorization.k8s.io "grants" is forbidden`)
	refusedAs(t, b.Status.ReleaseStatuses["foreign"], Account, `in the namespace "racks"`)
	if s := b.Status.ReleaseStatuses["plain"]; !s.Success || !s.Ready || l.text("default", "plain") != "default" {
		t.Errorf("a chart of the namespace: %+v", s)
	}
	if got := l.text("default", "reads"); got != "" {
		t.Errorf("the chart has read %q", got)
	}
	if err := l.Get(t.Context(), client.ObjectKey{Name: "grants"}, new(rbacv1.ClusterRoleBinding)); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRoleBinding of a chart: %v, want none", err)
	}
	if b = l.pass(); b.Status.ReleaseStatuses["foreign"].Attempt != 1 {
		t.Errorf("tried again before its backoff: %+v", b.Status.ReleaseStatuses["foreign"])
	}

	l.allow(Account, "")
	l.clock.Step(minBackoff)
	b = l.pass()
	for name, s := range b.Status.ReleaseStatuses {
		if !s.Success {
			t.Errorf("release %s of an account with all rights: %+v", name, s)
		}
	}
	if got := l.text("default", "reads"); !strings.Contains(got, "password") || l.text("racks", "foreign") != "default" {
		t.Errorf("texts %q and %q of an account with all rights", got, l.text("racks", "foreign"))
	}
	l.must(l.Delete(t.Context(), b))
	if b = l.pass(); b != nil {
		t.Errorf("after its deletion: %+v", b)
	}
}

// The account that a bundle names must exist, and has the rights that it has.
func TestBundleNamesItsAccount(t *testing.T) {
	l := accountsLab(t, plain)
	b := l.change(func(s *lcmv1.HelmBundleSpec) { s.ServiceAccountName = "team" })
	if s := b.Status.ReleaseStatuses["plain"]; s.Success || !strings.HasPrefix(s.Message, "serviceAccountName: ServiceAccount default/team does not exist: create it") {
		t.Errorf("an account that does not exist: %+v", s)
	}
	l.must(l.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "team"}}))
	refusedAs(t, l.pass().Status.ReleaseStatuses["plain"], "team", `resource "secrets"`)
	l.allow("team", "default")
	l.clock.Step(minBackoff)
	if s := l.pass().Status.ReleaseStatuses["plain"]; !s.Success {
		t.Errorf("an account with rights: %+v", s)
	}
	if err := l.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: Account}, new(corev1.ServiceAccount)); !apierrors.IsNotFound(err) {
		t.Errorf("the account of bundles that name none: %v, want it not made", err)
	}
}

// The password of a repository is read with the rights of the account, too: a repository of the author's
// would get each username and password of the namespace.
func TestRepositoryGetsNoSecretThatTheAccountCannotRead(t *testing.T) {
	l := accountsLab(t, foreign)
	l.must(l.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bmc"}, StringData: map[string]string{"username": "lab", "password": "hunter2"}}))
	l.must(l.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "team"}}))
	l.allow("team", "racks")
	l.repo.mu.Lock()
	l.repo.password = "hunter2" // the repository takes that of the BMC alone
	l.repo.mu.Unlock()
	b := l.change(func(s *lcmv1.HelmBundleSpec) { s.ServiceAccountName, s.Repositories[0].AuthSecret = "team", "bmc" })
	refusedAs(t, b.Status.ReleaseStatuses["foreign"], "team", `authSecret: secrets "bmc" is forbidden`)
	l.allow("team", "default")
	l.clock.Step(minBackoff)
	if s := l.pass().Status.ReleaseStatuses["foreign"]; !s.Success {
		t.Errorf("an account that may read it: %+v", s)
	}
}

// An account helm-charts that an administrator has made gets no rights.
func TestAccountOfAnAdministratorGetsNoRights(t *testing.T) {
	l := accountsLab(t, plain)
	l.must(l.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: Account}}))
	refusedAs(t, l.pass().Status.ReleaseStatuses["plain"], Account, `resource "secrets"`)
}

// In the API of a Cluster's own, charts have the rights of its kubeconfig.
func TestChartsOfAnotherAPIHaveTheRightsOfItsKubeconfig(t *testing.T) {
	l := accountsLab(t, grants)
	l.r.Target = func(context.Context, string, string) (API, error) { return API{Config: l.kube.RESTConfig()}, nil }
	if s := l.pass().Status.ReleaseStatuses["grants"]; !s.Success {
		t.Errorf("a chart of a Cluster's own API: %+v", s)
	}
	if err := l.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: Account}, new(corev1.ServiceAccount)); !apierrors.IsNotFound(err) {
		t.Errorf("the account in the API of the bundle: %v, want none", err)
	}
}

// The end of a namespace takes the rights of its accounts before its bundle is uninstalled: the bundle
// does not wait for them.
func TestBundleOfANamespaceThatEnds(t *testing.T) {
	l := accountsLab(t)
	at := client.ObjectKey{Namespace: "racks", Name: "c1"}
	l.must(l.Create(t.Context(), &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}, Spec: lcmv1.HelmBundleSpec{
		Repositories: []lcmv1.HelmRepository{{Name: "lab", URL: l.repo.URL}}, Releases: []lcmv1.HelmRelease{plain},
	}}))
	status := func() (s lcmv1.HelmReleaseStatus, err error) {
		t.Helper()
		_, err = l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: at})
		l.must(err)
		b := new(lcmv1.HelmBundle)
		err = l.Get(t.Context(), at, b)
		return b.Status.ReleaseStatuses["plain"], err
	}
	if s, err := status(); err != nil || !s.Success {
		t.Fatalf("plain: %+v, %v", s, err)
	}
	meta := metav1.ObjectMeta{Namespace: at.Namespace, Name: Account}
	l.must(l.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta}))
	l.must(l.Delete(t.Context(), &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}))
	if s, err := status(); err != nil || !strings.HasPrefix(s.Message, "uninstall: ") || !strings.Contains(s.Message, "is forbidden") {
		t.Fatalf("without rights: %+v, %v", s, err)
	}
	l.must(l.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: at.Namespace}}))
	l.clock.Step(maxBackoff)
	if s, err := status(); !apierrors.IsNotFound(err) {
		t.Errorf("while its namespace ends: %+v, %v; want it gone", s, err)
	}
}
