package host

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host/phase"
)

// Server is the host that a Part is asked about.
type Server struct {
	Host   *metal3.BareMetalHost
	Client bmc.Client
	System bmc.System // as it stands in this pass
}

// Part is one part of what a host is prepared with beside its image: its RAID,
// its BIOS settings, its firmware (B-52). It owns the objects that ask for it
// and the verbs of the BMC that bring it about; when its turn comes and what
// state the host is in meanwhile is phase's.
//
// Whatever a Part must know after a restart of the controller it keeps in the
// host's status, in an object of its own or on the BMC: none of its memory may
// decide what is done to a server.
type Part interface {
	// Name is what messages call it, as in "RAID".
	Name() string
	// Look tells how the part stands. It changes nothing. In the state
	// preparing it believes the server rather than the status; a host that is
	// available is compared with the status alone, or seldom with the server,
	// as every host is looked at every minute. Its error is one that passes by
	// itself (B-14); what shall be recorded for the user is PartFailed.
	Look(ctx context.Context, s Server) (phase.PartState, string, error)
	// Begin records in the host's status, which is written before Carry is
	// called for the first time, what the part is about to do. It begins every
	// attempt: a part that had failed is not any more.
	Begin(h *metal3.BareMetalHost)
	// Carry takes the next step, and returns without waiting for its end. It
	// may be repeated without harm.
	Carry(ctx context.Context, s Server) error
	// Forget takes back from the host's status what Begin recorded, so that all
	// of it is done anew (B-53).
	Forget(h *metal3.BareMetalHost)
}

// prepares are the states that look at the parts.
var prepares = map[phase.State]bool{
	metal3.StatePreparing: true, metal3.StateAvailable: true, metal3.StateReady: true,
}

// observeParts finds the first part that is not settled. Those behind it wait:
// a volume has to be there before the firmware of its controller restarts it.
func (r *Reconciler) observeParts(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if !prepares[o.facts.State] {
		return nil
	}
	for _, p := range r.Parts {
		state, why, err := p.Look(ctx, Server{h, o.client, o.system})
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name(), err)
		}
		if state == phase.PartSettled {
			continue
		}
		o.part, o.facts.Part = p, phase.Part{Name: p.Name(), State: state, Error: why}
		return nil
	}
	return nil
}

func (r *Reconciler) carryPart(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if err := o.part.Carry(ctx, Server{h, o.client, o.system}); err != nil {
		return fmt.Errorf("%s: %w", o.part.Name(), err)
	}
	return nil
}
