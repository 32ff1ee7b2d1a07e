// Package irmc has the dialects of Fujitsu's iRMC S5, and of iRMC S6, which Fsas
// Technologies sells and which has OEM names of Fsas.
//
// The evidence is beside each datum. Sources by short names: provider is
// https://github.com/fujitsu/terraform-provider-irmc-redfish, collection is
// https://github.com/fujitsu/fujitsu-ansible-irmc-integration. [V] was read
// there or in docs/vendors.md; [K] is known from use and has no such source.
package irmc

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// These differ from a real iRMC: virtual media need no licence, without which a real
// one rejects a mount [K]; the licence of eLCM is installed, as its status shows. HTTP
// is disabled in both generations. Secure boot is the standard's, and timings are those
// of the profiles.

// names are the names that differ between the two generations.
type names struct {
	oem    string // property of Oem, and segment of URIs
	prefix string // prefix of the names of actions and their parameters
}

// S5 is the dialect of iRMC S5.
var S5 = record(names{"ts_fujitsu", "FTS"}, func(r *dialect.Record) { // [V] collection, provider: common.go
	r.Name, r.Product, r.Vendor = "irmc-s5", "iRMC S5", "FUJITSU" // [K]
	r.ManagerModel = "iRMC S5"
	r.RedfishVersion = "1.8.0"                                        // [K]
	r.Protocol.Registries = map[string]string{"Base": "1.8.1"}        // [K]
	r.Protocol.Queries.Filter, r.Protocol.Queries.Only = false, false // [K]
})

// S6 is the dialect of iRMC S6, firmware 2.00 and later.
var S6 = record(names{"Fsas", "Fsas"}, func(r *dialect.Record) { // [V] provider: common.go, resource_power.go
	r.Name, r.Product, r.Vendor = "irmc-s6", "iRMC S6", "Fsas Technologies" // [K]
	r.ManagerModel = "iRMC S6"
	r.RedfishVersion = "1.15.0"                                 // [K]
	r.Protocol.Registries = map[string]string{"Base": "1.13.0"} // [K]
	r.BMC.Key = bmc.P256                                        // [K]
	// [V] release notes of 2.00: IPMI over LAN is disabled by default, and HTTP is
	// removed.
	r.BMC.Network.IPMI.On = false
	r.IPMI.CipherSuites, r.IPMI.DisabledSuites = []byte{17}, []byte{3}
})

func record(n names, change func(r *dialect.Record)) dialect.Record {
	r := dialect.Record{
		SystemID: "0", ManagerID: "iRMC", ChassisID: "0", // [V] provider, collection
		ResetTypes: []machine.ResetKind{ // [K]; those of the OEM action are [V]
			machine.ResetOn, machine.ForceOff, machine.GracefulShutdown, machine.GracefulRestart, machine.ForceRestart,
			machine.Nmi, machine.PushPowerButton, machine.PowerCycle,
		},
		BootTargets:    []machine.SourceKind{machine.None, machine.Pxe, machine.Cd, machine.Hdd, machine.BiosSetup}, // [V] collection: irmc_setnextboot
		RedundantReset: dialect.RejectRedundant,                                                                     // [K] the allowable values are those that the power state allows
		MaxImageBytes:  256 << 20,
		BMC:            bmcSpec(),
		Protocol:       protocol(),
		Presentation:   presentation(n),
		OEM:            extensions(n),
		// [V] resource_virtual_media.go polls Inserted after a 2xx: the image is inserted
		// a little later, without a task.
		Media: dialect.Media{},
		// [V] common_bios.go: settings are applied during POST.
		BIOS: dialect.BIOS{ApplyTimes: applyTimes},
		Logs: dialect.Logs{System: "SystemEventLog", Manager: "InternalEventLog"}, // [V] collection: irmc_eventlog
		IPMI: ipmi(),
	}
	change(&r)
	return r
}

func bmcSpec() bmc.Spec {
	return bmc.Spec{
		// [V] resource_virtual_media.go: slot 0 is for .iso, slot 1 for .img.
		Slots: []bmc.SlotSpec{
			{ID: "0", Name: "Virtual CD", Types: []string{"CD", "DVD"}},
			{ID: "1", Name: "Virtual HD", Types: []string{"USBStick"}},
		},
		Sessions:       16,              // [K]
		SessionTimeout: 5 * time.Minute, // [K]
		Log:            bmc.LogSpec{Size: 2000, Full: bmc.Wraps},
		Audit:          bmc.LogSpec{Size: 1000, Full: bmc.Wraps},
		// [V] common.go: a client waits up to ten minutes for the restarted BMC.
		Life:          bmc.LifeSpec{Leave: 3 * time.Second, Offline: 90 * time.Second, Start: 40 * time.Second},
		Collect:       60 * time.Second,
		TaskRetention: bmc.TaskRetention{Ended: 24 * time.Hour, Delivered: 10 * time.Minute}, // [K]
		Key:           bmc.RSA2048,                                                           // [K]
		Network: bmc.Network{
			HTTPS: bmc.Service{On: true}, SSH: bmc.Service{Port: 22}, IPMI: bmc.Service{On: true}, KVM: bmc.Service{Port: 443},
			Media: bmc.Service{On: true, Port: 443}, SNMP: bmc.Service{Port: 161}, SSDP: bmc.Service{Port: 1900}, NTP: bmc.Service{Port: 123},
			DHCP: true, Use: bmc.DHCPUse{DNS: true, NTP: true, Domain: true, Gateway: true}, VLAN: bmc.VLAN{ID: 1},
			V6: bmc.IPv6{Use: bmc.DHCPv6Use{DNS: true, NTP: true, Domain: true}},
		},
		Accounts: bmc.AccountSpec{
			Most:    16,               // [K]
			NameMax: 32, NameNot: ":", // [V] user_account.md: names of up to 32
			Types: []bmc.TypeSpec{{Type: bmc.ForRedfish}, {Type: bmc.ForIPMI, Name: 16, Password: 20}},
			Policy: bmc.Policy{
				MinPassword: 12, MaxPassword: 32, // [V] user_account.md: 12 at least
				FailureLogThreshold: 3, AbsoluteSessionTimeout: 24 * time.Hour,
				// [K] lockout is disabled by default.
			},
		},
	}
}

func ipmi() dialect.IPMI {
	return dialect.IPMI{
		Manufacturer: 10368,                                             // [V] IANA: Fujitsu Siemens Computers
		Product:      0x0500, DeviceID: 0x24, Revision: 1, FirstUser: 2, // [K]
		CipherSuites: []byte{17, 3}, DisabledSuites: []byte{8, 7, 6, 2, 1}, // [K]
		MaxSessions: 16, MaxPendingLogins: 16,
		RejectResetWhileOff: true,
	}
}
