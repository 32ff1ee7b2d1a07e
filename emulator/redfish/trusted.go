package redfish

func trustedRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Chassis/{chassis}/TrustedComponents", schema: "TrustedComponentCollection",
			name: "Trusted Components", of: "trusted"},
		{uri: "/redfish/v1/Chassis/{chassis}/TrustedComponents/{trusted}", schema: "TrustedComponent.v1_4_0",
			shows: PartIdentity | PartFirmware, read: trustedComponent},
	}
}

// tpmID is the TPM, which not every server has beside its root of trust.
const tpmID = "TPM"

func trustedIDs(v view) []string {
	if v.m.Profile.TPM == nil {
		return []string{rootID}
	}
	return []string{tpmID, rootID}
}

// trustedModules is ComputerSystem.TrustedModules, where a TPM stood before
// ComputerSystem 1.19 and where older clients look.
func trustedModules(v view) []object {
	t := v.m.Profile.TPM
	if t == nil {
		return []object{}
	}
	return []object{{
		"FirmwareVersion": v.version(t.Component), "InterfaceType": "TPM2_0", "InterfaceTypeSelection": "None", "Status": status(trustedState(v)),
	}}
}

// trustedState tells whether the BIOS has the TPM on.
func trustedState(v view) string {
	if v.m.HasTPM() {
		return "Enabled"
	}
	return "Disabled"
}

func trustedComponent(v view) object {
	if v.ids["trusted"] == rootID {
		return rootOfTrust(v)
	}
	t := v.m.Profile.TPM
	return object{
		"Name": "Trusted Platform Module", "TrustedComponentType": "Discrete", "Manufacturer": t.Vendor, "Model": orNull(t.Product),
		"FirmwareVersion": v.version(t.Component), "SerialNumber": v.m.Identity.SerialOf("tpm", 0), "UUID": v.m.Identity.UUIDOf("tpm", 0),
		"Status": status(trustedState(v)),
		"TPM":    object{"CapabilitiesVendorID": orNull(t.VendorID), "HardwareInterfaceVendorID": orNull(t.PCIID)},
		"Links":  object{"ComponentsProtected": refs(v.system()), "ComponentsProtected@odata.count": 1},
	}
}
