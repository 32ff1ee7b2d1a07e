// Package ilo has the dialects of HPE's iLO 4 (Gen8 and Gen9), 5 (Gen10), 6 (Gen11)
// and 7 (Gen12). The evidence is beside each datum: [V] was read in a public
// source, [K] is known from use and has no such source. The package knows no
// handler and no host.
//
// Sources by short names: "docs" is HPE's public Redfish reference (github.com/HPEDevCom/redfishdocs: iLO 5 3.04, iLO 6 1.70,
// iLO 7 1.14) and, of iLO 4, github.com/HewlettPackard/ilo-rest-api-docs;
// "table" is docs/vendors.md, which names its sources.
//
// In all four dialects these differ from a real iLO:
//   - Types have the versions of the service's schemas, which are newer [V docs],
//     and properties that those versions added.
//   - Messages in @Redfish.Settings are of the service's version of Base, where a
//     system ROM has Base.1.0 [V table].
//   - A login with a wrong password is rejected at once. The delay locks the account
//     for that time.
//   - The ETag in @Redfish.Settings has quotes, which iLO 6 and 7 omit.
//   - HttpPushUri accepts the image alone, and not a form with a session key at
//     /cgi-bin/uploadFile.
//   - Volumes are numbered from 1, where an MR controller numbers them from 239 down.
//     No controller makes RAID1Triple and RAID10Triple.
//   - There is no component repository, install set, update queue, backup and restore
//     service, remote support, federation or RIBCL, which is no Redfish. The standard's
//     CertificateService and Drive.SecureErase do the work of the OEM HttpsCert and
//     SanitizeDrive.
//   - A licence is always installed. The quirk license-denied removes it, and
//     boot-minimal-request is that of the DL160, for which there is no profile.
package ilo

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/dialect/template"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// generation has the names and numbers in which the generations differ.
type generation struct {
	name, model string
	n           int    // 4 to 7
	redfish     string // RedfishVersion
	base        string // version of Base [V docs, msgregs]
	registry    string // version of the registry iLO [V docs, msgregs]
	oem         string // property of Oem, and the prefix of OEM types
	firmware    string // format of Manager.FirmwareVersion; % is the version
}

var (
	gen4 = generation{
		name: "ilo4", model: "iLO 4", n: 4, oem: "Hp", // [K table: Oem.Hp, not Hpe]
		redfish:  "1.0.0",    // [V table]
		base:     "0.10.0",   // [V github.com/goldyfruit/ansible-ilo/issues/1: Base.0.10.Success]
		registry: "0.10.0",   // [V the same: iLO.0.10.InvalidOperationForSystemState]
		firmware: "iLO 4 v%", // [K table: 2.x]
	}
	gen5 = generation{
		name: "ilo5", model: "iLO 5", n: 5, oem: "Hpe", // [V table: Manager.Model]
		redfish:  "1.6.0", // [V table]
		base:     "1.18.0",
		registry: "2.23.0",
		firmware: "iLO 5 v%", // [V table: "iLO 5 v2.46"]
	}
	gen6 = generation{
		name: "ilo6", model: "iLO 6", n: 6, oem: "Hpe", // [V table]
		redfish:  "1.20.0", // [V table]
		base:     "1.18.0",
		registry: "2.34.0",
		firmware: "iLO 6 v%", // [V table: "iLO 6 v1.66"]
	}
	gen7 = generation{
		name: "ilo7", model: "iLO 7", n: 7, oem: "Hpe", // [V table]
		redfish:  "1.20.0", // [V table]
		base:     "1.18.0",
		registry: "2.31.0",
		firmware: "% May 28 2025", // [V table: "1.14.00 May 28 2025", with no name before it]
	}
)

// The records.
var (
	ILO4 = quirk.Must(fourth(), commonQuirks...)
	ILO5 = quirk.Must(fifth(), commonQuirks...)
	ILO6 = quirk.Must(sixth(), commonQuirks...)
	ILO7 = quirk.Must(seventh(), commonQuirks...)
)

// commonQuirks are the quirks of all generations.
var commonQuirks = []string{
	// The second failed login locks the account for ten seconds. There is no other
	// lockout [V table: AuthFailuresBeforeDelay 1,
	// AuthFailureDelayTimeSeconds 10, AuthFailureLoggingThreshold 3].
	"auth-delay after=1 for=10s most=10s",
	// The BIOS attribute registry is sent with gzip only; a client that does not
	// accept it is answered 406 [V docs, concepts/biosdatamodel; table, from sushy].
	"identity-406",
}

// common returns the record that all generations begin with.
func common(g generation) dialect.Record {
	r := template.Record()
	r.Name, r.ManagerModel, r.RedfishVersion = g.name, g.model, g.redfish
	r.Vendor, r.Product = "HPE", "ProLiant"              // the service root names the model
	r.SystemID, r.ManagerID, r.ChassisID = "1", "1", "1" // [V table]
	r.BMC.Slots = []bmc.SlotSpec{                        // [V table; docs, VirtualMedia.MediaTypes]
		{ID: "1", Name: "VirtualMedia", Types: []string{"Floppy", "USBStick"}},
		{ID: "2", Name: "VirtualMedia", Types: []string{"CD", "DVD"}},
	}
	r.BMC.Sessions, r.BMC.SessionTimeout = 24, 30*time.Minute // [K], [V table]
	// A reset takes about a minute and a half [K].
	r.BMC.Life = bmc.LifeSpec{Leave: 2 * time.Second, Offline: 60 * time.Second, Start: 30 * time.Second}
	a := &r.BMC.Accounts
	a.Most, a.NameMax = 12, 39                         // [K: HPE's user guides say 12 local accounts]; [V docs, ManagerAccount.UserName]
	a.Policy.MinPassword, a.Policy.MaxPassword = 8, 39 // [V docs, ManagerAccount.Password]
	a.Policy.FailureLogThreshold = 3                   // [V table]
	r.ResetTypes = []machine.ResetKind{                // [V table]: neither PowerCycle nor ForceOn
		machine.ResetOn, machine.ForceOff, machine.GracefulShutdown, machine.ForceRestart, machine.Nmi,
		machine.PushPowerButton, machine.GracefulRestart,
		machine.PowerCycle, // for the OEM action SystemReset
	}
	r.BootTargets = []machine.SourceKind{ // [V table]
		machine.None, machine.Cd, machine.Hdd, machine.Usb, machine.SDCard, machine.Utilities, machine.Diags,
		machine.BiosSetup, machine.Pxe, machine.UefiShell, machine.UefiHTTP, machine.UefiTarget,
	}
	r.RedundantReset = dialect.RejectRedundant // see rejectRules
	// A PATCH of the BIOS settings starts no task and accepts no apply time [V table].
	// The settings resource shows all attributes with their future values [V docs,
	// biosDoc].
	r.BIOS.ApplyTimes, r.BIOS.SettingsShowAll = []firmware.ApplyTime{firmware.OnReset}, true
	r.Logs = dialect.Logs{System: "IML", Manager: "IEL"} // [V docs, resmap: LogServices/IML, LogServices/IEL]
	r.Protocol = dialect.Protocol{
		Registries: map[string]string{"Base": g.base},
		// $levels is 1 at most, and other parameters that begin with $ are ignored [V
		// docs, odataqueryoptions: every $expand is one level of subordinate resources].
		Queries:  dialect.Queries{Select: true, Filter: true, Only: true, TopSkip: true, ExpandAll: true, ExpandRest: true, MaxLevels: 1, Unknown: dialect.Ignored},
		ETags:    dialect.ETags{Format: dialect.Weak}, // [V table: W/"1C210906" everywhere, and no If-Match is needed]
		Gzip:     true,
		OEMTypes: oemTypes(g),
	}
	r.Presentation, r.OEM = presentation(g), extensions(g)
	if g.n > 4 { // iLO 4 has BIOS attributes in Bios itself, without resources below it
		r.OEM.Resources = append(r.OEM.Resources, bootSettings(g)...)
		r.OEM.Resources = append(r.OEM.Resources, devices(g)...)
		r.Presentation.Transforms = append(r.Presentation.Transforms, transformsILO5To7(g)...)
		r.OEM.WritableProperties = append(r.OEM.WritableProperties, bootWrites(g))
	}
	r.Presentation.Transforms = append(r.Presentation.Transforms, nicTransform(g))
	r.OEM.WritableProperties = slices.Concat(r.OEM.WritableProperties, nicWrites(g), dateTimeWrites(g))
	r.IPMI = ipmi()
	r.Deviations = []dialect.Deviation{
		{ResourceType: "Session", Path: "@odata.type", Evidence: "sessions have no @odata.type [V table: the public mock-ups]"},
	}
	if g.n > 4 {
		r.Deviations = append(r.Deviations, dialect.Deviation{ResourceType: "Bios", Path: "@odata.id", Evidence: "the URI is in small letters, below systems [V table, docs]"})
	}
	return r
}

// fourth returns the record of iLO 4 [K table; V docs of iLO 4].
func fourth() dialect.Record {
	r := common(gen4)
	f := &r.Presentation
	f.TrailingSlash = true // [K table: in every link]
	f.URIMappings = append(f.URIMappings, mappingsILO4...)
	f.Hidden = append(append(f.Hidden, hiddenBeforeILO6...), hiddenInILO4...)
	f.Transforms = append(f.Transforms, transformsILO4()...)
	f.RejectRules = append([]dialect.RejectRule{{
		ResourceType: "ComputerSystem", Method: reset, OneOf: when("ResetType", "GracefulShutdown", "GracefulRestart"), // [K table]
		Message: baseMessage(gen4, "ActionParameterValueNotInList", "The value %2 of the parameter %1 is not in the list of those that are taken."),
	}}, f.RejectRules...)
	// Media are inserted by PATCH, or by OEM actions [K table; V docs].
	r.Media.InsertByPatch = true
	r.BIOS.FlatAttributes = true // [K table]
	r.OEM.Resources = append(r.OEM.Resources, smartArrays(gen4)...)
	r.OEM.Resources = append(r.OEM.Resources, flashService)
	r.OEM.Actions = append(r.OEM.Actions, flash)
	// The API before Redfish is served as well, and a client can log in at either URI
	// [K table].
	r.OEM.URIAliases = append(r.OEM.URIAliases, dialect.URIMapping{From: "/rest/v1", To: "/redfish/v1"}, dialect.URIMapping{From: "/redfish/v1/Sessions", To: "/redfish/v1/SessionService/Sessions"})
	// It implements no query parameters [K].
	r.Protocol.Queries = dialect.Queries{Unknown: dialect.Ignored}
	r.Deviations = append(r.Deviations, dialect.Deviation{ResourceType: "ManagerNetworkProtocol", Path: "@odata.id", Evidence: "the URI ends with NetworkService [V docs of iLO 4]"})
	return r
}

// fifth returns the record of iLO 5 [V table, docs ilo5_304].
func fifth() dialect.Record {
	r := common(gen5)
	r.Presentation.TrailingSlashAsRequested = true // [V docs, ilo5_changelog, "Trailing slashes on URIs": from 1.40 on]
	r.Presentation.URIMappings = append(r.Presentation.URIMappings, biosMappings...)
	r.Presentation.Hidden = append(r.Presentation.Hidden, hiddenBeforeILO6...)
	r.Presentation.Transforms = append(r.Presentation.Transforms, transformsILO5...)
	r.Presentation.RejectRules = append(slices.Clone(readOnlyVolumes), r.Presentation.RejectRules...)
	r.OEM.Resources = append(append(r.OEM.Resources, smartArrays(gen5)...), smartConfig()...)
	r.OEM.WritableProperties = append(r.OEM.WritableProperties, smartWrites...)
	// ResetBios resets the settings resource [V table].
	for _, act := range []string{"ResetBios", "ChangePassword"} {
		r.OEM.URIAliases = append(r.OEM.URIAliases, dialect.URIMapping{From: "/redfish/v1/systems/{system}/bios/settings/Actions/Bios." + act, To: system + "/Bios/Actions/Bios." + act})
		r.Deviations = append(r.Deviations, dialect.Deviation{ResourceType: "Bios", Path: "Actions/#Bios." + act + "/target", Evidence: "the target is below the settings resource [V table]"})
	}
	return r
}

// sixth returns the record of iLO 6 [V table, docs ilo6_170]. Volumes are created at
// once, of the RAID types that the controller supports.
func sixth() dialect.Record {
	r := common(gen6)
	r.Protocol.WriteableProperties = []string{"Drive"} // [V: checkmk, tests/unit/cmk/plugins/redfish, drives of DE07A000]
	r.Presentation.TrailingSlashAsRequested = true     // [V as for iLO 5]
	r.Presentation.URIMappings = append(r.Presentation.URIMappings, biosMappings...)
	r.Presentation.Transforms = append(r.Presentation.Transforms, transform{ResourceType: "Manager", Remove: []string{"PowerState"}}) // [V github.com/ironcore-dev/metal-operator/issues/594]
	r.BMC.Accounts.Policy.Basic = bmc.BasicUnadvertised                                                                               // [V table]
	return r
}

// seventh returns the record of iLO 7 [V table, docs ilo7_114 and ilo7_adaptation].
func seventh() dialect.Record {
	r := common(gen7)
	r.Protocol.WriteableProperties = []string{"Drive"} // [V: checkmk, tests/unit/cmk/plugins/redfish, drives of DE07A000]
	r.Presentation.TrailingSlashAsRequested = true     // [V as for iLO 5]
	r.Presentation.URIMappings = append(r.Presentation.URIMappings, biosMappings...)
	r.Presentation.Hidden = append(r.Presentation.Hidden, chassis+"/PowerSubsystem") // [V docs: its resmap has none]
	r.BMC.Accounts.Policy.Basic = bmc.BasicUnadvertised                              // [V table]
	return r
}
