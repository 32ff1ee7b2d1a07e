package clusters

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// newEvents returns the Events about the Cluster that before does not list, as
// TYPE REASON: MESSAGE (COUNT), sorted, and adds them to before.
func (l *lab) newEvents(before *[]string) (out []string) {
	l.t.Helper()
	var list corev1.EventList
	l.must(l.List(l.t.Context(), &list))
	for _, e := range list.Items {
		if !e.LastTimestamp.Time.Equal(labTime) {
			l.t.Errorf("the event %q is of %s, want %s", e.Message, e.LastTimestamp, labTime)
		}
		if text := fmt.Sprintf("%s %s: %s (%d)", e.Type, e.Reason, e.Message, e.Count); !slices.Contains(*before, text) {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	*before = append(*before, out...)
	return out
}

// Each transition and failure of a Cluster is one Event.
func TestEventsOfACluster(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "a", Labels: map[string]string{clusterv1.ClusterNameLabel: key.Name}}}
	m.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{Status: "Deploy"}
	l := start(t, objects(m)...)
	to := new(kaasv1.ClusterRelease)
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "mosk-1"}, to))
	to.Spec.Helm.Releases = []kaasv1.ReleaseChart{{Name: "store"}}
	l.must(l.Update(t.Context(), to))
	var seen []string
	look := func(when string, want ...string) {
		t.Helper()
		l.pass()
		if got := l.newEvents(&seen); !slices.Equal(got, want) {
			t.Errorf("%s: events %q, want %q", when, got, want)
		}
	}
	look("created", "Normal HelmNotReady: store is not ready (1)", "Normal MachinesNotReady: 0 of 1 Machines are ready; a is not: its status is Deploy (1)",
		"Normal ReleaseChanged: the Cluster has the ClusterRelease mosk-1 (1)")
	bundle := func(s lcmv1.HelmReleaseStatus) {
		b := new(lcmv1.HelmBundle)
		l.must(l.Get(t.Context(), key, b))
		b.Status.ObservedGeneration, b.Status.ReleaseStatuses = b.Generation, map[string]lcmv1.HelmReleaseStatus{"store": s}
		l.must(l.Status().Update(t.Context(), b))
	}
	bundle(lcmv1.HelmReleaseStatus{Attempt: 1, Message: "no chart"})
	look("a chart fails", "Warning HelmFailed: release store, attempt 1: no chart (1)")
	status := func(s *baremetalv1.MachineProviderStatus) {
		l.must(l.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		m.Status.ProviderStatus = s
		l.must(l.Status().Update(t.Context(), m))
	}
	status(&baremetalv1.MachineProviderStatus{Status: "Reconfigure"})
	look("a Machine goes on")
	status(&baremetalv1.MachineProviderStatus{Status: "Ready", Ready: true})
	bundle(lcmv1.HelmReleaseStatus{Success: true, Ready: true})
	look("all is ready", "Normal HelmReady: the condition Helm is ready (1)", "Normal MachinesReady: the condition Machines is ready (1)", "Normal Ready: all conditions of the Cluster are ready (1)")
	c := new(clusterv1.Cluster)
	l.must(l.Get(t.Context(), key, c))
	c.Spec.ProviderSpec.Value.Release = "none"
	l.must(l.Update(t.Context(), c))
	look("a mistake", "Normal NotReady: a condition of the Cluster is not ready (1)", `Warning ReleaseFailed: spec.providerSpec.value.release: KaaSRelease "kaas-3" does not support "none": give one of mosk-1, mosk-2, mosk-3 (1)`)
}
