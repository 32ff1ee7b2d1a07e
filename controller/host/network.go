package host

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// devices are the boot overrides of the media that agents come by over the
// network.
var devices = map[bmc.Medium]bmc.Device{bmc.MediumPXE: bmc.BootPXE, bmc.MediumHTTP: bmc.BootHTTP}

// bootable says why a host at this kind of address could never be given its
// agent. The texts are Metal3's (B-47), but the last.
func (r *Reconciler) bootable(h *metal3.BareMetalHost, a bmc.Address) error {
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

// observeNetwork makes the server known on the provisioning network, where
// there is one, and works out what it runs. A MAC address that nobody has given
// is found by the UUID that the BMC tells.
func (r *Reconciler) observeNetwork(h *metal3.BareMetalHost, o *observation) error {
	o.facts.SeenOff = !h.Status.PoweredOn
	if !r.Boot.HasNetwork() {
		return nil
	}
	return r.Boot.Know(netboot.Client{
		Host: string(h.UID), Name: h.Name, MAC: h.Spec.BootMACAddress, UUID: o.system.UUID,
	})
}

// openNetwork lets the server boot its agent by the network as long as it shall:
// whoever comes with its MAC address later gets nothing.
func (r *Reconciler) openNetwork(h *metal3.BareMetalHost, o *observation) {
	f := &o.facts
	switch {
	case f.Net == bmc.BootNone || !r.Boot.HasNetwork():
	case f.AgentUp || f.OpEnded:
		r.Boot.Close(string(h.UID))
	default:
		r.Boot.Open(o.boot)
	}
}

func (r *Reconciler) bootNetwork(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	b := bmc.Boot{Device: o.facts.Net, Mode: agentMode(h)}
	if b.Device == bmc.BootHTTP {
		b.URL, b.DHCP = r.Boot.ISO(o.boot), r.Boot.HasNetwork()
	}
	return o.client.SetBoot(ctx, b)
}
