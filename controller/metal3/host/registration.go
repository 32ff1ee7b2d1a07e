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

// indexMAC indexes hosts by their boot MAC address, in lower case.
const indexMAC = "spec.bootMACAddress"

// checkRegistration returns an error if anything but the BMC prevents the
// registration of a host (B-47). The texts are Metal3's.
func (r *Reconciler) checkRegistration(ctx context.Context, h *metal3.BareMetalHost) error {
	if h.Status.Provisioning.State != metal3.StateRegistering {
		return nil
	}
	if err := r.adoptNetworkData(ctx, h); apierrors.IsNotFound(err) {
		return fmt.Errorf("failed to read preprovisioningNetworkData: %v", err) //nolint:errorlint // not %w: the error is not temporary
	} else if err != nil {
		return err
	}
	if err := r.checkMACConflict(ctx, h); err != nil {
		return err
	}
	return r.checkAddressConflict(ctx, h)
}

// checkMACConflict returns an error if another host has the boot MAC address
// (B-141). Of two unregistered hosts the older one is registered.
func (r *Reconciler) checkMACConflict(ctx context.Context, h *metal3.BareMetalHost) error {
	if h.Spec.BootMACAddress == "" {
		return nil
	}
	var l metal3.BareMetalHostList
	if err := r.Client.List(ctx, &l, client.MatchingFields{indexMAC: strings.ToLower(h.Spec.BootMACAddress)}); err != nil {
		return fmt.Errorf("hosts of MAC address %s: %w", h.Spec.BootMACAddress, err)
	}
	for i := range l.Items {
		if other := &l.Items[i]; other.UID != h.UID && registersFirst(other, h) {
			return fmt.Errorf("MAC address %s conflicts with existing node %s", h.Spec.BootMACAddress, nodeName(other))
		}
	}
	return nil
}

// registersFirst orders hosts with the same MAC address: registered ones first,
// then by age.
func registersFirst(a, b *metal3.BareMetalHost) bool {
	if ra, rb := a.Status.Provisioning.ID != "", b.Status.Provisioning.ID != ""; ra != rb {
		return ra
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return nodeName(a) < nodeName(b)
}

// nodeName returns upstream's name of a host in its provisioner.
func nodeName(h *metal3.BareMetalHost) string { return h.Namespace + "~" + h.Name }

// hostSecrets returns the names of the Secrets that belong to a host: of its BMC
// and of its agent's network (B-10, B-71).
func hostSecrets(h *metal3.BareMetalHost) (names []string) {
	for _, n := range []string{h.Spec.BMC.CredentialsName, h.Spec.PreprovisioningNetworkDataName} {
		if n != "" {
			names = append(names, n)
		}
	}
	return names
}

// adoptNetworkData adopts the Secret with the network data of the agent.
func (r *Reconciler) adoptNetworkData(ctx context.Context, h *metal3.BareMetalHost) error {
	if h.Spec.PreprovisioningNetworkDataName == "" {
		return nil
	}
	var s corev1.Secret
	if err := r.read.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: h.Spec.PreprovisioningNetworkDataName}, &s); err != nil {
		return err
	}
	return r.adoptSecret(ctx, h, &s)
}

// needsEdit reports whether only an edit can help: nothing is retried before
// (B-112).
func needsEdit(err error) bool {
	var bad *credentialsError
	var unknown *bmc.UnknownTypeError
	return errors.As(err, &bad) && !bad.missing || errors.As(err, &unknown) ||
		errors.Is(err, bmc.ErrNoAddress) || errors.Is(err, bmc.ErrNoCredentials) || errors.Is(err, bmc.ErrPrivilege)
}

// lacksDetails reports whether an error means that the address of the BMC or its
// credentials are not known, because a field of the host, its Secret or a key of that
// is missing or empty (B-80).
func lacksDetails(err error) bool {
	var bad *credentialsError
	return errors.As(err, &bad) || errors.Is(err, bmc.ErrNoAddress) || errors.Is(err, bmc.ErrNoCredentials)
}

// isCredentialsError reports whether an error is about the BMC details of the
// host, and not about the BMC (B-111, B-112).
func isCredentialsError(err error) bool {
	var bad *credentialsError
	return needsEdit(err) || errors.As(err, &bad)
}
