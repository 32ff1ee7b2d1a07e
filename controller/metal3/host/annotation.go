package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// rebootArguments is the value of a reboot annotation (B-95).
type rebootArguments struct {
	Mode  metal3.RebootMode `json:"mode"`
	Force bool              `json:"force"`
}

// rebootsWithoutForce lists the states in which a reboot annotation needs no force
// (B-95).
var rebootsWithoutForce = map[phase.State]bool{metal3.StateProvisioned: true, metal3.StateExternallyProvisioned: true}

// observeReboot reads the reboot annotations: those with a key override the plain
// one, and one hard mode applies to all (B-95, B-96). In most states only those with
// force count.
func observeReboot(h *metal3.BareMetalHost, o *observation) {
	f := &o.facts
	for key, value := range h.Annotations { // independent of the order
		suffix, ok := strings.CutPrefix(key, metal3.RebootAnnotationPrefix)
		if !ok || suffix != "" && suffix[0] != '/' {
			continue
		}
		args, err := parseReboot(value)
		if err != nil {
			o.invalidAnnotations = append(o.invalidAnnotations, key)
		}
		if !args.Force && !rebootsWithoutForce[h.Status.Provisioning.State] {
			continue
		}
		f.RebootHard = f.RebootHard || args.Mode == metal3.RebootModeHard
		if suffix == "" {
			f.Reboot = max(f.Reboot, phase.RebootOnce)
			continue
		}
		f.Reboot = phase.RebootHeld
	}
	slices.Sort(o.invalidAnnotations)
}

// forcesReboot reports whether the plain reboot annotation interrupts an operation.
func forcesReboot(h *metal3.BareMetalHost) bool {
	args, _ := parseReboot(h.Annotations[metal3.RebootAnnotationPrefix])
	return args.Force
}

// parseReboot parses the value of a reboot annotation, which may be empty. The result
// counts even with an error (B-96).
func parseReboot(value string) (args rebootArguments, err error) {
	if value != "" {
		err = json.Unmarshal([]byte(value), &args)
	}
	return args, err
}

// detachArguments is the value of the detached annotation (B-92). The
// specification ignores the value; one that is not such an object has no effect.
type detachArguments struct {
	DeleteAction metal3.DetachedDeleteAction `json:"deleteAction"`
	Force        bool                        `json:"force"`
}

func observeDetached(h *metal3.BareMetalHost, f *phase.Facts) {
	value, ok := h.Annotations[metal3.DetachedAnnotation]
	f.IsDetached = h.Status.OperationalStatus == metal3.OperationalStatusDetached
	if !ok {
		return
	}
	f.Detach = true
	var args detachArguments
	if json.Unmarshal([]byte(value), &args) == nil {
		f.DetachForce, f.DetachDelays = args.Force, args.DeleteAction == metal3.DetachedDeleteActionDelay
	}
}

// restoreStatus restores the status from an annotation, for a host that was moved
// from another cluster (B-100). It ignores fields that it does not know, with an
// event: the cluster may have run a later release. It returns true if it wrote the
// status.
func (r *Reconciler) restoreStatus(ctx context.Context, h *metal3.BareMetalHost) (bool, error) {
	value, ok := h.Annotations[metal3.StatusAnnotation]
	if !ok || !h.Status.LastUpdated.IsZero() {
		return false, nil
	}
	var status metal3.BareMetalHostStatus
	unknown, err := kjson.UnmarshalStrict([]byte(value), &status)
	if err != nil {
		return false, fmt.Errorf("annotation %s: %w", metal3.StatusAnnotation, err)
	}
	var hd metal3.HardwareData
	switch err := r.Reader.Get(ctx, client.ObjectKeyFromObject(h), &hd); {
	case err == nil && hd.Spec.HardwareDetails != nil:
		status.HardwareDetails = hd.Spec.HardwareDetails
	case err != nil && !apierrors.IsNotFound(err):
		return false, err
	}
	h.Status = status
	if h.Status.LastUpdated.IsZero() {
		now := r.now()
		h.Status.LastUpdated = &now
	}
	if err := r.Client.Status().Update(ctx, h); err != nil {
		return false, err
	}
	r.read.Wrote(h)
	if len(unknown) > 0 { // fields of a later release, or of a fork
		r.warnUnknown(ctx, h, "UnknownStatusFields", metal3.StatusAnnotation, unknown)
	}
	return true, nil
}

// adoption is the result of adoptHardware.
type adoption struct {
	changed bool
	event   *[2]string
	unknown []error // the fields that this release does not know
}

// adoptHardware takes the hardware details from an annotation, if inspection has
// found none or is disabled (B-99). It ignores fields that it does not know, as
// restoreStatus does.
func (r *Reconciler) adoptHardware(ctx context.Context, h *metal3.BareMetalHost) (adoption, error) {
	value, ok := h.Annotations[metal3.HardwareDetailsAnnotation]
	if !ok {
		return adoption{}, nil
	}
	if h.Status.HardwareDetails != nil && !h.InspectionDisabled() {
		return adoption{event: &[2]string{"RemoveAnnotation", "HardwareDetails annotation ignored, status already set and inspection is not disabled"}}, nil
	}
	out := adoption{changed: true, event: &[2]string{"UpdateHardwareDetails", "Set HardwareDetails from annotation"}}
	var hd metal3.HardwareData
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(h), &hd)
	switch {
	case err == nil && hd.Spec.HardwareDetails != nil:
		h.Status.HardwareDetails = hd.Spec.HardwareDetails
		return out, nil
	case err != nil && !apierrors.IsNotFound(err):
		return adoption{}, err
	}
	details := new(metal3.HardwareDetails)
	if out.unknown, err = kjson.UnmarshalStrict([]byte(value), details); err != nil {
		return adoption{}, fmt.Errorf("annotation %s: %w", metal3.HardwareDetailsAnnotation, err)
	}
	h.Status.HardwareDetails = details
	return out, nil
}

// warnUnknown publishes a Warning that names the fields of an annotation that this
// release does not know.
func (r *Reconciler) warnUnknown(ctx context.Context, h *metal3.BareMetalHost, reason, key string, unknown []error) {
	r.warn(ctx, h, reason, "ignored in the annotation "+key+": "+utilerrors.NewAggregate(unknown).Error())
}
