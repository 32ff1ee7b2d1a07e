package redfish

// manager is the BMC. Its VirtualMedia leads to the system's collection: DSP2046
// deprecates the manager's own in favour of that, older clients look at the
// manager only, and Ironic and others at both, so that two collections would
// show each slot twice.
func manager(v view) object {
	return object{
		"Name": "Manager", "ManagerType": "BMC", "Model": v.d.ManagerModel, "Manufacturer": v.d.Vendor,
		"FirmwareVersion": v.m.Profile.BMCFirmware, "PowerState": "On", "Status": status("Enabled"),
		"UUID": v.serviceUUID(), "ServiceEntryPointUUID": v.serviceUUID(),
		"VirtualMedia": ref(v.system("VirtualMedia")),
		"Links": object{
			"ManagerForServers": refs(v.system()), "ManagerForChassis": refs(v.chassis()), "ManagerInChassis": ref(v.chassis()),
		},
	}
}

func chassis(v view) object {
	p, id := v.m.Profile, v.m.Identity
	var drives, subsystems []object
	for _, c := range id.Storage {
		subsystems = append(subsystems, ref(v.system("Storage", c.ID)))
		for _, d := range c.Drives {
			drives = append(drives, ref(v.system("Storage", c.ID, "Drives", d.ID)))
		}
	}
	return object{
		"Name": "Chassis", "ChassisType": "RackMount",
		"Manufacturer": p.Manufacturer, "Model": p.Model, "SKU": p.SKU, "PartNumber": p.PartNumber,
		"SerialNumber": id.Serial, "UUID": id.UUID, "PowerState": string(v.m.Power), "Status": status("Enabled"),
		"Links": object{
			"ComputerSystems": refs(v.system()), "ManagedBy": refs(v.manager()), "ManagersInChassis": refs(v.manager()),
			"Drives": append([]object{}, drives...), "Storage": append([]object{}, subsystems...),
		},
	}
}
