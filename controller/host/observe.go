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
	"github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1/profile"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host/phase"
	"github.com/metalab-dev/metalab/controller/inband"
)

// observation is what one pass has found.
type observation struct {
	facts  phase.Facts
	client bmc.Client
	secret *corev1.Secret
	system bmc.System
	boot   inband.Boot // of the state's operation
	write  job.Job     // that the specification asks for
	clean  string      // ID of the job that cleans for it
	found  *job.Hardware
	agent  inband.Status
	part   Part              // that facts.Part is about; nil when all are settled
	data   *metal3.DataImage // that facts.Data is about; nil when there is none

	badAnnotations []string // whose values cannot be read
	unregistered   error    // why the BMC cannot be worked with
	cached         bool     // system and media are the reading of an earlier pass
	updated        bool     // the credentials are others than those that were tried last
	renewed        bool     // and they work, in a state that comes after registering
}

// Jobs of a boot; an ID is the boot's with one of these behind it.
const (
	jobInspect = "inspect"
	jobClean   = "clean"
	jobWrite   = "write"
)

func jobID(b inband.Boot, what ...string) string {
	return b.ID + "-" + strings.Join(what, "-")
}

// observe reads everything that phase needs to know, and no more: what a state
// does not use is not asked for.
func (r *Reconciler) observe(ctx context.Context, h *metal3.BareMetalHost) (*observation, error) {
	o := &observation{facts: phase.Facts{
		State:              h.Status.Provisioning.State,
		Deleting:           !h.DeletionTimestamp.IsZero(),
		HasDetails:         h.HasBMCDetails(),
		Online:             h.Spec.Online,
		External:           h.Spec.ExternallyProvisioned,
		DisablePowerOff:    h.Spec.DisablePowerOff,
		InspectionDisabled: h.InspectionDisabled(),
		InspectRequested:   inspectRequested(h),
		Cleaning:           h.Spec.AutomatedCleaningMode != metal3.CleaningModeDisabled,
		HaveImage:          h.Status.Provisioning.Image.URL,
		ErrorType:          h.Status.ErrorType,
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
	case metal3.StateNone, metal3.StateUnmanaged, metal3.StateMatchProfile, metal3.StateDeleting:
		return o, nil
	}
	if phase.Leaves(*f) { // the BMC is not ours to ask
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
	}
	r.observeSoftOff(h, o)
	r.observeRestart(h.UID, o)
	return o, nil
}

// observeBMC works the BMC's credentials, power, boot override and media out.
// What keeps the BMC from being worked with becomes a fact; an error is
// something that passes by itself (B-14).
func (r *Reconciler) observeBMC(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	f := &o.facts
	config, err := r.credentials(ctx, h, o)
	if err == nil {
		o.client, err = r.BMCs.Get(ctx, config)
	}
	if err == nil && !r.useReading(h, o) {
		o.system, err = o.client.System(ctx)
	}
	switch {
	case err != nil:
	case f.Net != bmc.BootNone:
		err = r.observeNetwork(h, o)
	case usesMedia[f.State] && !o.cached:
		err = r.observeMedia(ctx, h, o)
	}
	if err == nil && f.State == metal3.StateRegistering {
		_, err = hardwareProfile(h)
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
		f.RegistrationError, o.unregistered = err.Error(), err
		f.Strange = errors.Is(err, bmc.ErrNoSystem) || o.client != nil && !slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
		return nil
	}
	f.Power, f.NextBoot, f.BootStays = o.system.Power, o.system.Boot.Device, o.system.Boot.Persistent
	if b, op := currentBoot(h); f.Net == bmc.BootHTTP && f.NextBoot == f.Net && op != nil && o.system.Boot.URL != r.Boot.ISO(b) && (o.system.Boot.URL != "" || !r.Boot.HasNetwork()) {
		f.NextBoot = bmc.BootNone // it would boot what an earlier boot was given
	}
	r.observePower(h.UID, f)
	return nil
}

// refusals are what a BMC that is asked for its system can have against whoever
// asks; anything else that it answers is about the system.
var refusals = []error{bmc.ErrUnauthorized, bmc.ErrUntrusted, bmc.ErrUnreachable}

// usesMedia are the states in which what the virtual CD holds matters.
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
	case b.ID != "" && m.Inserted && slices.Contains(r.Boot.Media(b), m.Image):
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

// currentBoot names the boot of the agent for the operation that the host is
// in. It is derived from the status alone: another process that finds the same
// status means the same boot.
func currentBoot(h *metal3.BareMetalHost) (inband.Boot, *metal3.OperationMetric) {
	if h.Status.Provisioning.State == metal3.StatePreparing {
		if b := preparingBoot(h); b.ID != "" {
			return b, &metal3.OperationMetric{} // the status has none
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

// observeAgent asks how the agent of the current boot and its jobs stand.
func (r *Reconciler) observeAgent(h *metal3.BareMetalHost, o *observation) {
	b, op := currentBoot(h)
	if op == nil {
		return
	}
	f := &o.facts
	o.boot, f.OpEnded = b, !op.End.IsZero()
	st := r.Inband.Expect(b)
	o.agent = st
	f.AgentUp, f.AgentWait, f.AgentSilent = st.Up, st.Expected, st.Silent
	r.openNetwork(h, o)
	inspect := st.Jobs[jobID(b, jobInspect)]
	o.found = inspect.Inventory
	f.Inspect = jobState(st.Jobs, jobID(b, jobInspect), &f.JobError)
	o.clean = jobID(b, jobClean)
	f.Clean = jobState(st.Jobs, o.clean, &f.JobError)
	if f.State != metal3.StateProvisioning || f.WantImage == "" && f.WantDeploy == "" {
		return
	}
	spec, err := writeSpec(h)
	if err != nil {
		f.ValidationError = err.Error()
		return
	}
	if f.Live { // nothing is written
		if f.Net != bmc.BootNone {
			f.ValidationError = "a live ISO needs a BMC with virtual media: " + h.Spec.BMC.Address + " boots by the network"
		}
		return
	}
	// The ID tells the image, too: a job for another one is another job.
	parts := []string{spec.URL, spec.Checksum, spec.ChecksumType, spec.Format}
	if f.WantDeploy != "" {
		parts = append(parts, f.WantDeploy)
	}
	image := inband.Digest(parts...)
	// Disks that another image was begun to be written to are cleaned for this
	// one, though this controller may not know of the other.
	o.clean = jobID(b, jobClean, image)
	f.Clean = jobState(st.Jobs, o.clean, &f.JobError)
	if f.Clean == phase.JobFailed { // B-59
		f.JobError = fmt.Sprintf("Image provisioning failed (url: %s, checksum: %s): Cleaning failed: %s", spec.URL, spec.Checksum, f.JobError)
	}
	id := jobID(b, jobWrite, image)
	o.write = writeJob(id, spec, f.WantDeploy)
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

// inspectRequested: the annotation with any value but disabled asks for another
// inspection (B-98).
func inspectRequested(h *metal3.BareMetalHost) bool {
	v, ok := h.Annotations[metal3.InspectAnnotationPrefix]
	return ok && v != metal3.InspectAnnotationValueDisabled //nolint:staticcheck // deprecated upstream, and still a user's to write (B-98)
}

// hardwareProfile is the profile that chooses the root device when hints do
// not (B-190).
func hardwareProfile(h *metal3.BareMetalHost) (profile.Profile, error) {
	name := h.Spec.HardwareProfile
	if h.Status.HardwareProfile != "" {
		name = h.Status.HardwareProfile
	}
	if name == "" {
		name = profile.DefaultProfileName
		if strings.HasPrefix(h.Spec.BMC.Address, "libvirt") { // its disks have other names
			name = "libvirt"
		}
	}
	p, err := profile.GetProfile(name)
	if err != nil {
		return profile.Profile{}, fmt.Errorf("no hardware profile named %q", name)
	}
	return p, nil
}

// hintsChanged says whether a host that was prepared with root device hints is
// to have others now (B-55).
func hintsChanged(h *metal3.BareMetalHost) bool {
	hints, err := rootHints(h)
	return err == nil && !equality.Semantic.DeepEqual(hints, h.Status.Provisioning.RootDeviceHints)
}

// rootHints are the specification's, else the profile's; none where the host
// was prepared with volumes, of which the first is the root device (B-163).
func rootHints(h *metal3.BareMetalHost) (*metal3.RootDeviceHints, error) {
	if h.Spec.RootDeviceHints != nil {
		return h.Spec.RootDeviceHints.DeepCopy(), nil
	}
	if raid := h.Status.Provisioning.RAID; raid != nil && len(raid.HardwareRAIDVolumes)+len(raid.SoftwareRAIDVolumes) > 0 {
		return nil, nil
	}
	p, err := hardwareProfile(h)
	if err != nil {
		return nil, err
	}
	return p.RootDeviceHints.DeepCopy(), nil
}
