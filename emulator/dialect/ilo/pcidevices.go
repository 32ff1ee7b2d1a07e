package ilo

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// The system has OEM resources of its PCI devices and slots, of its network adapters and
// of USB devices, to which Oem.Hpe.Links of the system leads [V docs, ComputerSystem,
// Links to other Resources, and HpeServerPciDevice, HpeServerPCISlot,
// HpeBaseNetworkAdapter, HpeUSBDevice; NVIDIA/libredfish, tests/mockups/hpe: iLO 5 2.72].
// Devices without a card of their own in the model, such as USB ports, are missing.
const (
	pciDevices   = system + "/PCIDevices"
	pciSlots     = system + "/PCISlots"
	baseAdapters = system + "/BaseNetworkAdapters"
	usbDevices   = system + "/USBDevices"

	standardCards    = chassis + "/PCIeDevices"
	standardAdapters = chassis + "/NetworkAdapters"
	firstFunction    = standardCards + "/{card}/PCIeFunctions/0#"
	slotLabel        = "Slot/Location/PartLocation/ServiceLabel"
)

// cardProperties returns the properties of a standard PCIeDevice that a resource lacks.
func cardProperties(more string) []string {
	return []string{"Manufacturer", "Model", "PartNumber", "SerialNumber", "FirmwareVersion", "PCIeInterface", "Links", "Slot", "PCIeFunctions", "DeviceClass", more}
}

// pciAddress sets the address of a device.
func pciAddress() []propertyRule {
	return []propertyRule{
		{Path: "BusNumber", From: firstFunction + "BusNumber", Number: true}, {Path: "DeviceNumber", From: firstFunction + "DeviceNumber", Number: true},
		{Path: "FunctionNumber", From: firstFunction + "FunctionNumber", Number: true},
	}
}

// devices returns the resources of the devices.
func devices(g generation) []dialect.Resource {
	typeOf := func(name, version string) string { return g.oem + name + version + "." + g.oem + name }
	all := []dialect.Resource{
		{URI: pciDevices, Type: typeOf("ServerPciDeviceCollection", ""), Name: "PciDevices", BasedOn: standardCards},
		{URI: pciDevices + "/{card}", Type: typeOf("ServerPciDevice", ".v2_0_0"), BasedOn: standardCards + "/{card}", Remove: cardProperties("Status"),
			Set: append(pciAddress(), []propertyRule{
				{Path: "SegmentNumber", From: firstFunction + "SegmentNumber", Number: true},
				{Path: "VendorID", From: firstFunction + "VendorId", Number: true}, {Path: "DeviceID", From: firstFunction + "DeviceId", Number: true},
				{Path: "SubsystemVendorID", From: firstFunction + "SubsystemVendorId", Number: true},
				{Path: "SubsystemDeviceID", From: firstFunction + "SubsystemId", Number: true},
				{Path: "DeviceClass", From: firstFunction + "DeviceClass"},
				{Path: "ClassCode", From: "DeviceClass", Map: dict{"MassStorageController": 1, "NetworkController": 2, "DisplayController": 3}, Value: 0xff},
				{Path: "SubclassCode", From: firstFunction + "ClassCode", Map: dict{"0x010400": 4, "0x010600": 6, "0x010700": 7, "0x010802": 8}, Value: 0},
				{Path: "DeviceType", From: "DeviceClass", Map: dict{"NetworkController": "NIC", "DisplayController": "Video", "MassStorageController": "Storage Array Controller"}, Value: "Other PCI Device"},
				{Path: "DeviceLocation", Value: "Embedded"}, {Path: "DeviceLocation", From: slotLabel},
				{Path: "LocationString", From: "Name"}, {Path: "LocationString", From: slotLabel},
				{Path: "Bifurcated", Value: "BifurcationNotSupported"}, {Path: "DeviceInstance", Value: 1}, {Path: "DeviceSubInstance", Value: 1},
			}...)},
		{URI: pciSlots, Type: typeOf("ServerPCISlotCollection", ""), Name: "PciSlots", BasedOn: standardCards},
		{URI: pciSlots + "/{card}", Type: typeOf("ServerPCISlot", ".v2_1_1"), BasedOn: standardCards + "/{card}", RequiredProperty: "Slot", Remove: cardProperties("DeviceType"),
			Set: append(pciAddress(), []propertyRule{
				{Path: "Name", From: slotLabel}, {Path: "LinkLanes", From: "Slot/Lanes", Format: "x%"}, {Path: "Technology", From: "Slot/PCIeType", Format: "PCIExpress%"},
				{Path: "SupportsHotPlug", From: "Slot/HotPluggable"},
				{Path: "Status", Value: dict{"OperationalStatus": []any{dict{"Status": "InUse"}}}},
				{Path: "Characteristics", Value: dict{"Provides3_3Volts": true, "SupportsPowerManagementEventSignal": true}},
			}...)},
		// No USB device is plugged in [V mock-up: the same].
		{URI: usbDevices, Type: typeOf("USBDevicesCollection", ""), Name: "USB Device collection", Set: []propertyRule{{Path: "Members", Value: []any{}}}},
	}
	if g.n > 5 {
		return all
	}
	return append(all,
		dialect.Resource{URI: baseAdapters, Type: typeOf("BaseNetworkAdapterCollection", ""), Name: "NetworkAdapters Collection", BasedOn: standardAdapters},
		dialect.Resource{
			URI: baseAdapters + "/{adapter}", Type: typeOf("BaseNetworkAdapter", ".v2_0_0"), BasedOn: standardAdapters + "/{adapter}", Read: physicalPorts,
			Set: []propertyRule{
				{Path: "Firmware/Current/VersionString", From: "Controllers/0/FirmwarePackageVersion"}, {Path: "FcPorts", Value: []any{}},
				{Path: "Location", From: "Location/PartLocation/ServiceLabel"},
			},
			Remove: []string{"Manufacturer", "Model", "Controllers", "Ports", "NetworkDeviceFunctions"},
		},
	)
}

// physicalPorts returns the ports of a network adapter.
func physicalPorts(l dialect.HookContext) map[string]any {
	ports := []any{}
	for _, at := range ids(l.Standard("/redfish/v1/Chassis/" + l.Variables["chassis"] + "/NetworkAdapters/" + l.Variables["adapter"] + "/Ports")["Members"]) {
		id := at[strings.LastIndexByte(at, '/')+1:]
		nic := l.Standard("/redfish/v1/Systems/" + l.Variables["system"] + "/EthernetInterfaces/" + id)
		ports = append(ports, dict{
			"FullDuplex": nic["FullDuplex"], "IPv4Addresses": []any{}, "IPv6Addresses": []any{}, "LinkStatus": nic["LinkStatus"],
			"MacAddress": nic["MACAddress"], "Name": "", "SpeedMbps": nic["SpeedMbps"],
		})
	}
	return dict{"PhysicalPorts": ports}
}

// deviceLinks returns the links of the system to these resources, and to SmartStorage
// and the standard's EthernetInterfaces.
func deviceLinks(g generation) propertyRule {
	link := func(to string) dict { return dict{"@odata.id": to} }
	links := dict{
		"PCIDevices": link(pciDevices), "PCISlots": link(pciSlots), "USBDevices": link(usbDevices), "EthernetInterfaces": link(system + "/EthernetInterfaces"),
	}
	if g.n < 6 { // [V docs: neither is in the resource maps of iLO 6 and 7]
		links["NetworkAdapters"], links["SmartStorage"] = link(baseAdapters), link(system+"/SmartStorage")
	}
	return propertyRule{Path: g.oemPath("Links"), Value: links}
}
