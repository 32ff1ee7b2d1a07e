package hostos

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

func listOf(name string, modules ...string) *kaasv1.HostOSConfigurationModules {
	o := &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, m := range modules {
		o.Spec.Modules = append(o.Spec.Modules, kaasv1.Module{Name: kaasv1.ModuleName(m), Version: "1.0.0"})
	}
	return o
}

func userOf(namespace, name string, modules ...string) *kaasv1.HostOSConfiguration {
	o := &kaasv1.HostOSConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, m := range modules {
		o.Spec.Configs = append(o.Spec.Configs, kaasv1.Config{Module: kaasv1.ModuleName(m), ModuleVersion: "1.0.0"})
	}
	return o
}

// statement H8: a module that is in use cannot be removed from a list.
func TestRemovalOfModules(t *testing.T) {
	const refused = `hostosconfigurationmodules.kaas.mirantis.com "custom" is forbidden: spec.modules: `
	before := listOf("custom", "a", "b", "c", "d", "e")
	leaving := userOf("lab", "leaving", "d")
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.Now()), []string{"lab/test"}
	old := userOf("lab", "old", "e")
	old.Spec.Configs[0].ModuleVersion = "0.9.0"
	l := start(t, before, listOf("other", "c"), userOf("lab", "two", "a"), userOf("east", "one", "a", "c"), leaving, old)
	for _, tt := range []struct {
		name       string
		namespaces []string
		after      *kaasv1.HostOSConfigurationModules
		want       string
	}{
		{"nothing removed", nil, before, ""},
		{"one in use", nil, listOf("custom", "b", "c", "d", "e"), refused + "module a 1.0.0 is used by east/one, lab/two: remove it from the configurations first"},
		{"one in use in a namespace that is watched", []string{"lab"}, listOf("custom", "b", "c", "d", "e"), refused + "module a 1.0.0 is used by lab/two: remove it from the configurations first"},
		{"one not in use", nil, listOf("custom", "a", "c", "d", "e"), ""},
		{"one that another list has", nil, listOf("custom", "a", "b", "d", "e"), ""},
		{"one of a configuration that is being deleted", nil, listOf("custom", "a", "b", "c", "e"), ""},
		{"one of which another version is used", nil, listOf("custom", "a", "b", "c", "d"), ""},
		{"the list", nil, nil, refused + "module a 1.0.0 is used by east/one, lab/two: remove it from the configurations first"},
	} {
		got := ""
		if err := CheckRemoval(t.Context(), l, tt.namespaces, before, tt.after); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
