package build

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// salt makes the names differ from those of other controllers.
const salt = "metalab MachineOSBuild 1\n"

// images are the images of a ControllerConfig that a build depends on.
type images struct {
	Base       string `json:"baseOSContainerImage"`
	Extensions string `json:"baseOSExtensionsContainerImage"`
}

// buildName returns the name of the build of a pool's configuration: a hash of all that the
// image depends on.
func buildName(c *mcv1.MachineOSConfig, p *mcv1.MachineConfigPool, bases images) (string, error) {
	sum, err := hash(p.Spec.Configuration, c.Spec, bases)
	return c.Name + "-" + sum, err
}

// inputs returns a hash of the inputs of an image beside the configuration.
func inputs(c *mcv1.MachineOSConfig, bases images) (string, error) { return hash(c.Spec, bases) }

func hash(parts ...any) (string, error) {
	h := md5.New()
	h.Write([]byte(salt))
	for _, p := range parts {
		b, err := yaml.Marshal(p)
		if err != nil {
			return "", fmt.Errorf("build: %w", err)
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// RequiresRebuild reports whether a change from one rendered configuration to another needs
// another image even where daemons write files and units.
func RequiresRebuild(before, after *mcv1.MachineConfig) bool {
	kernel := func(m *mcv1.MachineConfig) string {
		if m.Spec.KernelType == "" {
			return "default"
		}
		return m.Spec.KernelType
	}
	return before.Spec.OSImageURL != after.Spec.OSImageURL || kernel(before) != kernel(after) ||
		!slices.Equal(before.Spec.Extensions, after.Spec.Extensions) || !slices.Equal(before.Spec.KernelArguments, after.Spec.KernelArguments)
}

// tagged returns a push spec with another tag.
func tagged(spec mcv1.ImageTagFormat, tag string) mcv1.ImageTagFormat {
	return mcv1.ImageTagFormat(repository(spec) + ":" + tag)
}

// repository returns a push spec without its tag.
func repository(spec mcv1.ImageTagFormat) string {
	s := string(spec)
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, '/') {
		return s[:i]
	}
	return s
}

// blocking are the conditions of a pool that keep new builds away, by who writes files. With
// Skip a build is the repair of a node that is degraded, so that one does not block it.
var blocking = map[machineconfig.LayeredFileWrites][]mcv1.MachineConfigPoolConditionType{
	machineconfig.Skip: {mcv1.MachineConfigPoolRenderDegraded, mcv1.MachineConfigPoolPinnedImageSetsDegraded, mcv1.MachineConfigPoolSynchronizerDegraded},
	machineconfig.Write: {
		mcv1.MachineConfigPoolNodeDegraded, mcv1.MachineConfigPoolRenderDegraded, mcv1.MachineConfigPoolPinnedImageSetsDegraded, mcv1.MachineConfigPoolSynchronizerDegraded,
	},
}

// blocked returns the condition that keeps new builds of a pool away; "" without one.
func blocked(p *mcv1.MachineConfigPool, by machineconfig.LayeredFileWrites) mcv1.MachineConfigPoolConditionType {
	for _, conditionType := range blocking[by] {
		if machineconfig.ConditionIsTrue(p, conditionType) {
			return conditionType
		}
	}
	return ""
}

// content returns the user's instructions. The entry for all architectures comes first.
func content(c *mcv1.MachineOSConfig) string {
	for _, arch := range []mcv1.ContainerfileArch{mcv1.NoArch, "", mcv1.Amd64, mcv1.Arm64} {
		for _, f := range c.Spec.Containerfile {
			if f.ContainerfileArch == arch {
				return f.Content
			}
		}
	}
	return ""
}
