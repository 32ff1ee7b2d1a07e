package ilo

import (
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/template"
)

// ipmi returns the IPMI of iLO.
func ipmi() dialect.IPMI {
	i := template.Record().IPMI
	i.Manufacturer = 11              // Hewlett-Packard (IANA, enterprise numbers)
	i.Product = 0x2020               // [K]
	i.DeviceID, i.Revision = 0x11, 1 // [K]
	// [K] From iLO 5 on IPMI over LAN is disabled by default. Here it is enabled; the
	// quirk ipmi-disabled-by-default disables it.
	i.CipherSuites, i.DisabledSuites = []byte{17, 3}, []byte{2, 1, 0} // [K]
	i.MaxSessions, i.MaxPendingLogins = 16, 0                         // [K]
	return i
}
