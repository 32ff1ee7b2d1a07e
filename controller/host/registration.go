package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// byMAC indexes hosts by their boot MAC address, in lower case.
const byMAC = "spec.bootMACAddress"

// registrable says what beside its BMC keeps a host from being registered (B-47). The texts are Metal3's.
func (r *Reconciler) registrable(ctx context.Context, h *metal3.BareMetalHost) error {
	if h.Status.Provisioning.State != metal3.StateRegistering {
		return nil
	}
	if err := r.claimNetworkData(ctx, h); apierrors.IsNotFound(err) {
		return fmt.Errorf("failed to read preprovisioningNetworkData: %v", err) //nolint:errorlint // not %w: it does not pass by itself
	} else if err != nil {
		return err
	}
	return r.conflicting(ctx, h)
}

// conflicting says which other host has the boot MAC address (B-141). Of two
// that want to be registered the older one may.
func (r *Reconciler) conflicting(ctx context.Context, h *metal3.BareMetalHost) error {
	if h.Spec.BootMACAddress == "" {
		return nil
	}
	var l metal3.BareMetalHostList
	if err := r.Client.List(ctx, &l, client.MatchingFields{byMAC: strings.ToLower(h.Spec.BootMACAddress)}); err != nil {
		return fmt.Errorf("hosts of MAC address %s: %w", h.Spec.BootMACAddress, err)
	}
	for i := range l.Items {
		if other := &l.Items[i]; other.UID != h.UID && goesBefore(other, h) {
			return fmt.Errorf("MAC address %s conflicts with existing node %s", h.Spec.BootMACAddress, nodeName(other))
		}
	}
	return nil
}

// goesBefore orders hosts that want the same: registered ones, then the age.
func goesBefore(a, b *metal3.BareMetalHost) bool {
	if ra, rb := a.Status.Provisioning.ID != "", b.Status.Provisioning.ID != ""; ra != rb {
		return ra
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return nodeName(a) < nodeName(b)
}

// nodeName is what upstream calls a host in its provisioner.
func nodeName(h *metal3.BareMetalHost) string { return h.Namespace + "~" + h.Name }

// ownSecrets are the Secrets that belong to a host: of its BMC, and of the
// network that its agent shall have (B-10, B-71).
func ownSecrets(h *metal3.BareMetalHost) (names []string) {
	for _, n := range []string{h.Spec.BMC.CredentialsName, h.Spec.PreprovisioningNetworkDataName} {
		if n != "" {
			names = append(names, n)
		}
	}
	return names
}

// claimNetworkData marks the Secret of the agent's network as the host's.
func (r *Reconciler) claimNetworkData(ctx context.Context, h *metal3.BareMetalHost) error {
	if h.Spec.PreprovisioningNetworkDataName == "" {
		return nil
	}
	var s corev1.Secret
	if err := r.read.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: h.Spec.PreprovisioningNetworkDataName}, &s); err != nil {
		return err
	}
	return r.adoptSecret(ctx, h, &s)
}

// hopeless says whether only an edit can help: nothing is tried again until then
// (B-112).
func hopeless(err error) bool {
	var bad *credentialsError
	var unknown *bmc.UnknownTypeError
	return errors.As(err, &bad) && !bad.missing || errors.As(err, &unknown) ||
		errors.Is(err, bmc.ErrNoAddress) || errors.Is(err, bmc.ErrNoCredentials)
}

// ofCredentials says whether an error is about what the host's BMC details say,
// and not about what its BMC makes of them (B-111, B-112).
func ofCredentials(err error) bool {
	var bad *credentialsError
	return hopeless(err) || errors.As(err, &bad)
}
