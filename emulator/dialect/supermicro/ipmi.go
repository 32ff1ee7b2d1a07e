package supermicro

import (
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// storedFanMode is the number under which the fan mode is stored
// (OEMCommand.StoreAs).
const storedFanMode = 1

const (
	oem           = 0x30 // NetFn
	user          = 2
	administrator = 4
)

// ipmi returns the template's IPMI with the values of a Supermicro BMC.
func ipmi(i dialect.IPMI) dialect.IPMI {
	i.Manufacturer = 10876 // [V: IANA, Super Micro Computer]
	i.Product = 0x1b47     // [K]
	i.DisabledSuites = []byte{12, 11, 8, 7, 6, 2, 1}
	i.MaxSessions, i.MaxPendingLogins = 36, 16
	// With UEFI, disk is 24h in the boot flags. 08h is the disk of legacy mode, which a
	// UEFI boot skips [V: ironic, ipmitool: 0x00 0x08 0x05 0xe0 0x24].
	i.EFIBootDevices = map[byte]machine.SourceKind{0x2: machine.None, 0x9: machine.Hdd}
	// Fan mode: 00h standard, 01h full, 02h optimal, 04h heavy I/O [K: 30h 45h].
	i.OEMCommands = []dialect.OEMCommand{
		{NetFn: oem, Cmd: 0x45, Name: "Get Fan Mode", Privilege: user, Prefix: []byte{0}, MinLength: 1, MaxLength: 1, Response: []dialect.OEMField{{Stored: storedFanMode, Bytes: []byte{2}}}},
		{NetFn: oem, Cmd: 0x45, Name: "Set Fan Mode", Privilege: administrator, Prefix: []byte{1}, MinLength: 2, MaxLength: 2, StoreAs: storedFanMode},
	}
	return i
}
