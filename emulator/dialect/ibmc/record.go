// Package ibmc has the dialect of Huawei's iBMC on servers of generation V5.
//
// The evidence is beside each datum. Sources by short names: client is
// https://github.com/IamFive/python-ibmcclient (its tests replay responses of
// servers), cmdlets is https://github.com/IamFive/Huawei-iBMC-Cmdlets,
// collection is https://github.com/Huawei/Server_Management_Plugin_Ansible. [V]
// was read there or in docs/vendors.md; [K] is known from use and has no such source.
// xFusion's and H3C's variants have Oem.xFusion and Oem.Public.
package ibmc

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// Record is the dialect of iBMC.
//
// It lacks licences, which no client reads; SecureBoot, which V5 has only as a BIOS
// setting (OemSecureBoot); protocols of SimpleUpdate other than HTTP and HTTPS (SFTP,
// SCP, NFS, CIFS and others); and BootEnable of volumes: the boot order says which
// volume boots.
var Record = dialect.Record{
	Name: "ibmc", Product: "iBMC", Vendor: "Huawei", // bodies omit product and vendor: see presentation.go
	RedfishVersion: "1.0.2",                             // [V] client: redfish.json
	SystemID:       "1", ManagerID: "1", ChassisID: "1", // [V] client
	ManagerModel: "iBMC", // [V] client: manager.json
	ResetTypes: []machine.ResetKind{ // [V] cmdlets: PowerControl.ps1; presentation.go renames PowerCycle
		machine.ResetOn, machine.ForceOff, machine.GracefulShutdown, machine.ForceRestart, machine.Nmi, machine.PowerCycle,
	},
	BootTargets:    []machine.SourceKind{machine.None, machine.Pxe, machine.Floppy, machine.Cd, machine.Hdd, machine.BiosSetup}, // [V] client: system-v5.json
	RedundantReset: dialect.AcceptRedundant,                                                                                     // [K]
	MaxImageBytes:  90 << 20,                                                                                                    // [K]
	BMC:            bmcSpec(),
	Protocol:       protocol(),
	Presentation:   presentation(),
	OEM:            extensions(),
	Media:          dialect.Media{},                                                  // the OEM action answers 202 with a task: oem.go
	BIOS:           dialect.BIOS{ApplyTimes: []firmware.ApplyTime{firmware.OnReset}}, // [V] client: bios.json names none
	Logs:           dialect.Logs{System: "Log1", Manager: "OperateLog"},              // [V] collection: api_manage_logs.py takes the first
	IPMI:           ipmi(),
	Deviations: []dialect.Deviation{
		{ResourceType: "ComputerSystem", Path: "Links/Managers", Evidence: "Links.ManagedBy has the name Managers: client, system-v5.json"},
		{ResourceType: "Task", Path: "Messages", Evidence: "Messages of an ended task is an object: client, create-volume-task-exception-response.json"},
		{ResourceType: "ComputerSystem", Path: "Actions/Oem/Huawei", Evidence: "OEM actions are in an object Huawei: client, system-v5.json"},
		{ResourceType: "StorageCollection", Path: "@odata.id", Evidence: "the URI ends with Storages: client, get-raid-storage-0.json"},
		{ResourceType: "Storage", Path: "@odata.id", Evidence: "the URI is below Storages"},
		{ResourceType: "VolumeCollection", Path: "@odata.id", Evidence: "the URI is below Storages: client, get-volume-0.json"},
		{ResourceType: "Volume", Path: "@odata.id", Evidence: "the URI is below Storages: client, get-volume-0.json"},
	},
}

func bmcSpec() bmc.Spec {
	return bmc.Spec{
		Slots:          []bmc.SlotSpec{{ID: "CD", Name: "VirtualMedia", Types: []string{"CD", "DVD"}}}, // [V] cmdlets: Deploy.ps1
		Sessions:       4,                                                                              // [K]
		SessionTimeout: 5 * time.Minute,                                                                // [K]
		Log:            bmc.LogSpec{Size: 2000, Full: bmc.Wraps},                                       // [K]
		Audit:          bmc.LogSpec{Size: 1000, Full: bmc.Wraps},
		Life:           bmc.LifeSpec{Leave: 5 * time.Second, Offline: 120 * time.Second, Start: 40 * time.Second}, // [K]
		Collect:        90 * time.Second,
		TaskRetention:  bmc.TaskRetention{Ended: time.Hour, Delivered: 10 * time.Minute}, // [K] a BMC has few tasks
		Key:            bmc.RSA2048,                                                      // [K]
		Network: bmc.Network{
			HTTPS: bmc.Service{On: true}, SSH: bmc.Service{Port: 22}, IPMI: bmc.Service{On: true}, KVM: bmc.Service{Port: 2198},
			Media: bmc.Service{On: true, Port: 8208}, SNMP: bmc.Service{Port: 161}, SSDP: bmc.Service{Port: 1900}, NTP: bmc.Service{Port: 123},
			DHCP: true, Use: bmc.DHCPUse{DNS: true, NTP: true, Domain: true, Gateway: true}, VLAN: bmc.VLAN{ID: 1},
			V6: bmc.IPv6{Use: bmc.DHCPv6Use{DNS: true, NTP: true, Domain: true}},
		},
		Accounts: bmc.AccountSpec{
			Most:    16,                          // [K] ids 2 to 17
			NameMax: 16, NameNot: ":<>&,'\"/\\%", // [V] collection: ibmc_create_account.py
			Types: []bmc.TypeSpec{{Type: bmc.ForRedfish}, {Type: bmc.ForIPMI, Name: 16, Password: 20}},
			Policy: bmc.Policy{
				MinPassword: 8, MaxPassword: 20, // [V] collection: ibmc_create_account.py
				FailureLogThreshold: 3, AbsoluteSessionTimeout: 24 * time.Hour,
				LockoutThreshold: 5, LockoutDuration: 5 * time.Minute, LockoutCounterResetAfter: 5 * time.Minute, // [V] docs/vendors.md for 5; [K] for the minutes
			},
		},
	}
}

func ipmi() dialect.IPMI {
	return dialect.IPMI{
		Manufacturer: 2011,                                              // [V] IANA: Huawei Technologies
		Product:      0x0001, DeviceID: 0x01, Revision: 1, FirstUser: 2, // [K] administrators begin at 2
		CipherSuites: []byte{17, 3}, DisabledSuites: []byte{12, 8, 7, 6, 2, 1, 0}, // [K]
		MaxSessions: 15, MaxPendingLogins: 15, RejectResetWhileOff: true,
	}
}

func protocol() dialect.Protocol {
	return dialect.Protocol{
		Registries: map[string]string{"Base": "1.0.0"}, // [V] client: reset-system.json
		// [K] nothing but $expand of collections; the rest is ignored.
		Queries: dialect.Queries{ExpandAll: true, ExpandRest: true, MaxLevels: 1, TopSkip: true, Unknown: dialect.Ignored},
		// [V] client: storage.py, cmdlets: Redfish.ps1: a PATCH needs If-Match, a DELETE
		// does not, so that volumes and accounts, which have both, are missing here.
		// Clients that send no If-Match, such as sushy before 4.6 for BIOS settings,
		// cannot change those, nor on a real iBMC [V] gofish#174, ansible#60031 (whose
		// iBMC 3.31 answers 412). ETags are weak [V] gofish#175, gofish#177.
		ETags: dialect.ETags{Format: dialect.Weak, IfMatchRequired: []string{
			"ComputerSystem", "Bios", "Manager", "ManagerNetworkProtocol", "EthernetInterface", "Chassis", "Storage", "Drive",
			"AccountService", "SessionService", "EventService", "LogService",
		}},
	}
}
