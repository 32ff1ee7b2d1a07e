package redfish

import (
	"slices"
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

func storageRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Systems/{system}/Storage", schema: "StorageCollection", needs: ofComponents, shows: showsIdentity,
			name: "Storage", of: "storage"},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}", schema: "Storage.v1_21_0", needs: ofComponents, shows: showsIdentity,
			read: storageSubsystem},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Controllers", schema: "StorageControllerCollection", needs: ofComponents, shows: showsIdentity,
			name: "Storage Controllers", of: "controller"},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Controllers/{controller}", schema: "StorageController.v1_11_0", needs: ofComponents, shows: showsIdentity,
			read: storageController},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Drives/{drive}", schema: "Drive.v1_22_0", needs: ofComponents, shows: showsIdentity,
			read: drive},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Volumes", schema: "VolumeCollection", needs: ofComponents, shows: showsIdentity,
			name: "Volumes", of: "volume"},
	}
}

func storageSubsystem(v view) object {
	c := v.storage()
	drives := list(c.Drives, func(d storage.Drive) object { return ref(v.uri + "/Drives/" + d.ID) })
	inline := controller(c)
	inline["@odata.id"], inline["MemberId"], inline["Name"] = v.uri+"#/StorageControllers/0", "0", c.Name
	return object{
		"Name": c.Name, "Status": status("Enabled"),
		"Drives": drives, "Drives@odata.count": len(drives),
		// Before Storage 1.9 controllers stood here, where older clients look.
		"StorageControllers": []object{inline}, "StorageControllers@odata.count": 1,
	}
}

func storageController(v view) object {
	c := v.storage()
	o := controller(c)
	o["Name"] = c.Name
	return o
}

// controller is what the resource and the older inline object have in common.
func controller(c storage.Controller) object {
	var protocols []string
	for _, d := range c.Drives {
		if !slices.Contains(protocols, string(d.Protocol)) {
			protocols = append(protocols, string(d.Protocol))
		}
	}
	return object{
		"Manufacturer": c.Vendor, "Model": c.Product, "FirmwareVersion": c.Firmware, "SerialNumber": c.Serial,
		"SupportedControllerProtocols": []string{"PCIe"}, "SupportedDeviceProtocols": append([]string{}, protocols...),
		"SupportedRAIDTypes": []string{}, "Status": status("Enabled"),
	}
}

func drive(v view) object {
	d := pick(v.storage().Drives, v.ids["drive"], func(d storage.Drive) string { return d.ID })
	o := object{
		"Name": "Drive in bay " + strconv.Itoa(d.Bay), "Manufacturer": d.Vendor, "Model": d.Product, "Revision": d.Revision,
		"SerialNumber": d.Serial, "Protocol": string(d.Protocol), "MediaType": string(d.Media),
		"CapacityBytes": d.Capacity, "BlockSizeBytes": d.BlockSize, "FailurePredicted": false, "Status": status("Enabled"),
		"Identifiers":      []object{{"DurableName": d.WWN, "DurableNameFormat": nameFormat(d.Protocol)}},
		"PhysicalLocation": object{"PartLocation": object{"LocationOrdinalValue": d.Bay, "LocationType": "Bay"}},
		"Links": object{
			"Chassis": ref(v.chassis()), "Storage": ref(v.system("Storage", v.ids["storage"])),
			"Volumes": []object{}, "Volumes@odata.count": 0,
		},
	}
	if d.RotationRPM > 0 {
		o["RotationSpeedRPM"] = d.RotationRPM
	}
	if d.SpeedGbps > 0 {
		o["CapableSpeedGbs"], o["NegotiatedSpeedGbs"] = d.SpeedGbps, d.SpeedGbps
	}
	return o
}

// nameFormat is what kind of worldwide name drives of a protocol have.
func nameFormat(p storage.Protocol) string {
	if p == storage.NVMe {
		return "EUI"
	}
	return "NAA"
}
