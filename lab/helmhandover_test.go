package lab

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestHelmControllerOfAClusterTakesOver runs two processes with the controller helm: that of the
// management cluster, and that of one Cluster with the rights of its account. The second acts alone
// while it runs, and the first before and after.
func TestHelmControllerOfAClusterTakesOver(t *testing.T) {
	w, admin := startWithoutControllers(t, config.HOC)
	grant(t, admin, withComponent(t, "hoc"))
	var first, second installs
	management := asManifests(t, w)
	management.Wrap(first.watch)
	defer runController(t, w, management, manager.Config{Controllers: []string{"provider", "helm"}})()
	l := handover{hocLab{t, admin}}
	l.create(serveChart(t))
	l.revision(1)
	if first.writes.Load() == 0 {
		t.Fatal("the first process has written no release")
	}

	of, target := rest.CopyConfig(w.kube.api), rest.CopyConfig(w.kube.api)
	of.Impersonate.UserName = "system:serviceaccount:" + Namespace + ":c1-helm-controller"
	var refused refusals
	of.Wrap(refused.watch)
	target.Wrap(second.watch)
	set, err := manager.New(t.Context(), manager.Config{
		Controllers: []string{"helm"}, API: of, Helm: &manager.HelmOfCluster{Bundle: l.key("c1"), Target: target},
		Election: manager.HelmElection(l.key("c1")), Clock: labClock{w.clock}, Enter: w.clock.Enter, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- set.Run(ctx) }()
	if !set.Wait(t.Context()) {
		t.Fatal("the second process does not lead")
	}
	before := first.writes.Load()
	l.change("two")
	l.revision(2)
	if got := first.writes.Load() - before; got != 0 || second.writes.Load() == 0 {
		t.Errorf("the first process has written releases %d times, the second %d times, while the second leads", got, second.writes.Load())
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	before = second.writes.Load()
	l.change("three")
	l.revision(3)
	if got := second.writes.Load() - before; got != 0 || first.writes.Load() == 0 {
		t.Errorf("the second process has written releases %d times after its end", got)
	}
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if refused.list != nil {
		t.Errorf("the account of the Helm controller was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}

// handover is a lab with a Cluster that has a chart.
type handover struct{ hocLab }

func (l handover) create(chart string) {
	l.t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: l.meta("c1")}
	c.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
	c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{Release: "mosk-1"}
	for _, o := range []client.Object{
		&kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: "mosk-1"}, Spec: kaasv1.ClusterReleaseSpec{
			Version: "1.0.0", LCMType: lcmv1.LCMTypeK0s, Helm: kaasv1.ReleaseHelm{Releases: []kaasv1.ReleaseChart{{Name: "settings", ChartURL: chart}}},
		}},
		&kaasv1.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: "kaas-1"}, Spec: kaasv1.KaaSReleaseSpec{
			Version: "2.30.0", ClusterRelease: "mosk-1", SupportedClusterReleases: []kaasv1.SupportedClusterRelease{{Name: "mosk-1", Version: "1.0.0"}},
		}}, c,
	} {
		if err := l.Create(l.t.Context(), o); err != nil {
			l.t.Fatal(err)
		}
	}
}

// change changes the values of the chart.
func (l handover) change(text string) {
	l.t.Helper()
	c := new(clusterv1.Cluster)
	if err := l.Get(l.t.Context(), l.key("c1"), c); err != nil {
		l.t.Fatal(err)
	}
	before := c.DeepCopy()
	c.Spec.ProviderSpec.Value.HelmReleases = []baremetalv1.HelmRelease{{Name: "settings", Values: &runtime.RawExtension{Raw: []byte(`{"text":"` + text + `"}`)}}}
	if err := l.Patch(l.t.Context(), c, client.MergeFrom(before)); err != nil {
		l.t.Fatal(err)
	}
}

// revision waits for a revision of the release, of which there is one Secret.
func (l handover) revision(want int) {
	l.t.Helper()
	b := new(lcmv1.HelmBundle)
	patience.Await(l.t, "the chart is installed", func() bool {
		err := l.Get(l.t.Context(), l.key("c1"), b)
		s := b.Status.ReleaseStatuses["settings"]
		return err == nil && s.Success && s.Ready && s.Revision == want
	}, b)
	var secrets corev1.SecretList
	if err := l.List(l.t.Context(), &secrets, client.InNamespace(Namespace), client.MatchingLabels{"owner": "helm"}); err != nil || len(secrets.Items) != want {
		l.t.Errorf("%d Secrets of Helm, %v; want one for each of %d revisions", len(secrets.Items), err, want)
	}
}

// installs counts the Secrets of Helm that a process has written.
type installs struct{ writes atomic.Int64 }

func (i *installs) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/secrets") {
			i.writes.Add(1)
		}
		return next.RoundTrip(req)
	})
}
