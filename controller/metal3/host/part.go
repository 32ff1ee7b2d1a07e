package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// Server is the host that a Part works on.
type Server struct {
	Host   *metal3.BareMetalHost
	Client bmc.Client
	System bmc.System // the state in this pass
	Now    time.Time  // wall time

	// For a part that is InBand: the boot in which it runs, the state of the agent
	// and its jobs, and a function to offer another job.
	Boot  inband.Boot
	Agent inband.Status
	Offer func(job.Job) error
}

// JobID returns the ID of a job of the server's boot.
func (s Server) JobID(what string) string { return jobID(s.Boot, what) }

// Part is one part of a host's preparation: RAID, BIOS settings or firmware (B-52).
// It reads the objects that specify it and calls the BMC methods that apply it;
// package phase decides when it runs and which state the host is in.
//
// A Part stores the state that it needs after a restart of the controller in the
// host's status, in a separate object or on the BMC. State that it only holds in
// memory must not decide which change is made to a server.
type Part interface {
	// Name returns the name for messages, such as "RAID".
	Name() string
	// Observe returns the state of the part, and the reason if it is PartFailed or
	// PartImpossible.
	// It changes nothing. In state preparing it reads the server; a host that is
	// available is compared with the status, and only seldom with the server,
	// because every host is observed every minute. An error is temporary (B-14);
	// failures for the user are PartFailed, or PartImpossible if no attempt can
	// succeed until the specification or the server changes.
	Observe(ctx context.Context, s Server) (phase.PartState, string, error)
	// Begin records in the host's status the change that the part makes. The status
	// is written before the first Step. Begin starts every attempt and ends the
	// failed state of the part.
	Begin(h *metal3.BareMetalHost)
	// Step takes the next step and returns without waiting for its end. It can be
	// repeated safely.
	Step(ctx context.Context, s Server) error
	// Reset removes from the host's status what Begin recorded, so that everything
	// is done again (B-53).
	Reset(h *metal3.BareMetalHost)
}

// InBand is a Part that needs the agent for some hosts. State preparing boots the
// agent for them: see currentBoot.
type InBand interface {
	Part
	// InBand reports whether the agent has work to do, by the host's status.
	InBand(h *metal3.BareMetalHost) bool
}

// Forgetter is a Part that remembers something of hosts between two passes.
type Forgetter interface {
	Part
	// Forget drops what the part remembers of a host that is detached or deleted.
	Forget(uid types.UID)
}

// RootProvider is a Part that may create the root device. It is asked for the root
// device if there are no hints.
type RootProvider interface {
	Part
	// HasRoot reports whether the part has created the host's root device, by the
	// host's status.
	HasRoot(h *metal3.BareMetalHost) bool
	// Root returns how the agent finds the root device.
	Root(ctx context.Context, s Server) (Root, error)
}

// Root identifies a root device: an array of software RAID by name, or a disk by
// hints.
type Root struct {
	Hints job.Hints
	Array string
}

// rootProvider returns the part that has created a host's root device; nil if none
// has or if hints choose it (B-163).
func (r *Reconciler) rootProvider(h *metal3.BareMetalHost) RootProvider {
	if h.Spec.RootDeviceHints != nil {
		return nil
	}
	for _, p := range r.Parts {
		if x, ok := p.(RootProvider); ok && x.HasRoot(h) {
			return x
		}
	}
	return nil
}

// server returns the argument for a Part in this pass.
func (r *Reconciler) server(h *metal3.BareMetalHost, o *observation) Server {
	return Server{
		Host: h, Client: o.client, System: o.system, Now: r.Wall.Now(), Boot: o.boot, Agent: o.agent,
		Offer: func(j job.Job) error { return r.offer(h, o, j) },
	}
}

// softRAID reports whether the status has software RAID volumes, and whether it
// has a list of them. An empty list means that the volumes are to be deleted.
func softRAID(h *metal3.BareMetalHost) (some, listed bool) {
	raid := h.Status.Provisioning.RAID
	if raid == nil {
		return false, false
	}
	return len(raid.SoftwareRAIDVolumes) > 0, raid.SoftwareRAIDVolumes != nil
}

// preparingBoot identifies the boot of the agent for preparing, for which the
// status has no operation: by the RAID, by the number of failures and by the
// operations before.
func preparingBoot(h *metal3.BareMetalHost) inband.Boot {
	if _, listed := softRAID(h); !listed {
		return inband.Boot{}
	}
	raid, err := json.Marshal(h.Status.Provisioning.RAID)
	if err != nil {
		panic(err) // the value was decoded from JSON
	}
	history := h.Status.OperationHistory
	return inband.Boot{Host: string(h.UID), ID: "preparing-" + inband.Digest("preparing", string(raid), strconv.Itoa(h.Status.ErrorCount),
		strconv.FormatInt(history.Inspect.Start.Unix(), 10), strconv.FormatInt(history.Deprovision.Start.Unix(), 10))}
}

// Servicer is a Part that can also run on a host in use, while that is powered on
// (B-220).
type Servicer interface {
	Part
	// Due reports whether the host's HostUpdatePolicy asks for that.
	Due(ctx context.Context, h *metal3.BareMetalHost) (bool, error)
}

// Connect returns a client for a host's BMC with the host's credentials, for other
// controllers of its hardware.
func (r *Reconciler) Connect(ctx context.Context, h *metal3.BareMetalHost) (bmc.Client, error) {
	c, err := r.credentials(ctx, h, new(observation))
	if err != nil {
		return nil, err
	}
	return r.BMCs.Get(ctx, c)
}

// partStates lists the states in which the parts are observed.
var partStates = map[phase.State]bool{
	metal3.StatePreparing: true, metal3.StateAvailable: true, metal3.StateReady: true,
}

// observeParts finds the first part that is not settled. Later parts wait: a
// volume has to exist before a firmware update restarts its controller.
func (r *Reconciler) observeParts(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	services := serviced(h, o)
	o.facts.Servicing = services && (h.Status.OperationalStatus == metal3.OperationalStatusServicing || h.Status.ErrorType == metal3.ServicingError)
	if !partStates[o.facts.State] && !services {
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
		state, why, err := p.Observe(ctx, r.server(h, o))
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

// serviced reports whether the parts of a host in use are observed: while it is
// off and about to be powered on, and until the servicing has ended.
func serviced(h *metal3.BareMetalHost, o *observation) bool {
	f := &o.facts
	if f.State != metal3.StateProvisioned && f.State != metal3.StateExternallyProvisioned {
		return false
	}
	return f.Online && f.Power == bmc.Off || h.Status.OperationalStatus == metal3.OperationalStatusServicing || h.Status.ErrorType == metal3.ServicingError
}

func (r *Reconciler) stepPart(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if err := o.part.Step(ctx, r.server(h, o)); err != nil {
		return fmt.Errorf("%s: %w", o.part.Name(), err)
	}
	return nil
}
