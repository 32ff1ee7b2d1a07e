// Package supermicro has the dialects of Supermicro's BMCs on boards of the eleventh
// generation (X11, H11) and of the thirteenth (X13, H13).
//
// The evidence is beside each datum: [V] was read in a public source, [K] is known
// from use and has no such source. Sources by short names:
//
//	mockup    NVIDIA/libredfish, tests/mockups/supermicro: a SYS-821GE-TNHR
//	          (X13), BMC 11.01.01
//	root      the same, src/model/testdata/supermicro_service_root.json
//	jgato     jgato/jgato, random_docs/Configuring_SuperMicro_UEFI.md: BMC
//	          3.72.13 and 3.72.19
//	badfish   redhat-performance/badfish, mount_virtual_media
//	names     NVIDIA/libredfish, src/supermicro.rs: QuietBoot#002E, IPv4HTTPSupport#00F7
//	sushy     openstack/sushy, release notes and constants
//	ironic    openstack/ironic, drivers/modules/redfish and ipmitool
//	fwupd     fwupd/fwupd, plugins/redfish
//	story     https://storyboard.openstack.org/#!/story/…
//	ansible   ansible-collections/community.general, issues and pull requests
//	reference docs/vendors.md, the tables of features by vendor
//
// These differ from a real BMC:
//   - ImageName is cleared by an eject, where it stays on a real BMC (ansible #6969).
//     Clients that read Inserted or ConnectedVia do not see that.
//   - An update preserves all settings, whatever Oem.Supermicro of UpdateParameters says.
//   - X11 accepts firmware as an upload; a real one uses CGI, which is no Redfish.
//   - There is no FixedBootOrder, which groups boot options: the boot order is
//     ComputerSystem.Boot.BootOrder, which X13 has as well (mockup).
//   - There are no SimpleStorage and HA-RAID OEM objects: Storage has the same names.
//   - InsertMedia of X13 accepts Inserted and WriteProtected: its ActionInfo lists
//     them (mockup), although some firmware of X12 and X13 rejects them (reference).
//     That is the quirk vmedia-strict-payload.
//   - Basic authentication never fails by chance, as it does on X10, and passwords are
//     those of the rack file, not of a sticker.
//   - A boot device that IPMI has set does not revert, as it does on some boards: no
//     source says when.
package supermicro

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/dialect/template"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// X11 is the dialect of X11 and H11 boards. They mount an image by an OEM
// configuration of a drive and, with later firmware, by an InsertMedia whose only
// parameter is Image [V: sushy fix-insert-media-payload; ansible #4839].
var X11 = quirk.Must(record("supermicro-x11", "1.0.1" /* [V: jgato] */, x11Presentation, func(r *dialect.Record) {
	r.BMC.Slots = []bmc.SlotSpec{{ID: "CD1", Name: "Virtual Removable Media", Types: []string{"CD", "DVD"}}} // [V: jgato]
	r.ResetTypes = []machine.ResetKind{                                                                      // [K]
		machine.ResetOn, machine.ForceOff, machine.GracefulShutdown, machine.GracefulRestart, machine.ForceRestart, machine.Nmi, machine.ForceOn,
	}
	r.Protocol.Registries = map[string]string{"Base": "1.4.0"}     // [K]
	r.Protocol.Queries = dialect.Queries{Unknown: dialect.Ignored} // [K]
	r.Protocol.ETags = dialect.ETags{Format: dialect.Weak}         // [V: reference]
	r.IPMI.CipherSuites = []byte{3, 17}                            // [K]
	r.OEM = x11OEM
	r.Deviations = append(r.Deviations,
		dialect.Deviation{ResourceType: "Bios", Path: "Attributes", Evidence: "names of BIOS attributes contain # [V: names]"},
		dialect.Deviation{ResourceType: "AttributeRegistry", Path: "RegistryEntries", Evidence: "names of BIOS attributes contain # [V: names]"},
		dialect.Deviation{ResourceType: "VirtualMediaCollection", Path: "@odata.id", Evidence: "the URI ends with VM1 [V: badfish]"},
		dialect.Deviation{ResourceType: "VirtualMedia", Path: "@odata.id", Evidence: "the URI is below VM1 [V: badfish]"},
	)
}), "boot-enabled-required" /* [V: story 2008547] */, "vmedia-strict-payload")

// X13 is the dialect of X13 and H13 boards. They have three virtual drives, and an
// InsertMedia with all parameters [V: mockup].
var X13 = quirk.Must(record("supermicro-x13", "1.9.0" /* [V: root] */, x13Presentation, func(r *dialect.Record) {
	for _, id := range []string{"VirtualMedia1", "VirtualMedia2", "VirtualMedia3"} { // [V: mockup]
		r.BMC.Slots = append(r.BMC.Slots, bmc.SlotSpec{ID: id, Name: "Virtual Removable Media", Types: []string{"CD", "DVD", "Floppy", "USBStick"}})
	}
	r.ResetTypes = []machine.ResetKind{ // [V: mockup, ResetActionInfo]
		machine.ResetOn, machine.ForceOff, machine.GracefulShutdown, machine.GracefulRestart, machine.ForceRestart, machine.Nmi, machine.ForceOn,
		machine.PowerCycle,
	}
	r.BootTargets = append(r.BootTargets[:len(r.BootTargets):len(r.BootTargets)], machine.UefiHTTP) // [V: mockup]
	r.Protocol.Registries = map[string]string{"Base": "1.10.3"}                                     // [K]
	// [V: root, ProtocolFeaturesSupported]
	r.Protocol.Queries = dialect.Queries{Select: true, Filter: true, ExpandAll: true, ExpandLinks: true, ExpandRest: true, MaxLevels: 2, Unknown: dialect.Ignored}
	r.IPMI.CipherSuites = []byte{17, 3} // [K]
	r.OEM = x13OEM
}), "boot-enabled-required") // [V: story 2008547]

func record(name, redfish string, presentation dialect.Presentation, more func(*dialect.Record)) dialect.Record {
	r := template.Record()
	r.Name, r.Vendor, r.ManagerModel, r.RedfishVersion = name, "Supermicro", "ASPEED" /* [V: mockup] */, redfish
	r.Product = ""                                       // not shown [V: mockup, root]
	r.SystemID, r.ManagerID, r.ChassisID = "1", "1", "1" // [V: mockup]
	r.BMC.Slots = nil
	r.BMC.Sessions = 16                                                                                   // [K]
	r.BMC.SessionTimeout = 300 * time.Second                                                              // [V: mockup, SessionService]
	r.BMC.Life = bmc.LifeSpec{Leave: 2 * time.Second, Offline: 60 * time.Second, Start: 45 * time.Second} // [K]
	a := &r.BMC.Accounts
	a.Most, a.NameMax = 10, 16                         // [K: IPMI's ten users]
	a.Policy.MinPassword, a.Policy.MaxPassword = 8, 20 // [V: mockup, AccountService]
	// [V: mockup, AccountService]
	a.Policy.LockoutThreshold, a.Policy.LockoutDuration, a.Policy.LockoutCounterResetAfter, a.Policy.FailureLogThreshold = 3, 30*time.Second, 30*time.Second, 3
	// The standard service's Cd is the virtual drive, which clients see as UsbCd. The
	// clients' Cd, an optical drive in the server, is RemoteDrive here, which no server
	// has (presentation.go).
	r.BootTargets = []machine.SourceKind{
		machine.None, machine.Pxe, machine.Floppy, machine.Cd, machine.Usb, machine.Hdd, machine.BiosSetup, machine.RemoteDrive, machine.UefiBootNext,
	}
	r.Logs = dialect.Logs{System: "Log1", Manager: "Log1"}                    // [V: mockup]
	r.BIOS = dialect.BIOS{ApplyTimes: []firmware.ApplyTime{firmware.OnReset}} // [V: mockup: applied on the next reboot]
	r.Protocol = dialect.Protocol{OEMTypes: oemTypes}
	r.Presentation = presentation.Clone()
	// What an update preserves [V: fwupd, fu-redfish-smc-device.c].
	r.Presentation.InputAliases = append(r.Presentation.InputAliases, dialect.InputAlias{
		ResourceType: "UpdateService", Method: "MultipartHttpPushUri", Path: "Oem/Supermicro", To: dialect.Discard,
	})
	r.IPMI = ipmi(r.IPMI)
	r.Deviations = []dialect.Deviation{{
		ResourceType: "ComputerSystem", Path: "Boot/BootSourceOverrideTarget", Evidence: "UsbCd is no BootSource of the standard [V: mockup]",
	}}
	more(&r)
	return r
}
