package helm

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Two Clusters that share an API have charts of equal names: the second one's is refused, and its
// end leaves the first one's alone.
func TestReleaseOfAnotherBundleStays(t *testing.T) {
	l := start(t)
	l.repo.add(t, "settings", "1.0.0", "")
	other := client.ObjectKey{Namespace: "default", Name: "c2"}
	reconcile := func(key client.ObjectKey) lcmv1.HelmReleaseStatus {
		t.Helper()
		_, err := l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		l.must(err)
		b := new(lcmv1.HelmBundle)
		l.must(client.IgnoreNotFound(l.Get(t.Context(), key, b)))
		return b.Status.ReleaseStatuses["first"]
	}
	for _, key := range []client.ObjectKey{key, other} {
		l.must(l.Create(t.Context(), &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: lcmv1.HelmBundleSpec{
			Repositories: []lcmv1.HelmRepository{{Name: "lab", URL: l.repo.URL}},
			Releases:     []lcmv1.HelmRelease{{Name: "first", Chart: "lab/settings"}},
		}}))
	}
	if s := reconcile(key); !s.Success {
		t.Fatalf("the first bundle: %+v", s)
	}
	want := "release first in namespace default is that of HelmBundle default/c1"
	if s := reconcile(other); s.Success || s.Ready || !strings.HasPrefix(s.Message, want) {
		t.Errorf("the second bundle: %+v, want the message %q", s, want)
	}
	l.must(l.Delete(t.Context(), &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: other.Name}}))
	reconcile(other)
	if err := l.Get(t.Context(), other, &lcmv1.HelmBundle{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the second bundle after its deletion: %v, want it gone", err)
	}
	if s := reconcile(key); !s.Success || s.Revision != 1 || l.text("default", "first") != "default" {
		t.Errorf("the first bundle after the end of the second: %+v, text %q", s, l.text("default", "first"))
	}
}

// A Cluster's API is gone, with the Secret of its kubeconfig: the bundle waits for another, and a
// deletion does not.
func TestBundleWhoseAPIIsGone(t *testing.T) {
	l := start(t)
	l.must(l.Create(t.Context(), &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: []string{lcmv1.HelmFinalizer}}}))
	l.r.Target = func(context.Context, string, string) (API, error) { return API{}, new(workload.SecretError) }
	res, err := l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	l.must(err)
	if res.RequeueAfter != queue.SecretWait {
		t.Errorf("the bundle is looked at after %s, want %s", res.RequeueAfter, queue.SecretWait)
	}
	l.must(l.Delete(t.Context(), &lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
	if b := l.pass(); b != nil {
		t.Errorf("the bundle that is deleted: finalizers %q", b.Finalizers)
	}
}

func TestOwnerFitsIntoALabel(t *testing.T) {
	long := strings.Repeat("a", 80)
	a, b := ownerOf(&lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Name: long + "1"}}), ownerOf(&lcmv1.HelmBundle{ObjectMeta: metav1.ObjectMeta{Name: long + "2"}})
	if a == b || len(a.name) != 63 {
		t.Errorf("owners %q (%d bytes) and %q: want two of 63 bytes", a.name, len(a.name), b.name)
	}
}
