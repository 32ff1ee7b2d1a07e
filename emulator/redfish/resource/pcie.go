package resource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func pcieRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Chassis/{chassis}/PCIeDevices", Schema: "PCIeDeviceCollection", collectionName: "PCIe Devices", memberVariable: "card"},
		{URI: "/redfish/v1/Chassis/{chassis}/PCIeDevices/{card}", Schema: "PCIeDevice.v1_21_0", DependsOn: partIdentity | partFirmware,
			Read: pcieDevice},
		{URI: "/redfish/v1/Chassis/{chassis}/PCIeDevices/{card}/PCIeFunctions", Schema: "PCIeFunctionCollection",
			collectionName: "PCIe Functions", memberVariable: "function"},
		{URI: "/redfish/v1/Chassis/{chassis}/PCIeDevices/{card}/PCIeFunctions/{function}", Schema: "PCIeFunction.v1_7_0",
			DependsOn: partIdentity | partNICShift, Read: pcieFunction},
	}
}

func cardID(c machine.Card) string            { return c.ID }
func functionID(f machine.PCIFunction) string { return f.ID }

// card returns the card of the view's PCIeDevice.
func (v View) card() machine.Card { return Find(v.Machine.Profile.Cards, v.IDs["card"], cardID) }

// functions returns the PCIe functions of the view's PCIeDevice.
func (v View) functions() []machine.PCIFunction { return v.Machine.Profile.Functions(v.card()) }

func pcieDevice(v View) Object {
	c := v.card()
	kind := "SingleFunction"
	if len(v.functions()) > 1 {
		kind = "MultiFunction"
	}
	o := Object{
		"Name": c.Product, "Manufacturer": c.Vendor, "Model": c.Product, "PartNumber": orNull(c.PartNumber),
		"SerialNumber": v.cardSerial(c), "FirmwareVersion": v.firmwareVersion(c.Component), "DeviceType": kind, "Status": status("Enabled"),
		"PCIeInterface": pcieInterface(c),
		"Links":         Object{"Chassis": refs(v.chassis()), "Chassis@odata.count": 1},
	}
	if c.SlotType != "" {
		o["Slot"] = Object{
			"SlotType": c.SlotType, "Lanes": c.Lanes, "PCIeType": generation(c), "HotPluggable": false,
			"Location": partLocation(c.Slot, "Slot", ordinal("", c.ID)),
		}
	}
	return o
}

// firmwareVersion returns the running version of a firmware component, or nil when the
// component does not exist or does not run.
func (v View) firmwareVersion(component string) any {
	if component == "" {
		return nil
	}
	return orNull(v.Machine.Firmware.Version(component))
}

func (v View) cardSerial(c machine.Card) string {
	return v.Machine.Identity.SerialOf("card/"+c.ID, 0)
}

func generation(c machine.Card) string { return fmt.Sprint("Gen", c.Gen) }

func pcieInterface(c machine.Card) Object {
	return Object{"PCIeType": generation(c), "MaxPCIeType": generation(c), "LanesInUse": c.Lanes, "MaxLanes": c.Lanes}
}

func pcieFunction(v View) Object {
	c := v.card()
	f := Find(v.functions(), v.IDs["function"], functionID)
	links := Object{"PCIeDevice": Ref(v.chassis("PCIeDevices", c.ID))}
	if f.NIC != "" {
		links["EthernetInterfaces"], links["EthernetInterfaces@odata.count"] = refs(v.interfaceURI(f.NIC)), 1
		links["NetworkDeviceFunctions"] = refs(v.chassis("NetworkAdapters", c.ID, "NetworkDeviceFunctions", f.NIC))
		links["NetworkDeviceFunctions@odata.count"] = 1
	}
	if c.Storage != "" {
		links["StorageControllers"] = refs(v.system("Storage", c.Storage) + "#/StorageControllers/0")
		links["StorageControllers@odata.count"] = 1
	}
	o := Object{
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
