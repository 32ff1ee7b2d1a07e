package host

import (
	"context"
	"fmt"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host/phase"
)

// defaultLimit is upstream's PROVISIONING_LIMIT where nobody sets it (B-73).
const defaultLimit = 20

// byServed indexes the hosts that are being served by the network: inspected,
// provisioned or deprovisioned with an agent that came over it.
const byServed = "served"

// served is the value of a host in that index.
func served(h *metal3.BareMetalHost) string {
	if phase.Serves(h.Status.Provisioning.State) && byNetwork(h) && h.Status.OperationalStatus != metal3.OperationalStatusDetached {
		return "network"
	}
	return ""
}

// byNetwork says whether a host loads its agent from the provisioning network,
// which is what places are limited for. One that cannot be told boots nothing.
func byNetwork(h *metal3.BareMetalHost) bool {
	a, err := bmc.ParseAddress(h.Spec.BMC.Address)
	return err == nil && a.Boot == bmc.MediumPXE
}

// slots are the places of hosts that boot by the network. The cached objects
// say who has one; what they do not say yet, or cannot say, is kept here. A
// controller that was restarted takes every host in such a state for one that
// has a place.
type slots struct {
	limit int // negative is none

	mu      sync.Mutex
	granted map[types.UID]bool // the cache does not show it yet
	resting map[types.UID]bool // in such a state, but waiting after a failure
}

func newSlots(limit int) slots {
	return slots{limit: limit, granted: map[types.UID]bool{}, resting: map[types.UID]bool{}}
}

// take gives the host a place, if it has not got one and there is one. serving
// are the hosts in a state that needs one.
func (s *slots) take(uid types.UID, serving []types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := map[types.UID]bool{}
	for _, other := range serving {
		delete(s.granted, other)
		taken[other] = !s.resting[other]
	}
	for other := range s.granted { // into a set: the order is not seen
		taken[other] = true
	}
	n := 0
	for _, is := range taken {
		if is {
			n++
		}
	}
	if !taken[uid] && n >= s.limit {
		return false
	}
	delete(s.resting, uid)
	s.granted[uid] = true
	return true
}

// leave gives back what a host holds: it is in another state now.
func (s *slots) leave(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.granted, uid)
	delete(s.resting, uid)
}

// rest gives the place back until the host tries again.
func (s *slots) rest(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.granted, uid)
	s.resting[uid] = true
}

func (s *slots) rests(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resting[uid]
}

// full asks for a place, and says whether there is none. Only hosts that boot by
// the network need one.
func (r *Reconciler) full(ctx context.Context, h *metal3.BareMetalHost) (bool, error) {
	if r.slots.limit < 0 || !byNetwork(h) {
		return false, nil
	}
	var l metal3.BareMetalHostList
	if err := r.Client.List(ctx, &l, client.MatchingFields{byServed: "network"}); err != nil {
		return false, fmt.Errorf("hosts that are served: %w", err)
	}
	serving := make([]types.UID, 0, len(l.Items))
	for i := range l.Items {
		serving = append(serving, l.Items[i].UID)
	}
	return !r.slots.take(h.UID, serving), nil
}

// settleSlot keeps the book of places, once a decision is recorded. A BMC that
// cannot be worked with does not stop what its server does.
func (r *Reconciler) settleSlot(h *metal3.BareMetalHost, d phase.Decision) {
	switch serves := phase.Serves(h.Status.Provisioning.State); {
	case !serves, d.Do == phase.Detach:
		r.slots.leave(h.UID)
	case d.Fail != "" && d.Fail != metal3.RegistrationError:
		r.slots.rest(h.UID)
	}
}
