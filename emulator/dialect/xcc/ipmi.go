package xcc

import "github.com/metalab-dev/metalab/emulator/dialect"

// ipmi returns the template's IPMI with the values of an XCC.
func ipmi(i dialect.IPMI) dialect.IPMI {
	i.Manufacturer = 19046         // [V: IANA, Lenovo Enterprise Business Group]
	i.Product = 0x01a4             // [K]
	i.CipherSuites = []byte{17, 3} // [K]
	i.DisabledSuites = nil         // [K: clients cannot enable others]
	i.MaxSessions, i.MaxPendingLogins = 36, 16
	return i
}
