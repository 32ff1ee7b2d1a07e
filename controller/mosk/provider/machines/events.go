package machines

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// component is the source of the Events.
const component = "machine"

// publish publishes what a pass has changed in the status of a Machine: its step, what it waits
// for, and what has failed. before is nil when there was no status.
func (r *Reconciler) publish(ctx context.Context, f *facts, before *baremetalv1.MachineProviderStatus) {
	if before == nil {
		before = &baremetalv1.MachineProviderStatus{}
	}
	p := f.machine.Status.ProviderStatus
	event := func(kind, reason, message string) { r.events.About(ctx, component, f.machine, kind, reason, message) }
	if p.Status != before.Status {
		message := "the status is " + p.Status
		if before.Status != "" {
			message += ", it was " + before.Status
		}
		event(corev1.EventTypeNormal, p.Status, message)
	}
	for _, c := range baremetalv1.Changed(before.Conditions, p.Conditions) {
		switch {
		case c.Became():
			event(corev1.EventTypeNormal, c.After.Type+"Ready", "the condition "+c.After.Type+" is ready")
		case c.After.Ready || c.After.Message == "":
		case failed(f, c):
			event(corev1.EventTypeWarning, c.After.Type+"Failed", c.After.Message)
		case c.After.Type != baremetalv1.ConditionLCM: // else the status says it
			event(corev1.EventTypeNormal, c.After.Type+"NotReady", c.After.Message)
		}
	}
	if r := p.Reboot; r != nil && r.Required && before.Reboot == nil {
		event(corev1.EventTypeNormal, "RebootRequired", fmt.Sprintf("the operating system asks for a reboot: %s", r.Reason))
	}
}

// failed reports whether a condition that is not ready is the work of a failure, rather than of a
// step that takes its time.
func failed(f *facts, c baremetalv1.ConditionChange) bool {
	switch c.After.Type {
	case baremetalv1.ConditionLCM:
		return failing(f.lcm)
	case baremetalv1.ConditionPrepareDeletion:
		return f.lcm != nil && f.lcm.Status.PrepareDeletionPhase == lcmv1.DeletionFailed
	case baremetalv1.ConditionMaintenance:
		return f.lcm.Status.KubernetesCordonDrainError != ""
	case baremetalv1.ConditionReboot:
		return f.lcm.Status.Reboot != nil && f.lcm.Status.Reboot.ErrorMessage != ""
	case baremetalv1.ConditionGracefulReboot:
		return false
	case baremetalv1.ConditionKubelet: // the node of a server that is rebooted is not Ready for a while
		return !item.GracefulRebootBegun(f.lcm) && !f.lcm.Spec.RebootRequired
	case baremetalv1.ConditionProviderInstance:
		mistakes := []string{f.problem, f.profile.problem, f.userDataProblem, f.unconnected}
		return c.Lost() && f.machine.DeletionTimestamp.IsZero() || f.host != nil && f.host.Status.ErrorMessage != "" || slices.Contains(mistakes, c.After.Message)
	}
	return true
}
