package megarac

import "github.com/metalab-dev/metalab/emulator/dialect"

// ipmi returns the template's IPMI with the values of a MegaRAC.
func ipmi(i dialect.IPMI) dialect.IPMI {
	i.Manufacturer = 20974         // [V: IANA, American Megatrends]
	i.Product = 0x0104             // [K]
	i.CipherSuites = []byte{17, 3} // [V: reference]
	i.DisabledSuites = nil
	i.MaxSessions, i.MaxPendingLogins = 36 /* [V: mockup, Managers/BMC] */, 16
	return i
}
