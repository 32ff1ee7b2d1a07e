package host

import (
	"context"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host/phase"
)

// silentWait is for how long a BMC may not answer before that is told as an
// error of its host. Until then it passes by itself (B-14).
const silentWait = 5 * time.Minute

// askedPower is a change of power that a BMC was asked for.
type askedPower struct {
	power  bmc.Power // that it shall end in
	first  time.Time
	latest time.Time // it is asked for again with every pass
}

// waits are what the reconciler waits for, since when, by host. They are
// guarded by its lock, and a controller that was restarted waits anew.
type waits struct {
	power  map[types.UID]askedPower
	silent map[types.UID]time.Time
	data   map[types.UID]retry // of a data image that failed
	// restarts tell what a server that must never be off was restarted for last.
	restarts map[types.UID]string
	readings map[types.UID]reading // while the agent is waited for
}

func newWaits() waits {
	return waits{power: map[types.UID]askedPower{}, silent: map[types.UID]time.Time{}, data: map[types.UID]retry{}, restarts: map[types.UID]string{}, readings: map[types.UID]reading{}}
}

// silence is how long a BMC has not answered.
func (r *Reconciler) silence(uid types.UID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.waits.silent[uid]
	if !ok {
		since = r.Clock.Now()
		r.waits.silent[uid] = since
	}
	return r.Clock.Since(since)
}

func (r *Reconciler) heard(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits.silent, uid)
}

// askPower notes that a change of power was asked for, and says whether it is
// for the first time.
func (r *Reconciler) askPower(uid types.UID, p bmc.Power) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	w, ok := r.waits.power[uid]
	first = !ok || w.power != p
	if first {
		w = askedPower{power: p, first: now}
	}
	w.latest = now
	r.waits.power[uid] = w
	return first
}

// powerFailed ends the wait for a change of power: the next attempt has all of
// the time again.
func (r *Reconciler) powerFailed(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits.power, uid)
}

// goals are what power ends in by itself.
var goals = map[bmc.Power]bmc.Power{bmc.PoweringOn: bmc.On, bmc.PoweringOff: bmc.Off}

// observePower works out how long a change of power has been under way. One
// that nobody has asked for again has been given up.
func (r *Reconciler) observePower(uid types.UID, f *phase.Facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	w, ok := r.waits.power[uid]
	goal := goals[f.Power]
	switch {
	case goal != "" && (!ok || w.power != goal): // somebody else's change
		w = askedPower{power: goal, first: now}
	case !ok:
		return
	case f.Power == w.power, goal == "" && now.Sub(w.latest) > silentWait:
		delete(r.waits.power, uid)
		return
	}
	if goal != "" {
		w.latest = now
	}
	r.waits.power[uid] = w
	f.PowerAsked = now.Sub(w.first)
}

// purpose names what a server is restarted for: the agent of a boot, or what
// comes after its work.
func purpose(o *observation) string {
	if o.facts.OpEnded {
		return o.boot.ID + " ended"
	}
	return o.boot.ID
}

func (r *Reconciler) observeRestart(uid types.UID, o *observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.facts.Restarted = o.boot.ID != "" && r.waits.restarts[uid] == purpose(o)
}

// restartBoot restarts a server that must never be off for what its operation
// needs (B-125).
func (r *Reconciler) restartBoot(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if err := o.client.SetPower(ctx, bmc.PowerReset); err != nil {
		return fmt.Errorf("Reboot operation failed: %w", err) //nolint:staticcheck // as the other power operations (B-124)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits.restarts[h.UID] = purpose(o)
	return nil
}
