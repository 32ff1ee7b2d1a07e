package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host/phase"
)

// record writes what was decided into the status, in one write and only if
// something changed, then publishes the events of it. It returns when to look
// again.
func (r *Reconciler) record(ctx context.Context, h *metal3.BareMetalHost, o *observation, d phase.Decision) (time.Duration, error) {
	before := h.Status.DeepCopy()
	var events eventList
	if err := r.recordCredentials(ctx, h, o, &events); err != nil {
		return 0, err
	}
	after := d.After
	if h.Status.OperationalStatus == metal3.OperationalStatusDelayed {
		resume(h)
	}
	switch {
	case d.Fail != "":
		after = r.recordFailure(h, o, d, &events)
	case d.Delay: // B-15, B-73
		h.SetOperationalStatus(metal3.OperationalStatusDelayed)
		after = phase.Backoff(1, r.Chance())
	case d.Clear != "" && (h.Status.ErrorType == d.Clear || d.Moved):
		h.Status.ErrorType, h.Status.ErrorMessage, h.Status.ErrorCount = "", "", 0
		h.SetOperationalStatus(metal3.OperationalStatusOK)
	}
	if o.system.Power != "" && tellsPower(o, d) {
		recordPower(h, o.system.Power)
	}
	switch d.Do {
	case phase.KeepHardware:
		if err := r.keepHardware(ctx, h, o, &events); err != nil {
			return 0, err
		}
	case phase.Detach:
		h.SetOperationalStatus(metal3.OperationalStatusDetached)
		if h.Status.ErrorType == metal3.DetachError { // of a status that was restored (B-81, B-82)
			h.Status.ErrorType, h.Status.ErrorMessage = "", ""
		}
	case phase.Attach:
		resume(h)
	case phase.BeginPart:
		o.part.Begin(h)
		if h.Status.Provisioning.State == metal3.StatePreparing {
			hints, err := rootHints(h)
			if err != nil {
				return 0, err
			}
			h.Status.Provisioning.RootDeviceHints = hints // a part may make the root device (B-163)
		}
		if x, ok := o.part.(InBand); ok && x.InBand(h) && o.facts.Net != bmc.BootNone && o.system.Power != "" {
			recordPower(h, o.system.Power) // what runs now is none of its agents: see tellsPower
		}
		if t := h.Status.ErrorType; t == metal3.PreparationError || t == metal3.ServicingError { // the count stays: this attempt may fail, too (B-82)
			h.Status.ErrorType, h.Status.ErrorMessage = "", ""
			h.SetOperationalStatus(metal3.OperationalStatusOK)
			if t == metal3.ServicingError {
				h.SetOperationalStatus(metal3.OperationalStatusServicing)
			}
		}
	case phase.BeginService: // saved before anything is done (B-220)
		h.SetOperationalStatus(metal3.OperationalStatusServicing)
	case phase.EndService:
		if h.Status.OperationalStatus == metal3.OperationalStatusServicing {
			h.SetOperationalStatus(metal3.OperationalStatusOK)
		}
	case phase.BeginAgain:
		if op := h.OperationMetricForState(h.Status.Provisioning.State); op != nil {
			r.begin(op)
		}
	case phase.SoftOff, phase.PowerOff, phase.Restart:
		for _, key := range o.badAnnotations {
			events.add("InvalidAnnotationValue", "could not parse the value of "+key)
		}
	case phase.EndOperation:
		if op := h.OperationMetricForState(h.Status.Provisioning.State); op != nil {
			op.End = r.now()
		}
		if h.Status.Provisioning.State == metal3.StateProvisioning {
			keepImage(h) // from now on it is on the disk, whatever is asked for next
		}
	}
	if d.Moved {
		if err := r.move(h, o, d.To, &events); err != nil {
			return 0, err
		}
		if after == 0 && d.Do != phase.Release {
			after = requeueNow
		}
	}
	setConditions(h, o.system.Health)
	setWorkaroundsCondition(h, o.client)
	if equality.Semantic.DeepEqual(before, &h.Status) {
		r.publish(ctx, h, events)
		return after, nil
	}
	now := r.now()
	h.Status.LastUpdated = &now
	if err := r.Client.Status().Update(ctx, h); err != nil {
		return 0, fmt.Errorf("record: %w", err)
	}
	r.read.Wrote(h)
	r.closeBoot(h, d)
	r.publish(ctx, h, events)
	return after, nil
}

// resume ends an operational status that stood before the host's own; an error
// that it had before is there again.
func resume(h *metal3.BareMetalHost) {
	h.SetOperationalStatus(metal3.OperationalStatusOK)
	if h.Status.ErrorType != "" {
		h.Status.OperationalStatus = metal3.OperationalStatusError
	}
}

// now is the wall time as Kubernetes stores it.
func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Wall.Now().Truncate(time.Second)) }

// begin stamps the start of an operation. No two runs of an operation have the
// same start, however fast they follow each other: boots are named by it.
func (r *Reconciler) begin(op *metal3.OperationMetric) {
	start := r.now()
	if !op.Start.IsZero() && !start.After(op.Start.Time) {
		start = metav1.NewTime(op.Start.Add(time.Second))
	}
	op.Start, op.End = start, metav1.Time{}
}

// recordFailure counts an error and returns when to try again (B-13).
func (r *Reconciler) recordFailure(h *metal3.BareMetalHost, o *observation, d phase.Decision, events *eventList) time.Duration {
	s := &h.Status
	s.OperationalStatus, s.ErrorType, s.ErrorMessage = metal3.OperationalStatusError, d.Fail, d.Message
	s.ErrorCount++
	if d.Fail == metal3.RegistrationError && ofCredentials(o.unregistered) {
		events.add("BMCCredentialError", d.Message)
	} else {
		events.add(reasons[d.Fail], d.Message)
	}
	r.powerFailed(h.UID)
	if d.Fail == metal3.PreparationError {
		s.Provisioning.RootDeviceHints = nil // all is done anew (B-53)
		if o.part != nil {
			o.part.Forget(h)
		}
	}
	if d.Fail == metal3.ServicingError && o.part != nil {
		o.part.Forget(h)
	}
	if d.Fail != metal3.RegistrationError {
		// Whatever state the failed attempt left the server in, the next one
		// boots an agent of its own. A BMC that cannot be reached for a while
		// must not cost a running agent its work.
		if _, op := currentBoot(h); op != nil && op.End.IsZero() {
			r.begin(op)
		}
	}
	var bad *credentialsError
	switch {
	case d.Fail != metal3.RegistrationError:
	case errors.As(o.unregistered, &bad) && bad.missing:
		return missingSecretWait // B-111: it may be created any moment
	case hopeless(o.unregistered) && h.DeletionTimestamp.IsZero():
		return 0 // B-112: an edit wakes us; a deletion does not wait for one
	}
	return phase.Backoff(s.ErrorCount, r.Chance())
}

const missingSecretWait = 10 * time.Second

// recordCredentials notes the credentials that were used in this pass, and
// whether they worked (B-114).
func (r *Reconciler) recordCredentials(ctx context.Context, h *metal3.BareMetalHost, o *observation, events *eventList) error {
	if o.secret == nil {
		return nil
	}
	again := h.Status.Provisioning.State != metal3.StateRegistering
	register := &h.Status.OperationHistory.Register
	if tried := h.Status.TriedCredentials.Reference; !h.Status.TriedCredentials.Match(*o.secret) {
		o.updated = tried != nil
		if o.updated && tried.Name != o.secret.Name { // nobody would ever let the old one go (B-113)
			if err := r.releaseSecret(ctx, h, tried.Name); err != nil {
				return err
			}
		}
		if o.updated && again { // B-46
			r.begin(register)
		}
		h.UpdateTriedCredentials(*o.secret)
	}
	if o.facts.RegistrationError == "" && o.system.ID != "" && !h.Status.GoodCredentials.Match(*o.secret) {
		h.UpdateGoodCredentials(*o.secret)
		events.add("BMCAccessValidated", "Verified access to BMC")
		if again && !register.Start.IsZero() && register.End.IsZero() {
			register.End, o.renewed = r.now(), true
		}
	}
	return nil
}

// tellsPower: the status tells the power when an operation is over, and not of
// the power cycles that are part of it. Of a host that boots by the network it
// tells what phase needs to know what the host runs: that it was seen off, and
// that it is on when an operation begins or has done its in-band work.
func tellsPower(o *observation, d phase.Decision) bool {
	state := o.facts.State
	_, bootsAgent := inbandStates[state]
	switch {
	case !usesMedia[state]:
		return true
	case o.facts.Net == bmc.BootNone:
		return d.Moved
	case o.system.Power == bmc.Off:
		return true
	case d.Moved: // its agent still runs when it is inspected
		return state != metal3.StateInspecting
	}
	begun := d.Fail != "" && d.Fail != metal3.RegistrationError || d.Do == phase.BeginAgain
	return bootsAgent && (begun || d.Do == phase.EndOperation)
}

// inbandStates are those whose operation boots the agent.
var inbandStates = map[phase.State]struct{}{
	metal3.StateInspecting: {}, metal3.StateProvisioning: {}, metal3.StateDeprovisioning: {},
}

func recordPower(h *metal3.BareMetalHost, p bmc.Power) {
	h.Status.PoweredOn = p == bmc.On || p == bmc.PoweringOff
}

// move changes the state, and what goes with the states that are left and
// entered.
func (r *Reconciler) move(h *metal3.BareMetalHost, o *observation, to phase.State, events *eventList) error {
	s := &h.Status
	from := s.Provisioning.State
	if s.OperationalStatus == metal3.OperationalStatusServicing { // what it is serviced with goes with the state
		h.SetOperationalStatus(metal3.OperationalStatusOK)
	}
	if op := h.OperationMetricForState(from); op != nil && !op.Start.IsZero() {
		op.End = r.now() // B-74; that of the in-band work has served its purpose
	}
	s.Provisioning.State = to
	if op := h.OperationMetricForState(to); op != nil {
		r.begin(op)
	}
	if enter := entering[to]; enter != nil {
		if err := enter(h); err != nil {
			return err
		}
	}
	switch {
	case from == metal3.StateRegistering && s.Provisioning.ID == "" && o.system.ID != "":
		s.Provisioning.ID = string(uuid.NewUUID())
		events.add("Registered", "Registered new host")
	case from == metal3.StateExternallyProvisioned && to == metal3.StateProvisioned: // B-64
		keepImage(h)
	case from == metal3.StateDeprovisioning:
		s.Provisioning.Image, s.Provisioning.CustomDeploy, s.Provisioning.RootDeviceHints = metal3.Image{}, nil, nil
		if s.Provisioning.RAID != nil { // of the hardware's it stays (B-65)
			s.Provisioning.RAID.SoftwareRAIDVolumes = nil
		}
	}
	if s.HardwareProfile == "" && profiled[to] {
		p, err := hardwareProfile(h)
		if err != nil {
			return err
		}
		s.HardwareProfile = p.Name
		events.add("ProfileSet", "Hardware profile set: "+p.Name)
	}
	if profiled[to] { // B-43, B-52
		hints, err := rootHints(h)
		if err != nil {
			return err
		}
		s.Provisioning.RootDeviceHints = hints
	}
	events.moved(h, from, to)
	return nil
}

// profiled are states that a host has a profile in, at the latest.
var profiled = map[phase.State]bool{metal3.StatePreparing: true, metal3.StateExternallyProvisioned: true}

// entering is what a state's entry writes into the status.
var entering = map[phase.State]func(*metal3.BareMetalHost) error{
	metal3.StateUnmanaged: func(h *metal3.BareMetalHost) error {
		h.SetOperationalStatus(metal3.OperationalStatusDiscovered)
		return nil
	},
	metal3.StateRegistering: setBootMode, // B-75
	metal3.StateInspecting:  setBootMode,
	metal3.StateProvisioning: func(h *metal3.BareMetalHost) error {
		hints, err := rootHints(h)
		if err != nil {
			return err
		}
		h.Status.Provisioning.RootDeviceHints = hints
		return setBootMode(h)
	},
	metal3.StateProvisioned: func(h *metal3.BareMetalHost) error {
		if p := &h.Status.Provisioning; p.Image.URL == "" && p.CustomDeploy == nil {
			keepImage(h)
		}
		return nil
	},
}

func setBootMode(h *metal3.BareMetalHost) error {
	h.Status.Provisioning.BootMode = h.BootMode()
	return nil
}

func keepImage(h *metal3.BareMetalHost) {
	if h.Spec.Image != nil {
		h.Status.Provisioning.Image = *h.Spec.Image.DeepCopy()
	}
	h.Status.Provisioning.CustomDeploy = h.Spec.CustomDeploy.DeepCopy()
}

// closeBoot drops the jobs and the boot service of a boot that has ended.
func (r *Reconciler) closeBoot(h *metal3.BareMetalHost, d phase.Decision) {
	if !d.Moved {
		return
	}
	if b, op := currentBoot(h); op == nil || b.ID == "" {
		r.Inband.Forget(string(h.UID))
		r.Boot.Close(string(h.UID))
	}
}
