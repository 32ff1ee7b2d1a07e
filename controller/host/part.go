package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host/phase"
	"github.com/metalab-dev/metalab/controller/inband"
)

// Server is the host that a Part is asked about.
type Server struct {
	Host   *metal3.BareMetalHost
	Client bmc.Client
	System bmc.System // as it stands in this pass
	Now    time.Time  // as Kubernetes has it

	// Of the agent, for a part that is InBand: the boot that it is to run in,
	// how that and its jobs stand, and how it is given another.
	Boot  inband.Boot
	Agent inband.Status
	Offer func(job.Job) error
}

// JobID names a job of the server's boot.
func (s Server) JobID(what string) string { return jobID(s.Boot, what) }

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

// InBand is a Part that needs the agent for some hosts. Preparing boots it for
// them: see currentBoot.
type InBand interface {
	Part
	// InBand says whether the agent has work to do, as the host's status tells.
	InBand(h *metal3.BareMetalHost) bool
}

// Rooter is a Part that may make the root device, and then is asked for it
// where there are no hints.
type Rooter interface {
	Part
	// HasRoot says whether it has made the host's root device, as the host's
	// status tells.
	HasRoot(h *metal3.BareMetalHost) bool
	// Root tells how the agent finds it.
	Root(ctx context.Context, s Server) (Root, error)
}

// Root is a root device: software RAID by its name, or what matches the hints.
type Root struct {
	Hints job.Hints
	Array string
}

// rooter is the part that has made a host's root device; nil when none has or
// hints choose it (B-163).
func (r *Reconciler) rooter(h *metal3.BareMetalHost) Rooter {
	if h.Spec.RootDeviceHints != nil {
		return nil
	}
	for _, p := range r.Parts {
		if x, ok := p.(Rooter); ok && x.HasRoot(h) {
			return x
		}
	}
	return nil
}

// server is what a Part is told in this pass.
func (r *Reconciler) server(h *metal3.BareMetalHost, o *observation) Server {
	return Server{
		Host: h, Client: o.client, System: o.system, Now: r.Wall.Now(), Boot: o.boot, Agent: o.agent,
		Offer: func(j job.Job) error { return r.Inband.Offer(o.boot, j) },
	}
}

// softRAID says whether the status tells of software RAID: some that was made,
// or with none in the list, some that is to be deleted.
func softRAID(h *metal3.BareMetalHost) (some, told bool) {
	raid := h.Status.Provisioning.RAID
	if raid == nil {
		return false, false
	}
	return len(raid.SoftwareRAIDVolumes) > 0, raid.SoftwareRAIDVolumes != nil
}

// preparingBoot names the boot of the agent for preparing, of which the status
// has no operation: by what the host is prepared with, by how often that has
// failed, and by what went before.
func preparingBoot(h *metal3.BareMetalHost) inband.Boot {
	if _, told := softRAID(h); !told {
		return inband.Boot{}
	}
	raid, err := json.Marshal(h.Status.Provisioning.RAID)
	if err != nil {
		panic(err) // it came as JSON
	}
	history := h.Status.OperationHistory
	return inband.Boot{Host: string(h.UID), ID: "preparing-" + inband.Digest("preparing", string(raid), strconv.Itoa(h.Status.ErrorCount),
		strconv.FormatInt(history.Inspect.Start.Unix(), 10), strconv.FormatInt(history.Deprovision.Start.Unix(), 10))}
}

// Servicer is a Part that can also be carried out on a host that is in use, while
// that is being powered on (B-220).
type Servicer interface {
	Part
	// Due says whether the host's HostUpdatePolicy wants that.
	Due(ctx context.Context, h *metal3.BareMetalHost) (bool, error)
}

// Connect connects to a host's BMC with the host's credentials, for whoever else
// looks after its hardware.
func (r *Reconciler) Connect(ctx context.Context, h *metal3.BareMetalHost) (bmc.Client, error) {
	c, err := r.credentials(ctx, h, new(observation))
	if err != nil {
		return nil, err
	}
	return r.BMCs.Get(ctx, c)
}

// prepares are the states that look at the parts.
var prepares = map[phase.State]bool{
	metal3.StatePreparing: true, metal3.StateAvailable: true, metal3.StateReady: true,
}

// observeParts finds the first part that is not settled. Those behind it wait:
// a volume has to be there before the firmware of its controller restarts it.
func (r *Reconciler) observeParts(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	services := serviced(h, o)
	o.facts.Servicing = services && (h.Status.OperationalStatus == metal3.OperationalStatusServicing || h.Status.ErrorType == metal3.ServicingError)
	if !prepares[o.facts.State] && !services {
		return nil
	}
	for _, p := range r.Parts {
		if services {
			s, can := p.(Servicer)
			if !can {
				continue
			}
			if due, err := s.Due(ctx, h); err != nil || !due {
				if err != nil {
					return fmt.Errorf("%s: %w", p.Name(), err)
				}
				continue
			}
		}
		state, why, err := p.Look(ctx, r.server(h, o))
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name(), err)
		}
		if state == phase.PartSettled {
			continue
		}
		o.part, o.facts.Part = p, phase.Part{Name: p.Name(), State: state, Error: why}
		if x, ok := p.(InBand); ok {
			o.facts.Part.Agent = x.InBand(h)
		}
		return nil
	}
	return nil
}

// serviced says whether a host in use is looked at for what it is to be serviced
// with: while it is off and shall be on, and until that has come to its end.
func serviced(h *metal3.BareMetalHost, o *observation) bool {
	f := &o.facts
	if f.State != metal3.StateProvisioned && f.State != metal3.StateExternallyProvisioned {
		return false
	}
	return f.Online && f.Power == bmc.Off || h.Status.OperationalStatus == metal3.OperationalStatusServicing || h.Status.ErrorType == metal3.ServicingError
}

func (r *Reconciler) carryPart(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if err := o.part.Carry(ctx, r.server(h, o)); err != nil {
		return fmt.Errorf("%s: %w", o.part.Name(), err)
	}
	return nil
}
