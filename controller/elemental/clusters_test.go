package elemental

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
)

// E-37: a cluster is ready when it has an owner and an endpoint.
func TestClusterNeedsOwnerAndEndpoint(t *testing.T) {
	l := start(t, &elementalv1.ElementalCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	cluster := func() *elementalv1.ElementalCluster {
		l.settle()
		return get(l, "c", new(elementalv1.ElementalCluster))
	}
	c := cluster()
	is(t, c, elementalv1.CAPIClusterReady, "False MissingClusterOwner Error")
	is(t, c, elementalv1.ControlPlaneEndpointReady, "")
	edit(l, c, func(c *elementalv1.ElementalCluster) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: capi.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "u"}}
	})
	c = cluster()
	is(t, c, elementalv1.CAPIClusterReady, "True")
	is(t, c, elementalv1.ControlPlaneEndpointReady, "False MissingControlPlaneEndpoint Error")
	is(t, c, capi.ReadyCondition, "False MissingControlPlaneEndpoint Error")
	if c.Status.Ready {
		t.Errorf("the cluster is ready without an endpoint")
	}
	edit(l, c, func(c *elementalv1.ElementalCluster) {
		c.Spec.ControlPlaneEndpoint = capi.APIEndpoint{Host: "192.0.2.9", Port: 6443}
	})
	c = cluster()
	is(t, c, elementalv1.ControlPlaneEndpointReady, "True")
	is(t, c, capi.ReadyCondition, "True")
	if !c.Status.Ready {
		t.Errorf("the cluster is not ready with an endpoint")
	}
}
