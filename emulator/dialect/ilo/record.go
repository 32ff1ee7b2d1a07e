// Package ilo is how HPE's iLO speaks: 4 (Gen8 and Gen9), 5 (Gen10), 6 (Gen11)
// and 7 (Gen12). It is data, with what it is known from beside each datum: [V]
// is what a public source says, [K] what is only said to be so. It knows no
// handler and no host.
//
// The sources, by the names that stand beside the data: "docs" is HPE's public
// Redfish reference (github.com/HPEDevCom/redfishdocs: iLO 5 3.04, iLO 6 1.70,
// iLO 7 1.14) and, of iLO 4, github.com/HewlettPackard/ilo-rest-api-docs;
// "table" is the table of vendors' dialects that this project began with, whose
// own sources are named there.
//
// What is as it is here and not as it is there, for all four: types have the
// versions of the service's own schemas, which are newer, and properties that
// came with them [V docs name older ones]; a message of
// @Redfish.Settings is that of Base which the service speaks, where a system
// ROM says Base.1.0 [V table]; a login with a wrong password is refused at once,
// and the delay is that nobody can log in to the account for so long.
package ilo

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// generation is in what the generations differ that is a word or a number.
type generation struct {
	name, model string
	redfish     string // RedfishVersion
	base        string // version of Base [V docs, ilo*_msgregs]
	own         string // version of the registry iLO [V docs, ilo*_msgregs]
	oem         string // name of the vendor in Oem, and of his types
	firmware    string // form of Manager.FirmwareVersion
}

var (
	gen5 = generation{
		name: "ilo5", model: "iLO 5", oem: "Hpe", // [V table: Manager.Model]
		redfish:  "1.6.0", // [V table]
		base:     "1.18.0",
		own:      "2.23.0",
		firmware: "iLO 5 v%", // [V table: "iLO 5 v2.46"]
	}
)

// The records.
var ILO5 = fifth()

// common is what all of them have.
func common(g generation) dialect.Record {
	r := generic.Record
	r.Name, r.ManagerModel, r.RedfishVersion = g.name, g.model, g.redfish
	r.Vendor, r.Product = "HPE", "ProLiant"              // the root says which ProLiant
	r.SystemID, r.ManagerID, r.ChassisID = "1", "1", "1" // [V table]
	r.BMC.Slots = []bmc.SlotSpec{                        // [V table; docs, VirtualMedia.MediaTypes]
		{ID: "1", Name: "VirtualMedia", Types: []string{"Floppy", "USBStick"}},
		{ID: "2", Name: "VirtualMedia", Types: []string{"CD", "DVD"}},
	}
	r.BMC.Sessions, r.BMC.SessionTimeout = 24, 30*time.Minute // [K], [V table]
	// It is away for about a minute and a half after a reset [K].
	r.BMC.Life = bmc.LifeSpec{Leave: 2 * time.Second, Offline: 60 * time.Second, Start: 30 * time.Second}
	a := &r.BMC.Accounts
	a.Most, a.NameMax = 12, 39                         // [K: HPE's user guides say 12 local accounts]; [V docs, ManagerAccount.UserName]
	a.Policy.MinPassword, a.Policy.MaxPassword = 8, 39 // [V docs, ManagerAccount.Password]
	// One login may fail; after the next one the account waits for ten seconds.
	// There is no other lock [V table: AuthFailuresBeforeDelay 1,
	// AuthFailureDelayTimeSeconds 10, AuthFailureLoggingThreshold 3].
	a.Policy.LockAfter, a.Policy.LockFor, a.Policy.ForgetAfter, a.Policy.NoteEvery = 2, 10*time.Second, 10*time.Second, 3
	r.ResetTypes = []machine.ResetKind{ // [V table]: neither PowerCycle nor ForceOn
		machine.ResetOn, machine.ForceOff, machine.GracefulShutdown, machine.ForceRestart, machine.Nmi,
		machine.PushPowerButton, machine.GracefulRestart,
		machine.PowerCycle, // for the vendor's own SystemReset
	}
	r.BootTargets = []machine.SourceKind{ // [V table]
		machine.None, machine.Cd, machine.Hdd, machine.Usb, machine.SDCard, machine.Utilities, machine.Diags,
		machine.BiosSetup, machine.Pxe, machine.UefiShell, machine.UefiHTTP, machine.UefiTarget,
	}
	r.Redundant = dialect.Refuse // rules.go says how
	// A change of BIOS settings makes no task and takes no apply time [V table].
	r.BIOS.Times = []firmware.ApplyTime{firmware.OnReset}
	r.Logs = dialect.Logs{System: "IML", Manager: "IEL"} // [V docs, resmap: LogServices/IML, LogServices/IEL]
	r.Protocol = dialect.Protocol{
		Registries: map[string]string{"Base": g.base},
		// Levels is 1, and what else begins with $ is taken for nothing [V docs,
		// odataqueryoptions: every $expand is one level of what is not a link].
		Queries: dialect.Queries{Select: true, Filter: true, Only: true, TopSkip: true, ExpandAll: true, ExpandRest: true, Levels: 1, Unknown: dialect.Ignored},
		ETags:   dialect.ETags{Written: dialect.Weak}, // [V table: W/"1C210906" everywhere, and no If-Match is needed]
		Gzip:    true,
		// The registry of BIOS attributes is there as gzip only; who wants it
		// otherwise is answered 406 [V docs, concepts/biosdatamodel; table, from sushy].
		Packed: []string{"/redfish/v1/Registries/{registry}/{document}"},
		OEM:    types(g),
	}
	r.Face, r.Own = face(g), own(g)
	r.IPMI = ipmi()
	r.Breaks = []dialect.Break{
		{Of: "Session", Path: "@odata.type", Why: "sessions do not say of which type they are [V table: the public mock-ups]"},
	}
	return r
}

// fifth is iLO 5 [V table, docs ilo5_304].
func fifth() dialect.Record {
	r := common(gen5)
	r.Face.Moves = append(r.Face.Moves, bios...)
	r.Face.Shut = append(r.Face.Shut, modern...)
	r.Face.Shapes = append(r.Face.Shapes, gen10...)
	r.Face.Rules = append(slices.Clone(arrays), r.Face.Rules...)
	r.Own.Resources = append(r.Own.Resources, smartArrays()...)
	r.Own.Writes = append(r.Own.Writes, smartWrites...)
	return r
}
