// Package idrac is what Dell's iDRAC has that others have not. So far that is
// its commands of IPMI; the rest of its record is yet to be written.
package idrac

import "github.com/metalab-dev/metalab/emulator/dialect"

// Numbers of what commands keep.
const (
	keptNIC   = 1 // which port the BMC shares, and which it falls back to
	keptOld   = 2 // the same, as older clients say it
	keptLight = 3 // bay, slot and state of the last light that was set
)

const (
	oem           = 0x30 // NetFn
	user          = 2
	operator      = 3
	administrator = 4
)

// Commands are iDRAC's own, as ipmitool's delloem asks for them [V: ipmitool
// 1.8.19, lib/ipmi_delloem.c; row 71 of the IPMI reference].
var Commands = []dialect.OEMCommand{
	{NetFn: oem, Cmd: 0x25, Name: "Get NIC Selection", Needs: user, Gives: []dialect.OEMField{{Kept: keptOld, Bytes: []byte{2}}}},
	{NetFn: oem, Cmd: 0x24, Name: "Set NIC Selection", Needs: administrator, Least: 1, Most: 1, Keeps: keptOld},
	{NetFn: oem, Cmd: 0x29, Name: "Get NIC Selection And Failover", Needs: user, Gives: []dialect.OEMField{{Kept: keptNIC, Bytes: []byte{1, 0}}}},
	{NetFn: oem, Cmd: 0x28, Name: "Set NIC Selection And Failover", Needs: administrator, Least: 2, Most: 2, Keeps: keptNIC},
	// The port of its own is active, and has a link.
	{NetFn: oem, Cmd: 0xc1, Name: "Get Active NIC", Needs: user, Match: []byte{0}, Least: 3, Most: 3, Gives: []dialect.OEMField{{Bytes: []byte{0}}}},
	{NetFn: oem, Cmd: 0xc1, Name: "Get Active NIC Link", Needs: user, Match: []byte{1}, Least: 3, Most: 3, Gives: []dialect.OEMField{{Bytes: []byte{0, 1}}}},
	{
		NetFn: oem, Cmd: 0x9c, Name: "Get Power Management Info", Needs: user, Match: []byte{7, 1}, Least: 2, Most: 2,
		Gives: []dialect.OEMField{
			{Value: dialect.OEMEnergySince, Size: 4}, {Value: dialect.OEMEnergy, Size: 4}, {Value: dialect.OEMPeakSince, Size: 4},
			{Value: dialect.OEMNow, Size: 4}, {Value: dialect.OEMPeakAmps, Size: 2}, {Value: dialect.OEMNow, Size: 4}, {Value: dialect.OEMPeak, Size: 2},
		},
	},
	{
		NetFn: oem, Cmd: 0xbb, Name: "Get Power Headroom", Needs: user,
		Gives: []dialect.OEMField{{Value: dialect.OEMHeadroom, Size: 2}, {Value: dialect.OEMPeakHeadroom, Size: 2}},
	},
	{
		NetFn: oem, Cmd: 0xb3, Name: "Get Power Consumption", Needs: user, Match: []byte{0x0a, 0}, Least: 2, Most: 2,
		Gives: []dialect.OEMField{{Value: dialect.OEMPower, Size: 2}, {Value: dialect.OEMPeakAmps, Size: 2}, {Bytes: []byte{0, 0, 0}}},
	},
	{NetFn: oem, Cmd: 0xd5, Name: "Get Storage Firmware", Needs: user, Match: []byte{1, 0}, Least: 10, Most: 10, Gives: []dialect.OEMField{{Bytes: make([]byte, 8)}}},
	{NetFn: oem, Cmd: 0xd5, Name: "Get Storage Map", Needs: user, Match: []byte{1, 7}, Least: 8, Most: 8, Gives: []dialect.OEMField{{Bytes: make([]byte, 9)}}},
	{NetFn: oem, Cmd: 0xd5, Name: "Set Drive Status", Needs: operator, Match: []byte{0, 4, 0x0e, 0, 0, 0, 0x0e, 0}, Least: 20, Most: 20, Keeps: keptLight},
}

// Info are iDRAC's parameters of Get System Info: its service tag (C5h), its
// model (D1h), its network ports (DAh) and which controller it is (DDh): 20h is
// that of a rack server of the thirteenth generation [V: as above].
var Info = []dialect.OEMInfo{
	{Param: 0xc5, Text: dialect.OEMSerial},
	{Param: 0xd1, Text: dialect.OEMModel},
	{Param: 0xda, NICs: true},
	{Param: 0xdd, Gives: []dialect.OEMField{{Bytes: []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20}}}},
}

// overIPMI is what these controllers make of IPMI [V: table of dialects and IPMI
// reference, row 71; the device IDs are K].
func overIPMI(g generation) dialect.IPMI {
	return dialect.IPMI{
		Manufacturer: 674, // Dell (IANA)
		Product:      g.product, DeviceID: 0x20, Revision: 1,
		FirstUser: 1, // accounts are IPMI's users, of which the second is root [V]
		Suites:    []byte{17, 3}, Insecure: []byte{16, 15, 12, 11, 8, 7, 6, 2, 1, 0},
		Strict: true, Commands: Commands, Info: Info,
	}
}
