package item

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// statement H13: overwrites become the params of the items of their names.
func TestMerge(t *testing.T) {
	// Host OS items without an overwrite are of other machines (statement H11).
	script := lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: "swap", Version: "v2", Phase: lcmv1.PhasePrepare, Params: map[string]string{"url": "a", "args": "-v"}}
	for _, tt := range []struct {
		name       string
		overwrites map[string]map[string]string
		want       []lcmv1.LCMStateItem
	}{
		{"no overwrites", nil, []lcmv1.LCMStateItem{script}},
		{
			"params of an item that has none",
			map[string]map[string]string{hostOS[1].Name: {"playbook": "main.yaml"}},
			[]lcmv1.LCMStateItem{script, with(hostOS[1], map[string]string{"playbook": "main.yaml"})},
		},
		{
			"a param is replaced, and one is added",
			map[string]map[string]string{"swap": {"url": "b", "sha256": "c"}},
			[]lcmv1.LCMStateItem{with(script, map[string]string{"url": "b", "args": "-v", "sha256": "c"})},
		},
		{
			"an overwrite of no item, and an empty one",
			map[string]map[string]string{"gone": {"url": "b"}, hostOS[0].Name: {}},
			[]lcmv1.LCMStateItem{script},
		},
	} {
		items := []lcmv1.LCMStateItem{*script.DeepCopy(), hostOS[0], hostOS[1]}
		got := Merge(items, tt.overwrites)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: Merge (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff([]lcmv1.LCMStateItem{script, hostOS[0], hostOS[1]}, items); diff != "" {
			t.Errorf("%s: Merge changed its argument (-before +after):\n%s", tt.name, diff)
		}
	}
}
