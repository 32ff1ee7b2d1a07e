// Package megarac has the dialect of AMI's MegaRAC SP-X, which BMCs of several makers
// run: Gigabyte, ASRock Rack, Lenovo's SR635 and SR655, NVIDIA's DGX.
//
// The evidence is beside each datum: [V] was read in a public source, [K] is known
// from use and has no such source. Sources by short names:
//
//	mockup    NVIDIA/libredfish, tests/mockups/nvidia_viking: a DGX H100, whose
//	          Redfish is AMI's
//	libredfish  the same, src/nvidia_viking.rs
//	scripts   lenovo/python-redfish-lenovo, examples, of SR635 and SR655
//	gofish    stmcginnis/gofish, issues
//	ansible   ansible-collections/community.general, pull requests
//	ironic    openstack/ironic, drivers/modules/redfish/management.py
//	reference docs/vendors.md, the tables of features by vendor
//
// These differ from some boards:
//   - $expand keeps required properties, and dates are valid: the quirks expand-broken
//     and dates-bad are for boards on which they are not.
//   - A boot override may be changed in part. The boards of ASRock Rack, and those that
//     name AMI as their maker, take it whole alone [V: ironic]: the quirk
//     boot-full-request. No source says so of the boards of Gigabyte and Lenovo, which the
//     profiles are of.
//   - InsertMedia needs no UserName and Password, as it does on DGX alone.
//   - Storage is a controller without RAID: on real boards it is limited (reference).
package megarac

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/template"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// Record is the dialect of MegaRAC SP-X.
var Record = record()

func record() dialect.Record {
	r := template.Record()
	r.Name, r.Vendor, r.Product, r.RedfishVersion = "megarac", "AMI", "AMI Redfish Server", "1.11.0" // [V: mockup]
	r.ManagerModel = "MegaRAC SP-X"                                                                  // [K]
	r.SystemID, r.ManagerID, r.ChassisID = "Self", "Self", "Self"                                    // [V: reference; ansible #6434]
	r.BMC.Slots = nil
	for _, id := range []string{"CD1", "CD2", "CD3", "CD4"} { // [V: scripts: four instances; the ID CD1]
		r.BMC.Slots = append(r.BMC.Slots, bmc.SlotSpec{ID: id, Name: "CD/DVD Instance", Types: []string{"CD", "DVD"}})
	}
	r.BMC.Sessions = 15                                                                                   // [K]
	r.BMC.SessionTimeout = 30 * time.Minute                                                               // [K]: SessionService says 30, and means minutes (presentation.go)
	r.BMC.Life = bmc.LifeSpec{Leave: 2 * time.Second, Offline: 80 * time.Second, Start: 60 * time.Second} // [K]
	a := &r.BMC.Accounts
	a.Most, a.NameMax = 15, 16                         // [K: IPMI's users]
	a.Policy.MinPassword, a.Policy.MaxPassword = 8, 20 // [V: mockup for the maximum; its minimum is configured by the site]
	// [V: mockup, AccountService]
	a.Policy.LockoutThreshold, a.Policy.LockoutDuration, a.Policy.LockoutCounterResetAfter, a.Policy.FailureLogThreshold = 5, 30*time.Second, 30*time.Second, 3
	r.ResetTypes = []machine.ResetKind{ // [K]
		machine.ResetOn, machine.ForceOff, machine.GracefulShutdown, machine.ForceRestart, machine.ForceOn, machine.PowerCycle, machine.Nmi,
	}
	r.BootTargets = []machine.SourceKind{ // [K]
		machine.None, machine.Pxe, machine.Cd, machine.Usb, machine.Hdd, machine.BiosSetup, machine.UefiTarget, machine.UefiBootNext, machine.UefiHTTP,
	}
	r.Logs = dialect.Logs{System: "BIOS" /* [K] */, Manager: "SEL" /* [V: libredfish] */}
	// The settings resource shows all attributes with their future values [V: mockup,
	// Bios/SD].
	r.BIOS = dialect.BIOS{ApplyTimes: []firmware.ApplyTime{firmware.OnReset}, SettingsShowAll: true}
	r.Media.AsyncInsert = true // insertions are tasks [V: scripts]
	r.Protocol = dialect.Protocol{
		// [V: mockup, Registries, but with Base 1.12.0; sushy 4.3 expects Base 1.5]
		Registries: map[string]string{"Base": "1.5.0", "TaskEvent": "1.0.1", "Update": "1.0.1"},
		// [V: mockup, ProtocolFeaturesSupported]
		Queries: dialect.Queries{
			Select: true, Filter: true, Only: true, Excerpt: true, ExpandAll: true, ExpandLinks: true, ExpandRest: true, MaxLevels: 5,
			Unknown: dialect.Ignored, // [K]
		},
		// A PATCH without If-Match is rejected [V: gofish #171, of an SR655; libredfish,
		// which sends * with every PATCH, that of Bios/SD and SecureBoot too; ansible
		// #6434, of Bios/SD of a Gigabyte]. A DELETE is not [K]. Clients that write BIOS
		// or SecureBoot without it, such as sushy before 4.6, are rejected, as by a real
		// BMC.
		ETags: dialect.ETags{IfMatchRequired: []string{"*"}, DeleteWithoutIfMatch: true},
		Messages: map[string]dialect.VendorMessage{"PreconditionRequired": {
			Registry: "Ami", Version: "1.0.0", Key: "PreconditionHeaderMissing", // [V: gofish #171]
			Text:       "The request has no If-Match header, which this resource needs.",
			Resolution: "Read the resource, and send its ETag with the request.",
		}},
		OEMTypes: oemTypes,
	}
	r.Presentation = presentation.Clone()
	r.IPMI = ipmi(r.IPMI)
	r.OEM = extensions
	return r
}
