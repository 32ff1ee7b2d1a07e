package supermicro

import (
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// The numbers under which values are stored (OEMCommand.StoreAs).
const (
	storedFanMode  = 1
	storedFanZones = 2 // the duty cycle of zone 0; that of zone 1 is the next
)

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
	// Fan mode: 00h standard, 01h full, 02h optimal, 04h heavy I/O [V: petersulyok/smfc, src
	// and README: 0x30 0x45].
	i.OEMCommands = []dialect.OEMCommand{
		{NetFn: oem, Cmd: 0x45, Name: "Get Fan Mode", Privilege: user, Prefix: []byte{0}, MinLength: 1, MaxLength: 1, Response: []dialect.OEMField{{Stored: storedFanMode, Bytes: []byte{2}}}},
		{NetFn: oem, Cmd: 0x45, Name: "Set Fan Mode", Privilege: administrator, Prefix: []byte{1}, MinLength: 2, MaxLength: 2, StoreAs: storedFanMode},
	}
	for zone := range byte(2) {
		i.OEMCommands = append(i.OEMCommands, fanZone(zone)...)
	}
	return i
}

// fanZone returns the commands for the duty cycle of a zone of fans, in percent: 0 has FAN1,
// FAN2 and so on, 1 has FANA, FANB [V: petersulyok/smfc, README and test/test_00_ipmi.py, of
// X10 to X13: 0x30 0x70 0x66]. The model's fans follow the temperature alone.
//
// The other sub-commands of 70h, and all of 68h (01h is said to read time servers, 22h to
// relax passwords, 28h to read the CPLD) and 3Ch are answered C1h: of their responses there is
// no public evidence.
func fanZone(zone byte) []dialect.OEMCommand {
	const setFans, fallback = 0x70, 50
	return []dialect.OEMCommand{
		{NetFn: oem, Cmd: setFans, Name: "Get Fan Duty", Privilege: user, Prefix: []byte{0x66, 0, zone}, MinLength: 3, MaxLength: 3,
			Response: []dialect.OEMField{{Stored: storedFanZones + zone, Bytes: []byte{fallback}}}},
		{NetFn: oem, Cmd: setFans, Name: "Set Fan Duty", Privilege: administrator, Prefix: []byte{0x66, 1, zone}, MinLength: 4, MaxLength: 4, StoreAs: storedFanZones + zone},
	}
}
