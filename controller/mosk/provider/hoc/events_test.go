package hoc

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// events returns the Events of the namespace as TYPE REASON: MESSAGE (COUNT), sorted.
func (l *lab) events() (out []string) {
	l.t.Helper()
	var list corev1.EventList
	if err := l.List(l.t.Context(), &list); err != nil {
		l.t.Fatal(err)
	}
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s %s: %s (%d)", e.Type, e.Reason, e.Message, e.Count))
	}
	slices.Sort(out)
	return out
}

// Each transition and each failure is one Event, whatever the number of passes, also after a
// restart of the controllers, which settle does.
func TestEventsOfAConfiguration(t *testing.T) {
	o := hoc("test", config("sample", "1.0.0", ""))
	o.Status.IsValid, o.Status.Configs[0].Error = ptr.To(false), "no such module"
	l := start(t, objects([]client.Object{lcmCluster(), o}, worker("w-0"))...)
	l.settle()
	want := []string{"Warning Invalid: sample-1.0.0: no such module (1)"}
	look := func(when string, more ...string) {
		t.Helper()
		l.settle()
		l.settle()
		want = append(want, more...)
		slices.Sort(want)
		if d := cmp.Diff(want, l.events()); d != "" {
			t.Errorf("%s: events (-want +got):\n%s", when, d)
		}
	}
	look("invalid")
	l.status("test", validate)
	look("valid", "Normal InProgress: 0/1 machines are done (1)", "Normal Valid: the modules and values of all configs are valid (1)")
	failed := "Warning ItemFailed: w-0: item " + download + ", attempt "
	l.reportItem("w-0", releaseItem.Name, 1, 0, 1, "")
	l.reportItem("w-0", download, 1, 2, 5, "no such host\nmore")
	look("failed", failed+"1: no such host (1)")
	l.reportItem("w-0", download, 2, -1, -1, "")
	look("tried again")
	l.reportItem("w-0", download, 2, 2, 25, "no such host\nmore")
	look("failed again", failed+"2: no such host (1)")
	l.run("w-0")
	look("applied", "Normal Applied: 1/1 machines are done (1)", "Normal MachineDone: w-0: all items have succeeded (1)")
}

// What fails on many machines at once is a few Events; the status has all.
func TestEventsOfManyFailuresAreBounded(t *testing.T) {
	o := hoc("test", config("sample", "1.0.0", ""))
	states := map[string]kaasv1.ConfigMachineState{}
	for i := range 1000 {
		states[fmt.Sprintf("lab/w-%d", i)] = kaasv1.ConfigMachineState{Selected: true, ConfigStateItemsStatuses: map[string]map[string]kaasv1.ConfigItemStatus{
			"sample-1.0.0": {download: {State: kaasv1.ItemFailed, LastFailure: &kaasv1.ItemFailure{Attempt: 1, Message: "m"}}},
		}}
	}
	if got := len(notices(o, kaasv1.HostOSConfigurationStatus{}, states)); got != maxEvents {
		t.Errorf("%d Events, want %d", got, maxEvents)
	}
}
