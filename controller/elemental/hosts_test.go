package elemental

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
)

func TestLabelsBecomeConditions(t *testing.T) {
	h := installed("h")
	h.Finalizers = nil
	l := start(t, h)
	l.settle()
	h = l.host("h")
	is(t, h, elementalv1.RegistrationReady, "True")
	is(t, h, elementalv1.InstallationReady, "True")
	is(t, h, elementalv1.BootstrapReady, "")
	if diff := cmp.Diff([]string{elementalv1.Finalizer}, h.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	edit(l, h, func(h *elementalv1.ElementalHost) { h.Labels[elementalv1.BootstrappedLabel] = elementalv1.True })
	l.settle()
	is(t, l.host("h"), elementalv1.BootstrapReady, "True")
}

// A phase that the agent has reported is not written again.
func TestReportedConditionsStay(t *testing.T) {
	h := installed("h")
	for _, conditionType := range []capi.ConditionType{elementalv1.RegistrationReady, elementalv1.InstallationReady} {
		c := condition.True(conditionType)
		c.Severity = capi.ConditionSeverityInfo
		condition.Set(h, c, now)
	}
	l := start(t, h)
	l.settle()
	if len(l.writes) > 0 {
		t.Errorf("the controller writes %q", l.writes)
	}
}

// E-31: a host that a user deletes waits for the reset of its server, without end.
func TestDeletedHostWaitsForItsReset(t *testing.T) {
	l := start(t, installed("h"))
	l.settle()
	l.must(l.Delete(t.Context(), l.host("h")))
	l.settle()
	h := l.host("h")
	if h.Labels[elementalv1.NeedsResetLabel] != elementalv1.True || len(h.Finalizers) != 1 {
		t.Errorf("a deleted host has the labels %v and finalizers %v", h.Labels, h.Finalizers)
	}
	is(t, h, elementalv1.ResetReady, "False WaitingForReset Info")
	edit(l, h, func(h *elementalv1.ElementalHost) { h.Labels[elementalv1.ResetLabel] = "false" })
	l.settle()
	// The agent's report is not overwritten.
	h = l.host("h")
	condition.Set(h, condition.False(elementalv1.ResetReady, elementalv1.ResetFailedReason, capi.ConditionSeverityError, ""), now)
	l.must(l.Status().Update(t.Context(), h))
	l.settle()
	is(t, l.host("h"), elementalv1.ResetReady, "False ResetFailed Error")
	edit(l, l.host("h"), func(h *elementalv1.ElementalHost) { h.Labels[elementalv1.ResetLabel] = elementalv1.True })
	l.settle()
	l.gone("h", new(elementalv1.ElementalHost))
}

func version(text string) map[string]runtime.RawExtension {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return map[string]runtime.RawExtension{"osVersion": {Raw: b}}
}

// E-27: the version of a machine reaches its host; a host that has bootstrapped needs the
// label in-place-update=pending, too.
func TestOSVersionFollowsTheMachine(t *testing.T) {
	l := start(t, append(ownedMachine("m"), readyCluster(), installed("h"))...)
	l.settle()
	is(t, l.host("h"), elementalv1.OSVersionReady, "")
	setVersion := func(text string) {
		t.Helper()
		edit(l, l.machine("m"), func(m *elementalv1.ElementalMachine) { m.Spec.OSVersionManagement = version(text) })
		l.settle()
		if diff := cmp.Diff(version(text), l.host("h").Spec.OSVersionManagement); diff != "" {
			t.Errorf("version of the host (-want +got):\n%s", diff)
		}
	}
	label := func(key, value string) {
		t.Helper()
		edit(l, l.host("h"), func(h *elementalv1.ElementalHost) { h.Labels[key] = value })
		l.settle()
	}
	setVersion("1")
	is(t, l.host("h"), elementalv1.OSVersionReady, "False WaitingForOSReconcile Info")
	label(elementalv1.BootstrappedLabel, elementalv1.True)
	setVersion("2")
	is(t, l.host("h"), elementalv1.OSVersionReady, "False InPlaceUpdateNotPending Warning")
	label(elementalv1.InPlaceUpdateLabel, elementalv1.InPlaceUpdatePending)
	is(t, l.host("h"), elementalv1.OSVersionReady, "False WaitingForOSReconcile Info")
	setVersion("3")
	is(t, l.host("h"), elementalv1.OSVersionReady, "False WaitingForOSReconcile Info")
	label(elementalv1.InPlaceUpdateLabel, elementalv1.InPlaceUpdateDone)
	setVersion("4")
	is(t, l.host("h"), elementalv1.OSVersionReady, "False InPlaceUpdateNotPending Warning")
}

// A machine that is created with a version gives it to its host with the link.
func TestVersionComesWithTheLink(t *testing.T) {
	machine := ownedMachine("m")
	machine[0].(*elementalv1.ElementalMachine).Spec.OSVersionManagement = version("1")
	l := start(t, append(machine, readyCluster(), installed("h"))...)
	l.pass(l.controllers())
	h := l.host("h")
	if h.Spec.MachineRef == nil || h.Spec.OSVersionManagement == nil {
		t.Errorf("the host after the link has machine %v and version %v", h.Spec.MachineRef, h.Spec.OSVersionManagement)
	}
	is(t, h, elementalv1.OSVersionReady, "False WaitingForOSReconcile Info")
}

// A host that is linked to a machine with another host is reset: a controller that lost its
// lease linked it too late.
func TestStrayLinkIsReset(t *testing.T) {
	stray := installed("h-2")
	stray.Spec.MachineRef = &corev1.ObjectReference{Name: "m"}
	machine := ownedMachine("m")
	machine[0].(*elementalv1.ElementalMachine).Spec.HostRef = &corev1.ObjectReference{Name: "h-1"}
	l := start(t, append(machine, readyCluster(), installed("h-1"), stray)...)
	l.settle()
	if got := l.host("h-2").Labels[elementalv1.NeedsResetLabel]; got != elementalv1.True {
		t.Errorf("label needs-reset of the stray host %q, want true", got)
	}
	if got := l.host("h-1").Labels[elementalv1.NeedsResetLabel]; got != "" {
		t.Errorf("label needs-reset of the machine's host %q, want none", got)
	}
}
