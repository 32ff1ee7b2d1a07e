package host

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// defaultLimit is the default of upstream's PROVISIONING_LIMIT (B-73).
const defaultLimit = 20

// indexServed indexes the hosts that are served over the network: inspected,
// provisioned or deprovisioned with an agent that was booted over it.
const indexServed = "served"

// served returns the value of a host in that index.
func served(h *metal3.BareMetalHost) string {
	if phase.Serves(h.Status.Provisioning.State) && byNetwork(h) && h.Status.OperationalStatus != metal3.OperationalStatusDetached {
		return "network"
	}
	return ""
}

// byNetwork reports whether a host boots its agent over the provisioning network.
// Only these hosts need a slot. A host with an invalid address boots nothing.
func byNetwork(h *metal3.BareMetalHost) bool {
	a, err := bmc.ParseAddress(h.Spec.BMC.Address)
	return err == nil && a.Boot == bmc.MediumPXE
}

// slotState is the state of a host's slot where the cached objects do not show it,
// or do not show it yet. The other slots follow from the states of the hosts: after
// a restart every host in a served state counts as one that has a slot.
type slotState int

const (
	slotAsCached slotState = iota
	slotGranted            // the host has a slot and the cache does not show its state yet
	slotResting            // the host is in a served state, but waits after a failure without a slot
)

// takeSlot gives a host a slot unless all are taken. It returns false if they
// are. serving lists the hosts that the cache shows in a served state.
func (m *memories) takeSlot(uid types.UID, serving []types.UID, limit int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := map[types.UID]bool{}
	for _, other := range serving {
		taken[other] = m.hosts[other].slot != slotResting
		if m.hosts[other].slot == slotGranted {
			m.set(other, func(h *hostMemory) { h.slot = slotAsCached })
		}
	}
	for other, h := range m.hosts { // into a set: independent of the order
		if h.slot == slotGranted {
			taken[other] = true
		}
	}
	n := 0
	for _, inUse := range taken {
		if inUse {
			n++
		}
	}
	if !taken[uid] && n >= limit {
		return false
	}
	m.set(uid, func(h *hostMemory) { h.slot = slotGranted })
	return true
}

// leaveSlot gives a host's slot back: the host is in another state now.
func (m *memories) leaveSlot(uid types.UID) {
	m.update(uid, func(h *hostMemory) { h.slot = slotAsCached })
}

// restSlot gives a host's slot back until the host's next attempt.
func (m *memories) restSlot(uid types.UID) {
	m.update(uid, func(h *hostMemory) { h.slot = slotResting })
}

// resting reports whether a host waits after a failure without a slot.
func (m *memories) resting(uid types.UID) bool { return m.get(uid).slot == slotResting }

// slotsFull takes a slot for a host that needs one, and reports whether there was
// none.
func (r *Reconciler) slotsFull(ctx context.Context, h *metal3.BareMetalHost) (bool, error) {
	if r.Limit < 0 || !byNetwork(h) {
		return false, nil
	}
	var l metal3.BareMetalHostList
	if err := r.Client.List(ctx, &l, client.MatchingFields{indexServed: "network"}); err != nil {
		return false, fmt.Errorf("hosts that are served: %w", err)
	}
	serving := make([]types.UID, 0, len(l.Items))
	for i := range l.Items {
		serving = append(serving, l.Items[i].UID)
	}
	return !r.memory.takeSlot(h.UID, serving, r.Limit), nil
}

// updateSlot gives slots back after a decision is recorded. A registration error
// does not free a slot: the server goes on without its BMC.
func (r *Reconciler) updateSlot(h *metal3.BareMetalHost, d phase.Decision) {
	switch serves := phase.Serves(h.Status.Provisioning.State); {
	case !serves, d.Do == phase.Detach:
		r.memory.leaveSlot(h.UID)
	case d.Fail != "" && d.Fail != metal3.RegistrationError:
		r.memory.restSlot(h.UID)
	}
}
