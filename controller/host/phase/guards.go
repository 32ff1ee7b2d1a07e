package phase

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// A rule says what shall be done; a guard says that it cannot be done yet, or
// has been tried for long enough, whichever rule has asked for it. Both stand
// here rather than in the table, where each would be a row beside many others.

const (
	powerChanges = "power is changing"
	// powerWait is how long a change of power may take. It is longer than a
	// system may take to shut down by itself (B-123).
	powerWait = 5 * time.Minute
)

// failures are what an operation that fails is called, by state.
var failures = map[State]metal3.ErrorType{
	stateNone: metal3.RegistrationError, unmanaged: metal3.RegistrationError, registering: metal3.RegistrationError,
	inspecting: metal3.InspectionError,
	matching:   metal3.PreparationError, preparing: metal3.PreparationError,
	provisioning: metal3.ProvisioningError, deprovisioning: metal3.ProvisioningError,
}

// FailsAs is what a failure of what a state does is called; where it does
// nothing else it is power management.
func FailsAs(s State) metal3.ErrorType {
	if t, ok := failures[s]; ok {
		return t
	}
	return metal3.PowerManagementError
}

// Serves says whether hosts in a state are being served: as many of those that
// boot their agent by the network as there are places (B-73).
func Serves(s State) bool { return serving.has(s) }

// NeedsSlot says whether a decision needs a place that the host has not got.
func NeedsSlot(f Facts, d Decision) bool {
	if d.Moved {
		return Serves(d.To) && (!Serves(f.State) || f.Resting)
	}
	return f.Resting && Serves(f.State) && d.Fail == ""
}

// changed is the power that an action brings about.
var changed = map[Action]bmc.Power{PowerOn: bmc.On, PowerOff: bmc.Off}

// prefixes begin the message of a change of power that does not come about
// (B-124).
var prefixes = map[bool]string{true: "PowerOn", false: "PowerOff"}

func guard(f Facts, d Decision) Decision {
	switch {
	case f.NoSlot && NeedsSlot(f, d): // B-73, B-80
		return Decision{Rule: "waits for its turn", Delay: true}
	case f.PowerAsked > powerWait && (changed[d.Do] != "" || d.Rule == powerChanges): // B-124
		up := d.Do == PowerOn || f.Power == bmc.PoweringOn
		return Decision{Rule: "does not change its power", Fail: FailsAs(f.State),
			Message: prefixes[up] + " operation failed: power is " + string(f.Power) + " " + powerWait.String() + " after the BMC accepted the change"}
	}
	return d
}
