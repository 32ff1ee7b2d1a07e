package machines

import (
	"fmt"
	"slices"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// condition returns a condition of a Machine, the zero value when it has none.
func (l *lab) condition(name, kind string) baremetalv1.Condition {
	l.t.Helper()
	s := l.machine(name).Status.ProviderStatus
	i := slices.IndexFunc(s.Conditions, func(c baremetalv1.Condition) bool { return c.Type == kind })
	if i < 0 {
		return baremetalv1.Condition{}
	}
	return s.Conditions[i]
}

// lcmStatus changes the status of an LCMMachine.
func (l *lab) lcmStatus(name string, change func(*lcmv1.LCMMachine)) {
	l.t.Helper()
	x := l.lcm(name)
	change(x)
	l.must(l.Status().Update(l.t.Context(), x))
	l.settle()
}

// The condition LCM names the item that a machine waits for, its attempt and what it said. The
// text stays while the agent tries the item again.
func TestConditionLCMNamesTheFailingItem(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	look := func(when string, s *lcmv1.StateItemStatus, want string) {
		t.Helper()
		l.lcmStatus("m", func(x *lcmv1.LCMMachine) {
			x.Status.State = lcmv1.StateDeploy
			delete(x.Status.StateItemStatuses, "swap")
			if s != nil {
				if s.Attempt > 0 {
					s.Hash = item.Hash(x.Spec.StateItems[0], "")
				}
				x.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{"swap": *s}
			}
		})
		if got := l.condition("m", baremetalv1.ConditionLCM); got.Ready || got.Message != "the LCMMachine is Deploy: "+want {
			t.Errorf("%s: condition %+v, want %q", when, got, want)
		}
	}
	at := &metav1.Time{Time: l.wall.Now()}
	look("no result", nil, "it waits for item swap")
	look("blocked", &lcmv1.StateItemStatus{ExitCode: item.NotExited, Message: "blocked by elemental: reset"}, "item swap is blocked by elemental: reset")
	look("first attempt", &lcmv1.StateItemStatus{Attempt: 1, ExitCode: item.NotExited, StartedAt: at}, "it waits for item swap")
	failed := "item swap, attempt 1: swapoff: not found"
	look("failed", &lcmv1.StateItemStatus{Attempt: 1, ExitCode: 127, Message: "swapoff: not found\nline 2", FinishedAt: at}, failed)
	look("second attempt", &lcmv1.StateItemStatus{Attempt: 2, ExitCode: item.NotExited, StartedAt: at}, failed)
	look("failed again", &lcmv1.StateItemStatus{Attempt: 2, ExitCode: 1, FinishedAt: at}, "item swap, attempt 2: exit code 1")
	l.lcmStatus("m", func(x *lcmv1.LCMMachine) {
		x.Status.StateItemStatuses["swap"] = lcmv1.StateItemStatus{Attempt: 3, Hash: item.Hash(x.Spec.StateItems[0], ""), FinishedAt: at}
		x.Status.State = lcmv1.StateReady
	})
	if got := l.condition("m", baremetalv1.ConditionLCM); !got.Ready || got.Message != "" {
		t.Errorf("succeeded: condition %+v", got)
	}
	edit(l, l.lcm("m"), func(x *lcmv1.LCMMachine) {
		x.Annotations = map[string]string{item.PreparingAnnotation: item.AwaitsPreparation}
	})
	l.lcmStatus("m", func(x *lcmv1.LCMMachine) { x.Status.State = lcmv1.StatePending })
	if got, want := l.condition("m", baremetalv1.ConditionLCM).Message, "the LCMMachine is Pending: it waits to be prepared: maxWorkerPrepareCount of the Cluster bounds how many workers are at a time"; got != want {
		t.Errorf("without a place: %q, want %q", got, want)
	}
	edit(l, l.lcm("m"), func(x *lcmv1.LCMMachine) { x.Annotations = nil })
	l.lcmStatus("m", func(x *lcmv1.LCMMachine) { x.Status.State, x.Status.Addresses = lcmv1.StateUninitialized, nil })
	if got := l.condition("m", baremetalv1.ConditionLCM); got.Message != "the LCMMachine is Uninitialized: its agent has not reported yet" {
		t.Errorf("without an address: condition %+v", got)
	}
}

// A Machine is not ready while its server is off: its agent reports nothing.
func TestServerThatIsOffIsNotReady(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	power := func(on bool) {
		h := l.host("a")
		h.Status.PoweredOn = on
		l.must(l.Status().Update(t.Context(), h))
		l.settle()
	}
	power(false)
	if p := l.machine("m").Status.ProviderStatus; p.Ready || p.ProviderInstanceState.Ready || l.instance("m").Message != "BareMetalHost lab/a is switched off: its agent reports nothing" {
		t.Errorf("off: ready %t, instance %+v, condition %+v", p.Ready, p.ProviderInstanceState, l.instance("m"))
	}
	power(true)
	if p := l.machine("m").Status.ProviderStatus; !p.Ready || !p.ProviderInstanceState.Ready {
		t.Errorf("on: %+v", p)
	}
}

// A Machine that is deleted names the state of its host, and the error that keeps it.
func TestDeletedMachineNamesWhatItWaitsFor(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	l.must(l.Delete(t.Context(), machine("m")))
	l.settle()
	h := l.host("a")
	h.Status.Provisioning.State, h.Status.ErrorMessage = metal3.StateDeprovisioning, "the BMC does not answer"
	l.must(l.Status().Update(t.Context(), h))
	l.settle()
	if p := l.machine("m").Status.ProviderStatus; p.Status != StatusDeleting || l.instance("m").Message != "BareMetalHost lab/a is being deprovisioned: it is deprovisioning: the BMC does not answer" {
		t.Errorf("status %q, condition %+v", p.Status, l.instance("m"))
	}
}

// events returns the Events about Machines as TYPE REASON: MESSAGE (COUNT), sorted.
func (l *lab) events() (out []string) {
	l.t.Helper()
	var list corev1.EventList
	l.must(l.List(l.t.Context(), &list))
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Machine" {
			out = append(out, fmt.Sprintf("%s %s: %s (%d)", e.Type, e.Reason, e.Message, e.Count))
		}
	}
	slices.Sort(out)
	return out
}

// Each step and failure of a Machine is one Event, whatever the number of passes and restarts.
func TestEventsOfAMachine(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	for _, want := range []string{
		"Normal Provision: the status is Provision (1)", "Normal Deploy: the status is Deploy, it was Uninitialized (1)", "Normal Ready: the status is Ready, it was Deploy (1)",
		"Normal ProviderInstanceReady: the condition ProviderInstance is ready (1)", "Normal LCMReady: the condition LCM is ready (1)",
	} {
		if !slices.Contains(l.events(), want) {
			t.Errorf("no event %q among %q", want, l.events())
		}
	}
	before := l.events()
	added := func() (out []string) {
		l.settle()
		l.settle()
		for _, e := range l.events() {
			if !slices.Contains(before, e) {
				out = append(out, e)
			}
		}
		before = l.events()
		return out
	}
	swap := func(attempt, code int, message string) {
		l.lcmStatus("m", func(x *lcmv1.LCMMachine) {
			x.Status.State = lcmv1.StateDeploy
			x.Status.StateItemStatuses["swap"] = lcmv1.StateItemStatus{
				Attempt: attempt, ExitCode: code, Message: message, Hash: item.Hash(x.Spec.StateItems[0], ""), FinishedAt: &metav1.Time{Time: l.wall.Now()},
			}
		})
	}
	swap(1, 2, "no space\nmore")
	if got, want := added(), []string{
		"Normal Deploy: the status is Deploy, it was Ready (1)", "Warning LCMFailed: the LCMMachine is Deploy: item swap, attempt 1: no space (1)",
	}; !slices.Equal(got, want) {
		t.Errorf("after a failure: events %q, want %q", got, want)
	}
	swap(2, 2, "no space\nmore")
	if got, want := added(), []string{"Warning LCMFailed: the LCMMachine is Deploy: item swap, attempt 2: no space (1)"}; !slices.Equal(got, want) {
		t.Errorf("after another: events %q, want %q", got, want)
	}
	h := l.host("a")
	h.Status.PoweredOn = false
	l.must(l.Status().Update(t.Context(), h))
	if got, want := added(), []string{"Warning ProviderInstanceFailed: BareMetalHost lab/a is switched off: its agent reports nothing (1)"}; !slices.Equal(got, want) {
		t.Errorf("off: events %q, want %q", got, want)
	}
}
