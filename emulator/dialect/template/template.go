// Package template has the record that records of dialects begin with: a BMC without
// a vendor that follows DSP0266 in every point. It is no dialect: it has no name, no
// product and no OEM, so that no vendor's property appears in another's dialect.
package template

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Record returns a new record without Name, Vendor, Product, ManagerModel and the
// manufacturer in IPMI, which each dialect sets.
func Record() dialect.Record {
	return dialect.Record{
		RedfishVersion: "1.20.0",
		SystemID:       "1",
		ManagerID:      "1",
		ChassisID:      "1",
		BMC: bmc.Spec{
			Slots: []bmc.SlotSpec{
				{ID: "Cd", Name: "Virtual CD", Types: []string{"CD", "DVD"}},
				{ID: "Usb", Name: "Virtual USB Stick", Types: []string{"USBStick"}},
			},
			Sessions:       64,
			SessionTimeout: 30 * time.Minute,
			Log:            bmc.LogSpec{Size: 2000, Full: bmc.Wraps},
			Audit:          bmc.LogSpec{Size: 1000, Full: bmc.Wraps},
			Life:           bmc.LifeSpec{Leave: 2 * time.Second, Offline: 40 * time.Second, Start: 20 * time.Second},
			Collect:        30 * time.Second,
			TaskRetention:  bmc.TaskRetention{Ended: 7 * 24 * time.Hour, Delivered: 30 * time.Second},
			Key:            bmc.P256,
			// On is true for the services that the rack implements.
			Network: bmc.Network{
				HTTPS: bmc.Service{On: true}, SSH: bmc.Service{Port: 22}, IPMI: bmc.Service{On: true}, KVM: bmc.Service{Port: 5900},
				Media: bmc.Service{On: true, Port: 627}, SNMP: bmc.Service{Port: 161}, SSDP: bmc.Service{Port: 1900}, NTP: bmc.Service{Port: 123},
				DHCP: true, Use: bmc.DHCPUse{DNS: true, NTP: true, Domain: true, Gateway: true}, VLAN: bmc.VLAN{ID: 1},
				V6: bmc.IPv6{Use: bmc.DHCPv6Use{DNS: true, NTP: true, Domain: true}},
			},
			Accounts: bmc.AccountSpec{
				Most:    15,
				NameMax: 32, NameNot: ":", // a colon ends the name in Basic authentication (RFC 7617, §2)
				Types: []bmc.TypeSpec{
					{Type: bmc.ForRedfish},
					{Type: bmc.ForIPMI, Name: 16, Password: 20}, // IPMI v2.0 rev 1.1, §22.28 and §22.30
				},
				Policy: bmc.Policy{
					MinPassword: 6, MaxPassword: 64, FailureLogThreshold: 3,
					LockoutThreshold: 10, LockoutDuration: 5 * time.Minute, LockoutCounterResetAfter: time.Minute,
					AbsoluteSessionTimeout: 24 * time.Hour,
				},
			},
		},
		// Suspend, Pause and Resume are missing: only hypervisors have them.
		ResetTypes: []machine.ResetKind{
			machine.ResetOn, machine.ForceOff, machine.ForceOn, machine.GracefulShutdown, machine.GracefulRestart,
			machine.ForceRestart, machine.PowerCycle, machine.PushPowerButton, machine.Nmi,
		},
		BootTargets: []machine.SourceKind{
			machine.None, machine.Pxe, machine.Cd, machine.Usb, machine.Hdd, machine.BiosSetup, machine.Utilities, machine.Diags,
			machine.UefiShell, machine.UefiTarget, machine.UefiHTTP, machine.UefiBootNext,
		},
		RedundantReset: dialect.AcceptRedundant,
		MaxImageBytes:  256 << 20,
		Logs:           dialect.Logs{System: "SEL", Manager: "Log", DeletableEntries: true},
		Protocol:       dialect.Protocol{Queries: dialect.AllQueries, Gzip: true},
		IPMI: dialect.IPMI{
			DeviceID: 0x20, Revision: 1, FirstUser: 2, CipherSuites: []byte{17, 3}, RejectResetWhileOff: true,
			DisabledSuites: []byte{16, 15, 12, 11, 8, 7, 6, 2, 1, 0},
			MaxSessions:    128, MaxPendingLogins: 128, // enough for 64 scripts at the same time
		},
	}
}
