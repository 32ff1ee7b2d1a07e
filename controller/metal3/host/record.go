package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// record writes the decision into the status, with one update and only if
// something changed, then publishes the events. It returns the delay until the
// next pass.
func (r *Reconciler) record(ctx context.Context, h *metal3.BareMetalHost, o *observation, d phase.Decision) (time.Duration, error) {
	r.countRetry(h, o, d)
	before := h.Status.DeepCopy()
	var events eventList
	if err := r.recordCredentials(ctx, h, o, &events); err != nil {
		return 0, err
	}
	after := phase.Spread(d.After, r.Chance)
	if h.Status.OperationalStatus == metal3.OperationalStatusDelayed {
		clearOperationalStatus(h)
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
		if h.Status.Provisioning.State == metal3.StateUnmanaged {
			h.SetOperationalStatus(metal3.OperationalStatusDiscovered)
		}
	}
	if o.system.Power != "" && reportsPower(o, d) {
		recordPower(h, o.system.Power)
	}
	switch d.Do {
	case phase.StoreHardware:
		if err := r.storeHardware(ctx, h, o, &events); err != nil {
			return 0, err
		}
		if !d.Moved { // otherwise it is compared when the next state begins
			setProfile(h, &events)
		}
	case phase.Detach:
		h.SetOperationalStatus(metal3.OperationalStatusDetached)
		if h.Status.ErrorType == metal3.DetachError { // from a restored status (B-81, B-82)
			h.Status.ErrorType, h.Status.ErrorMessage = "", ""
		}
	case phase.Attach:
		clearOperationalStatus(h)
	case phase.BeginPart:
		o.part.Begin(h)
		if h.Status.Provisioning.State == metal3.StatePreparing {
			h.Status.Provisioning.RootDeviceHints = rootHints(h) // the part may create the root device (B-163)
		}
		if x, ok := o.part.(InBand); ok && x.InBand(h) && o.facts.NetBoot != bmc.BootNone && o.system.Power != "" {
			recordPower(h, o.system.Power) // the server does not run an agent of this part: see reportsPower
		}
		if t := h.Status.ErrorType; t == metal3.PreparationError || t == metal3.ServicingError { // the count stays: this attempt may fail, too (B-82)
			h.Status.ErrorType, h.Status.ErrorMessage = "", ""
			h.SetOperationalStatus(metal3.OperationalStatusOK)
			if t == metal3.ServicingError {
				h.SetOperationalStatus(metal3.OperationalStatusServicing)
			}
		}
	case phase.BeginService: // recorded before the BMC is touched (B-220)
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
		for _, key := range o.invalidAnnotations {
			events.add("InvalidAnnotationValue", "could not parse the value of "+key)
		}
	case phase.EndOperation:
		if op := h.OperationMetricForState(h.Status.Provisioning.State); op != nil {
			op.End = r.now()
		}
		if h.Status.Provisioning.State == metal3.StateProvisioning {
			recordImage(h) // the image is on the disk from now on, whatever spec.image becomes
		}
	}
	if d.Moved {
		if err := r.move(ctx, h, o, d.To, &events); err != nil {
			return 0, err
		}
		if after == 0 && d.Do != phase.Release {
			after = requeueNow
		}
	}
	setConditions(h, o.system.Health)
	setWorkaroundsCondition(h, o.client)
	setAgentCondition(h, o, d)
	if equality.Semantic.DeepEqual(before, &h.Status) {
		r.confirmAgent(h, o)
		r.publish(ctx, h, events)
		return after, nil
	}
	now := r.now()
	h.Status.LastUpdated = &now
	if err := r.Client.Status().Update(ctx, h); err != nil {
		return 0, fmt.Errorf("record: %w", err)
	}
	r.read.Wrote(h)
	r.confirmAgent(h, o)
	r.closeBoot(h, d)
	r.publish(ctx, h, events)
	return after, nil
}

// countRetry counts a decision whose pass is only to be repeated, see queue.Retries.
// Refused credentials are not tried faster than by real time: BMCs lock an account after
// a few failures within a minute of their clients' time.
func (r *Reconciler) countRetry(h *metal3.BareMetalHost, o *observation, d phase.Decision) {
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(h)}
	switch {
	case d.Fail == "" && !d.Stuck:
		r.retries.Succeeded(req)
	case errors.Is(o.registrationError, bmc.ErrUnauthorized):
		r.retries.Failed(req, queue.Slow)
	default:
		r.retries.Failed(req, h.Status.ErrorCount+1)
	}
}

// clearOperationalStatus ends an operational status that overrides the usual one.
// An earlier error shows again.
func clearOperationalStatus(h *metal3.BareMetalHost) {
	h.SetOperationalStatus(metal3.OperationalStatusOK)
	if h.Status.ErrorType != "" {
		h.Status.OperationalStatus = metal3.OperationalStatusError
	}
}

// now returns the wall time with the precision of Kubernetes.
func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Wall.Now().Truncate(time.Second)) }

// begin sets the start of an operation. Boots are named by the start, so no two
// runs of an operation have the same, however fast they follow each other.
func (r *Reconciler) begin(op *metal3.OperationMetric) {
	start := r.now()
	if !op.Start.IsZero() && !start.After(op.Start.Time) {
		start = metav1.NewTime(op.Start.Add(time.Second))
	}
	op.Start, op.End = start, metav1.Time{}
}

// recordFailure counts an error and returns the delay until the next attempt
// (B-13).
func (r *Reconciler) recordFailure(h *metal3.BareMetalHost, o *observation, d phase.Decision, events *eventList) time.Duration {
	s := &h.Status
	known := s.ErrorType == d.Fail && s.ErrorMessage == d.Message
	s.OperationalStatus, s.ErrorType, s.ErrorMessage = metal3.OperationalStatusError, d.Fail, d.Message
	if d.Fail == metal3.RegistrationError && lacksDetails(o.registrationError) { // B-80
		s.OperationalStatus = metal3.OperationalStatusDiscovered
	}
	if known && d.Fail == metal3.RegistrationError && needsEdit(o.registrationError) && h.DeletionTimestamp.IsZero() {
		return 0 // B-112: nothing was tried, and nothing is before an edit
	}
	s.ErrorCount++
	if d.Fail == metal3.RegistrationError && isCredentialsError(o.registrationError) {
		events.add("BMCCredentialError", d.Message)
	} else {
		events.add(eventReasons[d.Fail], d.Message)
	}
	r.powerFailed(h.UID)
	if d.Fail == metal3.PreparationError {
		s.Provisioning.RootDeviceHints = nil // prepare everything again (B-53)
		if o.part != nil {
			o.part.Reset(h)
		}
	}
	if d.Fail == metal3.ServicingError && o.part != nil {
		o.part.Reset(h)
	}
	if d.Fail != metal3.RegistrationError {
		// The next attempt boots a new agent, whatever state the failed one left
		// the server in. But a BMC that is unreachable for a while must not end
		// the work of a running agent.
		if _, op := currentBoot(h); op != nil && op.End.IsZero() {
			r.begin(op)
		}
	}
	var bad *credentialsError
	switch {
	case d.Fail != metal3.RegistrationError:
	case errors.As(o.registrationError, &bad) && bad.missing:
		return missingSecretWait // B-111: the secret may be created at any moment
	case needsEdit(o.registrationError) && h.DeletionTimestamp.IsZero():
		return 0 // B-112: an edit triggers a pass; a deletion does not wait for one
	}
	if d.After > 0 {
		return d.After
	}
	return phase.Backoff(s.ErrorCount, r.Chance())
}

const missingSecretWait = 10 * time.Second

// recordCredentials records the credentials of this pass and whether they worked
// (B-114).
func (r *Reconciler) recordCredentials(ctx context.Context, h *metal3.BareMetalHost, o *observation, events *eventList) error {
	if o.secret == nil {
		return nil
	}
	again := h.Status.Provisioning.State != metal3.StateRegistering
	register := &h.Status.OperationHistory.Register
	if tried := h.Status.TriedCredentials.Reference; !h.Status.TriedCredentials.Match(*o.secret) {
		o.credentialsChanged = tried != nil
		if o.credentialsChanged && tried.Name != o.secret.Name { // nothing else would remove the finalizer of the old secret (B-113)
			if err := r.releaseSecret(ctx, h, tried.Name); err != nil {
				return err
			}
		}
		if o.credentialsChanged && again { // B-46
			r.begin(register)
		}
		h.UpdateTriedCredentials(*o.secret)
	}
	if o.facts.RegistrationError == "" && o.system.ID != "" && !h.Status.GoodCredentials.Match(*o.secret) {
		h.UpdateGoodCredentials(*o.secret)
		events.add("BMCAccessValidated", "Verified access to BMC")
		if again && !register.Start.IsZero() && register.End.IsZero() {
			register.End, o.reregistered = r.now(), true
		}
	}
	return nil
}

// reportsPower reports whether the status shows the power of this pass. It shows
// the power between operations, and not the power cycles within one. In provisioning,
// and for a host that boots over the network, it also shows that the host was seen off,
// and that it is on when an operation begins or has ended its in-band work: phase
// derives from this which system runs.
func reportsPower(o *observation, d phase.Decision) bool {
	state := o.facts.State
	_, bootsAgent := agentStates[state]
	switch {
	case !usesMedia[state]:
		return true
	case o.facts.NetBoot == bmc.BootNone && state != metal3.StateProvisioning:
		return d.Moved
	case o.system.Power == bmc.Off:
		return true
	case d.Moved: // the agent still runs when inspection ends
		return state != metal3.StateInspecting
	}
	begun := d.Fail != "" && d.Fail != metal3.RegistrationError || d.Do == phase.BeginAgain
	return bootsAgent && (begun || d.Do == phase.EndOperation)
}

// agentStates lists the states whose operation boots the agent.
var agentStates = map[phase.State]struct{}{
	metal3.StateInspecting: {}, metal3.StateProvisioning: {}, metal3.StateDeprovisioning: {},
}

func recordPower(h *metal3.BareMetalHost, p bmc.Power) {
	h.Status.PoweredOn = p == bmc.On || p == bmc.PoweringOff
}

// move changes the state, ends the operation of the former state and calls the entry
// action of the new one.
func (r *Reconciler) move(ctx context.Context, h *metal3.BareMetalHost, o *observation, to phase.State, events *eventList) error {
	s := &h.Status
	from := s.Provisioning.State
	if s.OperationalStatus == metal3.OperationalStatusServicing { // servicing ends with the state
		h.SetOperationalStatus(metal3.OperationalStatusOK)
	}
	if op := h.OperationMetricForState(from); op != nil && !op.Start.IsZero() {
		op.End = r.now() // B-74; replaces the end of the in-band work
	}
	s.Provisioning.State = to
	if op := h.OperationMetricForState(to); op != nil {
		r.begin(op)
	}
	if enter := entryActions[to]; enter != nil {
		if err := enter(h); err != nil {
			return err
		}
	}
	switch {
	case from == metal3.StateRegistering && s.Provisioning.ID == "" && o.system.ID != "":
		s.Provisioning.ID = cmp.Or(systemID(o.system), string(uuid.NewUUID()))
		events.add("Registered", "Registered new host")
	case from == metal3.StateExternallyProvisioned && to == metal3.StateProvisioned: // B-64
		recordImage(h)
	case from == metal3.StateDeprovisioning:
		s.Provisioning.Image, s.Provisioning.CustomDeploy, s.Provisioning.RootDeviceHints = metal3.Image{}, nil, nil
		if s.Provisioning.RAID != nil { // hardware RAID stays (B-65)
			s.Provisioning.RAID.SoftwareRAIDVolumes = nil
		}
	}
	if needsProfile[to] { // B-43, B-52
		if err := r.adoptHardwareData(ctx, h, events); err != nil {
			return err
		}
		setProfile(h, events)
		s.Provisioning.RootDeviceHints = rootHints(h)
	}
	events.addTransition(h, from, to)
	return nil
}

// needsProfile lists the states at whose beginning the hardware is compared with the
// profiles.
var needsProfile = map[phase.State]bool{metal3.StatePreparing: true, metal3.StateExternallyProvisioned: true}

// entryActions holds the functions that change the status when a state is entered.
var entryActions = map[phase.State]func(*metal3.BareMetalHost) error{
	metal3.StateUnmanaged: func(h *metal3.BareMetalHost) error {
		h.SetOperationalStatus(metal3.OperationalStatusDiscovered)
		return nil
	},
	metal3.StateRegistering: setBootMode, // B-75
	metal3.StateInspecting:  setBootMode,
	metal3.StateProvisioning: func(h *metal3.BareMetalHost) error {
		h.Status.Provisioning.RootDeviceHints = rootHints(h)
		return setBootMode(h)
	},
	metal3.StateProvisioned: func(h *metal3.BareMetalHost) error {
		if p := &h.Status.Provisioning; p.Image.URL == "" && p.CustomDeploy == nil {
			recordImage(h)
		}
		return nil
	},
}

func setBootMode(h *metal3.BareMetalHost) error {
	h.Status.Provisioning.BootMode = h.BootMode()
	return nil
}

func recordImage(h *metal3.BareMetalHost) {
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
