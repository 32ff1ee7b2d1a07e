package release

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// asks returns a Cluster that asks for a KaaSRelease and a ClusterRelease.
func asks(name, kaas, release string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
	c.Spec.ProviderSpec.Value.Release = release
	if kaas != "" {
		c.Spec.ProviderSpec.Value.KaaS = &baremetalv1.KaaS{Release: kaas}
	}
	return c
}

func TestReleaseOfACluster(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), kaasv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	kaas := func(name, version string, supports ...string) client.Object {
		k := &kaasv1.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaasv1.KaaSReleaseSpec{Version: version, ClusterRelease: "of-" + name}}
		for _, s := range supports {
			k.Spec.SupportedClusterReleases = append(k.Spec.SupportedClusterReleases, kaasv1.SupportedClusterRelease{Name: s, Version: "1.0.0"})
		}
		return k
	}
	other := &kaasv1.SupportedClusterRelease{Name: "aws", Version: "1.0.0"}
	other.Providers.Supported = []string{"aws"}
	old := kaas("k9", "2.9.0", "r1").(*kaasv1.KaaSRelease)
	old.Spec.SupportedClusterReleases = append(old.Spec.SupportedClusterReleases, *other)
	releases := []client.Object{old, kaas("k10", "2.10.0", "r1", "r2")}
	for _, tt := range []struct {
		name      string
		objects   []client.Object
		c         *clusterv1.Cluster
		want, err string
	}{
		{"a management cluster", releases, asks("m", "k9", ""), "of-k9 by k9, management", ""},
		{"with its release", releases, asks("m", "k9", "of-k9"), "of-k9 by k9, management", ""},
		{"with another", releases, asks("m", "k9", "r1"), "", `spec.providerSpec.value.release: "r1" is not the ClusterRelease of KaaSRelease "k9": remove it, or give "of-k9"`},
		{"without its KaaSRelease", releases, asks("m", "k11", ""), "", `spec.providerSpec.value.kaas.release: there is no KaaSRelease "k11"`},
		{"none", releases, asks("c", "", ""), "", "spec.providerSpec.value.release: give the name of a ClusterRelease"},
		{"of the newest", releases, asks("c", "", "r2"), "r2 by k10", ""},
		{"not of the newest", releases, asks("c", "", "r3"), "", `spec.providerSpec.value.release: KaaSRelease "k10" does not support "r3": give one of r1, r2`},
		{"of the management cluster's", append([]client.Object{asks("m", "k9", "")}, releases...), asks("c", "", "r1"), "r1 by k9", ""},
		{"of another provider", append([]client.Object{asks("m", "k9", "")}, releases...), asks("c", "", "aws"), "", `spec.providerSpec.value.release: KaaSRelease "k9" does not support "aws": give one of r1`},
		{"of a management cluster without its KaaSRelease", append([]client.Object{asks("m", "k11", "")}, releases...), asks("c", "", "r1"), "", `spec.providerSpec.value.kaas.release: there is no KaaSRelease "k11"`},
		{"without any", nil, asks("c", "", "r1"), "", "there is no KaaSRelease: create one that lists the ClusterRelease among supportedClusterReleases"},
	} {
		w, err := Of(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.objects...).Build(), tt.c)
		got := ""
		if w.KaaS != nil {
			if got = w.Name + " by " + w.KaaS.Name; w.Management {
				got += ", management"
			}
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tt.want || text != tt.err || err != nil && !errors.As(err, new(*Error)) {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, got, text, tt.want, tt.err)
		}
	}
}
