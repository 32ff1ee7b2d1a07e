package resource

func trustedRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Chassis/{chassis}/TrustedComponents", Schema: "TrustedComponentCollection",
			collectionName: "Trusted Components", memberVariable: "trusted"},
		{URI: "/redfish/v1/Chassis/{chassis}/TrustedComponents/{trusted}", Schema: "TrustedComponent.v1_4_0",
			DependsOn: partIdentity | partFirmware, Read: trustedComponent},
	}
}

// tpmID is the ID of the TPM. Some servers have only a root of trust.
const tpmID = "TPM"

func trustedIDs(v View) []string {
	if v.Machine.Profile.TPM == nil {
		return []string{rootID}
	}
	return []string{tpmID, rootID}
}

// trustedModules returns ComputerSystem.TrustedModules, which showed the TPM before
// ComputerSystem 1.19 and which older clients read.
func trustedModules(v View) []Object {
	t := v.Machine.Profile.TPM
	if t == nil {
		return []Object{}
	}
	return []Object{{
		"FirmwareVersion": v.firmwareVersion(t.Component), "InterfaceType": "TPM2_0", "InterfaceTypeSelection": "None", "Status": status(trustedState(v)),
	}}
}

// trustedState returns the State of the TPM, which the BIOS settings decide.
func trustedState(v View) string {
	if v.Machine.HasTPM() {
		return "Enabled"
	}
	return "Disabled"
}

func trustedComponent(v View) Object {
	if v.IDs["trusted"] == rootID {
		return rootOfTrust(v)
	}
	t := v.Machine.Profile.TPM
	return Object{
		"Name": "Trusted Platform Module", "TrustedComponentType": "Discrete", "Manufacturer": t.Vendor, "Model": orNull(t.Product),
		"FirmwareVersion": v.firmwareVersion(t.Component), "SerialNumber": v.Machine.Identity.SerialOf("tpm", 0), "UUID": v.Machine.Identity.UUIDOf("tpm", 0),
		"Status": status(trustedState(v)),
		"TPM":    Object{"CapabilitiesVendorID": orNull(t.VendorID), "HardwareInterfaceVendorID": orNull(t.PCIID)},
		"Links":  Object{"ComponentsProtected": refs(v.system()), "ComponentsProtected@odata.count": 1},
	}
}
