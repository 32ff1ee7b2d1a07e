package resource

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func networkRows() []Row {
	const adapter = "/redfish/v1/Chassis/{chassis}/NetworkAdapters/{adapter}"
	return []Row{
		{URI: "/redfish/v1/Systems/{system}/EthernetInterfaces", Schema: "EthernetInterfaceCollection", DependsOn: partIdentity,
			collectionName: "Ethernet Interfaces", memberVariable: "nic"},
		{URI: "/redfish/v1/Systems/{system}/EthernetInterfaces/{nic}", Schema: "EthernetInterface.v1_12_4",
			DependsOn: partIdentity | partCabling | partNICShift, Read: ethernetInterface},
		{URI: "/redfish/v1/Systems/{system}/NetworkInterfaces", Schema: "NetworkInterfaceCollection",
			collectionName: "Network Interfaces", memberVariable: "adapter"},
		{URI: "/redfish/v1/Systems/{system}/NetworkInterfaces/{adapter}", Schema: "NetworkInterface.v1_2_3",
			Read: networkInterface},
		{URI: "/redfish/v1/Chassis/{chassis}/NetworkAdapters", Schema: "NetworkAdapterCollection",
			collectionName: "Network Adapters", memberVariable: "adapter"},
		{URI: adapter, Schema: "NetworkAdapter.v1_14_0", DependsOn: partIdentity | partFirmware, Read: networkAdapter},
		{URI: adapter + "/Ports", Schema: "PortCollection", collectionName: "Ports", memberVariable: "port"},
		{URI: adapter + "/Ports/{port}", Schema: "Port.v1_18_0", DependsOn: partIdentity | partCabling | partNICShift, Read: networkPort},
		{URI: adapter + "/NetworkDeviceFunctions", Schema: "NetworkDeviceFunctionCollection",
			collectionName: "Network Device Functions", memberVariable: "port"},
		{URI: adapter + "/NetworkDeviceFunctions/{port}", Schema: "NetworkDeviceFunction.v1_11_1", DependsOn: partIdentity | partNICShift,
			Read: networkDeviceFunction},
	}
}

// networkAdapters returns the cards that have NICs.
func networkAdapters(v View) []machine.Card {
	var out []machine.Card
	for _, c := range v.Machine.Profile.Cards {
		if len(c.NICs) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// adapter returns the card of the view's NetworkAdapter.
func (v View) adapter() machine.Card { return Find(networkAdapters(v), v.IDs["adapter"], cardID) }

// nic returns the NIC with the ID.
func (v View) nic(id string) machine.NIC {
	return Find(v.Machine.Identity.NICs, id, func(n machine.NIC) string { return n.ID })
}

// nicOfInterface returns the NIC of the EthernetInterface with the ID. It is the NIC with
// the same ID, unless the interface IDs have shifted at a boot.
func (v View) nicOfInterface(id string) machine.NIC {
	all := v.Machine.Identity.NICs
	i := slices.IndexFunc(all, func(n machine.NIC) bool { return n.ID == id })
	if i < 0 {
		return machine.NIC{}
	}
	return all[(i+v.shift)%len(all)]
}

// interfaceURI returns the URI of the EthernetInterface of a NIC.
func (v View) interfaceURI(nic string) string {
	all := v.Machine.Identity.NICs
	if i := slices.IndexFunc(all, func(n machine.NIC) bool { return n.ID == nic }); i >= 0 && v.shift > 0 {
		nic = all[(i+len(all)-v.shift)%len(all)].ID
	}
	return v.system("EthernetInterfaces", nic)
}

// nicShift returns by how many places the IDs of the EthernetInterfaces have shifted. It is
// 0 unless the dialect renumbers NICs at boot.
func nicShift(at *Snapshot) int {
	if !at.Dialect.NICsRenumberAtBoot || at.Machine.Main == nil || at.Machine.Identity == nil || len(at.Machine.Identity.NICs) == 0 {
		return 0
	}
	return int(at.Machine.Boots % uint64(len(at.Machine.Identity.NICs)))
}

// maxMTU is the longest frame that a NIC accepts, in bytes.
const maxMTU = 9702

func linkStatus(v View, nic string) string {
	if v.Machine.Cabling.Linked(nic) {
		return "LinkUp"
	}
	return "LinkDown"
}

func ethernetInterface(v View) Object {
	n := v.nicOfInterface(v.IDs["nic"])
	links := Object{"Chassis": Ref(v.chassis())}
	if c, ok := v.Machine.Profile.CardOf(n.ID); ok {
		links["NetworkDeviceFunctions"] = refs(v.chassis("NetworkAdapters", c.ID, "NetworkDeviceFunctions", n.ID))
		links["NetworkDeviceFunctions@odata.count"] = 1
		links["Ports"], links["Ports@odata.count"] = refs(v.chassis("NetworkAdapters", c.ID, "Ports", n.ID)), 1
	}
	o := Object{
		"Name": "Ethernet Interface " + v.IDs["nic"], "EthernetInterfaceType": "Physical", "InterfaceEnabled": true,
		"MACAddress": n.MAC, "PermanentMACAddress": n.MAC, "SpeedMbps": n.SpeedMbps, "FullDuplex": true, "AutoNeg": true,
		"MTUSize": 1500, "UefiDevicePath": n.Path(), "LinkStatus": linkStatus(v, n.ID), "Status": status("Enabled"),
		// A BMC does not know what addresses the system has.
		"IPv4Addresses": []Object{}, "IPv6Addresses": []Object{}, "NameServers": []string{},
		"Links": links,
	}
	if !v.Machine.Cabling.Linked(n.ID) {
		o["SpeedMbps"] = 0
	}
	return o
}

func networkInterface(v View) Object {
	c := v.adapter()
	adapter := v.chassis("NetworkAdapters", c.ID)
	return Object{
		"Name": c.Product, "Status": status("Enabled"),
		"Ports": Ref(adapter + "/Ports"), "NetworkDeviceFunctions": Ref(adapter + "/NetworkDeviceFunctions"),
		"Links": Object{"NetworkAdapter": Ref(adapter)},
	}
}

func networkAdapter(v View) Object {
	c := v.adapter()
	below := func(kind string) []Object {
		return Map(c.NICs, func(id string) Object { return Ref(v.URI + "/" + kind + "/" + id) })
	}
	n := len(c.NICs)
	controller := Object{
		"FirmwarePackageVersion": v.firmwareVersion(c.Component), "PCIeInterface": pcieInterface(c),
		"ControllerCapabilities": Object{"NetworkPortCount": n, "NetworkDeviceFunctionCount": n},
		"Links": Object{
			"PCIeDevices": refs(v.chassis("PCIeDevices", c.ID)), "PCIeDevices@odata.count": 1,
			"Ports": below("Ports"), "Ports@odata.count": n,
			"NetworkDeviceFunctions": below("NetworkDeviceFunctions"), "NetworkDeviceFunctions@odata.count": n,
		},
	}
	o := Object{
		"Name": c.Product, "Manufacturer": c.Vendor, "Model": c.Product, "PartNumber": orNull(c.PartNumber), "SerialNumber": v.cardSerial(c),
		"Status": status("Enabled"), "Controllers": []Object{controller},
	}
	if c.Slot != "" {
		o["Location"] = partLocation(c.Slot, "Slot", ordinal("", c.ID))
	}
	return o
}

func networkPort(v View) Object {
	n := v.nic(v.IDs["port"])
	speed := float64(n.SpeedMbps) / 1000
	o := Object{
		"Name": "Port " + n.ID, "PortId": n.ID, "PortProtocol": "Ethernet", "PortType": "BidirectionalPort", "LinkNetworkTechnology": "Ethernet",
		"InterfaceEnabled": true, "LinkState": "Enabled", "LinkStatus": linkStatus(v, n.ID), "SignalDetected": v.Machine.Cabling.Linked(n.ID),
		"MaxSpeedGbps": speed, "CurrentSpeedGbps": speed, "MaxFrameSize": maxMTU, "ActiveWidth": 1, "Width": 1, "Status": status("Enabled"),
		"Ethernet": Object{"AssociatedMACAddresses": []string{n.MAC}, "FlowControlStatus": "None"},
		"Links":    Object{"EthernetInterfaces": refs(v.interfaceURI(n.ID)), "EthernetInterfaces@odata.count": 1},
	}
	if !v.Machine.Cabling.Linked(n.ID) {
		o["CurrentSpeedGbps"] = 0
	}
	return o
}

func networkDeviceFunction(v View) Object {
	n, c := v.nic(v.IDs["port"]), v.adapter()
	port := v.chassis("NetworkAdapters", c.ID, "Ports", n.ID)
	links := Object{
		"EthernetInterfaces": refs(v.interfaceURI(n.ID)), "EthernetInterfaces@odata.count": 1,
		"PhysicalNetworkPortAssignment": Ref(port),
	}
	for _, f := range v.Machine.Profile.Functions(c) {
		if f.NIC == n.ID {
			links["PCIeFunction"] = Ref(v.chassis("PCIeDevices", c.ID, "PCIeFunctions", f.ID))
		}
	}
	return Object{
		"Name": "Function of port " + n.ID, "NetDevFuncType": "Ethernet", "NetDevFuncCapabilities": []string{"Ethernet"}, "DeviceEnabled": true,
		"BootMode": "PXE", "VirtualFunctionsEnabled": false, "MaxVirtualFunctions": 0, "Status": status("Enabled"),
		"Ethernet":                       Object{"MACAddress": n.MAC, "PermanentMACAddress": n.MAC, "MTUSize": 1500, "MTUSizeMaximum": maxMTU},
		"AssignablePhysicalNetworkPorts": refs(port), "AssignablePhysicalNetworkPorts@odata.count": 1,
		"Links": links,
	}
}
