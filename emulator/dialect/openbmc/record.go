// Package openbmc has the dialect of OpenBMC: bmcweb and phosphor-ipmi-net as their
// projects build them. Firmware that vendors build from them may differ.
//
// The evidence is beside each datum: [V] was read in https://github.com/openbmc/bmcweb
// (redfish-core/lib where no folder is named), [K] is known from use and has no such
// source.
package openbmc

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Record is the dialect of OpenBMC.
//
// It has no licences, and no BIOS settings: bmcweb has those only with a BIOS manager
// of the platform.
var Record = dialect.Record{
	Name:           "openbmc",
	Product:        "OpenBMC",
	Vendor:         "OpenBMC",    // bodies omit product and vendor: see presentation.go
	RedfishVersion: "1.17.0",     // [V] service_root.hpp
	SystemID:       "system",     // [V] meson.options: redfish-system-uri-name
	ManagerID:      "bmc",        // [V] meson.options: redfish-manager-uri-name
	ChassisID:      "chassis",    // [V] mockups; it differs by board
	ManagerModel:   "OpenBmc",    // [V] managers.hpp
	ResetTypes:     resetTypes(), // [V] systems.hpp: On and ForceOff, and those that the chassis of the board supports
	BootTargets:    bootTargets(),
	RedundantReset: dialect.AcceptRedundant, // [K] D-Bus accepts a transition to the present state
	MaxImageBytes:  64 << 20,                // [V] meson.options: http-body-limit, 30 MiB as built; boards raise it
	BMC:            bmcSpec(),
	Protocol:       protocol(),
	Presentation: dialect.Presentation{
		URIMappings: uriMappings(), Hidden: hidden(), Transforms: transforms(), RejectRules: rejectRules(),
		InputAliases: []dialect.InputAlias{
			// [V] account_service.hpp: a POST takes an account without RoleId for a User,
			// which is none of the roles, so that it is refused as one.
			{ResourceType: "ManagerAccountCollection", Method: "POST", Path: "RoleId", Default: "User", DefaultWith: []string{"UserName", "Password"}},
		},
		// [V] redfish-core/src/error_messages.cpp: error.code is the first message's, as
		// in the standard.
	},
	OEM: extensions(),
	// [V] update_service.hpp: extractMultipartUpdateParameters asks for UpdateFile alone, in
	// any order, and reads no part of another name; handleUpdateServicePost.
	Uploads: dialect.Uploads{OptionalParameters: true, IgnoreUnknownParts: true, OctetStreamOnly: true, MaxTargets: 1},
	Media:   dialect.Media{}, // [V] virtual_media.hpp: InsertMedia answers once the image is mounted
	Logs:    dialect.Logs{System: "EventLog", Manager: "Journal", DeletableEntries: true},
	IPMI:    ipmi(),
	Deviations: []dialect.Deviation{
		{ResourceType: "Bios", Path: "Id", Evidence: "the URI ends with Bios, and Id is BIOS: bmcweb, bios.hpp"},
	},
}

func resetTypes() []machine.ResetKind {
	return []machine.ResetKind{
		machine.ResetOn, machine.ForceOff, machine.ForceOn, machine.ForceRestart, machine.GracefulRestart,
		machine.GracefulShutdown, machine.PowerCycle, machine.Nmi, // [V] systems.hpp: dbusToRfAllowedHostTransitions
	}
}

// bootTargets are [V] systems.hpp: assignBootParameters and dbusToRfBootSource.
func bootTargets() []machine.SourceKind {
	return []machine.SourceKind{machine.None, machine.Pxe, machine.Hdd, machine.Cd, machine.Diags, machine.BiosSetup, machine.Usb}
}

func bmcSpec() bmc.Spec {
	return bmc.Spec{
		// [V] virtual_media.hpp, vmItemTemplate: both are CD and USBStick. The first
		// belongs to the browser (proxy), the second accepts a URI (legacy); the names
		// are those of the virtual media service [K].
		Slots: []bmc.SlotSpec{
			{ID: "Slot_0", Name: "Virtual Removable Media", Types: []string{"CD", "USBStick"}},
			{ID: "Slot_1", Name: "Virtual Removable Media", Types: []string{"CD", "USBStick"}},
		},
		Sessions:       64,               // [K]
		SessionTimeout: 30 * time.Minute, // [V] include/sessions.hpp: 1800 s
		Log:            bmc.LogSpec{Size: 200, Full: bmc.Wraps},
		Audit:          bmc.LogSpec{Size: 1000, Full: bmc.Wraps},
		Life:           bmc.LifeSpec{Leave: 3 * time.Second, Offline: 75 * time.Second, Start: 45 * time.Second}, // [K] an AST2600 with systemd
		Collect:        60 * time.Second,
		// [V] task.hpp: a task remains until there are a hundred newer ones, and
		// TaskService has no TaskAutoDeleteTimeoutMinutes.
		TaskRetention: bmc.TaskRetention{Ended: 30 * 24 * time.Hour, Delivered: 5 * time.Minute},
		Key:           bmc.P256, // [V] include/ssl_key_handler.hpp: secp384r1; the curve makes no difference here
		Network: bmc.Network{
			HTTPS: bmc.Service{On: true}, SSH: bmc.Service{Port: 22}, IPMI: bmc.Service{On: true}, KVM: bmc.Service{Port: 5900},
			Media: bmc.Service{On: true, Port: 627}, SNMP: bmc.Service{Port: 161}, SSDP: bmc.Service{Port: 1900}, NTP: bmc.Service{Port: 123},
			DHCP: true, Use: bmc.DHCPUse{DNS: true, NTP: true, Domain: true, Gateway: true}, VLAN: bmc.VLAN{ID: 1},
			V6: bmc.IPv6{Use: bmc.DHCPv6Use{DNS: true, NTP: true, Domain: true}},
		},
		Accounts: bmc.AccountSpec{
			Most: 15, // [V] account_service.hpp: POST; phosphor-user-manager: maxSystemUsers less one
			// [V] phosphor-user-manager: names that useradd accepts; 16 bytes for IPMI.
			NameMax: 30, NameNot: ":/@",
			Types: []bmc.TypeSpec{{Type: bmc.ForRedfish}, {Type: bmc.ForIPMI, Name: 16, Password: 20}},
			Policy: bmc.Policy{
				MinPassword: 8, MaxPassword: 20, // [V] pam_ipmicheck in front of Linux-PAM
				FailureLogThreshold: 3,
				LockoutThreshold:    0, // [V] account_service.hpp; faillock's deny is 0 as built
				LockoutDuration:     0,
				// Sessions end only when they are idle.
				AbsoluteSessionTimeout: 24 * time.Hour,
			},
		},
	}
}

func ipmi() dialect.IPMI {
	return dialect.IPMI{
		Manufacturer: 49871,  // [V] IANA: OpenBMC Project
		Product:      0x0000, // [K] boards set it in dev_id.json
		DeviceID:     0x00, Revision: 0,
		FirstUser:    2,          // [K] a real one has root as user 1, which is the user without a name here
		CipherSuites: []byte{17}, // [V] https://github.com/bmc-toolbox/bmclib/pull/324; phosphor-ipmi-net: cipher_list.json
		// [V] phosphor-host-ipmid, chassishandler.cpp, ipmiChassisSetSysBootOptions: 0, 3,
		// 4 and 5 (3 since 86ac499 of 2021). Quirk ipmi-no-bootparam3 has the builds before.
		MissingBootOptions: []byte{1, 2, 6, 7},
		MaxSessions:        15, MaxPendingLogins: 5, // [V] phosphor-ipmi-net, sessions_manager.hpp: maxSessionCountPerChannel
		ClearSELDuration: 0,
		// [V] phosphor-host-ipmid, chassishandler.cpp: power cycle and hard reset are
		// transitions of the host that start it when it is off.
		RejectResetWhileOff: false,
	}
}
