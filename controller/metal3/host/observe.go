package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// observation holds the results of one pass of observe.
type observation struct {
	facts      phase.Facts
	client     bmc.Client
	secret     *corev1.Secret
	system     bmc.System
	boot       inband.Boot // boot of the state's operation
	writeJob   job.Job     // job that the specification asks for
	cleanJobID string      // ID of the cleaning job for it
	inventory  *job.Hardware
	hardware   *metal3.HardwareDetails // the inventory of an externally provisioned host's BMC; subject of facts.HardwareChanged
	agent      inband.Status
	part       Part              // subject of facts.Part; nil if all parts are settled
	data       *metal3.DataImage // subject of facts.Data; nil if there is none

	hardwareRead       *inventoryReading // nil if the hardware was not read in this pass
	invalidAnnotations []string          // keys of reboot annotations with unreadable values
	registrationError  error             // reason of facts.RegistrationError
	cached             bool              // system and media are the reading of an earlier pass
	credentialsChanged bool              // the credentials differ from those tried last
	connected          bool              // the BMC's details are complete, and a connection was tried
	reregistered       bool              // new credentials have worked, in a state after registering
}

// Suffixes of job IDs: an ID is the boot's ID with one of these.
const (
	jobInspect = "inspect"
	jobClean   = "clean"
	jobWrite   = "write"
)

func jobID(b inband.Boot, what ...string) string {
	return b.ID + "-" + strings.Join(what, "-")
}

// observe reads the facts on which phase.Decide depends in the host's provisioning
// state, and no others.
func (r *Reconciler) observe(ctx context.Context, h *metal3.BareMetalHost) (*observation, error) {
	o := &observation{facts: phase.Facts{
		State:              h.Status.Provisioning.State,
		Deleting:           !h.DeletionTimestamp.IsZero(),
		HasAddress:         h.Spec.BMC.Address != "",
		Online:             h.Spec.Online,
		External:           h.Spec.ExternallyProvisioned,
		DisablePowerOff:    h.Spec.DisablePowerOff,
		InspectionDisabled: h.InspectionDisabled(),
		InspectRequested:   inspectRequested(h),
		Cleaning:           h.Spec.AutomatedCleaningMode != metal3.CleaningModeDisabled,
		HaveImage:          h.Status.Provisioning.Image.URL,
		DeployedLive:       h.Status.Provisioning.Image.IsLiveISO(),
		ErrorType:          h.Status.ErrorType,
		ErrorMessage:       h.Status.ErrorMessage,
		ErrorCount:         h.Status.ErrorCount,
		NeverRegistered:    h.Status.GoodCredentials.Reference == nil,
		HintsChanged:       hintsChanged(h),
		Secure:             h.Status.Provisioning.BootMode == metal3.UEFISecureBoot,
		Resting:            r.memory.resting(h.UID),
	}}
	f := &o.facts
	if h.Spec.Image != nil {
		f.WantImage, f.Live = h.Spec.Image.URL, h.Spec.Image.IsLiveISO()
	}
	if h.Spec.CustomDeploy != nil {
		f.WantDeploy = h.Spec.CustomDeploy.Method
	}
	if h.Status.Provisioning.CustomDeploy != nil {
		f.HaveDeploy = h.Status.Provisioning.CustomDeploy.Method
	}
	if some, _ := softRAID(h); some && f.State == metal3.StateDeprovisioning {
		f.Cleaning = true // software RAID is always deleted (B-170)
	}
	observeReboot(h, o)
	observeDetached(h, f)
	switch f.State {
	case metal3.StateUnmanaged:
		if !f.HasAddress && h.Spec.BMC.CredentialsName != "" {
			f.RegistrationError, o.registrationError = bmc.ErrNoAddress.Error(), bmc.ErrNoAddress
		}
		return o, nil
	case metal3.StateNone, metal3.StateMatchProfile, metal3.StateDeleting:
		return o, nil
	}
	if phase.Leaves(*f) { // the BMC is not managed by this controller now
		return o, nil
	}
	if err := r.observeBMC(ctx, h, o); err != nil {
		return nil, err
	}
	if f.RegistrationError == "" {
		r.observeAgent(h, o)
		if err := r.observeParts(ctx, h, o); err != nil {
			return nil, err
		}
		if err := r.observeImage(ctx, h, o); err != nil {
			return nil, err
		}
		if err := r.observeData(ctx, h, o); err != nil {
			return nil, err
		}
		if err := r.observeInventory(ctx, h, o); err != nil {
			return nil, err
		}
	}
	r.openBoot(h, o)
	r.observeSoftOff(h, o)
	r.observeRestart(h.UID, o)
	return o, nil
}

// observeBMC reads credentials, power, boot override and media. A reason for which
// the BMC cannot be managed becomes a fact; an error is a temporary failure
// (B-14).
func (r *Reconciler) observeBMC(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	f := &o.facts
	config, err := r.credentials(ctx, h, o)
	if err == nil {
		o.connected = true
		o.client, err = r.BMCs.Get(ctx, config)
	}
	if err == nil && !r.useReading(h, o) {
		if o.system, err = o.client.System(ctx); err == nil {
			err = r.checkSystemConflict(ctx, h, o.system)
		}
	}
	switch {
	case err != nil:
	case f.NetBoot != bmc.BootNone:
		err = r.observeNetwork(h, o)
	case usesMedia[f.State] && !o.cached:
		err = r.observeMedia(ctx, h, o)
	}
	if err == nil && f.State == metal3.StateRegistering {
		_, _, err = requestedProfile(h)
	}
	transient := false
	if errors.Is(err, bmc.ErrUnreachable) {
		transient = r.silence(h.UID) < silentWait && f.State != metal3.StateRegistering && !f.Deleting
	} else if ctx.Err() == nil && !o.cached {
		r.answered(h.UID)
	}
	switch api := apierrors.APIStatus(nil); {
	case err == nil:
	case ctx.Err() != nil, transient:
		return err
	case errors.As(err, &api):
		r.metrics.unhandled.WithLabelValues(h.Namespace, h.Name).Inc()
		return err
	default:
		err = withRemedy(h, err)
		f.RegistrationError, o.registrationError = err.Error(), err
		f.SystemError = errors.Is(err, bmc.ErrNoSystem) || o.client != nil && !slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
		return nil
	}
	f.SeenOff = !h.Status.PoweredOn
	f.Power, f.NextBoot, f.BootPersistent, f.BootOnce = o.system.Power, o.system.Boot.Device, o.system.Boot.Persistent, o.system.BootOnce
	if b, op := currentBoot(h); f.NetBoot == bmc.BootHTTP && f.NextBoot == f.NetBoot && op != nil && !r.Boot.IsMedia(b, o.system.Boot.URL) && (o.system.Boot.URL != "" || !r.Boot.HasNetwork()) {
		f.NextBoot = bmc.BootNone // the override is for an earlier boot
	}
	r.observePower(h.UID, f)
	return nil
}

// withRemedy adds to an error of a BMC the object and the field whose change helps.
func withRemedy(h *metal3.BareMetalHost, err error) error {
	switch {
	case errors.Is(err, bmc.ErrUnauthorized):
		return fmt.Errorf("%w: correct username and password in the Secret %s", err, h.CredentialsKey())
	case errors.Is(err, bmc.ErrUntrusted):
		return fmt.Errorf("%w: name the authority that signs it with the controller's --ca, or set spec.bmc.disableCertificateVerification of the host to true", err)
	}
	return err
}

// refusals lists the errors of a BMC itself. Any other error is about the system.
var refusals = []error{bmc.ErrUnauthorized, bmc.ErrUntrusted, bmc.ErrUnreachable}

// usesMedia lists the states in which the content of the virtual CD drive matters.
var usesMedia = map[phase.State]bool{
	metal3.StateInspecting: true, metal3.StatePreparing: true, metal3.StateProvisioning: true,
	metal3.StateDeprovisioning: true, metal3.StatePoweringOffBeforeDelete: true,
}

func (r *Reconciler) observeMedia(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	m, err := o.client.Media(ctx)
	if err != nil {
		return err
	}
	b, _ := currentBoot(h)
	switch {
	case m.Image == "":
		o.facts.Media = phase.MediaNone
	case b.ID != "" && m.Inserted && r.Boot.IsMedia(b, m.Image):
		o.facts.Media = phase.MediaCurrent
	case r.Boot.Ours(m.Image):
		o.facts.Media = phase.MediaOld
	case isLive(h.Spec.Image, m.Image), isLive(&h.Status.Provisioning.Image, m.Image):
		o.facts.Media = phase.MediaLive
	default:
		o.facts.Media = phase.MediaForeign
	}
	return nil
}

// currentBoot identifies the boot of the agent for the host's present operation.
// It depends on the status alone, so that another process derives the same boot
// from the same status.
func currentBoot(h *metal3.BareMetalHost) (inband.Boot, *metal3.OperationMetric) {
	if h.Status.Provisioning.State == metal3.StatePreparing {
		if b := preparingBoot(h); b.ID != "" {
			return b, &metal3.OperationMetric{} // the status has no operation for it
		}
	}
	op := h.OperationMetricForState(h.Status.Provisioning.State)
	if op == nil || h.Status.Provisioning.State == metal3.StateRegistering {
		return inband.Boot{}, nil
	}
	state := string(h.Status.Provisioning.State)
	return inband.Boot{
		Host: string(h.UID),
		ID:   state + "-" + inband.Digest(state, strconv.FormatInt(op.Start.Unix(), 10)),
	}, op
}

// observeAgent reads the state of the agent of the current boot and of its jobs.
func (r *Reconciler) observeAgent(h *metal3.BareMetalHost, o *observation) {
	b, op := currentBoot(h)
	if op == nil {
		return
	}
	f := &o.facts
	o.boot, f.OpEnded = b, !op.End.IsZero()
	st := r.Inband.Expect(b, boundKey(h, b))
	o.agent = st
	f.AgentUp, f.AgentWait, f.AgentSilent = st.Up, st.Expected, st.Silent
	f.AgentBound, f.AgentRefused = st.Key != "", st.Refused
	inspect := st.Jobs[jobID(b, jobInspect)]
	o.inventory = inspect.Inventory
	f.Inspect = jobState(st.Jobs, jobID(b, jobInspect), &f.JobError)
	o.cleanJobID = jobID(b, jobClean)
	f.Clean = jobState(st.Jobs, o.cleanJobID, &f.JobError)
	if f.State != metal3.StateProvisioning || f.WantImage == "" && f.WantDeploy == "" {
		return
	}
	spec, err := writeSpec(h)
	if err != nil {
		f.ValidationError = err.Error()
		return
	}
	if f.Live { // a live image is not written to a disk
		if f.NetBoot != bmc.BootNone {
			f.ValidationError = "a live ISO needs a BMC with virtual media: " + h.Spec.BMC.Address + " boots by the network"
		}
		return
	}
	// The ID depends on the image, so that another image is another job.
	parts := []string{spec.URL, spec.Checksum, spec.ChecksumType, spec.Format}
	if f.WantDeploy != "" {
		parts = append(parts, f.WantDeploy)
	}
	image := inband.Digest(parts...)
	// Disks that may hold part of another image are cleaned for this one, even if
	// this controller does not know of the other.
	o.cleanJobID = jobID(b, jobClean, image)
	f.Clean = jobState(st.Jobs, o.cleanJobID, &f.JobError)
	if f.Clean == phase.JobFailed { // B-59
		f.JobError = fmt.Sprintf("Image provisioning failed (url: %s, checksum: %s): Cleaning failed: %s", spec.URL, spec.Checksum, f.JobError)
	}
	id := jobID(b, jobWrite, image)
	o.writeJob = writeJob(id, spec, f.WantDeploy)
	f.Write = jobState(st.Jobs, id, &f.JobError)
	switch {
	case f.Write == phase.JobFailed && f.WantDeploy != "":
		f.JobError = fmt.Sprintf("Custom deploy method %s failed: %s", f.WantDeploy, f.JobError)
	case f.Write == phase.JobFailed: // B-59
		f.JobError = fmt.Sprintf("Image provisioning failed (url: %s, checksum: %s): %s", spec.URL, spec.Checksum, f.JobError)
	}
	for other := range st.Jobs {
		if strings.HasPrefix(other, jobID(b, jobWrite)) && other != id {
			f.ImageChanged = true
		}
	}
}

func jobState(jobs map[string]job.Report, id string, reason *string) phase.JobState {
	rep, offered := jobs[id]
	switch {
	case !offered:
		return phase.JobUnknown
	case rep.State == job.Done:
		return phase.JobDone
	case rep.State == job.Failed:
		*reason = rep.Error
		return phase.JobFailed
	}
	return phase.JobPending
}

func (r *Reconciler) observeSoftOff(h *metal3.BareMetalHost, o *observation) {
	at, ok := r.askedOff(h.UID)
	if !ok {
		return
	}
	if h.Spec.Online && o.facts.Reboot == phase.RebootNone || o.facts.Power == bmc.Off {
		r.memory.update(h.UID, func(m *hostMemory) { m.softOff = nil })
		return
	}
	o.facts.SoftOff = max(r.Clock.Since(at), time.Nanosecond)
}

// inspectRequested reports whether the annotation asks for an inspection: any
// value except disabled does (B-98).
func inspectRequested(h *metal3.BareMetalHost) bool {
	v, ok := h.Annotations[metal3.InspectAnnotationPrefix]
	return ok && v != metal3.InspectAnnotationValueDisabled //nolint:staticcheck // deprecated upstream, and still a user's to write (B-98)
}
