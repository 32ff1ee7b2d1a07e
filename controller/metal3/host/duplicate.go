package host

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// This file keeps two hosts from one server: each would clean and write the other's disks. Nothing is
// switched before a host is registered, so that is where the second one waits.

// Indexes of registered hosts by their BMC, and by the ID of their system.
const (
	indexBMC    = "spec.bmc.address"
	indexSystem = "status.provisioning.ID"
)

// bmcKeys returns the key of a host's BMC and system; none for an address that is missing or invalid.
// Addresses of one system that differ in spelling, scheme or encryption have one key.
func bmcKeys(h *metal3.BareMetalHost) []string {
	a, err := bmc.ParseAddress(h.Spec.BMC.Address)
	if err != nil {
		return nil
	}
	name := strings.ToLower(a.Host)
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.Unmap().String()
	}
	return []string{net.JoinHostPort(name, strconv.Itoa(int(a.Port))) + strings.TrimRight(a.Path, "/")}
}

// registeredBMC indexes registered hosts by their BMC. A host that is not registered may know no
// account of the BMC, and keeps no other from it.
func registeredBMC(h *metal3.BareMetalHost) []string {
	if h.Status.Provisioning.ID == "" {
		return nil
	}
	return bmcKeys(h)
}

// checkAddressConflict returns an error if a registered host has the BMC address.
func (r *Reconciler) checkAddressConflict(ctx context.Context, h *metal3.BareMetalHost) error {
	for _, key := range bmcKeys(h) {
		if other, err := r.another(ctx, h, client.MatchingFields{indexBMC: key}); err != nil {
			return err
		} else if other != nil {
			return addressConflict(key, other)
		}
	}
	return nil
}

func addressConflict(key string, other *metal3.BareMetalHost) error {
	return fmt.Errorf("BMC address %s is that of BareMetalHost %s/%s: correct spec.bmc.address, or remove one of the two", key, other.Namespace, other.Name)
}

// sharedUUIDs are those that boards have whose maker has set none.
var sharedUUIDs = map[uuid.UUID]bool{
	uuid.Nil: true, uuid.Max: true, uuid.MustParse("03000200-0400-0500-0006-000700080009"): true, uuid.MustParse("00020003-0004-0005-0006-000700080009"): true,
}

// systemID returns the ID of a system in status.provisioning, which is derived from the UUID that the
// BMC reports; "" for none, and for one that many servers have.
func systemID(s bmc.System) string {
	id, err := uuid.Parse(s.UUID)
	if err != nil || sharedUUIDs[id] {
		return ""
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("metal3.io system "+id.String())).String()
}

// checkSystemConflict returns an error if another host has the system, which has answered: a host that
// is registered for it by another address, or one that this process registers at the moment.
func (r *Reconciler) checkSystemConflict(ctx context.Context, h *metal3.BareMetalHost, s bmc.System) error {
	if h.Status.Provisioning.State != metal3.StateRegistering || h.Status.Provisioning.ID != "" {
		return nil
	}
	id, key := systemID(s), strings.Join(bmcKeys(h), "")
	if id != "" {
		other, err := r.another(ctx, h, client.MatchingFields{indexSystem: id})
		if err != nil {
			return err
		}
		if other != nil {
			return systemConflict(s, other)
		}
	}
	for {
		holder := r.memory.claim(h.UID, key, id)
		if holder == "" {
			return nil
		}
		switch other, err := r.another(ctx, h, client.MatchingFields{indexUID: string(holder)}); {
		case err != nil:
			return err
		case other == nil:
			r.memory.forget(holder) // it is gone
		case slices.Contains(bmcKeys(other), key):
			return addressConflict(key, other)
		default:
			return systemConflict(s, other)
		}
	}
}

func systemConflict(s bmc.System, other *metal3.BareMetalHost) error {
	return fmt.Errorf("the system with the UUID %s is that of BareMetalHost %s/%s, whose BMC address is %s: correct spec.bmc.address, or remove one of the two",
		s.UUID, other.Namespace, other.Name, other.Spec.BMC.Address)
}

// another returns a host other than h; nil when there is none.
func (r *Reconciler) another(ctx context.Context, h *metal3.BareMetalHost, with client.MatchingFields) (*metal3.BareMetalHost, error) {
	var l metal3.BareMetalHostList
	if err := r.Client.List(ctx, &l, with); err != nil {
		return nil, fmt.Errorf("hosts of the same system: %w", err)
	}
	for i := range l.Items {
		if l.Items[i].UID != h.UID {
			return &l.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // documented
}
