package hoc

import (
	"slices"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// calm are the states of a Machine in which its items may change. Reconfigure is one of them:
// a machine on which an item fails must accept the corrected item.
var calm = []lcmv1.MachineState{lcmv1.StateReady, lcmv1.StateReconfigure}

// notReady returns why the items of a machine may not change now, "" when they may
// (H22). m may be nil.
func notReady(m *clusterv1.Machine, l *lcmv1.LCMMachine) string {
	if m == nil {
		return ""
	}
	spec, status := m.Spec.ProviderSpec.Value, m.Status.ProviderStatus
	if status == nil {
		status = &baremetalv1.MachineProviderStatus{}
	}
	switch {
	case !m.DeletionTimestamp.IsZero() || spec.Delete || status.Delete || status.PrepareDeletionPhase != "" || l.Spec.PrepareDeletion:
		return "the machine is being deleted"
	case spec.Maintenance || status.Maintenance || l.Spec.Maintenance:
		return "the machine is in maintenance"
	case status.Status == "":
		return "the machine is not Ready: it has no status yet"
	case !slices.Contains(calm, lcmv1.MachineState(status.Status)):
		return "the machine is not Ready: its status is " + status.Status
	}
	for _, c := range status.Conditions {
		if !c.Ready && c.Type != baremetalv1.ConditionLCM { // which says that items are executed
			return "the machine is not Ready: its condition " + c.Type + " is not"
		}
	}
	return ""
}
