package reboot

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// component is the source of the Events.
const component = "gracefulrebootrequest"

// publish publishes what has changed in the status of a request: the machines whose reboot has
// begun or is completed, what the request waits for, and its end.
func (r *Requests) publish(ctx context.Context, f facts, before kaasv1.GracefulRebootRequestStatus) {
	event := func(kind, reason, message string) { r.events.About(ctx, component, f.request, kind, reason, message) }
	s := f.request.Status
	for _, m := range s.Machines {
		i := slices.IndexFunc(before.Machines, func(b kaasv1.MachineReboot) bool { return b.Name == m.Name })
		if i < 0 {
			event(corev1.EventTypeNormal, "RebootStarted", "the reboot of Machine "+m.Name+" has begun")
		}
		if m.State == kaasv1.RebootCompleted && (i < 0 || before.Machines[i].State != kaasv1.RebootCompleted) {
			event(corev1.EventTypeNormal, "RebootCompleted", "the reboot of Machine "+m.Name+" is completed")
		}
	}
	if s.Message != before.Message && s.Message != "" {
		kind, reason := corev1.EventTypeNormal, "Waiting"
		if f.blocked() {
			kind, reason = corev1.EventTypeWarning, "Blocked"
		}
		event(kind, reason, s.Message)
	}
	if s.State == kaasv1.RebootCompleted && before.State != kaasv1.RebootCompleted {
		event(corev1.EventTypeNormal, "Completed", "all machines of the request are rebooted")
	}
}

// blocked reports whether an application, a pod or an agent keeps a machine of the request from its
// reboot.
func (f facts) blocked() bool {
	return slices.ContainsFunc(f.request.Status.Machines, func(m kaasv1.MachineReboot) bool {
		return m.State == kaasv1.RebootInProgress && slices.ContainsFunc(f.all, func(t target) bool {
			return t.machine.Name == m.Name && t.lcm != nil && blocked(t.lcm) != ""
		})
	})
}
