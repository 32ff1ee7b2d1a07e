// Package xcc has the dialects of Lenovo's XClarity Controller: the first generation
// (ThinkSystem SR650, SR650 V2) and the second (V3).
//
// The evidence is beside each datum: [V] was read in a public source, [K] is known
// from use and has no such source. Sources by short names:
//
//	mockup    NVIDIA/libredfish, tests/mockups/lenovo: a ThinkSystem SR670 V2,
//	          XCC TGBT42S 2.83
//	libredfish  the same, src/lenovo.rs
//	scripts   lenovo/python-redfish-lenovo, examples
//	restapi   https://pubs.lenovo.com/xcc-restapi and xcc2-restapi, UpdateService
//	sushy     openstack/sushy, release notes
//	gofish, bmclib, community.general: issues and pull requests of these
//	reference docs/vendors.md, the tables of features by vendor
//
// These differ from a real XCC:
//   - SimpleUpdate fetches by HTTP and HTTPS, not by TFTP and SFTP.
//   - ForceRestart does not hang: only one model (SR675) has that quirk.
//   - There are no Feature on Demand keys (Oem/Lenovo/FoD): the licences are installed.
//     The quirk license-denied removes them.
package xcc

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/dialect/template"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// First is the dialect of XCC, firmware 2.50 and later: before that the collection
// of virtual media was empty (reference).
var First = record("xcc", "Lenovo XClarity Controller" /* [V: mockup] */, "1.15.0" /* [V: mockup] */, firstPresentation, nil)

// Second is the dialect of XCC2.
var Second = record("xcc2", "Lenovo XClarity Controller 2" /* [K] */, "1.17.0" /* [K] */, secondPresentation, func(r *dialect.Record) {
	// HTTP boot is offered [K].
	r.BootTargets = append(r.BootTargets[:len(r.BootTargets):len(r.BootTargets)], machine.UefiHTTP)
	// IPMI over LAN is disabled by default [V: mockup, NetworkProtocol/IPMI; K for V3];
	// a PATCH of NetworkProtocol enables it.
	r.BMC.Network.IPMI.On = false
	r.OEM = withManagerMedia(r.OEM)
	// The ETag of a resource with readings has changed before the client sends it back
	// [V: community.general #11261, #11270: 412 for Chassis/1/Power; other resources
	// have that more rarely: the quirk etag-mismatch-own].
	r.Protocol.ETags.Volatile = []string{"Power"}
})

// slots are the virtual drives [V: mockup, in this order]. EXT alone accepts
// images; Remote and RDOC belong to the remote console (rejectRules).
var slots = func() (all []bmc.SlotSpec) {
	for _, id := range []string{"EXT1", "EXT2", "EXT3", "EXT4", "Remote1", "Remote2", "Remote3", "Remote4", "RDOC1", "RDOC2"} {
		all = append(all, bmc.SlotSpec{ID: id, Name: "VirtualMedia", Types: []string{"CD", "DVD", "Floppy", "USBStick"}})
	}
	return all
}()

// commonQuirks are quirks that every XCC has: virtual media are inserted by PATCH
// of both Image and Inserted [V: sushy fix-virtual-media-fallback;
// pastebin.com/dLZ2vLWN: 400 PropertyMissing for Inserted], and a boot override
// holds once or not at all [V: mockup; bmclib providers/lenovo/boot.go].
var commonQuirks = []string{"vmedia-patch-only", "boot-no-continuous"}

func record(name, model, redfish string, presentation dialect.Presentation, more func(*dialect.Record), quirks ...string) dialect.Record {
	r := template.Record()
	r.Name, r.Vendor, r.ManagerModel, r.RedfishVersion = name, "Lenovo" /* [V: mockup] */, model, redfish
	r.Product = ""                                       // not shown [V: mockup]
	r.SystemID, r.ManagerID, r.ChassisID = "1", "1", "1" // [V: mockup]
	r.BMC.Slots = slots
	r.BMC.Sessions = 16                                                                                   // [V: reference]
	r.BMC.SessionTimeout = 300 * time.Second                                                              // [V: mockup, SessionService]
	r.BMC.Log = bmc.LogSpec{Size: 511, Full: bmc.Stays}                                                   // [V: mockup, LogServices/SEL: NeverOverWrites]
	r.BMC.Life = bmc.LifeSpec{Leave: 3 * time.Second, Offline: 75 * time.Second, Start: 45 * time.Second} // [K]
	r.BMC.Network.KVM.Port, r.BMC.Network.Media.Port = 3900, 3900                                         // [V: mockup, NetworkProtocol]
	a := &r.BMC.Accounts
	a.Most, a.NameMax = 12, 16                                                                   // [K: twelve local users]
	a.Policy.MinPassword, a.Policy.MaxPassword = 10, 32                                          // [V: mockup, AccountService]
	a.Policy.LockoutThreshold = 5                                                                // [K]; in the mockup somebody has set 0
	a.Policy.LockoutDuration, a.Policy.LockoutCounterResetAfter = 60*time.Second, 60*time.Second // [V: mockup]
	// [V: mockup, Systems/1]
	r.ResetTypes = []machine.ResetKind{
		machine.ResetOn, machine.Nmi, machine.GracefulShutdown, machine.GracefulRestart, machine.ForceOn, machine.ForceOff, machine.ForceRestart,
	}
	r.BootTargets = []machine.SourceKind{ // [V: mockup]
		machine.None, machine.Pxe, machine.Cd, machine.Usb, machine.Hdd, machine.BiosSetup, machine.Diags, machine.UefiTarget,
	}
	r.RedundantReset = dialect.AcceptRedundant // [K]
	r.MaxImageBytes = 250000000                // [V: mockup, UpdateService]
	r.Logs = dialect.Logs{System: "SEL" /* [V: mockup] */, Manager: "AuditLog" /* [V: mockup, there under the system] */}
	// A push of the wrong parts is answered as an action without its parameters [V: restapi,
	// "Multipart HTTP Push update for firmware"]; the action's name is not told [K].
	r.Uploads.Action = "UpdateService.MultipartHttpPush"
	r.BIOS = dialect.BIOS{
		ApplyTimes:      []firmware.ApplyTime{firmware.OnReset}, // [V: mockup, Bios]
		SettingsShowAll: true,                                   // [V: mockup, Bios/Pending]
	}
	// The first read of the monitor of an ended task removes the task [V: bmclib providers/lenovo].
	r.Tasks = dialect.Tasks{MonitorReadOnce: true}
	r.Protocol = dialect.Protocol{
		Registries: map[string]string{"Base": "1.12.1", "TaskEvent": "1.0.3", "ResourceEvent": "1.2.0", "LogService": "1.0.0"}, // [V: mockup, Registries]
		// [V: mockup, ProtocolFeaturesSupported]
		Queries: dialect.Queries{
			Select: true, Filter: true, Only: true, Excerpt: true, ExpandAll: true, ExpandLinks: true, ExpandRest: true, MaxLevels: 2,
			Unknown: dialect.Ignored, // [K]
		},
		OEMTypes: oemTypes,
	}
	r.Presentation = presentation.Clone()
	r.IPMI = ipmi(r.IPMI)
	r.OEM = extensions
	if more != nil {
		more(&r)
	}
	return quirk.Must(r, append(commonQuirks[:len(commonQuirks):len(commonQuirks)], quirks...)...)
}
