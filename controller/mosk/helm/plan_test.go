package helm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// bundle returns a bundle with releases, NAME: REQUIRED… each.
func bundle(releases ...string) *lcmv1.HelmBundle {
	b := &lcmv1.HelmBundle{}
	b.Namespace = "lab"
	for _, text := range releases {
		name, requires, _ := strings.Cut(text, ":")
		b.Spec.Releases = append(b.Spec.Releases, lcmv1.HelmRelease{Name: name, Chart: "charts/" + name, Requires: strings.Fields(requires)})
	}
	return b
}

func TestOrderOfReleases(t *testing.T) {
	for _, tt := range []struct {
		name     string
		releases []string
		want     []string // NAME, or NAME: problem
	}{
		{"their own", []string{"b", "a", "c"}, []string{"b", "a", "c"}},
		{"required first", []string{"app:store db", "db:store", "store"}, []string{"store", "db", "app"}},
		{"one that is missing", []string{"app:stroe", "store"}, []string{`app: requires: the bundle has no release "stroe": add it, or correct the name`, "store"}},
		{"a circle", []string{"a:b", "b:c", "c:b", "d"}, []string{
			"c: requires: a circle, b, c, b: remove one of them", "b: requires: a circle, b, c, b: remove one of them", "a", "d",
		}},
		{"itself", []string{"a:a"}, []string{"a: requires: a circle, a, a: remove one of them"}},
	} {
		var got []string
		for _, p := range plan(bundle(tt.releases...)) {
			text := p.Name
			if p.problem != "" {
				text += ": " + p.problem
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The hash changes when the release to install changes, and not when it is only written in
// another way.
func TestHashOfARelease(t *testing.T) {
	hashAfter := func(change func(*lcmv1.HelmBundle, *lcmv1.HelmRelease)) string {
		b := bundle("a")
		b.Spec.Repositories = []lcmv1.HelmRepository{{Name: "charts", URL: "http://192.0.2.1"}, {Name: "other", URL: "http://192.0.2.1"}}
		b.Spec.Releases[0].Values = &runtime.RawExtension{Raw: []byte(`{"a":1,"b":2}`)}
		change(b, &b.Spec.Releases[0])
		return plan(b)[0].hash
	}
	first := hashAfter(func(*lcmv1.HelmBundle, *lcmv1.HelmRelease) {})
	for name, change := range map[string]func(*lcmv1.HelmBundle, *lcmv1.HelmRelease){
		"values in another order": func(_ *lcmv1.HelmBundle, r *lcmv1.HelmRelease) { r.Values.Raw = []byte(`{ "b": 2, "a": 1 }`) },
		"requires":                func(_ *lcmv1.HelmBundle, r *lcmv1.HelmRelease) { r.Requires = []string{"b"} },
		"the bundle's namespace":  func(_ *lcmv1.HelmBundle, r *lcmv1.HelmRelease) { r.Namespace = "lab" },
		"another repository":      func(b *lcmv1.HelmBundle, _ *lcmv1.HelmRelease) { b.Spec.Repositories[1].URL = "http://192.0.2.2" },
	} {
		if hashAfter(change) != first {
			t.Errorf("%s: another hash", name)
		}
	}
	for name, change := range map[string]func(*lcmv1.HelmBundle, *lcmv1.HelmRelease){
		"values":     func(_ *lcmv1.HelmBundle, r *lcmv1.HelmRelease) { r.Values.Raw = []byte(`{"a":1,"b":3}`) },
		"version":    func(_ *lcmv1.HelmBundle, r *lcmv1.HelmRelease) { r.Version = "1.0.0" },
		"namespace":  func(_ *lcmv1.HelmBundle, r *lcmv1.HelmRelease) { r.Namespace = "east" },
		"repository": func(b *lcmv1.HelmBundle, _ *lcmv1.HelmRelease) { b.Spec.Repositories[0].URL = "http://192.0.2.2" },
	} {
		if hashAfter(change) == first {
			t.Errorf("%s: the same hash", name)
		}
	}
}
