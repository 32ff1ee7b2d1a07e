package firmware

import (
	"context"
	"encoding/json"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// attemptAnnotation stores, in the object that asks for a change, how far the
// attempt at the change is. It is written before the server is touched and removed
// when the server is found as wanted: the firmware of a host without it is in no
// intermediate state, even if a controller was killed.
const attemptAnnotation = "metalab.dev/attempt"

// loadAttempt reads the attempt from an object; nil if there is none. An
// unreadable value counts as an attempt of unknown content.
func loadAttempt[T any](o client.Object) *T {
	raw, ok := o.GetAnnotations()[attemptAnnotation]
	if !ok {
		return nil
	}
	attempt := new(T)
	_ = json.Unmarshal([]byte(raw), attempt) // the zero value is an attempt at something that is not wanted
	return attempt
}

// saveAttempt writes the attempt into an object; nil removes it. The object is
// updated from the response.
func (r *Reconciler) saveAttempt(ctx context.Context, o client.Object, attempt any) error {
	var value any // null removes the annotation (RFC 7396)
	if attempt != nil {
		raw, err := json.Marshal(attempt)
		if err != nil {
			return fmt.Errorf("firmware: %s: %w", o.GetName(), err)
		}
		value = string(raw)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{attemptAnnotation: value}}})
	if err != nil {
		return fmt.Errorf("firmware: %s: %w", o.GetName(), err)
	}
	if err := r.Client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return err
	}
	r.read.Wrote(o)
	return nil
}

// isIdle reports whether a host is in a stable state, so that its status describes
// its server.
func isIdle(h *metal3.BareMetalHost) bool {
	s := h.Status.Provisioning.State
	return s == metal3.StateAvailable || s == metal3.StateReady
}

// advanceRestart takes the next step of a restart, whose POST applies pending
// settings and images: it powers off a system that is on, and powers on one that
// is off after note has recorded that. With a reset in one step a controller could
// not know after a crash whether it happened.
func advanceRestart(ctx context.Context, c bmc.Client, s bmc.System, note func() error) error {
	action := bmc.PowerOff
	switch s.Power {
	case bmc.Off:
		if err := note(); err != nil {
			return err
		}
		action = bmc.PowerOn
	case bmc.On:
	default:
		return nil // the power is changing
	}
	if err := c.SetPower(ctx, action); err != nil {
		return fmt.Errorf("power %s: %w", action, err)
	}
	return nil
}
