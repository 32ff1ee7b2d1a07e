package reboot

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// events returns the Events as TYPE REASON: MESSAGE (COUNT), sorted.
func (l *lab) events() (out []string) {
	l.t.Helper()
	var list corev1.EventList
	l.must(l.List(l.t.Context(), &list))
	for _, e := range list.Items {
		if e.InvolvedObject.Kind != "GracefulRebootRequest" || e.InvolvedObject.Name != "c1" {
			l.t.Errorf("an event about %+v", e.InvolvedObject)
		}
		out = append(out, fmt.Sprintf("%s %s: %s (%d)", e.Type, e.Reason, e.Message, e.Count))
	}
	slices.Sort(out)
	return out
}

// Each transition of a request is one Event, and a pod that blocks is a Warning with its name.
func TestEventsOfARequest(t *testing.T) {
	l := start(t, append(pair("w-0", nil), request("c1"))...)
	l.blocked = "pod a/b cannot be evicted"
	l.passes(2, false)
	m := l.all()[0]
	m.Status.KubernetesCordonDrainError = l.blocked
	l.must(l.Status().Update(t.Context(), &m))
	l.passes(3, false)
	want := []string{
		"Normal RebootStarted: the reboot of Machine w-0 has begun (1)",
		"Normal Waiting: Machine w-0 is being rebooted (1)",
		"Warning Blocked: Machine w-0 is being rebooted: pod a/b cannot be evicted (1)",
	}
	if got := l.events(); !slices.Equal(got, want) {
		t.Errorf("while a pod blocks: events %q, want %q", got, want)
	}
	l.blocked = ""
	m = l.all()[0]
	m.Status.KubernetesCordonDrainError = ""
	l.must(l.Status().Update(t.Context(), &m))
	l.passes(20, true)
	for _, e := range []string{"Normal RebootCompleted: the reboot of Machine w-0 is completed (1)", "Normal Completed: all machines of the request are rebooted (1)"} {
		if !slices.Contains(l.events(), e) {
			t.Errorf("no event %q among %q", e, l.events())
		}
	}
}
