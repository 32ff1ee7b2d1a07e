package node

import (
	"context"
	"errors"
	"fmt"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// rollout is the target of a pool's nodes, or the reason why there is none yet.
type rollout struct {
	target
	ready   bool   // the target can be handed out
	waits   string // for an image; the message of the condition Updating
	refused string // no image comes: the reason
}

// rolloutOf returns the rollout of a pool. A pool is layered while a MachineOSConfig names it.
// Its nodes get a configuration and the image of exactly that one together, and neither before
// the build has succeeded.
func rolloutOf(ctx context.Context, c client.Reader, pool *mcv1.MachineConfigPool) (rollout, error) {
	out := rollout{target: target{config: pool.Spec.Configuration.Name}}
	if out.config == "" {
		return out, nil
	}
	var all mcv1.MachineOSConfigList
	var builds mcv1.MachineOSBuildList
	if err := errors.Join(c.List(ctx, &all), c.List(ctx, &builds, client.MatchingLabels{machineconfig.TargetPoolLabel: pool.Name})); err != nil {
		return out, fmt.Errorf("node: builds of MachineConfigPool %s: %w", pool.Name, err)
	}
	var osConfig *mcv1.MachineOSConfig
	for i := range all.Items {
		if m := &all.Items[i]; m.Spec.MachineConfigPool.Name == pool.Name && m.DeletionTimestamp == nil {
			osConfig = m
		}
	}
	if osConfig == nil {
		out.ready = true
		return out, nil
	}
	layered(&out, osConfig, builds.Items)
	return out, nil
}

// layered completes the rollout of a layered pool.
func layered(out *rollout, osConfig *mcv1.MachineOSConfig, builds []mcv1.MachineOSBuild) {
	name := osConfig.Annotations[machineconfig.CurrentBuildAnnotation]
	var latest *mcv1.MachineOSBuild // latest build of the configuration
	for i := range builds {
		b := &builds[i]
		if b.DeletionTimestamp != nil || b.Spec.MachineConfig.Name != out.config || b.Spec.MachineOSConfig.Name != osConfig.Name {
			continue
		}
		if latest == nil || latest.CreationTimestamp.Before(&b.CreationTimestamp) || b.Name == name {
			latest = b
		}
		if b.Name == name {
			break
		}
	}
	has := func(progress mcv1.BuildProgress) bool {
		return apimeta.IsStatusConditionTrue(latest.Status.Conditions, string(progress))
	}
	switch {
	case latest == nil:
		out.waits = fmt.Sprintf("Pool is waiting for a new OS image build to start (mosc: %s)", osConfig.Name)
	case has(mcv1.MachineOSBuildFailed), has(mcv1.MachineOSBuildInterrupted):
		out.refused = fmt.Sprintf("MachineOSBuild %s of %s has not succeeded", latest.Name, out.config)
	case has(mcv1.MachineOSBuildSucceeded):
		// The MachineOSConfig follows its build: until then it names the image of another.
		image := string(latest.Status.DigestedImagePushSpec)
		if name != latest.Name || image == "" || string(osConfig.Status.CurrentImagePullSpec) != image || osConfig.Status.ObservedGeneration < osConfig.Generation {
			out.waits = fmt.Sprintf("Pool is waiting for OS image build to complete (mosb: %s)", latest.Name)
			return
		}
		out.image, out.ready = image, true
	case has(mcv1.MachineOSBuilding):
		out.waits = fmt.Sprintf("Pool is waiting for OS image build to complete (mosb: %s)", latest.Name)
	default:
		out.waits = fmt.Sprintf("Pool is waiting for OS image build to start (mosb: %s)", latest.Name)
	}
}
