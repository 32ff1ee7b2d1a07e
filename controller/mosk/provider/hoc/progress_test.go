package hoc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// reportItem writes the result of an item as the agent of a machine does. finished is in seconds after
// the start of the lab; a negative one means that the item runs.
func (l *lab) reportItem(machine, name string, attempt, code, finished int, message string) {
	l.t.Helper()
	m := l.lcmMachine(machine)
	s := lcmv1.StateItemStatus{Attempt: attempt, ExitCode: code, Message: message, StartedAt: &metav1.Time{Time: started}}
	if finished >= 0 {
		s.FinishedAt = &metav1.Time{Time: started.Add(time.Duration(finished) * time.Second)}
	}
	for _, it := range m.Spec.StateItems {
		if it.Name == name {
			s.Hash = item.Hash(it, "")
		}
	}
	if m.Status.StateItemStatuses == nil {
		m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
	}
	m.Status.StateItemStatuses[name] = s
	if err := l.Status().Update(l.t.Context(), m); err != nil {
		l.t.Fatal(err)
	}
}

// applied returns the condition Applied as STATUS REASON: MESSAGE.
func applied(o *kaasv1.HostOSConfiguration) string {
	c := meta.FindStatusCondition(o.Status.Conditions, kaasv1.ConditionApplied)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// An operator sees the last failure for as long as it is not mended: the agent wipes the text of
// an attempt when it begins the next one.
func TestLastFailureStaysAcrossRetries(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", ""))}, worker("w-0"), worker("w-1"))...)
	l.settle()
	look := func(when, progress, failure, condition string) {
		t.Helper()
		l.settle()
		o := l.hoc("test")
		if s := o.Status; s.Progress != progress || s.LastFailure != failure || applied(o) != condition {
			t.Errorf("%s: progress %q, want %q;\nlast failure %q,\n        want %q;\ncondition Applied %q,\n             want %q", when, s.Progress, progress, s.LastFailure, failure, applied(o), condition)
		}
	}
	look("at first", "0/2", "", "False InProgress: 0/2 machines are done")
	l.agent("w-1", succeed)
	look("one is done", "1/2", "", "False InProgress: 1/2 machines are done")
	l.reportItem("w-0", releaseItem.Name, 1, 0, 1, "")
	l.reportItem("w-0", download, 1, 2, 5, "no such host\nmore")
	one := "w-0: item " + download + ", attempt 1: no such host"
	look("it has failed", "1/2", one, "False Failed: "+one)
	l.reportItem("w-0", download, 2, item.NotExited, -1, "")
	look("it is tried again", "1/2", one, "False Failed: "+one)
	two := "w-0: item " + download + ", attempt 2: exit code 3"
	l.reportItem("w-0", download, 2, 3, 30, "")
	look("it has failed again", "1/2", two, "False Failed: "+two)
	l.change("test", func(o *kaasv1.HostOSConfiguration) { o.Spec.Configs[0] = config("sample", "1.0.0", `{"a":1}`) })
	look("other values", "0/2", two, "False Failed: "+two)
	l.run("w-0", "w-1")
	look("it has succeeded", "2/2", "", "True Applied: ")
	if s := l.hoc("test").Status; s.MachinesDone != 2 || s.MachinesTotal != 2 {
		t.Errorf("counts %d of %d, want 2 of 2", s.MachinesDone, s.MachinesTotal)
	}
}

// The failure of one machine does not hide that of another.
func TestLastFailureIsTheLatest(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", ""))}, worker("w-0"), worker("w-1"))...)
	l.settle()
	l.reportItem("w-0", download, 1, 1, 10, "early")
	l.settle()
	l.reportItem("w-1", download, 1, 1, 20, "late")
	l.settle()
	if got := l.hoc("test").Status.LastFailure; !strings.HasPrefix(got, "w-1: ") || !strings.HasSuffix(got, "late") {
		t.Errorf("last failure %q, want that of w-1", got)
	}
	l.reportItem("w-0", download, 2, item.NotExited, -1, "")
	l.settle()
	l.machine("w-1", unlabel) // the item leaves it
	l.settle()
	if got := l.hoc("test").Status.LastFailure; !strings.HasPrefix(got, "w-0: ") || !strings.HasSuffix(got, "early") {
		t.Errorf("last failure without w-1: %q, want that of w-0", got)
	}
}

func TestConditionsNameWhatAnObjectWaitsFor(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*kaasv1.HostOSConfiguration)
		valid  string
		want   string
	}{
		"not validated": {func(o *kaasv1.HostOSConfiguration) { o.Status.IsValid = nil }, "Unknown", "False NotValidated: the present spec is not validated yet"},
		"invalid": {func(o *kaasv1.HostOSConfiguration) {
			o.Status.IsValid, o.Status.Configs[0].Error = ptr.To(false), "schema validation failed: values.a"
		}, "False", "False Invalid: sample-1.0.0: schema validation failed: values.a"},
		"no machine": {func(o *kaasv1.HostOSConfiguration) { o.Spec.MachineSelector = metav1.LabelSelector{} }, "True", "False NoMachines: machineSelector selects no Machine of the namespace"},
		"unsupported": {func(o *kaasv1.HostOSConfiguration) {
			o.Status.Configs[0].SupportedDistributions = []string{"ubuntu/noble"}
		}, "True",
			"False Withheld: w-0: sample-1.0.0: the distribution is not reported yet: the module is for ubuntu/noble alone"},
	} {
		o := hoc("test", config("sample", "1.0.0", ""))
		tt.change(o)
		l := start(t, objects([]client.Object{lcmCluster(), o}, worker("w-0"))...)
		l.settle()
		got := l.hoc("test")
		if applied(got) != tt.want {
			t.Errorf("%s: condition Applied %q, want %q", name, applied(got), tt.want)
		}
		if c := meta.FindStatusCondition(got.Status.Conditions, kaasv1.ConditionValid); c == nil || string(c.Status) != tt.valid || c.LastTransitionTime.IsZero() {
			t.Errorf("%s: condition Valid %+v, want %s", name, c, tt.valid)
		}
	}
}

func TestModulesTextIsBounded(t *testing.T) {
	o := hoc("test", config("sample", "1.0.0", ""), config("other", "2.0.0-rc1", ""))
	if got := modulesText(o); got != "sample-1.0.0, other-2.0.0-rc1" {
		t.Errorf("modules %q", got)
	}
	o.Spec.Configs = nil
	for i := range 128 {
		o.Spec.Configs = append(o.Spec.Configs, config(strings.Repeat("m", 60)+fmt.Sprint(i), "1.0.0", ""))
	}
	if got := modulesText(o); len(got) > maxModules || !strings.HasSuffix(got, " and 114 more") {
		t.Errorf("%d bytes of modules that end in %q", len(got), got[max(0, len(got)-20):])
	}
}

// The limit of an object's size takes the failures last.
func TestFailuresAreLeftOutLast(t *testing.T) {
	states := map[string]kaasv1.ConfigMachineState{}
	for i := range 4 {
		states[fmt.Sprint("lab/w-", i)] = kaasv1.ConfigMachineState{Selected: true, ConfigStateItemsStatuses: map[string]map[string]kaasv1.ConfigItemStatus{
			"sample-1.0.0": {download: {State: kaasv1.ItemSuccess, Hash: "h"}, playbook: {State: kaasv1.ItemFailed, LastFailure: &kaasv1.ItemFailure{Attempt: 1, Message: "m"}}},
		}}
	}
	if got := fit(states, 800)["lab/w-0"].ConfigStateItemsStatuses["sample-1.0.0"]; len(got) != 1 || got[playbook].LastFailure == nil {
		t.Errorf("entry in 800 bytes: %+v, want the failure alone", got)
	}
	if got := fit(states, 100)["lab/w-0"].ConfigStateItemsStatuses["sample-1.0.0"]; got[playbook].LastFailure != nil || got[playbook].State != kaasv1.ItemFailed {
		t.Errorf("entry in 100 bytes: %+v, want no text", got)
	}
}
