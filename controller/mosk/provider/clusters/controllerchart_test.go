package clusters

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
)

const chartURL = "http://192.0.2.9/charts/" + helmcontroller.Archive

// releasesOf returns the releases of a bundle, as NAME CHART VALUES and what each requires.
func releasesOf(b lcmv1.HelmBundleSpec) string {
	var out []string
	for _, r := range b.Releases {
		s := r.Name + " " + r.Chart + r.ChartURL
		if r.Values != nil {
			s += " " + string(r.Values.Raw)
		}
		out = append(out, strings.Join(append([]string{s}, r.Requires...), " <"))
	}
	return strings.Join(out, "; ")
}

// A release that names no chart of the Helm controller gets the default, once, and in an API that
// Clusters share under a name of the Cluster's own.
func TestBundleHasTheChartOfTheHelmController(t *testing.T) {
	app := kaasv1.ReleaseChart{Name: "app", Requires: []string{"helm-controller"}}
	off := false
	for _, tt := range []struct {
		name   string
		chart  controllerChart
		helm   kaasv1.ReleaseHelm
		values []baremetalv1.HelmRelease
		want   string
	}{
		{"no default", controllerChart{}, kaasv1.ReleaseHelm{}, nil, ""},
		{"default", controllerChart{url: chartURL}, kaasv1.ReleaseHelm{Releases: []kaasv1.ReleaseChart{app}}, nil, "helm-controller " + chartURL + "; app app <helm-controller"},
		{"shared", controllerChart{url: chartURL, sharedBy: "c1"}, kaasv1.ReleaseHelm{Releases: []kaasv1.ReleaseChart{app}}, nil, "helm-controller-c1 " + chartURL + "; app app <helm-controller-c1"},
		{"named", controllerChart{url: chartURL, sharedBy: "c1"}, kaasv1.ReleaseHelm{Controller: &kaasv1.ReleaseChart{Name: "hc", Chart: "lab/helm-controller"}}, nil, "hc-c1 lab/helm-controller"},
		{"another chart", controllerChart{url: chartURL, sharedBy: "c1"}, kaasv1.ReleaseHelm{Controller: &kaasv1.ReleaseChart{Name: "flux"}}, nil, "flux flux"},
		{"among the charts", controllerChart{url: chartURL}, kaasv1.ReleaseHelm{Releases: []kaasv1.ReleaseChart{{Name: "hc", Chart: "lab/helm-controller"}}}, nil, "hc lab/helm-controller"},
		{"not enabled", controllerChart{url: chartURL, sharedBy: "c1"}, kaasv1.ReleaseHelm{}, []baremetalv1.HelmRelease{{Name: "helm-controller", Enabled: &off}}, ""},
		{"available", controllerChart{url: chartURL, ha: true}, kaasv1.ReleaseHelm{}, nil, "helm-controller " + chartURL + ` {"replicas":2}`},
		{"available, with values", controllerChart{ha: true}, kaasv1.ReleaseHelm{Controller: &kaasv1.ReleaseChart{Name: "hc", Chart: "lab/helm-controller", Values: raw(`{"replicas":3}`)}}, nil, `hc lab/helm-controller {"replicas":3}`},
	} {
		to := clusterRelease("mosk-1", "1.0.0")
		to.Spec.Helm = tt.helm
		got, err := bundleSpec(release.Wanted{Name: "mosk-1"}, to, baremetalv1.ClusterProviderSpec{HelmReleases: tt.values}, tt.chart)
		if err != nil || releasesOf(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, releasesOf(got), err, tt.want)
		}
		if r := to.Spec.Helm.Releases; len(r) > 0 && len(r[0].Requires) > 0 && r[0].Requires[0] != "helm-controller" {
			t.Errorf("%s: the ClusterRelease is changed: %v", tt.name, r[0].Requires)
		}
	}
	long := strings.Repeat("c", 60)
	a, b := helmcontroller.SharedRelease("helm-controller", long+"-a"), helmcontroller.SharedRelease("helm-controller", long+"-b")
	if len(a) > 53 || a == b {
		t.Errorf("releases %s and %s of Clusters with long names", a, b)
	}
}

// A Cluster has the default in the lab's API and in one that the lab has started for it, not in a
// cluster of the user's.
func TestChartOfTheHelmControllerIsForAPIsOfTheLab(t *testing.T) {
	l := start(t, objects()...)
	l.r.HelmChart = chartURL
	c := l.pass()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "c1-kubeconfig"}}
	check := func(what, kubeconfig string, want controllerChart) {
		t.Helper()
		got, err := l.r.controllerChart(t.Context(), c, l.lcm(), kubeconfig)
		if l.must(err); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("a shared API", "", controllerChart{url: chartURL, sharedBy: "c1"})
	check("an API that is being started", secret.Name, controllerChart{url: chartURL})
	secret.OwnerReferences = l.lcm().OwnerReferences // the Cluster
	l.must(l.Create(t.Context(), secret))
	check("an API of its own", secret.Name, controllerChart{url: chartURL})
	secret.OwnerReferences = nil
	l.must(l.Update(t.Context(), secret))
	check("a cluster of the user's", secret.Name, controllerChart{})
}

// The LCMCluster and the stages show whether the Helm controller is there, and its pods run.
func TestHelmControllerDeployed(t *testing.T) {
	l := start(t, objects()...)
	l.r.HelmChart = chartURL
	l.r.Workload = func(context.Context, string, string) (workload.API, error) {
		return workload.API{Client: l.Client}, nil
	}
	stage := func() (out kaasv1.Stage) {
		t.Helper()
		s := new(kaasv1.ClusterDeploymentStatus)
		l.must(l.Get(t.Context(), key, s))
		for _, x := range s.Stages {
			if x.Name == kaasv1.StageHelmController {
				out = x
			}
		}
		return out
	}
	bundle := func(s lcmv1.HelmReleaseStatus) {
		t.Helper()
		b := new(lcmv1.HelmBundle)
		l.must(l.Get(t.Context(), key, b))
		b.Status.ReleaseStatuses = map[string]lcmv1.HelmReleaseStatus{"helm-controller-c1": s}
		l.must(l.Status().Update(t.Context(), b))
		l.pass()
	}
	l.pass()
	if s := stage(); l.lcm().Status.HelmControllerDeployed || s.Status == kaasv1.StageSuccess || s.Name == "" {
		t.Errorf("before Helm has installed it: stage %+v", s)
	}
	bundle(lcmv1.HelmReleaseStatus{Success: true})
	if s := stage(); l.lcm().Status.HelmControllerDeployed || s.Success {
		t.Errorf("while its pod does not run: stage %+v", s)
	}
	bundle(lcmv1.HelmReleaseStatus{Success: true, Ready: true})
	if s := stage(); !l.lcm().Status.HelmControllerDeployed || s.Status != kaasv1.StageSuccess {
		t.Errorf("once its pod runs: stage %+v", s)
	}
	bundle(lcmv1.HelmReleaseStatus{Success: true})
	if s := stage(); l.lcm().Status.HelmControllerDeployed || !s.Success {
		t.Errorf("when its pod runs no more: stage %+v", s)
	}
	l.ask("none", nil) // a mistake, without a bundle
	if s := stage(); !s.Success {
		t.Errorf("with a mistake in the Cluster: stage %+v", s)
	}
	m := l.lcm()
	m.Spec.HelmControllerHAEnabled = true
	l.must(l.Update(t.Context(), m))
	l.ask("mosk-1", nil)
	b := new(lcmv1.HelmBundle)
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(m), b))
	if got, want := releasesOf(b.Spec), "helm-controller-c1 "+chartURL+` {"replicas":2}`; got != want {
		t.Errorf("releases %s with helmControllerHAEnabled, want %s", got, want)
	}
}
