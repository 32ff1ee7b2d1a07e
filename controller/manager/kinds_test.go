package manager

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
)

func TestMissingKindsOfElementalAreNamedWithTheFix(t *testing.T) {
	kinds := []schema.GroupVersionKind{}
	for _, kind := range []string{"ElementalRegistration", "ElementalHost", "ElementalMachine", "ElementalCluster"} {
		kinds = append(kinds, elementalv1.GroupVersion.WithKind(kind))
	}
	old := schema.GroupVersion{Group: capi.GroupVersion.Group, Version: "v1alpha4"}
	for _, tt := range []struct {
		name   string
		served []schema.GroupVersionKind
		want   []string // in the error; none: there is no error
	}{
		{"all", append([]schema.GroupVersionKind{capi.GroupVersion.WithKind("Cluster"), capi.GroupVersion.WithKind("Machine")}, kinds...), nil},
		{"no Cluster API", kinds, []string{"no kind Cluster of cluster.x-k8s.io/v1beta1: install Cluster API with clusterctl init", "no kind Machine of"}},
		{"another version", append([]schema.GroupVersionKind{old.WithKind("Cluster"), old.WithKind("Machine")}, kinds...), []string{"no kind Cluster of cluster.x-k8s.io/v1beta1"}},
		{"no definitions of the family", []schema.GroupVersionKind{capi.GroupVersion.WithKind("Cluster"), capi.GroupVersion.WithKind("Machine")}, []string{"no kind ElementalHost of infrastructure.cluster.x-k8s.io/v1beta1: install them with the component elemental"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := meta.NewDefaultRESTMapper(nil)
			for _, k := range tt.served {
				m.Add(k, meta.RESTScopeNamespace)
			}
			err := checkKinds(m, elementalNeeds)
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("checkKinds = %v, want an error: %t", err, len(tt.want) > 0)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("checkKinds = %v, want %q", err, want)
				}
			}
		})
	}
}
