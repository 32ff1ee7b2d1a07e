package inventory

import (
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
)

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// Interface types of physical NICs (include/uapi/linux/if_arp.h).
const (
	arphrdEther      = "1"
	arphrdInfiniband = "32"
)

// nics reads one interface: nothing for a virtual one (bridges, bonds, VLANs, lo:
// they have no device), an entry for each address family with an address, as in
// BareMetalHost, or one without address.
func (r reader) nics(name string, addrs []string) []job.NIC {
	dir := "sys/class/net/" + name
	if !r.exists(dir + "/device") {
		return nil
	}
	if t := r.value(dir + "/type"); t != arphrdEther && t != arphrdInfiniband {
		return nil
	}
	n := job.NIC{
		Name:       name,
		MAC:        strings.ToLower(r.value(dir + "/address")),
		Carrier:    r.value(dir+"/carrier") == "1",
		PCIAddress: r.pciAddress(dir),
		VLANs:      r.vlans(name),
	}
	n.PXE = n.MAC != "" && n.MAC == r.bootMAC()
	vendor, device := r.value(dir+"/device/vendor"), r.value(dir+"/device/device")
	if vendor != "" && device != "" {
		n.Model = vendor + " " + device
	}
	if mbps, err := strconv.Atoi(r.value(dir + "/speed")); err == nil && mbps > 0 && n.Carrier {
		n.SpeedMbps = mbps
	}
	v4, v6 := firstAddresses(addrs)
	var out []job.NIC
	for _, ip := range []string{v4, v6} {
		if ip != "" {
			n.IP = ip
			out = append(out, n)
		}
	}
	if out == nil {
		out = append(out, n)
	}
	return out
}

// bootMAC returns the MAC address of the NIC that the system was booted through,
// from the network boot program's kernel argument: BOOTIF=01-aa-bb-cc-dd-ee-ff,
// where 01 is the hardware type (pxelinux's ipappend 2, which iPXE scripts
// follow).
func (r reader) bootMAC() string {
	for word := range strings.FieldsSeq(r.text("proc/cmdline")) {
		if v, ok := strings.CutPrefix(word, "BOOTIF="); ok {
			if len(v) == len("01-aa-bb-cc-dd-ee-ff") {
				v = v[3:]
			}
			return strings.ToLower(strings.ReplaceAll(v, "-", ":"))
		}
	}
	return ""
}

// vlans returns the VLANs with interfaces on a NIC. The kernel lists them as
// "eno1.100 | 100 | eno1", below two lines of headings.
func (r reader) vlans(nic string) []job.VLAN {
	var out []job.VLAN
	for line := range strings.Lines(r.text("proc/net/vlan/config")) {
		fields := strings.Split(line, "|")
		if len(fields) != 3 || strings.TrimSpace(fields[2]) != nic {
			continue
		}
		if id, err := strconv.Atoi(strings.TrimSpace(fields[1])); err == nil && id >= 1 && id <= maxVLAN {
			out = mergeVLANs(out, []job.VLAN{{ID: id, Name: strings.TrimSpace(fields[0])}})
		}
	}
	return out
}

// firstAddresses returns the first reachable address of each family.
func firstAddresses(addrs []string) (v4, v6 string) {
	for _, a := range addrs {
		ip, err := netip.ParseAddr(a)
		switch {
		case err != nil || ip.IsLinkLocalUnicast() || ip.IsLoopback():
		case ip.Unmap().Is4() && v4 == "":
			v4 = ip.Unmap().String()
		case ip.Is6() && !ip.Is4In6() && v6 == "":
			v6 = ip.String()
		}
	}
	return v4, v6
}

// pciAddress returns the PCI function of an interface's device, or of its parent:
// a virtio device is below its function.
func (r reader) pciAddress(dir string) string {
	for at := r.readLink(dir); at != "" && at != "."; at = path.Dir(at) {
		if base := path.Base(at); pciAddress.MatchString(base) {
			return base
		}
	}
	return ""
}
