package redfish

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func networkRows() []resource {
	const adapter = "/redfish/v1/Chassis/{chassis}/NetworkAdapters/{adapter}"
	return []resource{
		{uri: "/redfish/v1/Systems/{system}/EthernetInterfaces", schema: "EthernetInterfaceCollection", shows: PartIdentity,
			name: "Ethernet Interfaces", of: "nic"},
		{uri: "/redfish/v1/Systems/{system}/EthernetInterfaces/{nic}", schema: "EthernetInterface.v1_12_4",
			shows: PartIdentity | PartCabling | PartNICShift, read: ethernetInterface},
		{uri: "/redfish/v1/Systems/{system}/NetworkInterfaces", schema: "NetworkInterfaceCollection",
			name: "Network Interfaces", of: "adapter"},
		{uri: "/redfish/v1/Systems/{system}/NetworkInterfaces/{adapter}", schema: "NetworkInterface.v1_2_3",
			read: networkInterface},
		{uri: "/redfish/v1/Chassis/{chassis}/NetworkAdapters", schema: "NetworkAdapterCollection",
			name: "Network Adapters", of: "adapter"},
		{uri: adapter, schema: "NetworkAdapter.v1_14_0", shows: PartIdentity | PartFirmware, read: networkAdapter},
		{uri: adapter + "/Ports", schema: "PortCollection", name: "Ports", of: "port"},
		{uri: adapter + "/Ports/{port}", schema: "Port.v1_18_0", shows: PartIdentity | PartCabling | PartNICShift, read: networkPort},
		{uri: adapter + "/NetworkDeviceFunctions", schema: "NetworkDeviceFunctionCollection",
			name: "Network Device Functions", of: "port"},
		{uri: adapter + "/NetworkDeviceFunctions/{port}", schema: "NetworkDeviceFunction.v1_11_1", shows: PartIdentity | PartNICShift,
			read: networkDeviceFunction},
	}
}

// adapters are the cards that have NICs.
func adapters(v view) []machine.Card {
	var out []machine.Card
	for _, c := range v.m.Profile.Cards {
		if len(c.NICs) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// adapter is the card that the view is of.
func (v view) adapter() machine.Card { return pick(adapters(v), v.ids["adapter"], cardID) }

// nic is the NIC with an ID.
func (v view) nic(id string) machine.NIC {
	return pick(v.m.Identity.NICs, id, func(n machine.NIC) string { return n.ID })
}

// interfaceOf is the NIC that has the interface with an ID: its own, unless IDs
// have shifted.
func (v view) interfaceOf(id string) machine.NIC {
	all := v.m.Identity.NICs
	i := slices.IndexFunc(all, func(n machine.NIC) bool { return n.ID == id })
	if i < 0 {
		return machine.NIC{}
	}
	return all[(i+v.shift)%len(all)]
}

// interfaceAt is the address of the interface that a NIC has.
func (v view) interfaceAt(nic string) string {
	all := v.m.Identity.NICs
	if i := slices.IndexFunc(all, func(n machine.NIC) bool { return n.ID == nic }); i >= 0 && v.shift > 0 {
		nic = all[(i+len(all)-v.shift)%len(all)].ID
	}
	return v.system("EthernetInterfaces", nic)
}

// shiftOf is by how many places the IDs of network interfaces have shifted.
func shiftOf(at *snapshot) int {
	if !at.d.NICsRenumberAtBoot || at.m.Main == nil || at.m.Identity == nil || len(at.m.Identity.NICs) == 0 {
		return 0
	}
	return int(at.m.Boots % uint64(len(at.m.Identity.NICs)))
}

// maxMTU is the longest frame that any NIC here takes, in bytes.
const maxMTU = 9702

func linkStatus(v view, nic string) string {
	if v.m.Cabling.Linked(nic) {
		return "LinkUp"
	}
	return "LinkDown"
}

func ethernetInterface(v view) object {
	n := v.interfaceOf(v.ids["nic"])
	links := object{"Chassis": ref(v.chassis())}
	if c, ok := v.m.Profile.CardOf(n.ID); ok {
		links["NetworkDeviceFunctions"] = refs(v.chassis("NetworkAdapters", c.ID, "NetworkDeviceFunctions", n.ID))
		links["NetworkDeviceFunctions@odata.count"] = 1
		links["Ports"], links["Ports@odata.count"] = refs(v.chassis("NetworkAdapters", c.ID, "Ports", n.ID)), 1
	}
	o := object{
		"Name": "Ethernet Interface " + v.ids["nic"], "EthernetInterfaceType": "Physical", "InterfaceEnabled": true,
		"MACAddress": n.MAC, "PermanentMACAddress": n.MAC, "SpeedMbps": n.SpeedMbps, "FullDuplex": true, "AutoNeg": true,
		"MTUSize": 1500, "UefiDevicePath": n.Path(), "LinkStatus": linkStatus(v, n.ID), "Status": status("Enabled"),
		// A BMC does not know what addresses the system has.
		"IPv4Addresses": []object{}, "IPv6Addresses": []object{}, "NameServers": []string{},
		"Links": links,
	}
	if !v.m.Cabling.Linked(n.ID) {
		o["SpeedMbps"] = 0
	}
	return o
}

func networkInterface(v view) object {
	c := v.adapter()
	adapter := v.chassis("NetworkAdapters", c.ID)
	return object{
		"Name": c.Product, "Status": status("Enabled"),
		"Ports": ref(adapter + "/Ports"), "NetworkDeviceFunctions": ref(adapter + "/NetworkDeviceFunctions"),
		"Links": object{"NetworkAdapter": ref(adapter)},
	}
}

func networkAdapter(v view) object {
	c := v.adapter()
	below := func(kind string) []object {
		return list(c.NICs, func(id string) object { return ref(v.uri + "/" + kind + "/" + id) })
	}
	n := len(c.NICs)
	controller := object{
		"FirmwarePackageVersion": v.version(c.Component), "PCIeInterface": pcieInterface(c),
		"ControllerCapabilities": object{"NetworkPortCount": n, "NetworkDeviceFunctionCount": n},
		"Links": object{
			"PCIeDevices": refs(v.chassis("PCIeDevices", c.ID)), "PCIeDevices@odata.count": 1,
			"Ports": below("Ports"), "Ports@odata.count": n,
			"NetworkDeviceFunctions": below("NetworkDeviceFunctions"), "NetworkDeviceFunctions@odata.count": n,
		},
	}
	o := object{
		"Name": c.Product, "Manufacturer": c.Vendor, "Model": c.Product, "PartNumber": orNull(c.PartNumber), "SerialNumber": v.cardSerial(c),
		"Status": status("Enabled"), "Controllers": []object{controller},
	}
	if c.Slot != "" {
		o["Location"] = label(c.Slot, "Slot", ordinal("", c.ID))
	}
	return o
}

func networkPort(v view) object {
	n := v.nic(v.ids["port"])
	speed := float64(n.SpeedMbps) / 1000
	o := object{
		"Name": "Port " + n.ID, "PortId": n.ID, "PortProtocol": "Ethernet", "PortType": "BidirectionalPort", "LinkNetworkTechnology": "Ethernet",
		"InterfaceEnabled": true, "LinkState": "Enabled", "LinkStatus": linkStatus(v, n.ID), "SignalDetected": v.m.Cabling.Linked(n.ID),
		"MaxSpeedGbps": speed, "CurrentSpeedGbps": speed, "MaxFrameSize": maxMTU, "ActiveWidth": 1, "Width": 1, "Status": status("Enabled"),
		"Ethernet": object{"AssociatedMACAddresses": []string{n.MAC}, "FlowControlStatus": "None"},
		"Links":    object{"EthernetInterfaces": refs(v.interfaceAt(n.ID)), "EthernetInterfaces@odata.count": 1},
	}
	if !v.m.Cabling.Linked(n.ID) {
		o["CurrentSpeedGbps"] = 0
	}
	return o
}

func networkDeviceFunction(v view) object {
	n, c := v.nic(v.ids["port"]), v.adapter()
	port := v.chassis("NetworkAdapters", c.ID, "Ports", n.ID)
	links := object{
		"EthernetInterfaces": refs(v.interfaceAt(n.ID)), "EthernetInterfaces@odata.count": 1,
		"PhysicalNetworkPortAssignment": ref(port),
	}
	for _, f := range v.m.Profile.Functions(c) {
		if f.NIC == n.ID {
			links["PCIeFunction"] = ref(v.chassis("PCIeDevices", c.ID, "PCIeFunctions", f.ID))
		}
	}
	return object{
		"Name": "Function of port " + n.ID, "NetDevFuncType": "Ethernet", "NetDevFuncCapabilities": []string{"Ethernet"}, "DeviceEnabled": true,
		"BootMode": "PXE", "VirtualFunctionsEnabled": false, "MaxVirtualFunctions": 0, "Status": status("Enabled"),
		"Ethernet":                       object{"MACAddress": n.MAC, "PermanentMACAddress": n.MAC, "MTUSize": 1500, "MTUSizeMaximum": maxMTU},
		"AssignablePhysicalNetworkPorts": refs(port), "AssignablePhysicalNetworkPorts@odata.count": 1,
		"Links": links,
	}
}
