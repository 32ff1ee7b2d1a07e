package systest

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// pciPath returns the path of a PCI function in sysfs: on the root bus, or behind
// a root port of the bus before its own.
func pciPath(addr string) string {
	var domain, bus, slot, function int
	if _, err := fmt.Sscanf(addr, "%x:%x:%x.%x", &domain, &bus, &slot, &function); err != nil || bus == 0 {
		return "sys/devices/pci0000:00/" + addr
	}
	return fmt.Sprintf("sys/devices/pci%04x:%02x/%04x:%02x:00.0/%s", domain, bus-1, domain, bus-1, addr)
}

func renderNICs(t *tree, nics []NIC) {
	for i, n := range nics {
		pci := n.PCI
		if pci == "" {
			pci = fmt.Sprintf("0000:%02x:00.%d", 0x18+i/8, i%8)
		}
		device := pciPath(pci)
		t.line(device+"/vendor", fmt.Sprintf("0x%04x", n.Vendor))
		t.line(device+"/device", fmt.Sprintf("0x%04x", n.Device))
		t.line(device+"/class", "0x020000")
		ifc := device + "/net/" + n.Name
		renderInterface(t, ifc, n.Name, i+2, 1, strings.ToLower(n.MAC))
		t.link(ifc+"/device", device)
		switch {
		case n.Down:
			t.broken(ifc+"/carrier", syscall.EINVAL)
			t.broken(ifc+"/speed", syscall.EINVAL)
			t.line(ifc+"/operstate", "down")
		case n.Carrier:
			t.line(ifc+"/carrier", "1")
			t.line(ifc+"/speed", strconv.Itoa(n.Mbps))
			t.line(ifc+"/operstate", "up")
		default:
			t.line(ifc+"/carrier", "0")
			t.line(ifc+"/speed", "-1")
			t.line(ifc+"/operstate", "down")
		}
	}
}

// renderVLANs writes the list of VLAN interfaces (net/8021q, vlanproc.c) and each
// interface. Without VLANs there is no list.
func renderVLANs(t *tree, nics []NIC) {
	list := fmt.Sprintf("%-15s| %s\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n", "VLAN Dev name", "VLAN ID")
	index := len(nics) + 2
	some := false
	for _, n := range nics {
		for _, id := range n.VLANs {
			name := fmt.Sprintf("%s.%d", n.Name, id)
			list += fmt.Sprintf("%-15s| %d  | %s\n", name, id, n.Name)
			renderInterface(t, "sys/devices/virtual/net/"+name, name, index, 1, strings.ToLower(n.MAC))
			index, some = index+1, true
		}
	}
	if some {
		t.file("proc/net/vlan/config", list)
	}
}

// renderInterface writes the attributes of every interface; kind is its ARPHRD
// number.
func renderInterface(t *tree, path, name string, index, kind int, mac string) {
	t.link("sys/class/net/"+name, path)
	t.line(path+"/address", mac)
	t.line(path+"/type", strconv.Itoa(kind))
	t.line(path+"/ifindex", strconv.Itoa(index))
	t.line(path+"/mtu", "1500")
}

// renderVirtual writes the virtual interfaces of every Linux.
func renderVirtual(t *tree) {
	const lo = "sys/devices/virtual/net/lo"
	renderInterface(t, lo, "lo", 1, 772, "00:00:00:00:00:00")
	t.line(lo+"/carrier", "1")
	t.broken(lo+"/speed", syscall.EINVAL)
	t.line(lo+"/operstate", "unknown")
	for i, name := range []string{"loop0", "loop1"} {
		path := "sys/devices/virtual/block/" + name
		renderBlock(t, path, name, fmt.Sprintf("7:%d", i), 0, false)
		t.line(path+"/removable", "0")
		t.line(path+"/ro", "0")
	}
}
