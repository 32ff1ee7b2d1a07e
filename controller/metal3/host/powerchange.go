package host

import (
	"context"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// silentWait is how long a BMC may be silent before its host shows an error.
// Until then the passes are repeated (B-14).
const silentWait = 5 * time.Minute

// powerChange is a change of power that a BMC was asked for.
type powerChange struct {
	target bmc.Power // On or Off
	first  time.Time // time of the first request
	latest time.Time // time of the latest one: every pass repeats the request
}

// requestPower records that a change of power was requested, and reports whether
// that was the first request for it.
func (r *Reconciler) requestPower(uid types.UID, p bmc.Power) (first bool) {
	now := r.Clock.Now()
	r.memory.update(uid, func(h *hostMemory) {
		first = h.power == nil || h.power.target != p
		began := now
		if !first {
			began = h.power.first
		}
		h.power = &powerChange{target: p, first: began, latest: now}
	})
	return first
}

// powerFailed ends the wait for a change of power, so that the next attempt has
// the full time again.
func (r *Reconciler) powerFailed(uid types.UID) {
	r.memory.update(uid, func(h *hostMemory) { h.power = nil })
}

// powerTargets maps the states of a power change to the state that it ends in.
var powerTargets = map[bmc.Power]bmc.Power{bmc.PoweringOn: bmc.On, bmc.PoweringOff: bmc.Off}

// observePower sets how long a change of power has been in progress. A request
// that no pass repeats counts as withdrawn after silentWait.
func (r *Reconciler) observePower(uid types.UID, f *phase.Facts) {
	now := r.Clock.Now()
	r.memory.update(uid, func(h *hostMemory) {
		target := powerTargets[f.Power]
		var c powerChange
		switch {
		case target != "" && (h.power == nil || h.power.target != target): // requested by another client
			c = powerChange{target: target, first: now}
		case h.power == nil:
			return
		case f.Power == h.power.target, target == "" && now.Sub(h.power.latest) > silentWait:
			h.power = nil
			return
		default:
			c = *h.power
		}
		if target != "" {
			c.latest = now
		}
		h.power = &c
		f.PowerAsked = now.Sub(c.first)
	})
}

// restartReason identifies the system into which a server is restarted: the agent of
// a boot, or the system that the agent has installed.
func restartReason(o *observation) string {
	if o.facts.OpEnded {
		return o.boot.ID + " ended"
	}
	return o.boot.ID
}

func (r *Reconciler) observeRestart(uid types.UID, o *observation) {
	o.facts.Restarted = o.boot.ID != "" && r.memory.get(uid).restartedFor == restartReason(o)
}

// restartBoot restarts a server that must stay on, for the next step of its
// operation (B-125).
func (r *Reconciler) restartBoot(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if err := o.client.SetPower(ctx, bmc.PowerReset); err != nil {
		return fmt.Errorf("Reboot operation failed: %w", err) // as the other power operations (B-124)
	}
	r.memory.update(h.UID, func(m *hostMemory) { m.restartedFor = restartReason(o) })
	return nil
}
