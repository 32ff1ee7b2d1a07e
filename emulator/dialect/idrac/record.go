package idrac

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// generation has the data in which the generations differ.
type generation struct {
	name     string
	redfish  string // version of the protocol
	registry string // version of the registry IDRAC
	base     string // version of the registry Base
	product  uint16 // IPMI product ID
	model    string
	profile  string // prefix of the actions that export and import profiles
	old      bool   // iDRAC 8, which lacks most of the OEM resources
	hardware string // attribute Info.1.HWModel; "": it has none
}

// nineHardware is the attribute Info.1.HWModel of iDRAC 9.
const nineHardware = "iDRAC 9"

// The records, for the newest firmware of each generation. A profile names the one of
// its BMC. [V: ironic, drivers/modules/drac: a Manager.Model of "13G Monolithic" is an
// iDRAC 8, 14G to 16G an iDRAC 9, anything later an iDRAC 10. dellemc.openmanage,
// plugins/module_utils/idrac_redfish.py, reads Info.1.HWModel, and takes a BMC without
// DellAttributes for an iDRAC 8. Firmware 6.00.30 lacks Info.1.HWModel (libredfish,
// tests/mockups/dell); here all of iDRAC 9 has it.]
var (
	Eight = eight(generation{"idrac8", "1.4.0", "1.6.0", "1.0.0", 0x0100, "13G Monolithic", oldProfile, true, ""})
	// NineFive is iDRAC 9 before 6.00, which has virtual media below the manager.
	NineFive = nineFive(generation{"idrac9-5", "1.11.0", "2.4.0", "1.8.1", 0x0100, "14G Monolithic", oldProfile, false, nineHardware})
	Nine     = record(generation{"idrac9", "1.17.0", "2.8.0", "1.12.1", 0x0100, "15G Monolithic", newProfile, false, nineHardware})
	Ten      = ten(generation{"idrac10", "1.20.1", "2.11.0", "1.18.1", 0x0100, "17G Monolithic", newProfile, false, "iDRAC 10"})
)

// record returns the record that all generations begin with: that of iDRAC 9 from 6.00
// on. A datum without a mark is from docs/vendors.md.
func record(g generation) dialect.Record {
	return dialect.Record{
		Name:           g.name,
		Product:        "Integrated Dell Remote Access Controller", // [K]
		Vendor:         "Dell",                                     // [K]
		RedfishVersion: g.redfish,                                  // [K: 1.4 to 1.17]
		SystemID:       "System.Embedded.1",                        // [V]
		ManagerID:      "iDRAC.Embedded.1",                         // [V]
		ChassisID:      "System.Embedded.1",                        // [V]
		ManagerModel:   g.model,                                    // [V]
		BMC:            spec(),
		// [V: scripts of Dell's for iDRAC 9]
		ResetTypes: []machine.ResetKind{
			machine.ResetOn, machine.ForceOff, machine.ForceRestart, machine.GracefulRestart, machine.GracefulShutdown,
			machine.PushPowerButton, machine.Nmi, machine.PowerCycle,
		},
		// [V: sushy, sample of a system of the 14th generation]
		BootTargets: []machine.SourceKind{
			machine.None, machine.Pxe, machine.Floppy, machine.Cd, machine.Hdd, machine.BiosSetup, machine.Utilities,
			machine.UefiTarget, machine.SDCard, machine.UefiHTTP,
		},
		RedundantReset: dialect.RejectRedundant, // [V: PSU501 while the server is on already: presentation.go]
		MaxImageBytes:  1 << 30,
		Logs:           dialect.Logs{System: "Sel", Manager: "Lclog"}, // [V: dellemc.openmanage asks for LogServices/Lclog/Entries]
		Protocol: dialect.Protocol{
			Registries: map[string]string{"Base": g.base},
			Messages:   messages(g),
			// [V: sushy, sample of a root: one level of $expand, $filter and $select]
			Queries: dialect.Queries{
				TopSkip: true, Select: true, Filter: true, Only: true, ExpandAll: true, ExpandLinks: true, ExpandRest: true, MaxLevels: 1,
			},
			// [V: iDRAC-Redfish-Scripting#12: nextLink after 50 log entries]
			PageSize: 50,
			Gzip:     true,
			// [V: dellemc.openmanage, idrac_bios with reset_bios: the module sends a text]
			ActionTexts: true,
			// [V: metal-operator#1015: an action with If-Match is answered 412]
			ETags:    dialect.ETags{RejectIfMatchOnActions: true},
			OEMTypes: oemTypes,
		},
		Presentation: presentation(g),
		OEM:          extensions(g),
		BIOS:         biosRules,
		Tasks:        dialect.Tasks{LocationIsTask: true}, // Location names the task [V]
		IPMI:         ipmi(g),
		Deviations: []dialect.Deviation{
			{ResourceType: "DellJobCollection", Path: "Id", Evidence: "Id is JobQueue [V: sushy, sample of a queue]"},
			{ResourceType: "DellJobService", Path: "Id", Evidence: "Id is Job Service [V: sushy, sample of it]"},
		},
	}
}

// biosRules describes BIOS settings, which only a job applies. A PATCH without an apply
// time starts none, and the client creates it with a POST to the jobs; a PATCH with an
// apply time is answered 202 [V]. Immediate is not among the apply times [V].
var biosRules = dialect.BIOS{
	WaitForApplyTime: true, TaskForApplyTime: true, TaskName: biosJob, ApplyDuration: time.Minute,
	ApplyTimes: []firmware.ApplyTime{firmware.OnReset, firmware.AtMaintenanceWindowStart, firmware.InMaintenanceWindowOnReset},
}

// spec returns the bmc.Spec of the record.
func spec() bmc.Spec {
	return bmc.Spec{
		// [V: from 6.00 on, as numbers]
		Slots: []bmc.SlotSpec{
			{ID: "1", Name: "VirtualMedia Instance 1", Types: []string{"CD", "DVD", "USBStick"}},
			{ID: "2", Name: "VirtualMedia Instance 2", Types: []string{"CD", "DVD", "USBStick"}},
		},
		Sessions:       8,                // [V: "max 8ish"]
		SessionTimeout: 30 * time.Minute, // [V: 1800 s]
		Log:            bmc.LogSpec{Size: 1024, Full: bmc.Wraps},
		Audit:          bmc.LogSpec{Size: 4000, Full: bmc.Wraps},
		// A reset of an iDRAC takes some minutes; sushy then waits up to 16 minutes for
		// its services [V: sushy, oem/dell].
		Life:          bmc.LifeSpec{Leave: 5 * time.Second, Offline: 100 * time.Second, Start: 60 * time.Second},
		Collect:       2 * time.Minute,
		TaskRetention: bmc.TaskRetention{Ended: 7 * 24 * time.Hour, Delivered: 10 * time.Minute},
		Key:           bmc.RSA2048,
		Network: bmc.Network{
			HTTPS: bmc.Service{On: true}, SSH: bmc.Service{Port: 22}, IPMI: bmc.Service{On: true}, KVM: bmc.Service{Port: 5900},
			Media: bmc.Service{On: true, Port: 627}, SNMP: bmc.Service{Port: 161}, SSDP: bmc.Service{Port: 1900}, NTP: bmc.Service{Port: 123},
			DHCP: true, Use: bmc.DHCPUse{DNS: true, NTP: true, Domain: true, Gateway: true}, VLAN: bmc.VLAN{ID: 1},
			V6: bmc.IPv6{Use: bmc.DHCPv6Use{DNS: true, NTP: true, Domain: true}},
		},
		// 16 slots, changed by PATCH; the first is reserved [V: nv-redfish].
		Accounts: bmc.AccountSpec{
			Most: 16, Fixed: true, Reserved: []string{"1"}, NameMax: 16, NameNot: ":",
			Types: []bmc.TypeSpec{{Type: bmc.ForRedfish}, {Type: bmc.ForIPMI, Name: 16, Password: 20}},
			Policy: bmc.Policy{
				MinPassword: 1, MaxPassword: 40, FailureLogThreshold: 1,
				LockoutThreshold: 5, LockoutDuration: 30 * time.Second, LockoutCounterResetAfter: 30 * time.Second, // [V: 5/30/30]
				AbsoluteSessionTimeout: 24 * time.Hour,
			},
		},
	}
}

// nineFive returns the record of iDRAC 9 with firmware 5.x.
func nineFive(g generation) dialect.Record {
	r := record(g)
	// [V: Managers/…/VirtualMedia/{CD,RemovableDisk}]
	r.BMC.Slots = []bmc.SlotSpec{
		{ID: "CD", Name: "Virtual CD", Types: []string{"CD", "DVD"}},
		{ID: "RemovableDisk", Name: "Virtual Removable Disk", Types: []string{"Floppy", "USBStick"}},
	}
	r.Presentation.URIMappings = append(r.Presentation.URIMappings, dialect.URIMapping{From: media, To: managersMedia})
	r.Presentation.Hidden = append(r.Presentation.Hidden, media+"/{slot}/Certificates") // a manager's virtual media have no Certificates in the standard
	r.OEM.URIAliases = slices.DeleteFunc(r.OEM.URIAliases, func(m dialect.URIMapping) bool { return m.To == media })
	r.Presentation.RejectRules = slices.DeleteFunc(r.Presentation.RejectRules, func(u dialect.RejectRule) bool { return u.ResourceType == "Volume" }) // from 6.00.02 on [V]
	return r
}

// eight returns the record of iDRAC 8.
func eight(g generation) dialect.Record {
	r := nineFive(g)
	r.Product, r.Vendor = "Integrated Remote Access Controller", "" // no Vendor on old ones [K]
	// [K: some servers of the 13th generation have neither ForceRestart nor PowerCycle]
	r.ResetTypes = []machine.ResetKind{
		machine.ResetOn, machine.ForceOff, machine.GracefulRestart, machine.GracefulShutdown, machine.PushPowerButton, machine.Nmi,
	}
	r.BootTargets = []machine.SourceKind{
		machine.None, machine.Pxe, machine.Floppy, machine.Cd, machine.Hdd, machine.BiosSetup, machine.Utilities, machine.UefiTarget, machine.SDCard,
	}
	r.Protocol.Queries = dialect.Queries{TopSkip: true, ExpandAll: true, ExpandLinks: true, ExpandRest: true, MaxLevels: 1, Unknown: dialect.Ignored}
	r.Protocol.ETags = dialect.ETags{} // [V: no client sends If-Match]
	r.Protocol.Gzip = false
	// Cd is an optical drive of the server. Virtual media boot only by the attribute
	// FirstBootDevice, which profiles set [V: sushy; issue 90 of Dell's scripts]. No
	// client sees UsbCd.
	r.Media.BootTarget = machine.UsbCd
	targets := make([]any, len(r.BootTargets))
	for i, t := range r.BootTargets {
		targets[i] = string(t)
	}
	r.BootTargets = append(r.BootTargets, machine.UsbCd)
	r.Presentation.Transforms = append(r.Presentation.Transforms,
		dialect.Transform{ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{
			{Path: target + "@Redfish.AllowableValues", Value: targets},
			{Path: target, From: target, Map: map[string]any{"UsbCd": "Cd"}, Otherwise: dialect.LeaveUnchanged},
		}},
		dialect.Transform{ResourceType: "ServiceRoot", Remove: []string{"Vendor"}},
	)
	r.Presentation.RejectRules = append(r.Presentation.RejectRules, dialect.RejectRule{ResourceType: "ComputerSystem", Method: "PATCH", OneOf: map[string][]string{target: {"UsbCd"}},
		Message: g.message("SYS428", "The property %1 does not take %2.")})
	r.BMC.Sessions = 4
	r.Presentation.Errors.SingleObject = true // ExtendedInfo is an object at times [V]
	// Settings have no apply times: a client creates a job for a PATCH [K].
	r.Presentation.RejectRules = append(r.Presentation.RejectRules,
		// [V: POST to Sessions is 405: Basic]
		dialect.RejectRule{ResourceType: "SessionCollection", Method: "POST", Status: 405, Message: g.message("SYS402", "The method of the request is not there for this address.")},
		// [V: sushy: 2.75.75.75 answers ResetBios without a body 400]
		dialect.RejectRule{ResourceType: "Bios", Method: "Bios.ResetBios", EmptyBody: true, Message: g.message("SYS405", "The body of the request is not JSON.")},
	)
	r.Presentation.URIMappings = append(r.Presentation.URIMappings,
		dialect.URIMapping{From: "/redfish/v1/AccountService/Accounts", To: "/redfish/v1/Managers/{manager}/Accounts"}, // [V]
		dialect.URIMapping{From: "/redfish/v1/AccountService/Roles", To: "/redfish/v1/Managers/{manager}/Roles"},
		dialect.URIMapping{From: "/redfish/v1/AccountService", To: "/redfish/v1/Managers/{manager}/AccountService"},
		dialect.URIMapping{From: "/redfish/v1/SessionService/Sessions", To: "/redfish/v1/Sessions"},
		dialect.URIMapping{From: "/redfish/v1/JsonSchemas", To: "/redfish/v1/JSONSchemas"},
	)
	r.Deviations = slices.DeleteFunc(r.Deviations, func(b dialect.Deviation) bool { return b.ResourceType == "DellJobService" }) // iDRAC 8 has none
	r.Deviations = append(r.Deviations, dialect.Deviation{ResourceType: "DellAttributes", Path: "Id", Evidence: "before 4.x Id is the name of the group, which is not the last segment of the URI [V]"})
	// Deviations that follow from the URI mappings.
	moved := func(resourceType, evidence string) dialect.Deviation {
		return dialect.Deviation{ResourceType: resourceType, Path: "@odata.id", Evidence: evidence}
	}
	r.Deviations = append(r.Deviations,
		moved("AccountService", "the URI is below the manager [V]"), moved("ManagerAccountCollection", "the URI is below the manager [V]"),
		moved("ManagerAccount", "the URI is below the manager [V]"), moved("RoleCollection", "the URI is below the manager [V]"), moved("Role", "the URI is below the manager [V]"),
		moved("SessionCollection", "the URI is below the root [V]"), moved("Session", "the URI is below the root [V]"),
		moved("JsonSchemaFileCollection", "the URI ends with JSONSchemas [K]"), moved("JsonSchemaFile", "the URI is below JSONSchemas [K]"),
	)
	r.Presentation.Hidden = append(r.Presentation.Hidden,
		"/redfish/v1/TelemetryService", "/redfish/v1/ComponentIntegrity", "/redfish/v1/Systems/{system}/SecureBoot/SecureBootDatabases",
		"/redfish/v1/UpdateService/SoftwareInventory", "/redfish/v1/AccountService/Accounts/{account}/Certificates",
	)
	return r
}

// ten returns the record of iDRAC 10.
func ten(g generation) dialect.Record {
	r := record(g)
	r.BMC.Slots = r.BMC.Slots[:1] // [V: only the first is of use to ironic]
	// An account is made by a POST [V: issue 342 of Dell's scripts], and one that was not
	// made is not there [V: github.com/dsx-ai-factory/infra-controller/issues/6358, R670 and
	// R770 with 1.30.30.50]. The number of accounts is iDRAC 9's [K]. A client may choose the
	// ID [V: CreateDeleteIdracUsersREDFISH.py of Dell's scripts].
	r.BMC.Accounts.Fixed, r.BMC.Accounts.ChosenID = false, true
	// Servers of this generation start by UEFI alone [V: libredfish#26; registries/dell-17g.yaml].
	const mode = "Boot/BootSourceOverrideMode"
	r.Presentation.Transforms = append(r.Presentation.Transforms, dialect.Transform{ResourceType: "ComputerSystem", Set: []dialect.PropertyRule{
		{Path: mode + "@Redfish.AllowableValues", Value: []any{"UEFI"}},
	}})
	r.Presentation.RejectRules = append(r.Presentation.RejectRules, dialect.RejectRule{ResourceType: "ComputerSystem", Method: "PATCH", OneOf: map[string][]string{mode: {"Legacy"}},
		Message: g.message("SYS426", "The property %1 does not take %2.")})
	// [V: gofish#511 and sushy; launchpad 2162995]
	r = quirk.Must(r, "boot-readonly-use-settings", "power-settle-409 for=5s")
	// Images come with their parameters or from a URI [V: DeviceFirmwareSimpleUpdateREDFISH.py
	// of Dell's scripts: no HttpPushUri].
	r.Presentation.Transforms = append(r.Presentation.Transforms, dialect.Transform{ResourceType: "UpdateService", Remove: []string{"HttpPushUri"}})
	r.Presentation.Hidden = append(r.Presentation.Hidden, "/redfish/v1/UpdateService/Upload")
	r.Presentation.URIMappings = tenURIMappings(r.Presentation.URIMappings)
	// The message of Base is the first, and lists have no counts [V: issue 1017 of
	// dellemc.openmanage].
	e := &r.Presentation.Errors
	e.ReplacedFirst, e.EmptyLists, e.Counts = true, true, false
	for i, o := range r.OEM.Resources { // boot options are those of the system
		if o.BasedOn == system {
			r.OEM.Resources[i].Remove = append(slices.Clip(o.Remove), "Boot/BootOptions", "Boot/Certificates")
		}
	}
	r.OEM.URIAliases = slices.DeleteFunc(r.OEM.URIAliases, func(m dialect.URIMapping) bool { return strings.HasPrefix(m.To, attributes) })
	// [V: Bios.ClearPending replaces DellManager.ClearPending]
	for i, a := range r.OEM.Actions {
		if a.Name == "DellManager.ClearPending" {
			r.OEM.Actions[i].Name, r.OEM.Actions[i].Target = "Bios.ClearPending", "/Actions/Bios.ClearPending"
		}
	}
	return r
}

// tenURIMappings returns the URI mappings of iDRAC 10: other names of fans [V:
// idrac_exporter#202, an R670 with 1.30.10.50] and of sensors [V: issues 1039 and 1088 of
// dellemc.openmanage and its system_metrics.py; the R770's own are in its profile].
func tenURIMappings(all []dialect.URIMapping) []dialect.URIMapping {
	all = slices.DeleteFunc(slices.Clone(all), func(m dialect.URIMapping) bool { return m.From == fans+"/Fan{n}" })
	all = append(all, dialect.URIMapping{From: fans + "/Fan{n}", To: fans + "/CoolingController.1.Fan{n}"})
	const sensors = chassis + "/Sensors/"
	rename := func(from, to string) {
		all = append(all, dialect.URIMapping{From: sensors + from, To: sensors + to})
	}
	// One by one, since Fan{n} is Fan1_1 as well.
	for i := range 12 {
		n := strconv.Itoa(i + 1)
		rename("Fan"+n, "Fan"+n+"_1") // the first of two rotors
		rename("PSU"+n+"InputPower", "PSU.Slot."+n+"_InputPower")
		rename("PSU"+n+"OutputPower", "PSU.Slot."+n+"_OutputPower")
	}
	rename("TotalPower", "SystemBoardPwrConsumption")
	return all
}
