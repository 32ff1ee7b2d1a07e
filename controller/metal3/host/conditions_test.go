package host

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// B-83: the whole truth table. Each cell is the status, T or F, and its reason.
func TestConditions(t *testing.T) {
	columns := []string{metal3.ManageableCondition, metal3.AvailableForProvisioningCondition, metal3.ProvisionedCondition, metal3.ReadyCondition, metal3.ProgressingCondition}
	const (
		none, avail, notAvail = "F NotManaged", "T Available", "F NotAvailable"
		yes, prov, notProv    = "T Manageable", "T Provisioned", "F NotProvisioned"
		idle, failed, regFail = "F NotProgressing", "F Error", "F RegistrationFailed"
	)
	for _, tt := range []struct {
		state metal3.ProvisioningState
		err   metal3.ErrorType
		op    metal3.OperationalStatus
		want  [5]string
	}{
		{metal3.StateNone, "", "", [5]string{none, notAvail, notProv, notProv, idle}},
		{metal3.StateUnmanaged, "", metal3.OperationalStatusDiscovered, [5]string{none, notAvail, notProv, notProv, idle}},
		{metal3.StateRegistering, "", "", [5]string{"F Registering", notAvail, notProv, notProv, "T Registering"}},
		{metal3.StateRegistering, metal3.RegistrationError, metal3.OperationalStatusError, [5]string{regFail, notAvail, notProv, failed, "T Registering"}},
		{metal3.StateInspecting, "", "", [5]string{yes, notAvail, notProv, notProv, "T Inspecting"}},
		{metal3.StateInspecting, metal3.InspectionError, metal3.OperationalStatusError, [5]string{yes, notAvail, notProv, failed, "T Inspecting"}},
		{metal3.StateMatchProfile, "", "", [5]string{yes, notAvail, notProv, notProv, "T Inspecting"}},
		{metal3.StatePreparing, "", "", [5]string{yes, notAvail, notProv, notProv, "T Preparing"}},
		{metal3.StatePreparing, metal3.PreparationError, metal3.OperationalStatusError, [5]string{yes, notAvail, notProv, failed, "T Preparing"}},
		{metal3.StateAvailable, "", metal3.OperationalStatusOK, [5]string{yes, avail, notProv, notProv, idle}},
		{metal3.StateReady, "", metal3.OperationalStatusOK, [5]string{yes, avail, notProv, notProv, idle}},
		{metal3.StateAvailable, metal3.PowerManagementError, metal3.OperationalStatusError, [5]string{"F PowerFailure", notAvail, notProv, failed, idle}},
		{metal3.StateAvailable, "", metal3.OperationalStatusDelayed, [5]string{yes, avail, notProv, notProv, idle}},
		{metal3.StateProvisioning, "", "", [5]string{yes, notAvail, notProv, notProv, "T Provisioning"}},
		{metal3.StateProvisioned, "", metal3.OperationalStatusOK, [5]string{yes, notAvail, prov, prov, idle}},
		{metal3.StateProvisioned, metal3.PowerManagementError, metal3.OperationalStatusError, [5]string{"F PowerFailure", notAvail, prov, failed, idle}},
		{metal3.StateProvisioned, metal3.RegistrationError, metal3.OperationalStatusError, [5]string{regFail, notAvail, prov, failed, idle}},
		{metal3.StateProvisioned, metal3.ProvisionedRegistrationError, metal3.OperationalStatusError, [5]string{regFail, notAvail, prov, failed, idle}},
		{metal3.StateProvisioned, "", metal3.OperationalStatusDetached, [5]string{yes, notAvail, prov, "F Detached", "F Detached"}},
		{metal3.StateProvisioned, "", metal3.OperationalStatusServicing, [5]string{yes, notAvail, prov, "F Servicing", idle}},
		{metal3.StateProvisioned, metal3.ServicingError, metal3.OperationalStatusError, [5]string{yes, notAvail, prov, failed, idle}},
		{metal3.StateExternallyProvisioned, "", metal3.OperationalStatusOK, [5]string{yes, notAvail, prov, prov, idle}},
		{metal3.StateDeprovisioning, "", "", [5]string{yes, notAvail, notProv, notProv, "T Deprovisioning"}},
		{metal3.StatePoweringOffBeforeDelete, "", "", [5]string{yes, notAvail, notProv, notProv, "T PoweringOffBeforeDelete"}},
		{metal3.StateDeleting, "", "", [5]string{yes, notAvail, notProv, notProv, "T Deleting"}},
	} {
		h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
		h.Status.Provisioning.State, h.Status.ErrorType, h.Status.OperationalStatus = tt.state, tt.err, tt.op
		setConditions(h, "")
		for i, column := range columns {
			c := meta.FindStatusCondition(h.Status.Conditions, column)
			if c == nil {
				t.Fatalf("%q: no condition %s", tt.state, column)
			}
			if got := string(c.Status[0]) + " " + c.Reason; got != tt.want[i] || c.ObservedGeneration != 7 {
				t.Errorf("%q, error %q, %q: %s is %q of generation %d, want %q of 7", tt.state, tt.err, tt.op, column, got, c.ObservedGeneration, tt.want[i])
			}
		}
	}
}

// B-83: the health is Redfish's, and unchanged until it is read again.
func TestHealthCondition(t *testing.T) {
	h := &metal3.BareMetalHost{}
	for _, tt := range []struct{ health, want string }{
		{"", "U Unknown"}, {"OK", "T Healthy"}, {"", "T Healthy"}, {"Warning", "F Warning"}, {"Critical", "F CriticalError"}, {"Odd", "U Unknown"},
	} {
		setConditions(h, tt.health)
		c := meta.FindStatusCondition(h.Status.Conditions, metal3.HealthyCondition)
		if got := string(c.Status[0]) + " " + c.Reason; got != tt.want {
			t.Errorf("health %q: %s, want %s", tt.health, got, tt.want)
		}
	}
}
