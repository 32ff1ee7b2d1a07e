package firmware

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// The firmware of a detached host is not read: with the removal of the annotation alone, whose
// event comes before the host's status, it would not be read again.
func TestChangesOfAHostThatReadItsFirmware(t *testing.T) {
	with := func(state metal3.ProvisioningState, op metal3.OperationalStatus) *metal3.BareMetalHost {
		h := new(metal3.BareMetalHost)
		h.Status.Provisioning.State, h.Status.OperationalStatus = state, op
		return h
	}
	ok := with(metal3.StateAvailable, metal3.OperationalStatusOK)
	for name, tt := range map[string]struct {
		changed *metal3.BareMetalHost
		want    bool
	}{
		"nothing":  {with(metal3.StateAvailable, metal3.OperationalStatusOK), false},
		"state":    {with(metal3.StatePreparing, metal3.OperationalStatusOK), true},
		"error":    {with(metal3.StateAvailable, metal3.OperationalStatusError), false},
		"detached": {with(metal3.StateAvailable, metal3.OperationalStatusDetached), true},
	} {
		for direction, e := range map[string]event.UpdateEvent{"begins": {ObjectOld: ok, ObjectNew: tt.changed}, "ends": {ObjectOld: tt.changed, ObjectNew: ok}} {
			if got := stateChanged.Update(e); got != tt.want {
				t.Errorf("%s %s: the firmware is read: %t, want %t", name, direction, got, tt.want)
			}
		}
	}
}
