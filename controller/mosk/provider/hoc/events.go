package hoc

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// component is the source of the Events.
const component = "hostosconfiguration"

// maxEvents limits the Events of one pass about failures, and those about machines that are
// done: the status has the rest.
const maxEvents = 10

// notice is an Event about an object.
type notice struct{ kind, reason, message string }

// notices returns the Events of what a pass changes in the status: failures, machines that are
// done, and conditions. before is the status that was read; states have all details.
func notices(o *kaasv1.HostOSConfiguration, before kaasv1.HostOSConfigurationStatus, states map[string]kaasv1.ConfigMachineState) (out []notice) {
	known := map[string]bool{}
	for _, f := range failures(before.MachinesStates) {
		known[f.String()] = true
	}
	for _, f := range failures(states) {
		if text := f.String(); !known[text] && len(out) < maxEvents {
			out = append(out, notice{corev1.EventTypeWarning, "ItemFailed", text})
		}
	}
	count := 0
	for _, key := range slices.Sorted(maps.Keys(states)) {
		was, is := before.MachinesStates[key], states[key]
		if !is.Selected || !done(o, is) || was.Selected && done(o, was) || reduced(was) || count == maxEvents {
			continue
		}
		_, machine, _ := strings.Cut(key, "/")
		out = append(out, notice{corev1.EventTypeNormal, "MachineDone", machine + ": all items have succeeded"})
		count++
	}
	for _, c := range o.Status.Conditions {
		was := meta.FindStatusCondition(before.Conditions, c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason && (c.Reason != reasonWithheld || was.Message == c.Message) {
			continue
		}
		n := notice{corev1.EventTypeNormal, c.Reason, c.Message}
		switch {
		case c.Type == kaasv1.ConditionApplied && (c.Reason == reasonInvalid || c.Reason == reasonNotValidated), c.Reason == reasonFailed, c.Status == metav1.ConditionUnknown:
			continue // another Event says that, or the validation follows at once
		case c.Reason == reasonInvalid || c.Reason == reasonNoMachines:
			n.kind = corev1.EventTypeWarning
		case c.Reason == reasonValid:
			n.message = "the modules and values of all configs are valid"
		case c.Reason == reasonApplied:
			n.message = o.Status.Progress + " machines are done"
		}
		out = append(out, n)
	}
	return out
}

// reduced reports whether an entry has lost the states of the items that have succeeded (see
// fit): it cannot tell whether the machine was done.
func reduced(s kaasv1.ConfigMachineState) bool {
	return s.ObservedGeneration > 0 && len(s.ConfigStateItemsStatuses) == 0
}
