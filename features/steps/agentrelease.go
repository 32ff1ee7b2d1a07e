package steps

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/lab"
)

// registerAgentReleases binds the steps on the LCM agent that a release names. Its Cluster is a
// management cluster, whose releases are of versions below those of other scenarios.
func (s *scenario) registerAgentReleases(sc *stepRegistry) {
	sc.Step(`^a cluster whose release has the agent "([^"]*)" with a wrong SHA-256$`, "creates a management Cluster whose ClusterRelease names the lab's own agent in a version, and a SHA-256 of zeros", func(ctx context.Context, version string) error {
		agent := s.ownAgent(version)
		agent.SHA256 = strings.Repeat("0", len(agent.SHA256))
		name, err := s.createAgentRelease(ctx, "0.1.0", agent)
		if err != nil {
			return err
		}
		c := &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)}
		c.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
		c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{KaaS: &baremetalv1.KaaS{Release: name}}
		return s.create(ctx, c)
	})
	sc.Step(`^the operator upgrades the cluster to the release "([^"]*)" with the agent "([^"]*)"$`, "creates a ClusterRelease of this version and its KaaSRelease, with the lab's own agent in a version, and sets the KaaSRelease of the management Cluster", func(ctx context.Context, release, version string) error {
		name, err := s.createAgentRelease(ctx, release, s.ownAgent(version))
		if err != nil {
			return err
		}
		return s.changeCluster(ctx, func(v *baremetalv1.ClusterProviderSpec) { v.KaaS.Release = name })
	})
	sc.NegativeStep(`^the server of "([^"]*)" has no agent$`, "asserts, once each controller has reconciled every object, that the running system has no file /usr/local/bin/lab-agent", func(ctx context.Context, name string) error {
		if err := s.letDay2ControllersAct(ctx); err != nil {
			return err
		}
		h, err := s.serverOf(name)
		if err != nil {
			return err
		}
		code, _, err := s.shellOn(ctx, h.Name, "test ! -e "+lab.AgentFile)
		if err == nil && code != 0 {
			err = fmt.Errorf("it has %s", lab.AgentFile)
		}
		return err
	})
}

// createAgentRelease creates a ClusterRelease and the KaaSRelease of its name, which it returns.
func (s *scenario) createAgentRelease(ctx context.Context, version string, agent *lcmv1.AgentConfig) (name string, err error) {
	name = fmt.Sprintf("agent-%d", rand.Uint32())
	image := kaasv1.DistributionImage{URL: s.url(), Checksum: s.url() + ".sha256"}
	it := lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: deployItem, Version: "1", Phase: lcmv1.PhaseDeploy, Params: map[string]string{"script": "true"}}
	return name, s.create(ctx,
		&kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaasv1.ClusterReleaseSpec{
			Version: version, LCMType: lcmv1.LCMTypeK0s, Agent: agent,
			AllowedDistributions: []kaasv1.Distribution{{ID: "debian", Default: true, Image: image}},
			MachineTypes:         map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineWorker: {it}},
		}},
		&kaasv1.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaasv1.KaaSReleaseSpec{Version: version, ClusterRelease: name}})
}
