package item

import (
	"maps"
	"slices"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// Merge returns the items of one machine: those of its type in the LCMCluster, each with
// the params of the overwrite of its name added. An overwrite replaces a param of the same
// name. Overwrites without an item have no effect: the LCMCluster decides which items
// exist. Host OS items without an overwrite are those of other machines, and are left out.
// Neither argument is changed.
func Merge(items []lcmv1.LCMStateItem, overwrites map[string]map[string]string) []lcmv1.LCMStateItem {
	out := slices.DeleteFunc(slices.Clone(items), func(it lcmv1.LCMStateItem) bool { return len(overwrites[it.Name]) == 0 && IsHostOS(it) })
	for i := range out {
		out[i].Params = maps.Clone(out[i].Params)
		overwrite := overwrites[out[i].Name]
		if len(overwrite) == 0 {
			continue
		}
		if out[i].Params == nil {
			out[i].Params = map[string]string{}
		}
		maps.Copy(out[i].Params, overwrite)
	}
	return out
}

// OtherRelease returns the items of a machine that does not have the release of its LCMCluster
// yet: the machine's present release items, then the host OS items of the LCMCluster.
func OtherRelease(items, has []lcmv1.LCMStateItem) []lcmv1.LCMStateItem {
	out := slices.DeleteFunc(slices.Clone(has), func(it lcmv1.LCMStateItem) bool { return IsHostOSName(it.Name) })
	for _, it := range items {
		if IsHostOS(it) {
			out = append(out, it)
		}
	}
	return out
}
