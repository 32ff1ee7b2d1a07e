package firmware

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// policy returns the HostUpdatePolicy of a host; without one the firmware of a
// host in use is not changed (B-220).
func (r *Reconciler) policy(ctx context.Context, h *metal3.BareMetalHost) (metal3.HostUpdatePolicySpec, error) {
	var p metal3.HostUpdatePolicy
	err := r.read.Get(ctx, client.ObjectKeyFromObject(h), &p)
	return p.Spec, client.IgnoreNotFound(err)
}

// digest returns a short hash of some strings.
func digest(words ...string) string {
	h := sha256.New()
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
