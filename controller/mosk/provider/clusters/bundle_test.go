package clusters

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	iamv1 "github.com/metalab-dev/metalab/controller/api/iam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
)

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// The layers of a management cluster: its ClusterRelease, its KaaSRelease, and the values of
// the Cluster.
func TestBundleMergesReleasesAndValues(t *testing.T) {
	to := clusterRelease("mosk-1", "1.0.0")
	to.Spec.Helm = kaasv1.ReleaseHelm{
		Repositories: []kaasv1.ReleaseRepository{{Name: "mosk", URL: "http://192.0.2.1/charts"}},
		Controller:   &kaasv1.ReleaseChart{Name: "helm-controller", Namespace: "kube-system", Version: "0.3.0"},
		Releases: []kaasv1.ReleaseChart{
			{Name: "store", Chart: "mosk/store", Version: "1.0.0", Values: raw(`{"size":12345678901234567890,"tls":{"on":true,"ca":"x"},"list":[1,2]}`)},
			{Name: "app", ChartURL: "http://192.0.2.1/app.tgz", Requires: []string{"store"}},
		},
	}
	k := kaasRelease("kaas-2", "2.9.0", "mosk-1")
	k.Spec.Management.HelmReleases = []kaasv1.ReleaseChart{{Name: "store", Version: "1.1.0", Values: raw(`{"tls":{"ca":"y"}}`)}, {Name: "iam", Namespace: "kaas"}}
	k.Spec.Regional = []kaasv1.ReleaseRegional{{Provider: "baremetal", HelmReleases: []kaasv1.ReleaseChart{{Name: "bm"}}}, {Provider: "openstack", HelmReleases: []kaasv1.ReleaseChart{{Name: "os"}}}}
	value := baremetalv1.ClusterProviderSpec{
		KaaS: &baremetalv1.KaaS{
			Release:    "kaas-2",
			Management: baremetalv1.KaaSManagement{HelmReleases: []baremetalv1.HelmRelease{{Name: "iam", Values: raw(`{"a":1,"b":2}`)}}},
			Regional:   []baremetalv1.KaaSRegional{{Provider: "baremetal", HelmReleases: []baremetalv1.HelmRelease{{Name: "bm", Values: raw(`{"r":1}`)}}}},
		},
		HelmReleases: []baremetalv1.HelmRelease{{Name: "iam", Values: raw(`{"b":3}`)}, {Name: "store", Values: raw(`{"tls":{"on":null},"list":[3]}`)}},
	}
	got, err := bundleSpec(release.Wanted{Name: "mosk-1", KaaS: k, Management: true}, to, value, controllerChart{})
	if err != nil {
		t.Fatal(err)
	}
	want := lcmv1.HelmBundleSpec{
		Release:      "mosk-1",
		Repositories: []lcmv1.HelmRepository{{Name: "mosk", URL: "http://192.0.2.1/charts"}},
		Releases: []lcmv1.HelmRelease{
			{Name: "helm-controller", Chart: "helm-controller", Namespace: "kube-system", Version: "0.3.0"},
			{Name: "store", Chart: "mosk/store", Version: "1.1.0", Values: raw(`{"list":[3],"size":12345678901234567890,"tls":{"ca":"y"}}`)},
			{Name: "app", ChartURL: "http://192.0.2.1/app.tgz", Requires: []string{"store"}},
			{Name: "iam", Chart: "iam", Namespace: "kaas", Values: raw(`{"a":1,"b":3}`)},
			{Name: "bm", Chart: "bm", Values: raw(`{"r":1}`)},
		},
	}
	text := func(s lcmv1.HelmBundleSpec) string {
		b, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if diff := cmp.Diff(text(want), text(got)); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
	// Another cluster has the charts of its ClusterRelease alone.
	got, err = bundleSpec(release.Wanted{Name: "mosk-1", KaaS: k}, to, baremetalv1.ClusterProviderSpec{}, controllerChart{})
	if err != nil || len(got.Releases) != 3 || string(got.Releases[1].Values.Raw) != `{"list":[1,2],"size":12345678901234567890,"tls":{"ca":"x","on":true}}` && got.Releases[1].Version != "1.0.0" {
		t.Errorf("bundle of a MOSK cluster %s, %v", text(got), err)
	}
	for _, tt := range []struct{ name, values, want string }{
		{"stroe", `{}`, `helmReleases: "stroe" is no chart of ClusterRelease "mosk-1"`},
		{"store", `[1]`, `values of "store": give an object`},
	} {
		_, err := bundleSpec(release.Wanted{Name: "mosk-1", KaaS: k}, to, baremetalv1.ClusterProviderSpec{HelmReleases: []baremetalv1.HelmRelease{{Name: tt.name, Values: raw(tt.values)}}}, controllerChart{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("values %s of %s: %v, want %q", tt.values, tt.name, err, tt.want)
		}
	}
}

// A Cluster's bundle shows in its condition Helm. Its deletion waits for the bundle's, and
// removes the scopes then.
func TestBundleAndScopesOfACluster(t *testing.T) {
	l := start(t, objects()...)
	to := new(kaasv1.ClusterRelease)
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "mosk-1"}, to))
	to.Spec.Helm.Releases = []kaasv1.ReleaseChart{{Name: "app", Requires: []string{"store"}}, {Name: "store"}}
	l.must(l.Update(t.Context(), to))
	c := l.pass()
	if got := condition(t, c, ConditionHelm); got.Ready || got.Message != "app is not ready; store is not ready" {
		t.Errorf("condition %+v of a bundle that nobody has installed", got)
	}
	b := new(lcmv1.HelmBundle)
	l.must(l.Get(t.Context(), key, b))
	if len(b.Spec.Releases) != 2 || !metav1.IsControlledBy(b, c) {
		t.Errorf("bundle %+v", b)
	}
	b.Status.ObservedGeneration = b.Generation
	b.Status.ReleaseStatuses = map[string]lcmv1.HelmReleaseStatus{"app": {Message: "waits for the release store"}, "store": {Attempt: 3, Message: "no chart\nmore"}}
	l.must(l.Status().Update(t.Context(), b))
	if got := condition(t, l.pass(), ConditionHelm); got.Ready || got.Message != "release store, attempt 3: no chart; app: waits for the release store" {
		t.Errorf("condition %+v of a bundle that fails", got)
	}
	for _, name := range []string{"app", "store"} {
		b.Status.ReleaseStatuses[name] = lcmv1.HelmReleaseStatus{Success: true, Ready: true}
	}
	l.must(l.Status().Update(t.Context(), b))
	c = l.pass()
	if got := condition(t, c, ConditionHelm); !got.Ready {
		t.Errorf("condition %+v of a bundle that is installed", got)
	}
	if got := condition(t, c, ConditionIAM); !got.Ready {
		t.Errorf("condition %+v of scopes", got)
	}
	l.must(l.Get(t.Context(), key, b))
	b.Finalizers = []string{lcmv1.HelmFinalizer}
	l.must(l.Update(t.Context(), b))
	l.must(l.Delete(t.Context(), c))
	scope := &iamv1.Scope{ObjectMeta: metav1.ObjectMeta{Name: "cluster.lab.c1"}}
	if l.pass() == nil {
		t.Fatal("the Cluster is gone before its charts")
	}
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(scope), scope))
	l.lcm()
	l.must(l.Get(t.Context(), key, b))
	b.Finalizers = nil
	l.must(l.Update(t.Context(), b))
	if l.pass() != nil {
		t.Error("the Cluster still exists")
	}
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(scope), scope); !apierrors.IsNotFound(err) {
		t.Errorf("the scope of a Cluster that is gone: %v", err)
	}
}

// A chart that the Cluster disables is not in the bundle, unless another one requires it.
func TestDisabledChartIsNotInTheBundle(t *testing.T) {
	to := clusterRelease("mosk-1", "1.0.0")
	to.Spec.Helm.Releases = []kaasv1.ReleaseChart{{Name: "store"}, {Name: "app", Requires: []string{"store"}}, {Name: "log"}}
	w := release.Wanted{Name: "mosk-1", KaaS: kaasRelease("kaas-2", "2.9.0", "mosk-1")}
	off, on := ptr.To(false), ptr.To(true)
	for _, tt := range []struct {
		name  string
		value []baremetalv1.HelmRelease
		want  string
		err   string
	}{
		{"enabled", []baremetalv1.HelmRelease{{Name: "log", Enabled: on}}, "store app log", ""},
		{"disabled", []baremetalv1.HelmRelease{{Name: "log", Enabled: off, Values: raw(`{"a":1}`)}}, "store app", ""},
		{"required", []baremetalv1.HelmRelease{{Name: "store", Enabled: off}}, "", `helmReleases: "store" is not enabled, but "app" requires it: enable it, or disable "app", too`},
		{"both", []baremetalv1.HelmRelease{{Name: "store", Enabled: off}, {Name: "app", Enabled: off}}, "log", ""},
		{"the last counts", []baremetalv1.HelmRelease{{Name: "log", Enabled: off}, {Name: "log", Enabled: on}}, "store app log", ""},
	} {
		b, err := bundleSpec(w, to, baremetalv1.ClusterProviderSpec{HelmReleases: tt.value}, controllerChart{})
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		var names []string
		for _, r := range b.Releases {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

// Labels of charts, Secrets of repositories, and what a KaaSRelease has for all providers.
func TestBundleOfTheOlderReleaseTypes(t *testing.T) {
	to := clusterRelease("mosk-1", "1.0.0")
	to.Spec.Helm = kaasv1.ReleaseHelm{
		Repositories: []kaasv1.ReleaseRepository{{Name: "mosk", URL: "http://192.0.2.1/charts", AuthSecret: "charts"}},
		Releases:     []kaasv1.ReleaseChart{{Name: "store", HelmV3: true, Labels: map[string]string{"tier": "data"}}},
	}
	k := kaasRelease("kaas-2", "2.9.0", "mosk-1")
	k.Spec.HelmRepositories = []kaasv1.ReleaseRepository{{Name: "mosk", URL: "http://192.0.2.2"}, {Name: "kaas", URL: "http://192.0.2.3"}}
	k.Spec.RegionalHelmReleases = []kaasv1.ReleaseChart{{Name: "squid", Chart: "kaas/squid"}}
	value := baremetalv1.ClusterProviderSpec{KaaS: &baremetalv1.KaaS{Release: "kaas-2", RegionalHelmReleases: []baremetalv1.HelmRelease{{Name: "squid", Values: raw(`{"a":1}`)}}}}
	got, err := bundleSpec(release.Wanted{Name: "mosk-1", KaaS: k, Management: true}, to, value, controllerChart{})
	if err != nil {
		t.Fatal(err)
	}
	want := lcmv1.HelmBundleSpec{
		Release:      "mosk-1",
		Repositories: []lcmv1.HelmRepository{{Name: "mosk", URL: "http://192.0.2.1/charts", AuthSecret: "charts"}, {Name: "kaas", URL: "http://192.0.2.3"}},
		Releases: []lcmv1.HelmRelease{
			{Name: "store", Chart: "store", Labels: map[string]string{"tier": "data"}},
			{Name: "squid", Chart: "kaas/squid", Values: raw(`{"a":1}`)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
	if got, err := bundleSpec(release.Wanted{Name: "mosk-1", KaaS: k}, to, baremetalv1.ClusterProviderSpec{}, controllerChart{}); err != nil || len(got.Releases) != 1 || len(got.Repositories) != 1 {
		t.Errorf("bundle of a MOSK cluster %+v, %v", got, err)
	}
}

// A field that nothing acts on is in the condition NotApplied while the Cluster sets it.
func TestConditionNotAppliedOfACluster(t *testing.T) {
	l := start(t, objects()...)
	has := func(c *clusterv1.Cluster) string {
		for _, x := range c.Status.ProviderStatus.Conditions {
			if x.Type == baremetalv1.ConditionNotApplied {
				return fmt.Sprint(x.Ready, " ", x.Message)
			}
		}
		return ""
	}
	c := l.pass()
	if got := has(c); got != "" {
		t.Errorf("condition NotApplied %q of a Cluster that sets no such field", got)
	}
	c.Spec.ProviderSpec.Value.ContainerRegistries = []string{"r"}
	c.Spec.ProviderSpec.Value.DedicatedMetallbPools = true
	l.must(l.Update(t.Context(), c))
	c = l.pass()
	if got, want := has(c), "true nothing acts on spec.providerSpec.value.dedicatedMetallbPools, spec.providerSpec.value.containerRegistries"; got != want {
		t.Errorf("condition NotApplied %q, want %q", got, want)
	}
	c.Spec.ProviderSpec.Value.ContainerRegistries, c.Spec.ProviderSpec.Value.DedicatedMetallbPools = nil, false
	l.must(l.Update(t.Context(), c))
	if got := has(l.pass()); got != "" {
		t.Errorf("condition NotApplied %q after the fields are removed", got)
	}
}
