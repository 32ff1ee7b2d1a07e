package redfish

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func pcieRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Chassis/{chassis}/PCIeDevices", schema: "PCIeDeviceCollection", name: "PCIe Devices", of: "card"},
		{uri: "/redfish/v1/Chassis/{chassis}/PCIeDevices/{card}", schema: "PCIeDevice.v1_21_0", shows: PartIdentity | PartFirmware,
			read: pcieDevice},
		{uri: "/redfish/v1/Chassis/{chassis}/PCIeDevices/{card}/PCIeFunctions", schema: "PCIeFunctionCollection",
			name: "PCIe Functions", of: "function"},
		{uri: "/redfish/v1/Chassis/{chassis}/PCIeDevices/{card}/PCIeFunctions/{function}", schema: "PCIeFunction.v1_7_0",
			shows: PartIdentity | PartNICShift, read: pcieFunction},
	}
}

func cardID(c machine.Card) string            { return c.ID }
func functionID(f machine.PCIFunction) string { return f.ID }

// card is the card that the view is of.
func (v view) card() machine.Card { return pick(v.m.Profile.Cards, v.ids["card"], cardID) }

// functions are those of the card that the view is of.
func (v view) functions() []machine.PCIFunction { return v.m.Profile.Functions(v.card()) }

func pcieDevice(v view) object {
	c := v.card()
	kind := "SingleFunction"
	if len(v.functions()) > 1 {
		kind = "MultiFunction"
	}
	o := object{
		"Name": c.Product, "Manufacturer": c.Vendor, "Model": c.Product, "PartNumber": orNull(c.PartNumber),
		"SerialNumber": v.cardSerial(c), "FirmwareVersion": v.version(c.Component), "DeviceType": kind, "Status": status("Enabled"),
		"PCIeInterface": pcieInterface(c),
		"Links":         object{"Chassis": refs(v.chassis()), "Chassis@odata.count": 1},
	}
	if c.SlotType != "" {
		o["Slot"] = object{
			"SlotType": c.SlotType, "Lanes": c.Lanes, "PCIeType": generation(c), "HotPluggable": false,
			"Location": label(c.Slot, "Slot", ordinal("", c.ID)),
		}
	}
	return o
}

// version is that of a component of firmware; null where there is none, or none
// that runs.
func (v view) version(component string) any {
	if component == "" {
		return nil
	}
	return orNull(v.m.Firmware.Version(component))
}

func (v view) cardSerial(c machine.Card) string {
	return v.m.Identity.SerialOf("card/"+c.ID, 0)
}

func generation(c machine.Card) string { return fmt.Sprint("Gen", c.Gen) }

func pcieInterface(c machine.Card) object {
	return object{"PCIeType": generation(c), "MaxPCIeType": generation(c), "LanesInUse": c.Lanes, "MaxLanes": c.Lanes}
}

func pcieFunction(v view) object {
	c := v.card()
	f := pick(v.functions(), v.ids["function"], functionID)
	links := object{"PCIeDevice": ref(v.chassis("PCIeDevices", c.ID))}
	if f.NIC != "" {
		links["EthernetInterfaces"], links["EthernetInterfaces@odata.count"] = refs(v.interfaceAt(f.NIC)), 1
		links["NetworkDeviceFunctions"] = refs(v.chassis("NetworkAdapters", c.ID, "NetworkDeviceFunctions", f.NIC))
		links["NetworkDeviceFunctions@odata.count"] = 1
	}
	if c.Storage != "" {
		links["StorageControllers"] = refs(v.system("Storage", c.Storage) + "#/StorageControllers/0")
		links["StorageControllers@odata.count"] = 1
	}
	o := object{
		"Name": c.Product + " function " + f.ID, "FunctionId": slices.Index(v.functions(), f), "FunctionType": "Physical", "DeviceClass": c.Class,
		"ClassCode": c.ClassCode, "VendorId": f.PCIVendor, "DeviceId": f.PCIDevice, "SubsystemVendorId": f.PCIVendor, "SubsystemId": "0x0001",
		"RevisionId": "0x02", "Status": status("Enabled"), "Enabled": true, "Links": links,
	}
	// 0000:3b:00.1 is segment, bus, device and function.
	if a := strings.FieldsFunc(f.PCIAddress, func(r rune) bool { return r == ':' || r == '.' }); len(a) == 4 {
		o["SegmentNumber"], o["BusNumber"], o["DeviceNumber"], o["FunctionNumber"] = "0x"+a[0], "0x"+a[1], "0x"+a[2], "0x"+a[3]
	}
	return o
}
