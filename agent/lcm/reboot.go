package lcm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/agent/broker"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// rebootTimeout is how long a server may take to go down before the agent asks again.
const rebootTimeout = 10 * time.Minute

// rebootStatus sets what follows from the present boot: a reboot that the agent has asked
// for in an earlier boot is completed. The status of a reboot is removed when none is
// demanded any more.
func (a *agent) rebootStatus(m *lcmv1.LCMMachine, next *lcmv1.LCMMachineStatus) {
	switch r := next.Reboot; {
	case !m.Spec.RebootRequired:
		// While the annotation is there, its writer has not seen the reboot completed.
		if m.Annotations[item.GracefulRebootAnnotation] != "true" {
			next.Reboot = nil
		}
	case a.state.RebootFrom != "" && a.state.RebootFrom != a.boot.ID:
		if r == nil {
			next.Reboot = &lcmv1.RebootStatus{}
		}
		next.Reboot.Completed, next.Reboot.ErrorMessage = true, ""
	}
}

// reboot reboots the server when the object demands it and all items are done. Cordon and
// drain come before: the LCM controller demands the reboot after them. It returns when to
// look again.
func (a *agent) reboot(ctx context.Context, m *lcmv1.LCMMachine, wait time.Duration) (time.Duration, error) {
	if item.ComputeState(m) != lcmv1.StateReboot {
		return wait, nil
	}
	next := m.Status.DeepCopy()
	if next.Reboot == nil {
		next.Reboot = &lcmv1.RebootStatus{}
	}
	r := next.Reboot
	asked := a.state.RebootFrom == a.boot.ID && r.RequestedAt != nil
	if since := time.Duration(0); asked {
		if since = a.Clock.Now().Sub(r.RequestedAt.Time); since >= 0 && since < rebootTimeout {
			return min(wait, rebootTimeout-since), nil
		}
		r.ErrorMessage = fmt.Sprintf("the server has not rebooted within %s", rebootTimeout)
	}
	r.RequestedAt = a.now()
	// The ID of this boot is stored before the reboot: the next boot is recognized by another
	// ID.
	if err := a.change(func(s *state) { s.RebootFrom = a.boot.ID }); err != nil {
		r.ErrorMessage = err.Error()
		_, werr := a.writeReboot(ctx, m, next)
		return 0, errors.Join(err, werr)
	}
	m, err := a.writeReboot(ctx, m, next)
	if err != nil {
		return 0, err
	}
	a.Log.Info("the server reboots", "reason", "spec.rebootRequired")
	if err := a.Broker.Reboot(ctx, broker.Operation{Family: broker.LCM, Name: "reboot that spec.rebootRequired demands"}); err != nil {
		r.ErrorMessage = err.Error() // also which operation the reboot waits for
		_, err = a.writeReboot(ctx, m, next)
		return min(wait, rebootTimeout), err
	}
	return wait, nil
}

// writeReboot writes the status of the reboot, and returns the object with it.
func (a *agent) writeReboot(ctx context.Context, m *lcmv1.LCMMachine, next *lcmv1.LCMMachineStatus) (*lcmv1.LCMMachine, error) {
	patch, err := statusPatch(m.Status, *next)
	if err != nil {
		return nil, fmt.Errorf("lcm: reboot: %w", err)
	}
	if m, err = a.api.patchStatus(ctx, patch, ""); err != nil {
		return nil, fmt.Errorf("lcm: reboot: %w", err)
	}
	return m, nil
}
