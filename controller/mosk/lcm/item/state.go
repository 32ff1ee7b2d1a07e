package item

import (
	"slices"

	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
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
func GracefulRebootBegun(m *lcm.LCMMachine) bool {
	return m.Annotations[GracefulRebootAnnotation] == "true" || m.Annotations[HeldForRebootAnnotation] != ""
}

// ComputeState returns the state of a machine from its spec and from what its agent
// reports.
func ComputeState(m *lcm.LCMMachine) lcm.MachineState {
	if !initialized(m) {
		return lcm.StateUninitialized
	}
	if m.Spec.Type == lcm.MachineBastion { // it runs nothing of the cluster
		return lcm.StateReady
	}
	compute, known := stateOf[m.Spec.LCMType]
	if !known {
		return lcm.StateUninitialized
	}
	return compute(m)
}

// initialized reports whether the agent has reported an address, and has applied the
// licence of a machine that needs one.
func initialized(m *lcm.LCMMachine) bool {
	hasIP := slices.ContainsFunc(m.Status.Addresses, func(a lcm.NodeAddress) bool { return a.Type == lcm.AddressInternalIP })
	return hasIP && (m.Spec.RHELLicenseSubscription == "" || m.Status.RHELLicenseApplied)
}

// stateOf computes the states of initialized machines, by their Kubernetes distribution.
var stateOf = map[lcm.LCMType]func(*lcm.LCMMachine) lcm.MachineState{
	lcm.LCMTypeK0s: func(m *lcm.LCMMachine) lcm.MachineState {
		return unlessReady(itemsState(m), reboot(m))
	},
	lcm.LCMTypeBYO: version, // LCM runs no items there
	lcm.LCMTypeUCP: func(m *lcm.LCMMachine) lcm.MachineState {
		component := version(m)
		if component == lcm.StatePending { // MKE is still to be installed
			component = lcm.StateDeploy
		}
		return unlessReady(unlessReady(itemsState(m), reboot(m)), component)
	},
}

// unlessReady returns state, or next when state is Ready.
func unlessReady(state, next lcm.MachineState) lcm.MachineState {
	if state == lcm.StateReady {
		return next
	}
	return state
}

// reboot returns Reboot while a demanded reboot is not done, else Ready.
func reboot(m *lcm.LCMMachine) lcm.MachineState {
	if m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed) {
		return lcm.StateReboot
	}
	return lcm.StateReady
}

// version compares the component versions of the machine with the desired ones.
func version(m *lcm.LCMMachine) lcm.MachineState {
	switch m.Status.Components {
	case lcm.Components{}:
		return lcm.StatePending
	case m.Spec.Components:
		return lcm.StateReady
	}
	return lcm.StateUpgrade
}

// itemsState returns the state that follows from the items alone. Without items of deploy
// or reconfigure, a machine stays in Prepare, even when the items of prepare are done.
func itemsState(m *lcm.LCMMachine) lcm.MachineState {
	state := lcm.StatePending
	if has(m, lcm.PhasePrepare) {
		state = lcm.StatePrepare
	}
	if has(m, lcm.PhaseDeploy) {
		state = doneOr(m, lcm.PhaseDeploy, lcm.StateDeploy)
	}
	if has(m, lcm.PhaseReconfigure) && state != lcm.StateDeploy {
		state = doneOr(m, lcm.PhaseReconfigure, lcm.StateReconfigure)
	}
	return state
}

func has(m *lcm.LCMMachine, p lcm.Phase) bool {
	return slices.ContainsFunc(m.Spec.StateItems, func(it lcm.LCMStateItem) bool { return it.Phase == p })
}

// doneOr returns Ready when all items of a phase are done, else the state.
func doneOr(m *lcm.LCMMachine, p lcm.Phase, state lcm.MachineState) lcm.MachineState {
	for _, it := range m.Spec.StateItems {
		if it.Phase == p && !Ready(it, m.Status.StateItemStatuses, m.Status.AgentVersion) {
			return state
		}
	}
	return lcm.StateReady
}

// GracefulRebootRequired reports whether a graceful reboot of the machine is asked for and
// not yet begun: spec.rebootRequired begins it.
func GracefulRebootRequired(m *lcm.LCMMachine) bool {
	return m.Annotations[GracefulRebootAnnotation] == "true" && !m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed)
}
