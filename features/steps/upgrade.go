package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// releases are the releases of a scenario's cluster, in the order of the supported path.
var releases = []struct{ name, version string }{{"lab-1", "1.0.0"}, {"lab-2", "1.1.0"}, {"lab-3", "1.10.0"}}

// deployItem is the item of each release: a machine without any is Pending.
const deployItem = "deploy"

// ownAgent returns the lab's own LCM agent in a version.
func (s *scenario) ownAgent(version string) *lcmv1.AgentConfig {
	p := s.lab.AgentProgram(version)
	return &lcmv1.AgentConfig{Version: p.Version, DownloadURL: p.URL, SHA256: p.SHA256}
}

// releases returns ClusterReleases, each with the agent of its version, and the KaaSRelease by which each is followed by the
// next.
func (s *scenario) releases() []client.Object {
	image := kaasv1.DistributionImage{URL: s.url(), Checksum: s.url() + ".sha256"}
	k := &kaasv1.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: releases[0].name}, Spec: kaasv1.KaaSReleaseSpec{Version: "1.0.0", ClusterRelease: releases[0].name}}
	out := []client.Object{k}
	for i, release := range releases {
		supported := kaasv1.SupportedClusterRelease{Name: release.name, Version: release.version}
		if i+1 < len(releases) {
			supported.AvailableUpgrades = []kaasv1.AvailableUpgrade{{Version: releases[i+1].version}}
		}
		k.Spec.SupportedClusterReleases = append(k.Spec.SupportedClusterReleases, supported)
		it := lcmv1.LCMStateItem{
			Runner: lcmv1.RunnerBash, Name: deployItem, Version: release.version, Phase: lcmv1.PhaseDeploy, Params: map[string]string{"script": "echo " + release.name + " > /etc/deployed"},
		}
		r := &kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: release.name}, Spec: kaasv1.ClusterReleaseSpec{
			Version: release.version, LCMType: lcmv1.LCMTypeK0s, AllowedDistributions: []kaasv1.Distribution{{ID: "debian", Default: true, Image: image}},
			AllowedNodeLabels: []kaasv1.AllowedNodeLabel{{Key: "zone"}, {Key: "role", Value: "db"}},
			MachineTypes:      map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineWorker: {it}, lcmv1.MachineControl: {it}},
		}}
		r.Spec.Agent = s.ownAgent(release.version)
		if release == releases[1] { // a chart costs a scenario a second
			r.Spec.Helm.Repositories = []kaasv1.ReleaseRepository{{Name: "lab", URL: s.lab.ChartsURL()}}
			r.Spec.Helm.Releases = []kaasv1.ReleaseChart{{Name: "cluster-settings", Chart: "lab/settings", Version: "1.0.0"}}
		}
		out = append(out, r)
	}
	return out
}

// registerUpgrades binds the steps on the release of a cluster.
func (s *scenario) registerUpgrades(sc *stepRegistry) {
	sc.Step(`^the upgrade from "([^"]*)" to "([^"]*)" needs a reboot$`, "creates a newer KaaSRelease, in which this upgrade has rebootRequired", s.needReboot)
	sc.Step(`^the operator upgrades the cluster to "([^"]*)"$`, "sets the release of the Cluster", func(ctx context.Context, to string) error { return s.setRelease(ctx, to) })
	sc.Step(`^the operator tries to upgrade the cluster to "([^"]*)"$`, "sets the release of the Cluster in a dry run", func(ctx context.Context, to string) error {
		s.dryRun = true
		s.admissionError = s.setRelease(ctx, to, client.DryRunAll)
		return nil
	})
	sc.Step(`^the machine "([^"]*)" reaches the release "([^"]*)"$`, "waits until the LCMMachine is Ready with the items of this release", func(ctx context.Context, name, release string) error {
		return s.awaitLCMMachine(ctx, name, "has the release "+release, func(m *lcmv1.LCMMachine) string {
			if m.Status.Release == release && m.Spec.Release == release && m.Status.State == lcmv1.StateReady {
				return ""
			}
			return fmt.Sprintf("%s with %q, wanted %q", m.Status.State, m.Status.Release, m.Spec.Release)
		})
	})
	sc.Step(`^the agent of "([^"]*)" has the version "([^"]*)"$`, "waits until agentVersion of the LCMMachine is this, and lcmAgentUpgradeStatus has no error", func(ctx context.Context, name, version string) error {
		return s.awaitLCMMachine(ctx, name, "has the agent "+version, func(m *lcmv1.LCMMachine) string {
			u := m.Status.LCMAgentUpgradeStatus
			if m.Status.AgentVersion == version && (u == nil || u.Error == "" && u.FinishedAt != nil) {
				return ""
			}
			return fmt.Sprintf("agentVersion %q, upgrade %+v", m.Status.AgentVersion, u)
		})
	})
	sc.Step(`^the cluster has the release "([^"]*)"$`, "waits until releaseRefs.current of the Cluster is this release, and each machine, if any, has it", s.hasRelease)
	sc.Step(`^the cluster can be upgraded to "([^"]*)"$`, "waits until releaseRefs.available of the Cluster are these releases", func(ctx context.Context, names string) error {
		return s.awaitReleases(ctx, "can be upgraded to "+names, func(c *clusterv1.Cluster) bool {
			var found []string
			for _, r := range c.Status.ProviderStatus.ReleaseRefs.Available {
				found = append(found, r.Name)
			}
			return slices.Equal(found, fields(names))
		})
	})
	sc.Step(`^the operator commences the step "([^"]*)" of the update to "([^"]*)"$`, "waits for the ClusterUpdatePlan, and sets commence of a step", s.commence)
	sc.Step(`^the step "([^"]*)" of the update to "([^"]*)" goes from NotStarted through InProgress to Completed$`, "waits until a step of the ClusterUpdatePlan is Completed, and checks that it had these statuses, in this order", s.goesThrough)
	sc.Step(`^the update to "([^"]*)" is (NotStarted|InProgress|Completed)$`, "waits until the ClusterUpdatePlan has this status", func(ctx context.Context, to, want string) error {
		return s.awaitPlan(ctx, to, "is "+want, func(p *kaasv1.ClusterUpdatePlan) bool { return string(p.Status.Status) == want })
	})
	sc.NegativeStep(`^the step "([^"]*)" of the update to "([^"]*)" does not begin$`, "asserts, once each controller has reconciled every object, that a step of the ClusterUpdatePlan is NotStarted", s.doesNotBegin)
	sc.NegativeStep(`^the cluster stays with the release "([^"]*)"$`, "asserts, once each controller has reconciled every object, that the LCMCluster and each machine have this release", s.staysWithRelease)
}

func (s *scenario) needReboot(ctx context.Context, from, to string) error {
	k := s.releases()[0].(*kaasv1.KaaSRelease)
	k.Name, k.Labels, k.Spec.Version = "reboot", map[string]string{scenarioLabel: "true"}, "2.0.0"
	for _, r := range releases {
		for i := range k.Spec.SupportedClusterReleases {
			ways := k.Spec.SupportedClusterReleases[i].AvailableUpgrades
			for j := range ways {
				if k.Spec.SupportedClusterReleases[i].Name == from && r.name == to && ways[j].Version == r.version {
					ways[j].RebootRequired = true
					return s.create(ctx, k)
				}
			}
		}
	}
	return fmt.Errorf("%s cannot be upgraded to %s", from, to)
}

func (s *scenario) setRelease(ctx context.Context, to string, opts ...client.PatchOption) error {
	c := &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)}
	patch := fmt.Appendf(nil, `{"spec":{"providerSpec":{"value":{"release":%q}}}}`, to)
	return s.kube.Patch(ctx, c, client.RawPatch("application/merge-patch+json", patch), opts...)
}

// awaitReleases waits until ok accepts the Cluster, which has a status.
func (s *scenario) awaitReleases(ctx context.Context, what string, ok func(*clusterv1.Cluster) bool) error {
	return eventually(ctx, "the cluster "+what, func(ctx context.Context) (bool, string, error) {
		c := &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)}
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return false, "", err
		}
		if c.Status.ProviderStatus == nil {
			return false, "no status", nil
		}
		return ok(c), fmt.Sprintf("%+v", *c.Status.ProviderStatus), nil
	})
}

func (s *scenario) hasRelease(ctx context.Context, name string) error {
	return s.awaitReleases(ctx, "has the release "+name, func(c *clusterv1.Cluster) bool {
		current := c.Status.ProviderStatus.ReleaseRefs.Current
		return current != nil && current.Name == name && s.otherReleases(ctx, name) == nil
	})
}

// otherReleases returns an error that names the machines whose release is another one.
func (s *scenario) otherReleases(ctx context.Context, name string) error {
	var l lcmv1.LCMMachineList
	if err := s.kube.List(ctx, &l); err != nil {
		return err
	}
	var others []string
	for _, m := range l.Items {
		if m.Status.Release != name || m.Spec.Release != name {
			others = append(others, fmt.Sprintf("%s has %q, and is to have %q", m.Name, m.Status.Release, m.Spec.Release))
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("machine %s", strings.Join(others, ", "))
	}
	return nil
}

func (s *scenario) staysWithRelease(ctx context.Context, name string) error {
	if err := s.letDay2ControllersAct(ctx); err != nil {
		return err
	}
	l := &lcmv1.LCMCluster{ObjectMeta: day2Meta(clusterName)}
	if err := s.kube.Get(ctx, client.ObjectKeyFromObject(l), l); err != nil {
		return err
	}
	if l.Spec.Release != name {
		return fmt.Errorf("the LCMCluster has the release %q", l.Spec.Release)
	}
	return s.otherReleases(ctx, name)
}
