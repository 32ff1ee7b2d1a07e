package host

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/uuid"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// This file keeps two hosts from one server: each would clean and write the other's disks. Nothing is
// switched before a host is registered, so that is where the second one waits.

// Indexes of hosts by their BMC, and by the ID of their system.
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

// checkAddressConflict returns an error if another host has the BMC address. Of two unregistered hosts
// the older one is registered.
func (r *Reconciler) checkAddressConflict(ctx context.Context, h *metal3.BareMetalHost) error {
	for _, key := range bmcKeys(h) {
		var l metal3.BareMetalHostList
		if err := r.Client.List(ctx, &l, client.MatchingFields{indexBMC: key}); err != nil {
			return fmt.Errorf("hosts of BMC address %s: %w", key, err)
		}
		for i := range l.Items {
			if other := &l.Items[i]; other.UID != h.UID && registersFirst(other, h) {
				return fmt.Errorf("BMC address %s is that of BareMetalHost %s/%s: correct spec.bmc.address, or remove one of the two", key, other.Namespace, other.Name)
			}
		}
	}
	return nil
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

// checkSystemConflict returns an error if another host has the system, by another address: it is
// registered, or this process registers it at the moment.
func (r *Reconciler) checkSystemConflict(ctx context.Context, h *metal3.BareMetalHost, s bmc.System) error {
	id := systemID(s)
	if id == "" || h.Status.Provisioning.State != metal3.StateRegistering || h.Status.Provisioning.ID != "" {
		return nil
	}
	conflict := func(with client.MatchingFields) error {
		var l metal3.BareMetalHostList
		if err := r.Client.List(ctx, &l, with); err != nil {
			return fmt.Errorf("hosts of system %s: %w", s.UUID, err)
		}
		for i := range l.Items {
			if other := &l.Items[i]; other.UID != h.UID {
				return fmt.Errorf("the system with the UUID %s is that of BareMetalHost %s/%s, whose BMC address is %s: correct spec.bmc.address, or remove one of the two",
					s.UUID, other.Namespace, other.Name, other.Spec.BMC.Address)
			}
		}
		return nil
	}
	if err := conflict(client.MatchingFields{indexSystem: id}); err != nil {
		return err
	}
	holder := r.memory.claim(h.UID, id)
	if holder == "" {
		return nil
	}
	if err := conflict(client.MatchingFields{indexUID: string(holder)}); err != nil {
		return err
	}
	r.memory.forget(holder) // it is gone
	r.memory.claim(h.UID, id)
	return nil
}
