package firmware

import (
	"context"
	"encoding/json"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// attemptAnnotation holds, in an object that asks for a change, how far the
// attempt to bring it about is. It is written before anything is done to the
// server and goes when the server was found as wanted: a host without it has
// nothing half done to its firmware, whoever was killed meanwhile.
const attemptAnnotation = "metalab.dev/attempt"

// load reads the attempt that an object is in; nil when it is in none. One that
// cannot be read counts as one of which nothing is known.
func load[T any](o client.Object) *T {
	raw, ok := o.GetAnnotations()[attemptAnnotation]
	if !ok {
		return nil
	}
	at := new(T)
	_ = json.Unmarshal([]byte(raw), at) // zero is an attempt at nothing that is wanted now
	return at
}

// save writes the attempt that an object is in; nil ends it. The object is as
// it is then stored.
func (r *Reconciler) save(ctx context.Context, o client.Object, at any) error {
	var value any // null takes the annotation away (RFC 7396)
	if at != nil {
		raw, err := json.Marshal(at)
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

// idle says whether a host is at rest, so that its status tells what its server
// is like.
func idle(h *metal3.BareMetalHost) bool {
	s := h.Status.Provisioning.State
	return s == metal3.StateAvailable || s == metal3.StateReady
}

// startAnew takes the next step towards a start of a system, whose POST is when
// settings and images that wait are applied: a system that is on is switched
// off, and one that is off is switched on once note has noted that. A reset in
// one step would leave whoever comes after a crash in doubt whether it was.
func startAnew(ctx context.Context, c bmc.Client, s bmc.System, note func() error) error {
	action := bmc.PowerOff
	switch s.Power {
	case bmc.Off:
		if err := note(); err != nil {
			return err
		}
		action = bmc.PowerOn
	case bmc.On:
	default:
		return nil // it is on its way
	}
	if err := c.SetPower(ctx, action); err != nil {
		return fmt.Errorf("power %s: %w", action, err)
	}
	return nil
}
