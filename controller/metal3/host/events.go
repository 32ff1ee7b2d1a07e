package host

import (
	"context"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// eventList collects the events of a pass, which are published when the status is
// recorded.
type eventList []struct{ reason, message string }

func (l *eventList) add(reason, message string) {
	*l = append(*l, struct{ reason, message string }{reason, message})
}

// eventReasons maps errors to event reasons (B-281).
var eventReasons = map[metal3.ErrorType]string{
	metal3.RegistrationError:            "RegistrationError",
	metal3.ProvisionedRegistrationError: "ProvisionedRegistrationError",
	metal3.InspectionError:              "InspectionError",
	metal3.PreparationError:             "PreparationError",
	metal3.ProvisioningError:            "ProvisioningError",
	metal3.PowerManagementError:         "PowerManagementError",
	metal3.DetachError:                  "DetachError",
	metal3.ServicingError:               "ServicingError",
}

// addTransition adds the events of a state transition (B-281).
func (l *eventList) addTransition(h *metal3.BareMetalHost, from, to phase.State) {
	image := h.Status.Provisioning.Image.URL
	if h.Spec.Image != nil && image == "" {
		image = h.Spec.Image.URL
	}
	switch {
	case from == metal3.StateProvisioning && to == metal3.StateProvisioned:
		l.add("ProvisioningComplete", "Image provisioning completed for "+image)
	case from == metal3.StateDeprovisioning:
		l.add("DeprovisioningComplete", "Image deprovisioning completed")
	case to == metal3.StatePreparing && h.InspectionDisabled() && (from == metal3.StateRegistering || from == metal3.StateInspecting):
		l.add("InspectionSkipped", "disabled by user")
	}
	switch to {
	case metal3.StateUnmanaged:
		l.add("Discovered", "Discovered host with no BMC details")
	case metal3.StateInspecting:
		l.add("InspectionStarted", "Hardware inspection started")
	case metal3.StateProvisioning:
		l.add("ProvisioningStarted", "Image provisioning started for "+image)
	case metal3.StateDeprovisioning:
		l.add("DeprovisioningStarted", "Image deprovisioning started")
	}
}

// publish publishes the events, see package events.
func (r *Reconciler) publish(ctx context.Context, h *metal3.BareMetalHost, l eventList) {
	for _, e := range l {
		r.events.Publish(ctx, h.NewEvent(e.reason, e.message))
	}
}

// warn publishes an event of the type Warning: the user may want to act.
func (r *Reconciler) warn(ctx context.Context, h *metal3.BareMetalHost, reason, message string) {
	ev := h.NewEvent(reason, message)
	ev.Type = corev1.EventTypeWarning
	r.events.Publish(ctx, ev)
}
