package helm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// planned is a release of a bundle as the spec demands it.
type planned struct {
	lcmv1.HelmRelease
	hash    string
	problem string // why it cannot be installed; "" if it can
}

// plan returns the releases of a bundle, each after those that it requires, and else in the
// bundle's order.
func plan(b *lcmv1.HelmBundle) []planned {
	all := b.Spec.Releases
	index := map[string]int{}
	for i, r := range all {
		index[r.Name] = i
	}
	const visiting, visited = 1, 2
	state := make([]int, len(all))
	problems := make([]string, len(all))
	var order []int
	var visit func(i int, path []string)
	visit = func(i int, path []string) {
		path = append(path, all[i].Name)
		state[i] = visiting
		for _, name := range all[i].Requires {
			j, exists := index[name]
			switch {
			case !exists:
				problems[i] = fmt.Sprintf("requires: the bundle has no release %q: add it, or correct the name", name)
			case state[j] == visiting:
				circle := append(slices.Clone(path[slices.Index(path, name):]), name)
				for _, member := range circle {
					problems[index[member]] = "requires: a circle, " + strings.Join(circle, ", ") + ": remove one of them"
				}
			case state[j] != visited:
				visit(j, path)
			}
		}
		state[i] = visited
		order = append(order, i)
	}
	for i := range all {
		if state[i] != visited {
			visit(i, nil)
		}
	}
	var out []planned
	for _, i := range order {
		out = append(out, planned{all[i], hash(b, all[i]), problems[i]})
	}
	return out
}

// hash returns the SHA-256 of the fields that determine the content of a release. They include
// the repository, since two repositories may have different charts of one version.
func hash(b *lcmv1.HelmBundle, r lcmv1.HelmRelease) string {
	var values any
	if r.Values != nil {
		_ = json.Unmarshal(r.Values.Raw, &values) // the API has parsed them; the order of names is no change
	}
	text, err := json.Marshal(map[string]any{
		"chart": r.Chart, "chartURL": r.ChartURL, "version": r.Version, "name": r.Name, "namespace": namespaceOf(b, r),
		"labels": r.Labels, "values": values, "repositories": repositories(b, r.Chart),
	})
	if err != nil {
		panic(err) // values of JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func namespaceOf(b *lcmv1.HelmBundle, r lcmv1.HelmRelease) string {
	if r.Namespace != "" {
		return r.Namespace
	}
	return b.Namespace
}

// repositories returns where a chart may be: REPOSITORY/CHART names one.
func repositories(b *lcmv1.HelmBundle, chart string) (out []lcmv1.HelmRepository) {
	name, _, named := strings.Cut(chart, "/")
	for _, r := range b.Spec.Repositories {
		if chart != "" && (!named || r.Name == name) {
			out = append(out, r)
		}
	}
	return out
}
