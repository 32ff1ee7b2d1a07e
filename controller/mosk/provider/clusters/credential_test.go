package clusters

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
)

// The pods of the chart find the account of their controller in a Secret of the cluster, which is
// renewed; a bundle without the chart has none, and a Secret of another stays.
func TestHelmControllerGetsItsAccount(t *testing.T) {
	l := start(t, objects()...)
	wall := clocktesting.NewFakeClock(labTime)
	l.r.Wall, l.r.CA = wall, []byte("ca")
	l.r.Workload = func(context.Context, string, string) (workload.API, error) {
		return workload.API{Client: l.Client}, nil
	}
	s, at := new(corev1.Secret), client.ObjectKey{Namespace: "kube-system", Name: "hc-c1-management"}
	l.pass()
	if err := l.Get(t.Context(), at, s); err == nil {
		t.Fatal("a Secret for a bundle without the chart")
	}
	to := new(kaasv1.ClusterRelease)
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "mosk-1"}, to))
	to.Spec.Helm.Controller = &kaasv1.ReleaseChart{Name: "hc", Chart: "lab/helm-controller", Namespace: "kube-system"}
	l.must(l.Update(t.Context(), to))
	l.pass()
	if err := l.Get(t.Context(), at, s); err == nil {
		t.Fatal("a Secret before Helm has installed the chart")
	}
	s.Namespace, s.Name = at.Namespace, at.Name
	s.Annotations = map[string]string{"meta.helm.sh/release-name": "hc-c1", "meta.helm.sh/release-namespace": "kube-system"}
	l.must(l.Create(t.Context(), s))
	l.pass()
	l.must(l.Get(t.Context(), at, s))
	k, err := clientcmd.Load(s.Data["kubeconfig"])
	l.must(err)
	if c := k.Clusters["management"]; c.Server != "https://192.0.2.1:6443" || string(c.CertificateAuthorityData) != "ca" || k.AuthInfos["management"].TokenFile != "token" {
		t.Errorf("kubeconfig %s", s.Data["kubeconfig"])
	}
	if len(s.Data["token"]) == 0 || string(s.Data["bundle"]) != "lab/c1" {
		t.Errorf("the Secret has the token %q and the bundle %q", s.Data["token"], s.Data["bundle"])
	}
	expires := s.Annotations[tokenExpires]
	wall.Step(22 * time.Hour)
	l.pass()
	l.must(l.Get(t.Context(), at, s))
	if s.Annotations[tokenExpires] != expires {
		t.Error("the token is renewed with two hours left")
	}
	wall.Step(90 * time.Minute)
	l.pass()
	l.must(l.Get(t.Context(), at, s))
	if s.Annotations[tokenExpires] == expires {
		t.Error("the token is not renewed with half an hour left")
	}
	before := s.DeepCopy()
	s.Data["bundle"] = []byte("lab/c2")
	l.refuses(s, "of another bundle")
	s = before.DeepCopy()
	s.Data, s.Annotations = nil, nil
	l.refuses(s, "that Helm has not made")
	l.must(l.Delete(t.Context(), s))
	b := new(lcmv1.HelmBundle)
	l.must(l.Get(t.Context(), key, b))
	b.Status.ReleaseStatuses = map[string]lcmv1.HelmReleaseStatus{"hc-c1": {Success: true}}
	l.must(l.Status().Update(t.Context(), b))
	l.pass()
	l.must(l.Get(t.Context(), at, s)) // someone has deleted it
	if s.Annotations["meta.helm.sh/release-name"] != "hc-c1" || s.Labels["app.kubernetes.io/managed-by"] != "Helm" || len(s.Data["token"]) == 0 {
		t.Errorf("the Secret that was made again: %+v", s.ObjectMeta)
	}
}

// refuses writes a Secret, and fails when the provider takes it over.
func (l *lab) refuses(s *corev1.Secret, what string) {
	l.t.Helper()
	s.ResourceVersion = ""
	l.must(l.Update(l.t.Context(), s))
	if _, err := l.r.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: key}); err == nil {
		l.t.Errorf("a Secret %s is taken over", what)
	}
}
