package redfish

func managerRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Managers", schema: "ManagerCollection", needs: ofManager, name: "Managers", of: "manager"},
		{uri: "/redfish/v1/Managers/{manager}", schema: "Manager.v1_24_0", needs: ofManager, shows: showsIdentity | showsFirmware, read: manager},
	}
}

// manager is the BMC. Its VirtualMedia leads to the system's collection: DSP2046
// deprecates the manager's own in favour of that, older clients look at the
// manager only, and Ironic and others at both, so that two collections would
// show each slot twice.
func manager(v view) object {
	return object{
		"Name": "Manager", "ManagerType": "BMC", "Model": v.d.ManagerModel, "Manufacturer": v.d.Vendor,
		"FirmwareVersion": v.m.BMCVersion(), "PowerState": "On", "Status": status("Enabled"),
		"UUID": v.serviceUUID(), "ServiceEntryPointUUID": v.serviceUUID(),
		"VirtualMedia": ref(v.system("VirtualMedia")),
		"Links": object{
			"ManagerForServers": refs(v.system()), "ManagerForChassis": refs(v.chassis()), "ManagerInChassis": ref(v.chassis()),
		},
	}
}
