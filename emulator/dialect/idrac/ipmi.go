// Package idrac has the dialects of Dell's iDRAC 8, 9 and 10.
//
// The evidence is beside each datum: [V] was read in a public source, which follows
// the mark unless it is docs/vendors.md; [K] is known from use and has no such source.
package idrac

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// Numbers under which commands store bytes (OEMCommand.StoreAs).
const (
	storedNIC    = 1 // NIC selection: the shared port, and the failover port
	storedOldNIC = 2 // NIC selection in the form of older clients
	storedLight  = 3 // bay, slot and state of the drive LED that was set last
)

const (
	oem           = 0x30 // NetFn
	user          = 2
	operator      = 3
	administrator = 4
)

// OEMCommands are the commands that ipmitool's delloem and FreeIPMI's ipmi-oem send
// [V: ipmitool 1.8.19, lib/ipmi_delloem.c; FreeIPMI 1.6.9, ipmi-oem-dell.c; statement
// I71].
var OEMCommands = []dialect.OEMCommand{
	{NetFn: oem, Cmd: 0x25, Name: "Get NIC Selection", Privilege: user, Response: []dialect.OEMField{{Stored: storedOldNIC, Bytes: []byte{2}}}},
	{NetFn: oem, Cmd: 0x24, Name: "Set NIC Selection", Privilege: administrator, MinLength: 1, MaxLength: 1, StoreAs: storedOldNIC},
	{NetFn: oem, Cmd: 0x29, Name: "Get NIC Selection And Failover", Privilege: user, Response: []dialect.OEMField{{Stored: storedNIC, Bytes: []byte{1, 0}}}},
	{NetFn: oem, Cmd: 0x28, Name: "Set NIC Selection And Failover", Privilege: administrator, MinLength: 2, MaxLength: 2, StoreAs: storedNIC},
	// The dedicated port is active, and has a full-duplex link of 1 Gbit/s. Each response
	// has the port, what was asked for, and a reserved byte.
	{NetFn: oem, Cmd: 0xc1, Name: "Get Active NIC", Privilege: user, Prefix: []byte{0}, MinLength: 3, MaxLength: 3, Response: []dialect.OEMField{{Bytes: []byte{0, 0, 0}}}},
	{NetFn: oem, Cmd: 0xc1, Name: "Get Active NIC Link", Privilege: user, Prefix: []byte{1}, MinLength: 3, MaxLength: 3, Response: []dialect.OEMField{{Bytes: []byte{0, 1, 0}}}},
	{NetFn: oem, Cmd: 0xc1, Name: "Get Active NIC Speed", Privilege: user, Prefix: []byte{2}, MinLength: 3, MaxLength: 3, Response: []dialect.OEMField{{Bytes: []byte{0, 2, 0}}}},
	{NetFn: oem, Cmd: 0xc1, Name: "Get Active NIC Duplex", Privilege: user, Prefix: []byte{3}, MinLength: 3, MaxLength: 3, Response: []dialect.OEMField{{Bytes: []byte{0, 1, 0}}}},
	// The power cap is off and cannot be set.
	{NetFn: oem, Cmd: 0xba, Name: "Get Power Cap Status", Privilege: user, Prefix: []byte{1, 0xff}, MinLength: 2, MaxLength: 2, Response: []dialect.OEMField{{Bytes: []byte{0}}}},
	{
		NetFn: oem, Cmd: 0x9c, Name: "Get Power Management Info", Privilege: user, Prefix: []byte{7, 1}, MinLength: 2, MaxLength: 2,
		Response: []dialect.OEMField{
			{Value: dialect.OEMEnergySince, Size: 4}, {Value: dialect.OEMEnergy, Size: 4}, {Value: dialect.OEMPeakSince, Size: 4},
			{Value: dialect.OEMNow, Size: 4}, {Value: dialect.OEMPeakAmps, Size: 2}, {Value: dialect.OEMNow, Size: 4}, {Value: dialect.OEMPeak, Size: 2},
		},
	},
	{
		NetFn: oem, Cmd: 0xbb, Name: "Get Power Headroom", Privilege: user,
		Response: []dialect.OEMField{{Value: dialect.OEMHeadroom, Size: 2}, {Value: dialect.OEMPeakHeadroom, Size: 2}},
	},
	{
		NetFn: oem, Cmd: 0xb3, Name: "Get Power Consumption", Privilege: user, Prefix: []byte{0x0a, 0}, MinLength: 2, MaxLength: 2,
		Response: []dialect.OEMField{{Value: dialect.OEMPower, Size: 2}, {Value: dialect.OEMPeakAmps, Size: 2}, {Bytes: []byte{0, 0, 0}}},
	},
	{NetFn: oem, Cmd: 0xd5, Name: "Get Storage Firmware", Privilege: user, Prefix: []byte{1, 0}, MinLength: 10, MaxLength: 10, Response: []dialect.OEMField{{Bytes: make([]byte, 8)}}},
	{NetFn: oem, Cmd: 0xd5, Name: "Get Storage Map", Privilege: user, Prefix: []byte{1, 7}, MinLength: 8, MaxLength: 8, Response: []dialect.OEMField{{Bytes: make([]byte, 9)}}},
	{NetFn: oem, Cmd: 0xd5, Name: "Set Drive Status", Privilege: operator, Prefix: []byte{0, 4, 0x0e, 0, 0, 0, 0x0e, 0}, MinLength: 20, MaxLength: 20, StoreAs: storedLight},
}

// OEMSystemInfo are parameters of Get System Info Parameters: the asset tag (C4h), the
// service tag (C5h), the model (D1h), the network ports (DAh), the iDRAC (DDh: its
// address, its firmware, and its type, where 20h is a rack server of the thirteenth
// generation), the power cap (EAh), and the mean, highest and lowest power of the last
// minute, hour, day and week (EBh, ECh, EDh) [V: as above]. The model records a minute,
// which the longer periods repeat.
var OEMSystemInfo = []dialect.OEMInfo{
	{Param: 0xc4, Text: dialect.OEMAsset, Short: true},
	{Param: 0xc5, Text: dialect.OEMSerial, Short: true},
	{Param: 0xd1, Text: dialect.OEMModel},
	{Param: 0xda, NICs: true},
	{Param: 0xdd, Blocks: true, Response: []dialect.OEMField{
		{Bytes: []byte{0, 39, 0}}, // ASCII, bytes that follow, IPv4
		{Value: dialect.OEMStatic, Size: 1}, {Value: dialect.OEMAddress, Size: 4}, {Bytes: make([]byte, 12)},
		{Text: dialect.OEMBMC, Size: 20}, {Bytes: []byte{0x20}},
	}},
	{Param: 0xea, Response: []dialect.OEMField{
		{Value: dialect.OEMCapacity, Size: 2}, {Bytes: []byte{0}}, // the cap, in W
		{Value: dialect.OEMCapacity, Size: 2}, {Value: dialect.OEMLeast, Size: 2}, // its range
		{Value: dialect.OEMSupplies, Size: 2}, {Value: dialect.OEMCapacity, Size: 2}, {Bytes: make([]byte, 4)},
	}},
	{Param: 0xeb, Response: slices.Repeat([]dialect.OEMField{{Value: dialect.OEMMean, Size: 2}}, 4)},
	{Param: 0xec, Response: history(dialect.OEMPeak)},
	{Param: 0xed, Response: history(dialect.OEMLeast)},
}

// history returns the values of a minute, an hour, a day and a week, and their times.
func history(v dialect.OEMValue) []dialect.OEMField {
	return append(slices.Repeat([]dialect.OEMField{{Value: v, Size: 2}}, 4), slices.Repeat([]dialect.OEMField{{Value: dialect.OEMPeakSince, Size: 4}}, 4)...)
}

// ipmi returns the IPMI of these controllers [V: table of dialects and IPMI
// reference, row 71; the device IDs are K].
func ipmi(g generation) dialect.IPMI {
	return dialect.IPMI{
		Manufacturer: 674, // Dell (IANA)
		Product:      g.product, DeviceID: 0x20, Revision: 1,
		FirstUser:    1, // account IDs are IPMI user IDs; root has 2 [V]
		CipherSuites: []byte{17, 3}, DisabledSuites: []byte{16, 15, 12, 11, 8, 7, 6, 2, 1, 0},
		RejectResetWhileOff: true, OEMCommands: OEMCommands, OEMSystemInfo: OEMSystemInfo,
	}
}
