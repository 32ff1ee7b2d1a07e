package ilo

import (
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
)

// ipmi returns the IPMI of iLO.
func ipmi() dialect.IPMI {
	i := generic.Record.IPMI
	i.Manufacturer = 11              // Hewlett-Packard (IANA, enterprise numbers)
	i.Product = 0x2020               // [K]
	i.DeviceID, i.Revision = 0x11, 1 // [K]
	// [K] It comes with IPMI over LAN off from iLO 5 on; here it is on, as it is
	// wherever somebody uses it. The quirk ipmi-disabled-by-default has it off.
	i.CipherSuites, i.DisabledSuites = []byte{17, 3}, []byte{2, 1, 0} // [K]
	i.MaxSessions, i.MaxPendingLogins = 16, 0                         // [K]
	return i
}
