package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// UEFI device paths as text (UEFI 2.10, §10.6.1).

const (
	// usbPath is the path of the BMC's virtual media: a hub on the chip set's
	// USB controller.
	usbPath = "PciRoot(0x0)/Pci(0x14,0x0)/USB(0xD,0x0)/USB(0x1,0x0)"
	// sataPath is the path of the chip set's SATA controller.
	sataPath = "PciRoot(0x0)/Pci(0x17,0x0)"
	anyIPv4  = "/IPv4(0.0.0.0,0x0,DHCP,0.0.0.0,0.0.0.0,0.0.0.0)"
)

// pciPath returns the path of a PCI function address like 0000:3b:00.1. Each
// bus with a card is below a root port whose root bridge has the bus's number.
func pciPath(address string) string {
	part := func(from, to int) uint64 {
		n, err := strconv.ParseUint(address[from:to], 16, 8)
		if err != nil {
			return 0
		}
		return n
	}
	if !pciAddress.MatchString(address) {
		return "PciRoot(0x0)"
	}
	return fmt.Sprintf("PciRoot(0x%X)/Pci(0x%X,0x%X)", part(5, 7), part(8, 10), part(11, 12))
}

// Path returns the network interface's device path; its type is Ethernet, 1.
func (n NIC) Path() string {
	return pciPath(n.PCIAddress) + "/MAC(" + strings.ToUpper(strings.ReplaceAll(n.MAC, ":", "")) + ",0x1)"
}

// drivePath returns the path of a drive below its controller.
func (p *Profile) drivePath(c *storage.Controller, d *storage.DriveView) string {
	switch d.Protocol {
	case storage.NVMe:
		var eui []string
		for w := d.WWN; len(w) >= 2; w = w[2:] {
			eui = append(eui, strings.ToUpper(w[:2]))
		}
		return fmt.Sprintf("PciRoot(0x%X)/Pci(0x0,0x0)/NVMe(0x1,%s)", 0x80+d.Bay, strings.Join(eui, "-"))
	case storage.SAS:
		return p.controllerPath(c) + "/SAS(0x" + strings.ToUpper(d.WWN) + ",0x0,0x0,NoTopology,0,0,0x0)"
	}
	return fmt.Sprintf("%s/Sata(0x%X,0xFFFF,0x0)", p.controllerPath(c), d.Bay)
}

// volumePath returns the path of a volume, which its controller presents as a
// SCSI target.
func (p *Profile) volumePath(id *Identity, v *storage.VolumeView) string {
	i := slices.IndexFunc(id.Storage, func(c storage.Controller) bool { return c.ID == v.Controller })
	return fmt.Sprintf("%s/Scsi(0x%X,0x0)", p.controllerPath(&id.Storage[i]), volumeNumber(v))
}

// controllerPath returns the path of a storage controller: its card's, or the
// chip set's SATA controller.
func (p *Profile) controllerPath(c *storage.Controller) string {
	for _, card := range p.Cards {
		if card.Storage == c.ID {
			return pciPath(card.PCIAddress)
		}
	}
	return sataPath
}
