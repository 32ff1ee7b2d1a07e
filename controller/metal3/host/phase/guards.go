package phase

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// A rule chooses an action; a guard delays it, or ends it after too long, whatever
// the rule. Guards are not rows of the table, because each would be a row beside
// many others.

const (
	rulePowerChanging = "power is changing"
	// powerWait bounds the duration of a power change. It is longer than a system
	// may take to shut down on request (B-123).
	powerWait = 5 * time.Minute
)

// failures maps states to the error types of their operations.
var failures = map[State]metal3.ErrorType{
	stateNone: metal3.RegistrationError, unmanaged: metal3.RegistrationError, registering: metal3.RegistrationError,
	inspecting: metal3.InspectionError,
	matching:   metal3.PreparationError, preparing: metal3.PreparationError,
	provisioning: metal3.ProvisioningError, deprovisioning: metal3.ProvisioningError,
}

// FailsAs returns the error type for a failure in a state: PowerManagementError in
// states without an operation.
func FailsAs(s State) metal3.ErrorType {
	if t, ok := failures[s]; ok {
		return t
	}
	return metal3.PowerManagementError
}

// Serves reports whether hosts in a state are being served: of hosts that boot
// their agent over the network a limited number is at a time (B-73).
func Serves(s State) bool { return serving.has(s) }

// NeedsSlot reports whether a decision needs a slot that the host does not have.
func NeedsSlot(f Facts, d Decision) bool {
	if d.Moved {
		return Serves(d.To) && (!Serves(f.State) || f.Resting)
	}
	return f.Resting && Serves(f.State) && d.Fail == ""
}

// powerTargets maps actions to the power state that they request.
var powerTargets = map[Action]bmc.Power{PowerOn: bmc.On, PowerOff: bmc.Off}

// powerActions begin the message about a power change that does not happen
// (B-124).
var powerActions = map[bool]string{true: "PowerOn", false: "PowerOff"}

func guard(f Facts, d Decision) Decision {
	switch {
	case f.NoSlot && NeedsSlot(f, d): // B-73, B-80
		return Decision{Rule: "waits for its turn", Delay: true}
	case f.PowerAsked > powerWait && (powerTargets[d.Do] != "" || d.Rule == rulePowerChanging): // B-124
		up := d.Do == PowerOn || f.Power == bmc.PoweringOn
		return Decision{Rule: "does not change its power", Fail: FailsAs(f.State),
			Message: powerActions[up] + " operation failed: power is " + string(f.Power) + " " + powerWait.String() + " after the BMC accepted the change"}
	}
	return d
}
