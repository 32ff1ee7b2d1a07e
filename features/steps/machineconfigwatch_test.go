package steps

import (
	"strconv"
	"strings"
	"testing"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// TestTargetInTwoPatchesIsSeen shows a watch the versions of a Node that a controller writes which
// hands out configuration and image in two patches, in either order, and one that does so in one.
func TestTargetInTwoPatchesIsSeen(t *testing.T) {
	const config, image = machineconfig.DesiredConfig, machineconfig.DesiredOSImage
	build := func(config, image string) mcv1.MachineOSBuild {
		return mcv1.MachineOSBuild{Spec: mcv1.MachineOSBuildSpec{MachineConfig: mcv1.MachineConfigReference{Name: config}}, Status: mcv1.MachineOSBuildStatus{DigestedImagePushSpec: mcv1.ImageDigestFormat(image)}}
	}
	builds := []mcv1.MachineOSBuild{build("r2", "i2"), build("r3", "i3"), build("r4", "i3")} // r4 has the image of r3
	for name, tt := range map[string]struct {
		versions []map[string]string
		flat     bool   // the pool is not layered
		want     string // "" is no error
	}{
		"one patch":                    {versions: []map[string]string{{config: "r1"}, {config: "r2", image: "i2"}, {config: "r3", image: "i3"}}},
		"an image that is carried":     {versions: []map[string]string{{config: "r3", image: "i3"}, {config: "r4", image: "i3"}}},
		"the image comes later":        {versions: []map[string]string{{config: "r1"}, {config: "r2"}, {config: "r2", image: "i2"}}, want: "r2 without its image"},
		"the image comes earlier":      {versions: []map[string]string{{config: "r1"}, {config: "r1", image: "i2"}, {config: "r2", image: "i2"}}, want: "was not built of it"},
		"the next image comes later":   {versions: []map[string]string{{config: "r2", image: "i2"}, {config: "r3", image: "i2"}, {config: "r3", image: "i3"}}, want: "was not built of it"},
		"a pool that becomes layered":  {versions: []map[string]string{{config: "r2"}, {config: "r2", image: "i2"}}},
		"a pool that is not layered":   {versions: []map[string]string{{config: "r1"}, {config: "r2"}}, flat: true},
		"an image under the old name":  {versions: []map[string]string{{config: "r2", image: "i2", machineconfig.DesiredImage: ""}}, want: "both come in one patch"},
		"a version that was not seen":  {versions: nil, want: "behind"},
		"the pool stops to be layered": {versions: []map[string]string{{config: "r2", image: "i2"}, {config: "r2"}}, flat: true},
	} {
		w := &targetWatch{}
		for i, a := range tt.versions {
			n := &corev1.Node{}
			n.ResourceVersion, n.Annotations = strconv.Itoa(i+1), a
			if _, set := a[machineconfig.DesiredImage]; !set && a[image] != "" {
				a[machineconfig.DesiredImage] = a[image]
			}
			w.add(n)
		}
		done, err := w.check(strconv.Itoa(max(len(tt.versions), 1)), !tt.flat, builds)
		switch {
		case tt.want == "behind":
			if done || err != nil {
				t.Errorf("%s: check = %t, %v; want not done", name, done, err)
			}
		case tt.want == "" && (!done || err != nil), tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: check = %t, %v; want error %q", name, done, err, tt.want)
		}
	}
}
