package host

import (
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// conditionRow holds the conditions of a state (B-83).
type conditionRow struct {
	manageable, available, provisioned bool
	progressing                        string // reason; "" means that the state does not progress
}

var conditionRows = map[phase.State]conditionRow{
	metal3.StateNone:                    {},
	metal3.StateUnmanaged:               {},
	metal3.StateRegistering:             {progressing: metal3.RegisteringReason},
	metal3.StateInspecting:              {manageable: true, progressing: metal3.InspectingReason},
	metal3.StateMatchProfile:            {manageable: true, progressing: metal3.InspectingReason},
	metal3.StatePreparing:               {manageable: true, progressing: metal3.PreparingReason},
	metal3.StateAvailable:               {manageable: true, available: true},
	metal3.StateReady:                   {manageable: true, available: true},
	metal3.StateProvisioning:            {manageable: true, progressing: metal3.ProvisioningReason},
	metal3.StateProvisioned:             {manageable: true, provisioned: true},
	metal3.StateExternallyProvisioned:   {manageable: true, provisioned: true},
	metal3.StateDeprovisioning:          {manageable: true, progressing: metal3.DeprovisioningReason},
	metal3.StatePoweringOffBeforeDelete: {manageable: true, progressing: metal3.PoweringOffBeforeDeleteReason},
	metal3.StateDeleting:                {manageable: true, progressing: metal3.DeletingReason},
}

// healthReasons maps Redfish's Status.Health to a condition.
var healthReasons = map[string]struct {
	reason string
	status metav1.ConditionStatus
}{
	"OK":       {metal3.HealthyReason, metav1.ConditionTrue},
	"Warning":  {metal3.WarningHealthReason, metav1.ConditionFalse},
	"Critical": {metal3.CriticalHealthReason, metav1.ConditionFalse},
	"":         {metal3.UnknownHealthReason, metav1.ConditionUnknown},
}

// setConditions derives all conditions from the rest of the status. A pass that
// did not read the health leaves its condition unchanged.
func setConditions(h *metal3.BareMetalHost, health string) {
	s := &h.Status
	row := conditionRows[s.Provisioning.State]
	set := func(kind string, holds bool, yes, no string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: no, ObservedGeneration: h.Generation}
		if holds {
			c.Status, c.Reason = metav1.ConditionTrue, yes
		}
		meta.SetStatusCondition(&s.Conditions, c)
	}
	unmanageable := metal3.NotManagedReason
	switch {
	case s.ErrorType == metal3.RegistrationError, s.ErrorType == metal3.ProvisionedRegistrationError:
		row.manageable, unmanageable = false, metal3.RegistrationFailedReason
	case s.ErrorType == metal3.PowerManagementError:
		row.manageable, unmanageable = false, metal3.PowerFailureReason
	case s.Provisioning.State == metal3.StateRegistering:
		unmanageable = metal3.RegisteringReason
	}
	notReady := metal3.NotProvisionedReason
	if s.ErrorType != "" {
		notReady = metal3.ErrorReason
	}
	ready, still := row.provisioned && s.ErrorType == "", metal3.NotProgressingReason
	switch s.OperationalStatus {
	case metal3.OperationalStatusServicing:
		ready, notReady = false, metal3.ServicingReason
	case metal3.OperationalStatusDetached:
		ready, notReady = false, metal3.DetachedReason
		row.progressing, still = "", metal3.DetachedReason
	}
	set(metal3.ManageableCondition, row.manageable, metal3.ManageableReason, unmanageable)
	set(metal3.AvailableForProvisioningCondition, row.available && s.ErrorType == "", metal3.AvailableReason, metal3.NotAvailableReason)
	set(metal3.ProvisionedCondition, row.provisioned, metal3.ProvisionedReason, metal3.NotProvisionedReason)
	set(metal3.ReadyCondition, ready, metal3.ProvisionedReason, notReady)
	set(metal3.ProgressingCondition, row.progressing != "", row.progressing, still)
	hr, known := healthReasons[health]
	if !known {
		hr = healthReasons[""]
	}
	if was := meta.FindStatusCondition(s.Conditions, metal3.HealthyCondition); health == "" && was != nil {
		was.ObservedGeneration = h.Generation // the specification does not affect it
		return
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: metal3.HealthyCondition, Status: hr.status, Reason: hr.reason, ObservedGeneration: h.Generation,
	})
}
