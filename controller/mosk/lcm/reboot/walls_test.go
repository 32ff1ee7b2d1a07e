package reboot

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// A request of another namespace, with the names of a Cluster and its Machines, reboots none of them, with
// or without such a Cluster there.
func TestRequestOfAnotherNamespaceRebootsNothing(t *testing.T) {
	foreign := request("c1", "w-0", "w-1")
	foreign.Namespace = "other"
	for _, more := range [][]client.Object{nil, {
		&clusterv1.Cluster{ObjectMeta: meta("c1"), Status: clusterv1.ClusterStatus{ProviderStatus: &baremetalv1.ClusterProviderStatus{Ready: true}}},
	}} {
		for _, o := range more {
			o.SetNamespace("other")
		}
		l := start(t, append(slices.Concat(pair("w-0", nil), pair("w-1", nil), more), foreign)...)
		for range 5 {
			l.pass(true)
		}
		if len(l.log) > 0 || slices.ContainsFunc(l.all(), func(m lcmv1.LCMMachine) bool {
			return m.Spec.RebootRequired || m.Annotations[item.GracefulRebootAnnotation] != ""
		}) {
			t.Errorf("log %q, machines %+v; want that nothing happens", l.log, l.all())
		}
	}
}
