package unapplied

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

func TestFieldsThatAreSet(t *testing.T) {
	m := new(clusterv1.Machine)
	if got := Condition("Machine", m); got != nil {
		t.Errorf("condition %+v of a Machine that sets none", got)
	}
	m.Spec.ProviderSpec.Value.AnsibleExtraPassthrough = &runtime.RawExtension{Raw: []byte(`{}`)}
	if got := Set("Machine", m); got != nil {
		t.Errorf("an empty object counts as set: %v", got)
	}
	for _, text := range []string{`{"a":1}`, `"a: 1"`} { // an object or a string
		m.Spec.ProviderSpec.Value.AnsibleExtraPassthrough.Raw = []byte(text)
		if diff := cmp.Diff([]string{value + "ansibleExtraPassthrough"}, Set("Machine", m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	r := new(kaasv1.KaaSRelease)
	r.Spec.Regional = []kaasv1.ReleaseRegional{{Provider: "a"}, {Provider: "b", HelmReleases: []kaasv1.ReleaseChart{{Name: "1"}, {Name: "2", Required: true}}}}
	if diff := cmp.Diff([]string{"spec.regional[].helmReleases[].required"}, Set("KaaSRelease", r)); diff != "" {
		t.Errorf("in a list of lists (-want +got):\n%s", diff)
	}
	if got := Set("Secret", r); got != nil {
		t.Errorf("fields %v of a kind that the table lacks", got)
	}
}

// What the API sets by default is no demand of the user.
func TestDefaultsAreNotSet(t *testing.T) {
	spec := map[string]any{"dedicatedControlPlane": true, "mkeUpgradeAttempts": 5}
	if got := Set("LCMCluster", map[string]any{"spec": spec}); got != nil {
		t.Errorf("Set of the defaults = %q", got)
	}
	spec["mkeUpgradeAttempts"] = 3
	if diff := cmp.Diff([]string{"spec.mkeUpgradeAttempts"}, Set("LCMCluster", map[string]any{"spec": spec})); diff != "" {
		t.Errorf("Set of another value (-want +got):\n%s", diff)
	}
	if got := Set("LCMCluster", map[string]any{"spec": map[string]any{"images": map[string]any{"tiller": ""}, "components": map[string]any{}}}); got != nil {
		t.Errorf("Set of empty objects = %q", got)
	}
}
