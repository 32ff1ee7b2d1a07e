package clusters

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
)

// asks returns the Cluster with another release in its spec, not stored.
func (l *lab) asks(name string, k *baremetalv1.KaaS) *clusterv1.Cluster {
	l.t.Helper()
	c := new(clusterv1.Cluster)
	l.must(l.Get(l.t.Context(), key, c))
	c.Spec.ProviderSpec.Value.Release, c.Spec.ProviderSpec.Value.KaaS = name, k
	return c
}

// admits checks the answer of the webhook.
func (l *lab) admits(c *clusterv1.Cluster, want string) {
	l.t.Helper()
	got := ""
	if err := release.Admit(l.t.Context(), l.Client, c); err != nil {
		got = err.Error()
	}
	if got != want {
		l.t.Errorf("%s: Admit = %q, want %q", c.Spec.ProviderSpec.Value.Release, got, want)
	}
}

// lcmMachine returns an LCMMachine of a cluster that has reached a release.
func lcmMachine(name, cluster, reached string) *lcmv1.LCMMachine {
	m := &lcmv1.LCMMachine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}}}
	m.Status.Release = reached
	return m
}

// The webhook refuses an upgrade that the controller would not begin. Before anything is
// deployed, a Cluster may ask for any release.
func TestAdmissionOfAnUpgrade(t *testing.T) {
	l := start(t, objects()...)
	l.admits(l.asks("other", nil), "")
	l.pass()
	l.admits(l.asks("mosk-1", nil), "")
	l.admits(l.asks("mosk-2", nil), "")
	l.admits(l.asks("mosk-3", nil), `spec.providerSpec.value.release: "mosk-1" (1.0.0) cannot be upgraded to "mosk-3": give one of mosk-2 (1.1.0)`)
	l.admits(l.asks("other", nil), `spec.providerSpec.value.release: KaaSRelease "kaas-3" does not support "other": give one of mosk-1, mosk-2, mosk-3`)
	l.admits(l.asks("", nil), "spec.providerSpec.value.release: give the name of a ClusterRelease")
}

// A machine takes every step of the upgrade path: the webhook refuses the next release until
// all machines have the present one.
func TestUpgradeWaitsForAllMachines(t *testing.T) {
	l := start(t, objects(lcmMachine("b", "c1", "mosk-1"), lcmMachine("a", "c1", "mosk-1"), lcmMachine("new", "c1", ""), lcmMachine("far", "c2", "mosk-1"))...)
	l.pass()
	l.ask("mosk-2", nil)
	const behind = `spec.providerSpec.value.release: "mosk-3" can follow once all machines have "mosk-2": machine a has "mosk-1", b has "mosk-1"`
	l.admits(l.asks("mosk-3", nil), behind)
	if got := condition(t, l.ask("mosk-3", nil), ConditionRelease); got.Message != behind || l.lcm().Spec.Release != "mosk-2" {
		t.Errorf("condition %+v, release %s", got, l.lcm().Spec.Release)
	}
	for _, name := range []string{"a", "b"} {
		m := new(lcmv1.LCMMachine)
		l.must(l.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: name}, m))
		m.Status.Release = "mosk-2"
		l.must(l.Update(t.Context(), m))
	}
	l.admits(l.asks("mosk-3", nil), "")
	if c := l.pass(); !condition(t, c, ConditionRelease).Ready || l.lcm().Spec.Release != "mosk-3" {
		t.Errorf("condition %+v, release %s", condition(t, c, ConditionRelease), l.lcm().Spec.Release)
	}
}

// A release that no machine reaches is rolled forward by one that can follow the release before,
// too.
func TestBrokenReleaseIsRolledForward(t *testing.T) {
	l := start(t, objects(lcmMachine("a", "c1", "mosk-1"), lcmMachine("b", "c1", "mosk-2"))...)
	l.pass()
	l.ask("mosk-2", nil)
	l.admits(l.asks("mosk-3", nil), `spec.providerSpec.value.release: "mosk-3" can follow once all machines have "mosk-2": machine a has "mosk-1"`)
	mended := kaasRelease("kaas-4", "2.11.0", "mosk-3")
	mended.Spec.SupportedClusterReleases[0].AvailableUpgrades = append(mended.Spec.SupportedClusterReleases[0].AvailableUpgrades, kaasv1.AvailableUpgrade{Version: mended.Spec.SupportedClusterReleases[2].Version})
	l.must(l.Create(t.Context(), mended))
	l.admits(l.asks("mosk-3", nil), "")
	if c := l.ask("mosk-3", nil); !condition(t, c, ConditionRelease).Ready || l.lcm().Spec.Release != "mosk-3" {
		t.Errorf("condition %+v, release %s", condition(t, c, ConditionRelease), l.lcm().Spec.Release)
	}
}

// The management cluster stays with a KaaSRelease that supports all clusters.
func TestKaaSReleaseThatDropsTheReleaseOfACluster(t *testing.T) {
	tenant := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "c9"}}
	tenant.Status.ProviderStatus = &baremetalv1.ClusterProviderStatus{ReleaseRefs: baremetalv1.ReleaseRefs{Current: &baremetalv1.ReleaseRef{Name: "mosk-1"}}}
	dropped := kaasRelease("kaas-4", "2.11.0", "mosk-3")
	dropped.Spec.SupportedClusterReleases = dropped.Spec.SupportedClusterReleases[1:]
	l := start(t, objects(tenant, dropped)...)
	l.ask("", &baremetalv1.KaaS{Release: "kaas-2"})
	l.admits(l.asks("", &baremetalv1.KaaS{Release: "kaas-3"}), "")
	want := `spec.providerSpec.value.kaas.release: KaaSRelease "kaas-4" does not support "mosk-1", the release of Cluster tenant/c9: upgrade that one first`
	l.admits(l.asks("", &baremetalv1.KaaS{Release: "kaas-4"}), want)
	if got := condition(t, l.ask("", &baremetalv1.KaaS{Release: "kaas-4"}), ConditionRelease); got.Message != want || l.lcm().Spec.Release != "mosk-2" {
		t.Errorf("condition %+v, release %s", got, l.lcm().Spec.Release)
	}
}

// statement H44: the charts are those of the former release until their step has begun.
func TestChartsWaitForTheirStep(t *testing.T) {
	p := &kaasv1.ClusterUpdatePlan{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "c1-1.1.0"}}
	p.Spec = kaasv1.ClusterUpdatePlanSpec{Cluster: "c1", Source: "mosk-1", Target: "mosk-2", Steps: []kaasv1.PlanStep{{ID: kaasv1.StepComponents}}}
	l := start(t, objects(p)...)
	l.pass()
	l.ask("mosk-2", nil)
	bundleRelease := func() string {
		b := new(lcmv1.HelmBundle)
		l.must(l.Get(t.Context(), key, b))
		return b.Spec.Release
	}
	if l.lcm().Spec.Release != "mosk-2" || bundleRelease() != "mosk-1" {
		t.Errorf("LCMCluster has %s, HelmBundle %s", l.lcm().Spec.Release, bundleRelease())
	}
	p.Status.Steps = []kaasv1.PlanStepStatus{{ID: kaasv1.StepComponents, Status: kaasv1.PlanInProgress}}
	current := new(kaasv1.ClusterUpdatePlan)
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(p), current))
	current.Status = p.Status
	l.must(l.Update(t.Context(), current))
	if l.pass(); bundleRelease() != "mosk-2" {
		t.Errorf("HelmBundle has %s", bundleRelease())
	}
}

// A release of other providers is none of the bare metal provider's.
func TestReleaseOfOtherProviders(t *testing.T) {
	l := start(t, objects()...)
	l.pass()
	k := new(kaasv1.KaaSRelease)
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "kaas-3"}, k))
	for i, providers := range [][]string{{"aws", "baremetal"}, {"aws"}, nil} {
		k.Spec.SupportedClusterReleases[i].Providers.Supported = providers
	}
	k.Spec.SupportedClusterReleases[0].AvailableUpgrades = []kaasv1.AvailableUpgrade{{Version: "1.1.0"}, {Version: "1.10.0", RebootRequired: true}}
	l.must(l.Update(t.Context(), k))
	l.admits(l.asks("mosk-1", nil), "")
	l.admits(l.asks("mosk-3", nil), "")
	l.admits(l.asks("mosk-2", nil), `spec.providerSpec.value.release: KaaSRelease "kaas-3" does not support "mosk-2": give one of mosk-1, mosk-3`)
	want := []baremetalv1.ReleaseRef{{Name: "mosk-3", Version: "1.10.0", RebootRequired: true}}
	if diff := cmp.Diff(want, l.pass().Status.ProviderStatus.ReleaseRefs.Available); diff != "" {
		t.Errorf("available releases (-want +got):\n%s", diff)
	}
}

// An upgrade reboots the machines where its path says so, also that of a machine which is
// behind; one that does not, and stays without machines behind, ends it.
func TestPathsThatRebootTheMachines(t *testing.T) {
	for _, tt := range []struct {
		name         string
		first, later bool   // rebootRequired from mosk-1 to mosk-2, and from mosk-2 to mosk-3
		skip         string // rebootRequired from mosk-1 to mosk-3; "" is no such path
		has          string // the release of the machine at the second upgrade
		want         [2]bool
	}{
		{"none", false, false, "", "mosk-2", [2]bool{false, false}},
		{"the first", true, false, "", "mosk-2", [2]bool{true, false}},
		{"the second", false, true, "", "mosk-2", [2]bool{false, true}},
		{"missed", true, false, "no", "mosk-1", [2]bool{true, true}},
		{"from before", false, false, "yes", "mosk-1", [2]bool{false, true}},
		{"not from before", false, false, "no", "mosk-1", [2]bool{false, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := start(t, objects(lcmMachine("a", "c1", "mosk-1"))...)
			k := kaasRelease("kaas-4", "2.11.0", "mosk-3")
			s := k.Spec.SupportedClusterReleases
			s[0].AvailableUpgrades = []kaasv1.AvailableUpgrade{{Version: s[1].Version, RebootRequired: tt.first}}
			if tt.skip != "" {
				s[0].AvailableUpgrades = append(s[0].AvailableUpgrades, kaasv1.AvailableUpgrade{Version: s[2].Version, RebootRequired: tt.skip == "yes"})
			}
			s[1].AvailableUpgrades = []kaasv1.AvailableUpgrade{{Version: s[2].Version, RebootRequired: tt.later}}
			l.must(l.Create(t.Context(), k))
			if l.pass(); l.lcm().Spec.NodesRebootRequired {
				t.Error("a deployment reboots")
			}
			for i, to := range []string{"mosk-2", "mosk-3"} {
				l.ask(to, nil)
				l.pass() // keeps it
				if got := l.lcm().Spec; got.Release != to || got.NodesRebootRequired != tt.want[i] {
					t.Errorf("%s: nodesRebootRequired %t, want %t (release %s)", to, got.NodesRebootRequired, tt.want[i], got.Release)
				}
				m := new(lcmv1.LCMMachine)
				l.must(l.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "a"}, m))
				m.Status.Release = tt.has
				l.must(l.Update(t.Context(), m))
			}
		})
	}
}
