package host

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// netBootDevices maps boot media to the boot override for the agent, for media
// over the network.
var netBootDevices = map[bmc.Medium]bmc.Device{bmc.MediumPXE: bmc.BootPXE, bmc.MediumHTTP: bmc.BootHTTP}

// checkBootable returns an error if a host with this kind of address can never
// boot its agent. The texts are Metal3's (B-47), except for the last.
func (r *Reconciler) checkBootable(h *metal3.BareMetalHost, a bmc.Address) error {
	mode := h.BootMode()
	switch {
	case h.Spec.BootMACAddress == "" && (a.NeedsMAC || h.InspectionDisabled()):
		return fmt.Errorf("BMC driver %s requires a BootMACAddress value", a.Hardware)
	case a.NeedsNetwork && !r.Boot.HasNetwork():
		return fmt.Errorf("BMC driver %s requires a provisioning network", a.Hardware)
	case mode == metal3.UEFISecureBoot && !a.SecureBoot:
		return fmt.Errorf("BMC driver %s does not support secure boot", a.Hardware)
	case mode == metal3.Legacy && a.Boot == bmc.MediumHTTP:
		return fmt.Errorf("BMC type %s boots by HTTP, which legacy firmware cannot: set bootMode to UEFI", a.Scheme)
	}
	return nil
}

// observeNetwork registers the server with the boot service of the provisioning
// network, if there is one. A server without a boot MAC address is found by the
// UUID that its BMC reports.
func (r *Reconciler) observeNetwork(h *metal3.BareMetalHost, o *observation) error {
	if !r.Boot.HasNetwork() {
		return nil
	}
	return r.Boot.Know(netboot.Client{
		Host: string(h.UID), Name: h.Name, MAC: h.Spec.BootMACAddress, UUID: o.system.UUID,
	})
}

func (r *Reconciler) bootNetwork(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	b := bmc.Boot{Device: o.facts.NetBoot, Mode: agentMode(h)}
	if b.Device == bmc.BootHTTP {
		b.URL, b.DHCP = r.Boot.ISO(o.boot), r.Boot.HasNetwork()
	}
	return o.client.SetBoot(ctx, b)
}
