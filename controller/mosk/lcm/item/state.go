package item

import (
	"slices"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// GracefulRebootAnnotation on an LCMMachine asks for a reboot that cordons and drains.
const GracefulRebootAnnotation = "lcm.mirantis.com/graceful-reboot"

// RebootRequestAnnotation on an LCMMachine names the GracefulRebootRequest that has set
// GracefulRebootAnnotation. A user's has none.
const RebootRequestAnnotation = "metalab.dev/reboot-request"

// HeldForRebootAnnotation marks an LCMMachine whose node is cordoned, or about to be, for a
// graceful reboot. It outlasts the request, whose writer may withdraw it.
const HeldForRebootAnnotation = "metalab.dev/held-for-reboot"

// GracefulRebootBegun reports whether a graceful reboot of the machine is asked for, or its
// node is still held for one that was.
func GracefulRebootBegun(m *lcmv1.LCMMachine) bool {
	return m.Annotations[GracefulRebootAnnotation] == "true" || m.Annotations[HeldForRebootAnnotation] != ""
}

// ComputeState returns the state of a machine from its spec and from what its agent
// reports.
func ComputeState(m *lcmv1.LCMMachine) lcmv1.MachineState {
	if !initialized(m) {
		return lcmv1.StateUninitialized
	}
	if m.Spec.Type == lcmv1.MachineBastion { // it runs nothing of the cluster
		return lcmv1.StateReady
	}
	compute, known := stateOf[m.Spec.LCMType]
	if !known {
		return lcmv1.StateUninitialized
	}
	return compute(m)
}

// initialized reports whether the agent has reported an address, and has applied the
// licence of a machine that needs one.
func initialized(m *lcmv1.LCMMachine) bool {
	hasIP := slices.ContainsFunc(m.Status.Addresses, func(a lcmv1.NodeAddress) bool { return a.Type == lcmv1.AddressInternalIP })
	return hasIP && (m.Spec.RHELLicenseSubscription == "" || m.Status.RHELLicenseApplied)
}

// stateOf computes the states of initialized machines, by their Kubernetes distribution.
var stateOf = map[lcmv1.LCMType]func(*lcmv1.LCMMachine) lcmv1.MachineState{
	lcmv1.LCMTypeK0s: func(m *lcmv1.LCMMachine) lcmv1.MachineState {
		return unlessReady(itemsState(m), reboot(m))
	},
	lcmv1.LCMTypeBYO: version, // LCM runs no items there
	lcmv1.LCMTypeUCP: func(m *lcmv1.LCMMachine) lcmv1.MachineState {
		component := version(m)
		if component == lcmv1.StatePending { // MKE is still to be installed
			component = lcmv1.StateDeploy
		}
		return unlessReady(unlessReady(itemsState(m), reboot(m)), component)
	},
}

// unlessReady returns state, or next when state is Ready.
func unlessReady(state, next lcmv1.MachineState) lcmv1.MachineState {
	if state == lcmv1.StateReady {
		return next
	}
	return state
}

// reboot returns Reboot while a demanded reboot is not done, else Ready.
func reboot(m *lcmv1.LCMMachine) lcmv1.MachineState {
	if m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed) {
		return lcmv1.StateReboot
	}
	return lcmv1.StateReady
}

// version compares the component versions of the machine with the desired ones.
func version(m *lcmv1.LCMMachine) lcmv1.MachineState {
	switch m.Status.Components {
	case lcmv1.Components{}:
		return lcmv1.StatePending
	case m.Spec.Components:
		return lcmv1.StateReady
	}
	return lcmv1.StateUpgrade
}

// itemsState returns the state that follows from the items alone. Without items of deploy
// or reconfigure, a machine stays in Prepare, even when the items of prepare are done.
func itemsState(m *lcmv1.LCMMachine) lcmv1.MachineState {
	state := lcmv1.StatePending
	if has(m, lcmv1.PhasePrepare) {
		state = lcmv1.StatePrepare
	}
	if has(m, lcmv1.PhaseDeploy) {
		state = doneOr(m, lcmv1.PhaseDeploy, lcmv1.StateDeploy)
	}
	if has(m, lcmv1.PhaseReconfigure) && state != lcmv1.StateDeploy {
		state = doneOr(m, lcmv1.PhaseReconfigure, lcmv1.StateReconfigure)
	}
	return state
}

func has(m *lcmv1.LCMMachine, p lcmv1.Phase) bool {
	return slices.ContainsFunc(m.Spec.StateItems, func(it lcmv1.LCMStateItem) bool { return it.Phase == p })
}

// doneOr returns Ready when all items of a phase are done, else the state.
func doneOr(m *lcmv1.LCMMachine, p lcmv1.Phase, state lcmv1.MachineState) lcmv1.MachineState {
	for _, it := range m.Spec.StateItems {
		if it.Phase == p && !Ready(it, m.Status.StateItemStatuses, m.Status.AgentVersion) {
			return state
		}
	}
	return lcmv1.StateReady
}

// GracefulRebootRequired reports whether a graceful reboot of the machine is asked for and
// not yet begun: spec.rebootRequired begins it.
func GracefulRebootRequired(m *lcmv1.LCMMachine) bool {
	return m.Annotations[GracefulRebootAnnotation] == "true" && !m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed)
}
